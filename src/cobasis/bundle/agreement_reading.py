"""The agreement's TOML, read: its fields, its signatures, and what a draft still lacks."""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from cobasis.disk.files import opened
from cobasis.errors import AgreementError, AgreementFileError, UnsignedError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.agreement_fields import missing_fields, moment_text
from cobasis.protocol.enrolment import OneLine
from cobasis.protocol.signatures import Signature, check_sealed

Line = TypeVar("Line", bound=OneLine)

MAX_BYTES = 2**25
"""Some ten times what 8,192 features take."""

_SOME = 3
"""So many parties stand in a draft without any; every kind of basis can be agreed on by them."""


@dataclass(frozen=True, kw_only=True)
class AgreementFile:
    """An agreement as it stands in a file."""

    agreement: Agreement
    signatures: tuple[Signature, ...]  # verified or not

    @property
    def sealed(self) -> bool:
        """Whether all parties and the analyst signed this very text."""
        try:
            self.check_sealed()
        except UnsignedError:
            return False
        return True

    def check_sealed(self) -> None:
        """Raise UnsignedError, with who is missing, unless it is sealed."""
        check_sealed(self.agreement, signatures=self.signatures)


@dataclass(frozen=True, kw_only=True)
class AgreementDraft:
    """An agreement that may still lack fields."""

    fields: Mapping[str, Any]  # as the file has them
    missing: tuple[str, ...]


def read_agreement(path: str | Path) -> AgreementFile:
    """Read an agreement that is whole, signed or not."""
    return agreement_in(text_of(Path(path)), path=path)


def agreement_in(text: str, *, path: str | Path) -> AgreementFile:
    """Return the agreement that a file's text says; the path is for messages."""
    document = document_of(text, path=path)
    fields = _fields_of(document, path=path)
    required = [name for name, field in Agreement.model_fields.items() if field.is_required()]
    empty = [name for name in missing_fields(fields) if name in required and name != "parties"]
    if empty or not fields.get("parties"):
        listed = ", ".join([*empty, *([] if fields.get("parties") else ["[[party]]"])])
        raise AgreementError(
            f"the agreement '{path}' is still a draft: {listed} must be filled. [[party]] and the "
            f"commitment are written by `cobasis agreement new {path} *.pub`; fill others by hand."
        )
    agreement = Agreement.model_validate_json(json.dumps(fields))
    found = document.get("signature", [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise AgreementError(
            f"the agreement '{path}' has signatures that are no [[signature]] tables. Ask for the "
            "file as it was sealed."
        )
    return AgreementFile(agreement=agreement, signatures=tuple(Signature(**each) for each in found))


def read_draft(path: str | Path) -> AgreementDraft:
    """Read what an agreement says so far."""
    return draft_in(text_of(Path(path)), path=path)


def draft_in(text: str, *, path: str | Path) -> AgreementDraft:
    """Return what a file's text says so far; the path is for messages."""
    fields = _fields_of(document_of(text, path=path), path=path)
    return AgreementDraft(fields=fields, missing=missing_fields(fields))


def read_terms(path: str | Path) -> Agreement:
    """Read an agreement, or a draft that lacks only its parties and their secret's commitment."""
    return terms_in(text_of(Path(path)), path=path)


def terms_in(text: str, *, path: str | Path) -> Agreement:
    """Return the terms that a file's text says, with made-up parties where it has none."""
    fields = draft_in(text, path=path).fields
    made_up = {
        "parties": [f"party-{at}" for at in range(_SOME)],
        "commitment": "0" * 64,
        "minimum_parties": 1,
    }
    whole = {**made_up, **fields} if fields.get("parties") else {**fields, **made_up}
    required = [name for name, field in Agreement.model_fields.items() if field.is_required()]
    empty = [name for name in missing_fields(whole) if name in required]
    if empty:
        raise AgreementError(
            f"the draft '{path}' lacks {', '.join(empty)}, and no upload can be planned without. "
            "Fill them; whoever takes part, and the commitment, may come later."
        )
    return Agreement.model_validate_json(json.dumps(whole))


def text_of(path: Path) -> str:
    """Return a file's text; AgreementFileError where it is too large or no text."""
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
        raise AgreementFileError(_reason(path, line, "it is no UTF-8 text")) from None


def line_in(path: Path, kind: type[Line]) -> Line:
    """Read a small file, a .pub or a .sig; an AgreementError names it."""
    try:
        return kind.from_text(text_of(path))
    except (AgreementError, AgreementFileError) as error:
        raise AgreementError(f"'{path}' cannot be used: {error.args[0]}") from None


def document_of(text: str, *, path: str | Path) -> dict[str, Any]:
    """Return what a TOML text says; AgreementFileError, with the line, where it is none."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        reason = re.sub(r" \(at [^()]*\)$", "", str(error))
        raise AgreementFileError(_reason(path, line, reason)) from None
    except RecursionError:
        raise AgreementFileError(_reason(path, 1, "its brackets are nested too deeply")) from None


def _reason(path: str | Path, line: int, reason: str) -> str:
    return (
        f"'{path}' cannot be read as TOML: line {line}: {reason}. Correct that line; texts stand "
        "in double quotes, and tables like [[features]] come after all single fields."
    )


def _fields_of(document: Mapping[str, Any], *, path: str | Path) -> dict[str, Any]:
    """Return the fields that are filled, by the names that `Agreement` has for them."""
    fields = {name: _plain(value) for name, value in document.items() if value != ""}
    fields.pop("signature", None)
    if isinstance(terms := fields.get("dp"), dict):
        fields["dp"] = {name: value for name, value in terms.items() if value != ""}
    taken = sorted({"parties", "enrolled"} & set(fields))
    if taken:
        raise AgreementError(
            f"'{path}' has a field {', '.join(taken)}, and in the file the parties are the "
            "[[party]] tables. Delete it, and give their .pub files to `cobasis agreement new`."
        )
    enrolled = fields.pop("party", [])
    if enrolled:
        fields["enrolled"] = enrolled
        listed = enrolled if isinstance(enrolled, list) else [enrolled]
        fields["parties"] = [
            each["name"] for each in listed if isinstance(each, dict) and "name" in each
        ]
    return fields


def _plain(value: object) -> object:
    """Return a value as JSON can say it: times as text, in UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return moment_text(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float)) else str(value)
