"""Table 10: are two pictures of one person, by a network.

About 1,000 pictures of some 70 people of CelebA, 128 x 128 x 3: as many pairs of one person as of
two, up to {table_10.PAIRS:,} each, by cosine about the mean of dlib's descriptors of 128 numbers;
the paper has FaceNet's. A face is cut out where the eyes are known to be, in noise too. *Shown the
vector as a picture*: l numbers stretched to [0, 1] in a black picture, of which the network sees
all; how the paper makes it is open. A figure near 0.5 there is **no evidence of privacy**: it says
that a network for faces cannot read what is no face. What whoever holds the release can tell is in
study `table_10`. A colluder has the basis, from the anchor. Noise: on raw pixels, sensitivity 1,
delta = 1e-3, its epsilon a label.
"""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from experiments.data.faces import celeba, pairs_of
from experiments.data.sources import path_verified, source
from experiments.harness.models import Labels, Table
from experiments.harness.noise import PAPERS_NOISE, Singles
from experiments.harness.study import Study, Values
from experiments.harness.systems import generator
from experiments.studies import table_10

PICTURES = 1000  # a network takes time
ORIGINAL, SHOWN, REBUILT = "original", "shown the vector as a picture", "rebuilt by a colluder"

WEIGHTS = source("dlib/dlib_face_recognition_resnet_model_v1.dat")
SIDE, CHANNELS, CHIP = 128, 3, 150  # of a picture, and the side of what the network looks at
EYES, CHIP_EYES = ((50.0, 65.4), (77.3, 65.4)), ((47.7, 47.1), (100.3, 47.1))
"""Where a picture's eyes are, and where the network was taught to expect them."""

SHARE = (EYES[1][0] - EYES[0][0]) / (CHIP_EYES[1][0] - CHIP_EYES[0][0])
LEFT, TOP = (eye - SHARE * expected for eye, expected in zip(EYES[0], CHIP_EYES[0], strict=True))
FACE, WHOLE = (LEFT, TOP, LEFT + SHARE * CHIP, TOP + SHARE * CHIP), (0, 0, SIDE, SIDE)
"""What to show of a picture: left, top, right and bottom."""

Box = tuple[float, float, float, float]


def described(rows: Singles, *, box: Box = FACE) -> Table:
    return np.array(_network().compute_face_descriptor([chip(row, box=box) for row in rows]))


def chip(row: Singles, *, box: Box = FACE) -> Any:
    """Return a face as the network wants it, of shape (150, 150, 3)."""
    from PIL import Image  # noqa: PLC0415 -- comes with matplotlib

    pixels = (255 * row.clip(0, 1)).round().astype(np.uint8).reshape(SIDE, SIDE, CHANNELS)
    found = Image.fromarray(pixels).resize((CHIP, CHIP), Image.Resampling.BILINEAR, box=box)
    return np.asarray(found)


@cache
def _network() -> Any:
    path = path_verified(WEIGHTS)
    return import_module("dlib").face_recognition_model_v1(str(path))


def run(*, shown: str, repeat: int) -> Values:
    faces = celeba()
    chosen = whole_people(faces.people, table_10.halves(faces, repeat)[1])
    rows = faces.scaled(chosen)
    pairs = pairs_of(faces.people[chosen], rng=generator(repeat, 8), n_each=table_10.PAIRS)
    if shown == ORIGINAL:
        return {ORIGINAL: table_10.verified(described(rows), pairs)}
    if shown == PAPERS_NOISE:
        return {
            f"epsilon {epsilon:g}": table_10.verified(described(noisy), pairs)
            for epsilon, noisy in table_10.with_noise(rows, repeat)
        }
    found = {}
    for label, basis in table_10.secret_bases(rows, repeat, table_10.COMPONENTS["celeba"]).items():
        sent = rows @ basis
        if shown == SHOWN:
            seen = described(table_10.as_picture(sent, rows), box=WHOLE)
        else:
            seen = described(table_10.rebuilt(sent, basis))
        found[label] = table_10.verified(seen, pairs)
    return found


def whole_people(people: Labels, rows: Labels) -> Labels:
    """Return rows of whole people, from the first, until there are enough."""
    order = rows[np.argsort(people[rows], kind="stable")]
    last = people[order[:PICTURES]][-1]
    chosen: Labels = order[people[order] <= last]
    return chosen


STUDY = Study(
    source="ODC paper, Table 10; what a colluder can do is ours",
    unit="ROC-AUC",
    cells=[{"shown": each} for each in (ORIGINAL, PAPERS_NOISE, SHOWN, REBUILT)],
    explained={
        "original": "Another network: dlib's in place of FaceNet.",
        "papers' noise": "Another network: dlib's in place of FaceNet.",
        SHOWN: "Another network, and another way to show a vector as a picture.",
    },
    repeats=3,
)
