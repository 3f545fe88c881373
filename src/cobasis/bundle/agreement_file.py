"""The agreement on disk: one TOML file that people comment on, and nobody's comments are lost."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

import tomlkit
from tomlkit.items import AoT, Table

from cobasis.disk.whole import opened, write_whole
from cobasis.errors import AgreementError, AgreementFileError
from cobasis.protocol.agreement import Agreement, missing_fields, moment_text
from cobasis.protocol.enrolment import Approver, OneLine, PublicIdentity
from cobasis.protocol.news import MAX_BYTES as NEWS_BYTES
from cobasis.protocol.news import News
from cobasis.protocol.signatures import Signature, check_sealed, signers
from cobasis.protocol.sums_terms import NEEDED_FOR_ROWS

Line = TypeVar("Line", bound=OneLine)

MAX_BYTES = 2**25
"""Some ten times what 8,192 features take."""

_SOME = 3
"""So many parties stand in a draft without any; every kind of basis can be agreed on by them."""


SEALED, REVOKED = ".sealed.toml", ".revocation"

BY_COMMAND = {"parties", "enrolled", "analyst", "commitment"}
"""Fields that `cobasis agreement new` fills in, from .pub files and with the secret."""


@dataclass(frozen=True, kw_only=True)
class AgreementFile:
    agreement: Agreement
    signatures: tuple[Signature, ...]  # verified or not
    gaps: tuple[str, ...] = ()  # of a draft: what is not filled yet


def read_agreement(path: Path, *, text: str | None = None) -> AgreementFile:
    """Read an agreement that is whole, signed or not; a text in place of the file's, if given."""
    document = _document(path, text)
    agreement = _agreement(_fields_of(document), path=path)
    signatures = tuple(Signature(**each) for each in document.get("signature", ()))
    return AgreementFile(agreement=agreement, signatures=signatures)


def read_draft(path: Path, *, text: str | None = None) -> dict[str, Any]:
    """Return the fields that are filled so far; `missing_fields` says which are not."""
    return _fields_of(_document(path, text))


def read_terms(path: Path, *, text: str | None = None) -> Agreement:
    """Read an agreement, or a draft of one, with made-up parties where it has none."""
    fields = read_draft(path, text=text)
    names = [f"party-{at}" for at in range(_SOME)]
    made_up: dict[str, Any] = {"parties": names, "holdings": [], "minimum_parties": _SOME}
    if "sums" not in fields:
        made_up |= {"commitment": "0" * 64, "minimum_parties": 1}
    whole = {**made_up, **fields} if fields.get("parties") else {**fields, **made_up}
    return _agreement(whole, path=path)


def _agreement(fields: Mapping[str, Any], *, path: Path) -> Agreement:
    known, missing = Agreement.model_fields, missing_fields(fields)
    empty = [name for name in missing if name in NEEDED_FOR_ROWS or known[name].is_required()]
    if empty:
        by_hand = ", ".join(name for name in missing if name not in BY_COMMAND)
        then = f"Fill {by_hand} by hand, then type" if by_hand else "Type"
        pubs = " *.pub" if {"enrolled", "analyst"} & {*missing} else ""
        raise AgreementError(
            f"the agreement '{path}' is still a draft: {', '.join(missing)} must be filled. {then} "
            f"`cobasis agreement new {path}{pubs}`, which writes who takes part and the commitment."
        )
    return _validated(json.dumps(fields))


@lru_cache(maxsize=4)  # a command reads its agreement again and again, which may be long
def _validated(fields: str) -> Agreement:
    return Agreement.model_validate_json(fields)


def text_of(path: Path) -> str:
    with opened(path) as (file, stamp):
        if stamp.size > MAX_BYTES:
            raise AgreementFileError(
                f"'{path}' has {stamp.size:,} bytes, and no agreement has more than "
                f"{MAX_BYTES:,}. Give the agreement's TOML file."
            )
        data = file.readall() or b""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _no_toml(path, f"line {line}: it is no UTF-8 text") from None


def line_in(path: Path, kind: type[Line]) -> Line:
    """Read a small file, a .pub or a .sig; an AgreementError names it."""
    try:
        return kind.from_text(text_of(path))
    except (AgreementError, AgreementFileError) as error:
        raise AgreementError(f"'{path}' cannot be used: {error.args[0]}") from None


def news_at(path: Path, agreement: Agreement) -> News | None:
    """Return the news of a round that lie there, if they are its analyst's."""
    if not path.exists():
        return None
    with opened(path) as (file, _):  # anybody may have put a pipe there, or what has no end
        return News.from_text(file.read(NEWS_BYTES + 1) or b"", agreement)


def _document(path: Path, text: str | None) -> dict[str, Any]:
    """Return what a TOML text says, in JSON's types; AgreementFileError where it is none."""
    text = text_of(path) if text is None else text
    try:
        plain: dict[str, Any] = json.loads(_as_json(text))
    except (RecursionError, ValueError) as error:  # also for brackets, or digits, without end
        raise _no_toml(path, str(error)) from None
    for title in ("party", "approver", "groups", "signature"):
        listed = plain.get(title, [])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            raise AgreementError(
                f"the agreement '{path}' has a {title} that is no [[{title}]] table. Correct it."
            )
    return plain


@lru_cache(maxsize=4)
def _as_json(text: str) -> str:
    return json.dumps(tomllib.loads(text), default=_as_text)


def _no_toml(path: Path, reason: str) -> AgreementFileError:
    return AgreementFileError(
        f"'{path}' cannot be read as TOML: {reason}. Correct that line; texts stand in double "
        "quotes, and tables like [[features]] come after all single fields."
    )


