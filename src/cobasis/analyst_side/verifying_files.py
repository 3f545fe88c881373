"""Files held against a transcript's digests, and fits against what every right fit fulfils."""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from cobasis.algorithms.base import Target
from cobasis.algorithms.certificate import fit_error, refuse_wrong_fit
from cobasis.analyst_side.checking import file_digest
from cobasis.analyst_side.finding import Finding, checked
from cobasis.analyst_side.history import RECEIVED, history_of
from cobasis.analyst_side.work import WorkFolder
from cobasis.bundle.chain import Entry
from cobasis.engine.fit_folder import FitFolder
from cobasis.errors import FileChangedError
from cobasis.progress import Report
from cobasis.protocol.agreement import Agreement
from cobasis.store.folder import UploadFolder


def compared_files(folder: Path, entries: Iterable[Entry], *, report: Report) -> Iterator[Finding]:
    """Compare uploads and returns that are in a folder with the digests that a transcript has."""
    known = _known(entries)
    paths = sorted(path for path in folder.rglob("*") if path.name in known and path.is_file())
    for done, path in enumerate(paths):
        report("comparing digests", done, len(paths))
        what = "payload" if path.suffix == ".safetensors" else path.suffix[1:]
        yield checked(what, path.name, by=partial(_compare, path, known[path.name]))


def _known(entries: Iterable[Entry]) -> dict[str, set[str]]:
    """Return the digests that a file of each name may have."""
    known: dict[str, set[str]] = {}
    for entry in entries:
        told = cast("dict[str, Any]", entry.told)
        if entry.event == RECEIVED:
            known.setdefault(f"{told['party']}.upload", set()).add(told["upload"])
            known.setdefault(f"{told['party']}.safetensors", set()).add(told["payload"])
        for line in told.get("returns", []):
            digest, name = line.split("  ", 1)
            known.setdefault(f"{name}.return", set()).add(digest)
    return known


def _compare(path: Path, digests: set[str]) -> None:
    if file_digest(path) not in digests:
        raise FileChangedError(
            f"'{path.name}' is not the file that the transcript names. It was changed, or is of "
            "another round. Ask for the right one."
        )


def checked_fits(
    folder: Path, agreement: Agreement, *, entries: Iterable[Entry], report: Report
) -> Iterator[Finding]:
    """Check every fit of the last run, where anchor images and target are."""
    work, outcome = WorkFolder(folder), history_of(entries).outcome
    if outcome is None or not work.payloads.is_dir():
        return
    place = work.alignments / outcome.alignment
    fits = FitFolder(place) if place.is_dir() else None
    if fits is None or fits.target is None:
        return
    uploads = UploadFolder(work.payloads)
    for done, party in enumerate(outcome.uploads):
        report("checking fits", done, len(outcome.uploads))
        check = partial(_fit, party, uploads, fits=fits, target=fits.target, agreement=agreement)
        yield checked("fit", party, by=check)


def _fit(
    party: str, uploads: UploadFolder, *, fits: FitFolder, target: Target, agreement: Agreement
) -> None:
    error = fit_error(
        uploads[party].anchor_image(),
        fits[party].change_of_basis,
        target=target.rows,
        kind=agreement.make_aligner().fit_kind,
    )
    refuse_wrong_fit(error, party=party)
