"""20,000 parties from files and 100,000 without: time and peak memory of processes of their own."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import goals
from benchmarks.children import in_a_child
from benchmarks.many import A, Dropped, L, SimulatedImages, agreement_of, write_uploads
from cobasis import ODC, Analyst, align
from cobasis.bundle.run_folder import FitFolder, StateFolder
from cobasis.bundle.uploads import UploadFolder

PARTIES, PARTIES_QUICK = 20_000, 1000
SIMULATED, SIMULATED_QUICK = 100_000, 2000
ROUNDS = 7
MOST_OF_FILES, MOST_MADE = 200, 600
"""Megabytes."""
FILES = "{:,} parties from float32 files: peak memory"
MADE = "{:,} simulated parties without files: peak memory"


def measure(*, quick: bool) -> dict[str, Any]:
    """Align more than memory holds."""
    n_files, n_made = (PARTIES_QUICK, SIMULATED_QUICK) if quick else (PARTIES, SIMULATED)
    made = in_a_child("streaming:align_simulated", threads=True, n_parties=n_made)
    megabytes = made["peak_bytes"] / 1e6
    judged = [goals.goal(MADE.format(n_made), megabytes, most=MOST_MADE, unit=" MB")]
    needed = n_files * (A + L + 1) * L * 8  # float32 files and float64 G_i, rounded up
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 1.2 * needed:
        why = (
            f"needs {needed / 1e9:.1f} GB of disk, {free / 1e9:.1f} GB are free (TMPDIR says where)"
        )
        return {
            "simulated": made,
            "goals": [goals.not_measured(FILES.format(n_files), why=why), *judged],
        }
    found = from_files(n_files, rounds=1 if quick else ROUNDS)
    figure = goals.goal(
        FILES.format(n_files), found["peak_bytes"] / 1e6, most=MOST_OF_FILES, unit=" MB"
    )
    peak, times = found["certify"]["peak_bytes"] / 1e6, found["certify / align"]
    told = [
        goals.goal("aligning from files against reading them", found["align / read"], unit="x"),
        goals.goal("the certificate from files against aligning, one run", times, unit="x"),
        goals.goal("the certificate from files: peak memory", peak, unit=" MB"),
    ]
    return {"simulated": made, "files": found, "goals": [figure, *judged, *told]}


def from_files(n_parties: int, *, rounds: int) -> dict[str, Any]:
    """Write uploads, then read them alone and align them, in turn."""
    with tempfile.TemporaryDirectory(prefix="cobasis-bench-") as name:
        folder = Path(name, "uploads")
        folder.mkdir()
        started = time.perf_counter()
        n_bytes = write_uploads(folder, n_parties)
        wrote = time.perf_counter() - started
        reads, aligned, kept = [], [], Path(name, "alignment")
        options = {"folder": str(folder), "kept": str(kept)}
        for _ in range(rounds):
            reads.append(in_a_child("streaming:read_folder", threads=True, folder=str(folder)))
            shutil.rmtree(kept, ignore_errors=True)
            aligned.append(in_a_child("streaming:align_files", threads=True, **options))
        certified = in_a_child("streaming:certify_files", threads=True, **options)
    ratios = [one["seconds"] / other["seconds"] for one, other in zip(aligned, reads, strict=True)]
    return {
        "n_parties": n_parties,
        "bytes": n_bytes,
        "seconds_write": wrote,
        "read": reads,
        "align": aligned,
        "align / read": median(ratios),
        "certify": certified,
        "certify / align": certified["seconds"] / median(each["seconds"] for each in aligned),
        "peak_bytes": max(each["peak_bytes"] for each in aligned),
    }


def read_folder(folder: str) -> dict[str, Any]:
    """Read every anchor image and do nothing with it: the read floor."""
    uploads = UploadFolder(Path(folder))
    total = sum(uploads[name].read_image().shape[0] for name in uploads)
    return {"rows": total}


def align_files(folder: str, kept: str) -> dict[str, Any]:
    """Align a folder of uploads as a user does, into a folder of changes of basis."""
    with _analyst(folder, kept) as analyst:
        return {"parties": len(analyst.align().fits)}


def certify_files(folder: str, kept: str) -> dict[str, Any]:
    """Certify the alignment that is kept, as every round does."""
    with _analyst(folder, kept) as analyst:
        analyst.align()
        return {"parties": len(analyst.certify().parties)}


@contextmanager
def _analyst(folder: str, kept: str) -> Iterator[Analyst]:
    """Give the analyst over two folders."""
    uploads, run = UploadFolder(Path(folder)), Path(kept)
    with FitFolder(run) as fits:
        yield Analyst(
            agreement_of(len(uploads)), uploads=uploads, fits=fits, state=StateFolder(run)
        )


def align_simulated(n_parties: int) -> dict[str, Any]:
    """Align images that are made when they are asked for, and drop each G_i."""
    kept = Dropped()
    align(ODC(), SimulatedImages(n_parties), sink=kept)
    return {"parties": len(kept), "worst_defect": kept.worst_defect}
