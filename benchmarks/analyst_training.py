"""The analyst's training on more rows than fit: 10 million aligned rows of 50 components."""

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import goals
from benchmarks.inputs import announced, orthonormal
from benchmarks.machine import in_a_child, peak_bytes
from cobasis.analyst_side.passes import FilePasses
from cobasis.bundle.uploads import UploadFile, open_payload
from cobasis.linalg.arrays import Matrix
from cobasis.models import out_of_core, passes, trainer
from cobasis.protocol import training

COMPONENTS, PARTIES, BLOCK = 50, 20, 50_000
ROWS, ROWS_QUICK = 10_000_000, 200_000
MOST_MEGABYTES = 1000
STEPS = ("ridge", "logistic", "mlp", "xgboost")
MLP_PASSES, TREES = 1, 20  # what has to be limited


def measure(*, quick: bool) -> dict[str, Any]:
    n_rows = ROWS_QUICK if quick else ROWS
    with tempfile.TemporaryDirectory() as place:
        began = time.perf_counter()
        draw_uploads(Path(place) / "uploads", n_rows // PARTIES)
        drawn = time.perf_counter() - began
        given = {"place": place, "quick": quick}
        work = partial(in_a_child, "analyst_training:take", threads=True, **given)
        steps = {step: work(step=step)["result"] for step in STEPS}
    peaks = [(step, each["peak_bytes"] / 1e6) for step, each in steps.items()]
    what = f"training on {n_rows:,} aligned rows x {COMPONENTS}: peak memory"
    return {
        "n_rows": n_rows,
        "n_components": COMPONENTS,
        "drawing_seconds": drawn,
        "steps": steps,
        "goals": [goals.worst(peaks, what, most=MOST_MEGABYTES, unit=" MB")],
    }


def rotation(place: int) -> Matrix:
    return orthonormal(COMPONENTS, COMPONENTS, rng=np.random.default_rng(place))


def rows_and_labels(rng: np.random.Generator, n_rows: int) -> tuple[Any, Any]:
    """Draw rows whose first components are stronger, and two classes that no plane tells."""
    rows = rng.standard_normal((n_rows, COMPONENTS), dtype=np.float32)
    rows *= np.linspace(2.0, 0.5, COMPONENTS, dtype=np.float32)
    signal = rows[:, :10].sum(axis=1) / 3 + rows[:, 0] * rows[:, 1] / 2
    labels = signal + rng.standard_normal(n_rows, dtype=np.float32) > 0
    return rows, labels.astype(np.int64)


def draw_uploads(folder: Path, n_rows: int) -> None:
    """Write one upload for each party, block by block."""
    folder.mkdir()
    for place in range(PARTIES):
        rng = np.random.default_rng([place, n_rows])
        turn: Any = rotation(place).astype(np.float32)
        blank = np.broadcast_to(np.zeros(()), (n_rows, COMPONENTS))
        labels = np.broadcast_to(np.zeros((), np.int64), (n_rows,))
        sent: Any = {"rows": blank, "labels": labels, "image": turn, "digest": bytes(32)}
        file = UploadFile(folder / f"p{place:02d}.safetensors", precision="fp32")
        with file(announced(f"p{place:02d}", **sent)) as tables:
            for start in range(0, n_rows, BLOCK):
                stop = min(start + BLOCK, n_rows)
                rows, told = rows_and_labels(rng, stop - start)
                tables["rows"][start:stop], tables["labels"][start:stop] = rows @ turn, told


def take(step: str, place: str, *, quick: bool) -> dict[str, Any]:
    if quick:  # few rows are one block else, which no limit of passes ends
        training.MOST_CELLS, passes.SAMPLE_ROWS = 0, 1_000
    folder = Path(place)
    out_of_core.MAX_PASSES, out_of_core.MAX_ROUNDS = MLP_PASSES, TREES
    began = time.perf_counter()
    uploads = {each.stem: open_payload(each) for each in sorted((folder / "uploads").iterdir())}
    changes = {name: rotation(int(name[1:])).T for name in uploads}
    model = trainer.train(
        training.AlignedRows(uploads, changes),
        model=step,
        task="classification",
        seed=0,
        over=FilePasses(folder=folder / "scratch"),
    )
    seconds = time.perf_counter() - began
    peak = peak_bytes()
    rows, labels = rows_and_labels(np.random.default_rng(1), 100_000)
    accuracy = float(np.mean(model.predict(rows.astype(np.float64)) == labels))
    return {"seconds": seconds, "peak_bytes": peak, "accuracy": accuracy}
