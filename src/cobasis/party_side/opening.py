"""Sealed files in and out of a party's work folder: opened for a moment, delivered whole."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from cobasis.bundle.enclosing import Written, write_bundle
from cobasis.bundle.envelope import Bundle, Expected, open_bundle
from cobasis.bundle.messages import Enclosed
from cobasis.disk.whole import remove_tree
from cobasis.errors import DiskError, OptionError
from cobasis.party_side.desk import PartyDesk
from cobasis.protocol.enrolment import PublicIdentity


@contextmanager
def opened_bundle(
    desk: PartyDesk,
    path: Path,
    *,
    signer: PublicIdentity | Mapping[str, PublicIdentity],
    expected: Expected,
) -> Iterator[Bundle]:
    """Open a bundle that was sealed for the party; its parts are gone when the block ends."""
    into = desk.work / "opened"
    remove_tree(into)
    try:
        yield open_bundle(
            path, unseal=desk.identity.unseal, signer=signer, into=into, expected=expected
        )
    finally:
        remove_tree(into)


def sealed_for_analyst(desk: PartyDesk, enclosed: Enclosed, *, name: str) -> Written:
    """Sign and seal a message to the analyst, as a file of the work folder."""
    return write_bundle(
        desk.work / name,
        draft=enclosed.draft,
        parts=enclosed.parts,
        sign=desk.identity.sign,
        recipients=[desk.analyst],
    )


def refuse_target(to: Path, *, table: Path | None = None) -> None:
    """Raise OptionError or DiskError where a result would overwrite its table or has no folder."""
    with suppress(OSError):
        if table is not None and (to.resolve() == table.resolve() or to.samefile(table)):
            raise OptionError(
                f"-o '{to}' is the table itself, which would be overwritten. Choose another name."
            )
    if to.is_dir() or not to.parent.is_dir():
        raise DiskError(f"-o '{to}' is a folder, or in one that does not exist. Name a file.")
