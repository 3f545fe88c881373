"""dlib's descriptors of faces, by a network whose weights lie with the evaluation data."""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from experiments.data.sources import path_verified, source
from experiments.harness.models import Table
from experiments.harness.noise import Singles

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
    """Describe pictures of faces."""
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
