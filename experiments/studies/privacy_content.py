"""What is rebuilt of raw rows, by what the attacker knows.

One upload: X_i F_i, A F_i and labels; F_i = V_i E_i (basis svd), a uniform anchor of
{ANCHOR_ROWS:,} rows. Breast cancer (m = 30, min-max scaled, n = 280), digits (m = 64, n = 800) and
Fashion-MNIST (m = 784, n = 2,000), each with as many public rows of the same data set: a sample
that favours the attacker. **rel** is the distance of what was rebuilt, |X^ - X| / |X|; **R2** the
share of variance that was recovered (0 is the average person, below 0 is worse); **cells** the
share of raw values within a tenth of their column's range, columns that do not vary left out;
**re-id** the share of people whose rebuilt record is nearest to their own. People who are known are
not counted, and each figure is a mean over {DRAWS} draws of them. **A** is collusion, or a guessed
seed.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits

from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import back_to_records
from cobasis.privacy.attacks.public_sample import match_sample
from cobasis.privacy.attacks.scores import score_content
from experiments.attacks.anchors import collude
from experiments.data.images import images
from experiments.harness.models import Labels, Table
from experiments.harness.study import Study, Values
from experiments.harness.systems import generator

CANCER, DIGITS, FASHION = "breast cancer", "digits", "fashion-mnist"
SIZES = {CANCER: (3, 5, 10, 20, 28), DIGITS: (4, 8, 16, 32, 48), FASHION: (10, 50, 100, 200, 400)}
ROWS = {CANCER: 280, DIGITS: 800, FASHION: 2000}  # of the party, and as many public ones
ANCHOR_ROWS, DRAWS = 1000, 3

NOTHING, COLLUSION = "nothing", "A"
PUBLIC = {"public sample, no labels": False, "public sample, labels": True}


def run(*, data: str, repeat: int, **cell: int) -> Values:
    size = cell["l"]
    rows, labels, public, public_labels = drawn(data, repeat=repeat)
    rng = generator(repeat, size)
    release, anchor = released(rows, labels, size=size, rng=rng)
    nothing = Recovered(rows=np.zeros_like(rows), basis=np.zeros((rows.shape[1], size)))
    found = scored(NOTHING, nothing, rows)
    known = {"1": 1, "5": 5, "l/2": size // 2, "l": size, "2l": 2 * size}
    for words, count in known.items():
        if words == "l/2" and data != DIGITS:
            continue
        drawn_values = []
        for _ in range(DRAWS):
            places = rng.permutation(len(rows))[:count]
            back = back_to_records(release.rows[places], rows[places])
            recovered = Recovered(rows=release.rows @ back, basis=nothing.basis)
            drawn_values.append(scored(f"{words} known", recovered, rows, places=places))
        found |= {
            name: float(np.mean([each[name] for each in drawn_values])) for name in drawn_values[0]
        }
    for name, labelled in PUBLIC.items():
        given = public_labels if labelled else None
        found |= scored(name, match_sample(release, public, labels=given, rng=rng), rows)
    return found | scored(COLLUSION, collude(release, anchor), rows)


def released(
    rows: Table, labels: Labels, *, size: int, rng: np.random.Generator
) -> tuple[Release, Table]:
    """Return an upload under a basis of the party's own span, and its anchor."""
    directions = np.linalg.svd(rows, full_matrices=False)[2][:size].T
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    basis, anchor = directions @ turn, rng.random((ANCHOR_ROWS, rows.shape[1]))
    return Release(rows=rows @ basis, anchor_image=anchor @ basis, labels=labels), anchor


def scored(name: str, recovered: Recovered, rows: Table, *, places: npt.ArrayLike = ()) -> Values:
    """Return the four figures of the notes' table, in per cent but for the first two."""
    content = score_content(recovered, rows, known=places)
    return {
        f"{name}: rel": content.distance.value,
        f"{name}: R2": content.explained.value,
        f"{name}: cells": 100 * content.cells.value,
        f"{name}: re-id": 100 * content.named.value,
    }


def drawn(data: str, *, repeat: int) -> tuple[Table, Labels, Table, Labels]:
    """Return a party's rows and public ones, in [0, 1], with labels of both."""
    rows, labels = load(data)
    order = generator(repeat).permutation(len(rows))
    own, public = order[: ROWS[data]], order[ROWS[data] : 2 * ROWS[data]]
    scale = 255.0 if data == FASHION else 1.0
    return rows[own] / scale, labels[own], rows[public] / scale, labels[public]


def load(data: str) -> tuple[npt.NDArray[Any], Labels]:
    """Return all rows, in [0, 1] but for Fashion-MNIST's, and labels."""
    if data == FASHION:
        return images("fashion-mnist")
    rows, labels = (load_digits if data == DIGITS else load_breast_cancer)(return_X_y=True)
    if data == DIGITS:
        return rows / 16.0, labels
    return (rows - rows.min(axis=0)) / np.ptp(rows, axis=0), labels


STUDY = Study(
    source="ours",
    unit="rel and R2; cells and re-id in %",
    cells=[{"data": data, "l": size} for data, sizes in SIZES.items() for size in sizes],
    charted=(),
)
