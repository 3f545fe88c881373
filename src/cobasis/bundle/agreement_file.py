"""The agreement on disk: one TOML file that people comment on, and nobody's comments are lost."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import tomlkit
from tomlkit.items import AoT, Item, Table

from cobasis.bundle.agreement_text import (
    MARK,
    AgreementDraft,
    AgreementFile,
    agreement_in,
    document_of,
    line_in,
    read_agreement,
    read_draft,
    read_terms,
    text_of,
)
from cobasis.disk.whole import write_whole
from cobasis.errors import AgreementError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import Signature, check_sealed, signers

__all__ = [
    "AgreementDraft",
    "AgreementFile",
    "agreement_in",
    "complete",
    "read_agreement",
    "read_draft",
    "read_terms",
    "seal",
    "sealed_agreement",
    "sealed_path",
    "stem_of",
    "write_agreement",
]

SEALED = ".sealed.toml"


def complete(
    text: str,
    *,
    path: Path,
    parties: Iterable[PublicIdentity] = (),
    analyst: PublicIdentity | None = None,
    commitment: str = "",
) -> str:
    """Return an unsigned agreement's text with who takes part and the commitment to their secret.

    New parties stand behind the others, known ones are written anew, and comments stay. A
    commitment that stood there goes: it was to a secret for those who were enrolled then.
    """
    if "signature" in document_of(text, path=path):
        raise AgreementError(
            f"the agreement '{path}' was signed, and a change would make every signature void. "
            "Make a new agreement, with a round of its own."
        )
    document = tomlkit.parse(text)
    listed = document.get("party")
    if not isinstance(listed, AoT):
        listed = tomlkit.aot()
    known = {str(each.get("name")): each for each in listed}
    for party in parties:
        if party.name in known:
            known[party.name].update(party.model_dump())
        else:
            listed.append(_table(party.model_dump()))
    if "party" not in document and len(listed):
        document["party"] = listed
    if analyst is not None and isinstance(document.get("analyst"), Table):
        document["analyst"].update(analyst.model_dump())
    elif analyst is not None:
        document["analyst"] = _table(analyst.model_dump())
    document["commitment"] = commitment
    item = document.item("commitment")
    if commitment and isinstance(item, Item) and item.trivia.comment == MARK:
        item.trivia.comment_ws = item.trivia.comment = ""
    return tomlkit.dumps(document)


def write_agreement(path: Path, text: str) -> None:
    """Write the file whole or not at all; it is public, and keeps the mode it had."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_whole(path, text.encode(), mode=mode)


def sealed_path(path: Path) -> Path:
    """Return where the sealed form of an agreement stands: ``icu.sealed.toml``."""
    return path.with_name(f"{stem_of(path)}{SEALED}")


def stem_of(path: Path) -> str:
    """Return how the files of a round begin: ``icu`` for ``icu.toml`` and ``icu.sealed.toml``."""
    return path.name.removesuffix(SEALED).removesuffix(".toml")


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
    """Return an agreement that everybody signed: in one file, or in files beside it."""
    found = signed_agreement(path)
    found.check_sealed()
    return found.agreement


def signed_agreement(path: Path) -> AgreementFile:
    """Return an agreement with the signatures at hand, those in .sig files beside it, too."""
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
