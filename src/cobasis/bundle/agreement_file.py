"""The agreement on disk: one TOML file that people comment on, and nobody's comments are lost."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT, Item, Table

from cobasis.bundle.agreement_reading import (
    AgreementDraft,
    AgreementFile,
    document_of,
    read_agreement,
    read_draft,
    read_terms,
    text_of,
)
from cobasis.bundle.agreement_text import MARK, new_text
from cobasis.disk.whole import write_whole
from cobasis.errors import AgreementError, DiskError
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.enrolment import PublicIdentity
from cobasis.protocol.signatures import Signature, check_sealed, signers

__all__ = [
    "AgreementDraft",
    "AgreementFile",
    "commit",
    "enrol",
    "read_agreement",
    "read_draft",
    "read_terms",
    "seal",
    "sealed_agreement",
    "sealed_path",
    "stem_of",
    "write_new",
]

SEALED = ".sealed.toml"


def write_new(path: str | Path, *, fields: Mapping[str, Any]) -> Path:
    """Write a new agreement with a comment on every field."""
    to = Path(path)
    unknown = sorted(set(fields) - set(Agreement.model_fields))
    if unknown:
        raise AgreementError(
            f"an agreement has no field {', '.join(unknown)}. Leave out what is not in its table."
        )
    if to.exists():
        raise DiskError(
            f"'{to}' exists already, and may have been signed. Choose another name, or edit it."
        )
    _write(to, new_text(fields))
    return to


def enrol(
    path: str | Path,
    *,
    parties: Iterable[PublicIdentity] = (),
    analyst: PublicIdentity | None = None,
) -> None:
    """Write who takes part into an agreement: new ones behind the others, known ones anew."""

    def change(document: tomlkit.TOMLDocument) -> None:
        if document.get("commitment"):
            raise AgreementError(
                f"the agreement '{path}' is committed to a secret that was sealed for those who "
                'were enrolled then. Empty its commitment (commitment = ""), enrol, and have a new '
                "secret made with 'cobasis secret new'."
            )
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

    _edit(Path(path), change)


def commit(path: str | Path, commitment: str) -> None:
    """Write the commitment to the consortium secret into an agreement."""

    def change(document: tomlkit.TOMLDocument) -> None:
        document["commitment"] = commitment
        item = document.item("commitment")
        if isinstance(item, Item) and item.trivia.comment == MARK:
            item.trivia.comment_ws = item.trivia.comment = ""

    _edit(Path(path), change)


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
    _write(sealed_path(path), tomlkit.dumps(document))
    return sealed_path(path)


def sealed_agreement(path: Path) -> Agreement:
    """Return an agreement that everybody signed, from the sealed form or the signatures beside it.

    Raises
    ------
    AgreementError
        The sealed form is of another text.
    UnsignedError
        Somebody has not signed; says who.
    """
    found = read_agreement(path)
    if sealed_path(path).exists() and sealed_path(path) != path:
        sealed = read_agreement(sealed_path(path))
        if sealed.agreement.digest() != found.agreement.digest():
            raise AgreementError(
                f"'{sealed_path(path)}' is not what stands in '{path}': they differ in more than "
                "signatures. Ask the others which of the two they signed, and delete the other."
            )
        found = sealed
    elif not found.signatures:
        signed = [Signature.from_text(text_of(each)) for each in sorted(path.parent.glob("*.sig"))]
        digest = found.agreement.digest().hex()
        seal(path, [each for each in signed if each.agreement == digest])
        return found.agreement
    found.check_sealed()
    return found.agreement


def _table(fields: Mapping[str, str]) -> Table:
    table = tomlkit.table()
    table.update(fields)
    table.add(tomlkit.nl())
    return table


def _edit(path: Path, change: Callable[[tomlkit.TOMLDocument], None]) -> None:
    """Change a file that nobody has signed in place, and keep its comments."""
    text = text_of(path)
    if "signature" in document_of(text, path=path):
        raise AgreementError(
            f"the agreement '{path}' was signed, and a change would make every signature void. If "
            "it has to be, delete its [[signature]] tables, and have everybody sign anew."
        )
    edited = tomlkit.parse(text)
    change(edited)
    _write(path, tomlkit.dumps(edited))


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all; it is public, and keeps the mode it had."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    write_whole(path, text.encode(), mode=mode)
