"""20,000 parties from files and 100,000 without: time and peak memory of processes of their own."""

import shutil
import tempfile
import time
from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import goals
from benchmarks.inputs import SEED, Matrix, agreed, announced, different, names
from benchmarks.machine import in_a_child
from cobasis import ODC, Agreement, Analyst, align
from cobasis.algorithms.fits import Fit
from cobasis.algorithms.images import View
from cobasis.bundle.folders import FitFolder, UploadFolder
from cobasis.bundle.uploads import UploadFile

A, L, BASES = 1000, 50, 16
PARTIES, PARTIES_QUICK = 20_000, 1000
SIMULATED, SIMULATED_QUICK = 100_000, 2000
ROUNDS = 7
MOST_OF_FILES, MOST_MADE = 200, 600  # megabytes
FILES = "{:,} parties from float32 files: peak memory"
MADE = "{:,} simulated parties without files: peak memory"


def measure(*, quick: bool) -> dict[str, Any]:
    n_files, n_made = (PARTIES_QUICK, SIMULATED_QUICK) if quick else (PARTIES, SIMULATED)
    made = in_a_child("streaming:align_simulated", threads=True, n_parties=n_made)
    megabytes = made["peak_bytes"] / 1e6
    judged = [goals.goal(MADE.format(n_made), megabytes, most=MOST_MADE, unit=" MB")]
    needed = n_files * (A + L + 1) * L * 8 / 1e9  # float32 files and float64 G_i, rounded up
    free = shutil.disk_usage(tempfile.gettempdir()).free / 1e9
    if free < 1.2 * needed:
        why = f"needs {needed:.1f} GB of disk, {free:.1f} GB are free (TMPDIR says where)"
        absent = goals.not_measured(FILES.format(n_files), why=why)
        return {"simulated": made, "goals": [absent, *judged]}
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
        folder, kept = Path(name, "uploads"), Path(name, "alignment")
        folder.mkdir()
        started = time.perf_counter()
        n_bytes = write_uploads(folder, n_parties)
        wrote = time.perf_counter() - started
        reads, aligned = [], []
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
    return {"rows": sum(uploads[name].anchor_image[:].shape[0] for name in uploads)}


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
    uploads = UploadFolder(Path(folder))
    with FitFolder(Path(kept)) as fits:
        yield Analyst(agreement_of(len(uploads)), uploads=uploads, fits=fits)


def align_simulated(n_parties: int) -> dict[str, Any]:
    """Align images that are made when they are asked for, and drop each G_i."""
    kept = Dropped()
    align(ODC(), simulated_images(n_parties), sink=kept)
    return {"parties": len(kept), "worst_defect": kept.worst_defect}


class Dropped(UserDict[str, Any]):
    """A sink that keeps names only, and how far the worst G_i was from orthogonal."""

    worst_defect = 0.0

    def __setitem__(self, name: str, fit: Fit) -> None:
        """Look at one fit and forget it."""
        change = fit.change_of_basis
        defect = float(np.abs(change.T @ change - np.eye(change.shape[1])).max())
        self.worst_defect = max(self.worst_defect, defect)
        self.data[name] = None


def simulated_images(n_parties: int) -> View[Matrix]:
    """Return images that are made anew each time: 16 spans, and each party's own signs."""
    bases = list(different("isometric")(a=A, l=L, c=BASES).values())

    def drawn(name: str) -> Matrix:
        number = int(name.removeprefix("party-"))
        rng = np.random.default_rng([SEED, number])
        image: Matrix = bases[number % BASES] * rng.choice([-1.0, 1.0], L)
        return image

    return View(dict.fromkeys(names(n_parties)), read=drawn)


def agreement_of(n_parties: int) -> Agreement:
    sizes = {"n_components": L, "n_anchor_rows": A}
    features = (f"x{column}" for column in range(A))
    return agreed(names(n_parties), features, task="representation", **sizes)


def write_uploads(folder: Path, n_parties: int) -> int:
    """Write float32 uploads of one row each; return their bytes.

    The first goes through the package's own writer. The others are its bytes with another name
    and another image: this is what makes 20,000 files a matter of seconds.
    """
    images = simulated_images(n_parties)
    first_name, *others = images
    path = folder / f"{first_name}.safetensors"
    digest, row = agreement_of(n_parties).digest(), np.full((1, L), A**-0.5)
    upload = announced(first_name, rows=row, labels=None, image=images[first_name], digest=digest)
    with UploadFile(path, precision="fp32")(upload) as tables:
        tables["rows"][0:1] = upload.rows
    whole = path.read_bytes()
    place = whole.index(images[first_name].astype(np.float32).tobytes())
    for name in others:
        start = whole[:place].replace(first_name.encode(), name.encode())
        image = images[name].astype(np.float32).tobytes()
        rest = whole[place + len(image) :]
        (folder / f"{name}.safetensors").write_bytes(start + image + rest)
    return len(whole) * n_parties