def _fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in document.items() if value != ""}
    fields.pop("signature", None)
    for table in ("dp", "record", "outcome"):
        if isinstance(terms := fields.get(table), dict):
            fields[table] = {name: value for name, value in terms.items() if value != ""}
    if taken := sorted({"parties", "enrolled", "approvers"} & fields.keys()):
        raise AgreementError(
            f"{', '.join(taken)} cannot be told: people are [[party]] and [[approver]] tables. "
            "Delete it, and give .pub files to `cobasis agreement new`."
        )
    if "approver" in fields:
        fields["approvers"] = fields.pop("approver")
    if "party" in fields:
        fields["enrolled"] = fields.pop("party")
        fields["parties"] = [each["name"] for each in fields["enrolled"] if "name" in each]
    return fields


def _as_text(value: object) -> str:
    """Return what JSON has no word for: a time as text, in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        with suppress(OverflowError):  # near the first year or the last: not a time of ours
            return moment_text(value)
    return str(value)


def complete(
    text: str,
    *,
    path: Path,
    parties: Iterable[PublicIdentity] = (),
    approvers: Iterable[Approver] = (),
    analyst: PublicIdentity | None = None,
    groups: Iterable[PublicIdentity] = (),
    commitment: str = "",
) -> str:
    """Return an unsigned agreement's text with who takes part and the commitment to their secret.

    New people stand behind the others, known ones are written anew, and comments stay. A
    commitment that stood there goes: it was to a secret for those who were enrolled then.
    """
    if "signature" in _document(path, text):
        raise AgreementError(
            f"the agreement '{path}' was signed, and a change would make every signature void. "
            "Make a new agreement, with a round of its own."
        )
    document = tomlkit.parse(text)
    for title, people in (("party", parties), ("approver", approvers), ("groups", groups)):
        if people and not isinstance(document.get(title), AoT):
            document[title] = tomlkit.aot()
        known = {str(each.get("name")): each for each in document.get(title, ())}
        for person in people:
            if person.name in known:
                known[person.name].update(person.model_dump())
            else:
                document[title].append(_table(person.model_dump()))
    if analyst is not None and isinstance(document.get("analyst"), Table):
        document["analyst"].update(analyst.model_dump())
    elif analyst is not None:
        document["analyst"] = _table(analyst.model_dump())
    if "sums" not in document:  # of sums nobody needs a secret
        document["commitment"] = commitment
    return tomlkit.dumps(document)


def write_agreement(path: Path, text: str) -> None:
    """Write the file whole or not at all; it is public, and keeps the mode it had."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_whole(path, text.encode(), mode=mode)


def sealed_path(path: Path) -> Path:
    """Return where the sealed form of an agreement stands: ``icu.sealed.toml``."""
    return path.with_name(f"{stem_of(path)}{SEALED}")


def beside(path: Path, end: str) -> list[Path]:
    """Return the files beside an agreement that have its name, a dot and an end like *.sig."""
    return sorted(path.parent.glob(f"{escape(stem_of(path))}.{end}"))


def stem_of(path: Path) -> str:
    """Return how the files of a round begin: ``icu`` for ``icu.toml`` and ``icu.sealed.toml``."""
    return path.name.removesuffix(SEALED).removesuffix(".toml")


def inbox_of(path: Path) -> Path:
    """Return where a server keeps what parties bring: ``icu.inbox`` beside ``icu.toml``."""
    return path.with_name(f"{stem_of(path)}.inbox")


def seal(path: Path, signatures: Iterable[Signature]) -> Path:
    """Write the sealed form of an agreement beside it, if with these everybody has signed."""
    agreement = read_agreement(path).agreement
    given = {each.name: each for each in signatures}
    check_sealed(agreement, signatures=given.values())
    document = tomlkit.parse(text_of(path))
    tables = tomlkit.aot()
    for name in signers(agreement):
        tables.append(_table(given[name].model_dump()))
    document["signature"] = tables
    write_agreement(sealed_path(path), tomlkit.dumps(document))
    return sealed_path(path)


def sealed_agreement(path: Path) -> Agreement:
    found = signed_agreement(path)
    check_sealed(found.agreement, signatures=found.signatures)
    return found.agreement


def signed_agreement(path: Path, *, draft: bool = False) -> AgreementFile:
    """Return an agreement with the signatures at hand, those in .sig files beside it, too.

    With `draft` it may also be one that says who takes part, and of which nobody has signed.
    """
    gaps = missing_fields(read_draft(path)) if draft else ()
    if gaps and not {"enrolled", "analyst"} & {*gaps}:
        return AgreementFile(agreement=read_terms(path), signatures=(), gaps=gaps)
    found, sealed = read_agreement(path), sealed_path(path)
    if found.signatures or not sealed.exists():
        signed = [line_in(each, Signature) for each in sorted(path.parent.glob("*.sig"))]
        digest = found.agreement.digest().hex()
        beside = tuple(each for each in signed if each.agreement == digest)
        return replace(found, signatures=found.signatures or beside)
    whole = read_agreement(sealed)
    if whole.agreement.digest() != found.agreement.digest():
        raise AgreementError(
            f"'{sealed}' is not what stands in '{path}': they differ in more than "
            "signatures. Ask the others which of the two they signed, and delete the other."
        )
    return whole


def _table(fields: Mapping[str, str]) -> Table:
    table = tomlkit.table()
    table.update(fields)
    table.add(tomlkit.nl())
    return table
