"""What the aligners' options take, and the one global scalar that each offers."""

from typing import Literal

import numpy as np

from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix

Scale = Literal["measured", "paper"] | float


def with_scale(rows: Matrix, *, gain: float, scale: Scale) -> Matrix:
    """Give a target its one global scalar, so that methods differ in shape and not in size.

    ``||Z||_F`` becomes ``gain sqrt(l)``, where the gain is what the anchor makes of a unit
    vector: a number given, or the root mean square over the images. ``"paper"`` changes
    nothing. Under an isometric anchor and orthonormal bases the gain is exactly one.
    """
    if scale == "paper":
        return rows
    if scale != "measured":
        if not (isinstance(scale, (int, float)) and 0 < scale < np.inf):
            raise OptionError(
                f"scale={scale!r} is no scale. Give 'measured', 'paper' or a positive number."
            )
        gain = float(scale)
    return rows * float(gain * np.sqrt(rows.shape[1]) / np.linalg.norm(rows))


def require_word(word: object, known: tuple[str, ...], *, option: str) -> None:
    """Refuse a word that an aligner's option does not take."""
    if word not in known:
        raise OptionError(f"{option}={word!r} is not known. Choose one of {', '.join(known)}.")
