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
    "write_new",
]


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


def seal(path: str | Path, signatures: Iterable[Signature]) -> None:
    """Write signatures into an agreement, if with them everybody has signed."""
    found = read_agreement(path)
    # those of an older text are of no use, and are replaced by what came in
    digest = found.agreement.digest().hex()
    kept = [each for each in found.signatures if each.agreement == digest]
    given = {each.name: each for each in (*kept, *signatures)}
    check_sealed(found.agreement, signatures=given.values())

    def change(document: tomlkit.TOMLDocument) -> None:
        tables = tomlkit.aot()
        for name in signers(found.agreement):
            tables.append(_table(given[name].model_dump()))
        document.pop("signature", None)
        document["signature"] = tables

    _edit(Path(path), change, signed=True)


def _table(fields: Mapping[str, str]) -> Table:
    table = tomlkit.table()
    table.update(fields)
    table.add(tomlkit.nl())
    return table


def _edit(
    path: Path, change: Callable[[tomlkit.TOMLDocument], None], *, signed: bool = False
) -> None:
    """Change a file in place and keep its comments; without signatures, unless `signed`."""
    text = text_of(path)
    if "signature" in document_of(text, path=path) and not signed:
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
