"""Is a change of basis the fit of its image to a target? Checked, not computed again.

Two computers never agree on a singular value decomposition to the last bit. What they can agree
on is the property that makes a fit the right one, and that holds to rounding on either.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cobasis.algorithms.registry import AlignerName
from cobasis.errors import FitCheckError
from cobasis.linalg.arrays import Matrix

FIT_TOLERANCE = 1e-10
"""By how much a fit may miss its property, relative to what is multiplied."""

FitKind = Literal["rotation", "whitened rotation", "least squares"]

FIT_KINDS: dict[AlignerName, FitKind] = {
    "odc": "rotation",
    "gopp": "rotation",
    "whitened": "whitened rotation",
    "imakura": "least squares",
    "kawakami": "least squares",
}


@dataclass(frozen=True, kw_only=True)
class FitCheck:
    """By how much a fit misses the properties of the right one; all relative, 0 is exact.

    Attributes
    ----------
    orthogonality : float
        Largest entry of ``G'G - I``; 0 for least squares.
    asymmetry : float
        ``||S - S'|| / ||S||`` for ``S = G'(A'Z)``; 0 for least squares.
    negative : float
        How far the smallest eigenvalue of S lies below zero, relative to ``||S||``.
    stationarity : float
        ``||A'(A G - Z)|| / (||A|| (||A G|| + ||Z||))``; 0 for a rotation.
    """

    orthogonality: float = 0.0
    asymmetry: float = 0.0
    negative: float = 0.0
    stationarity: float = 0.0

    @property
    def worst(self) -> float:
        """The largest of the four; infinite where one is no number."""
        figures = self.orthogonality, self.asymmetry, self.negative, self.stationarity
        return max(figures) if np.isfinite(figures).all() else float("inf")


def fit_check(image: Matrix, change: Matrix, *, target: Matrix, aligner: AlignerName) -> FitCheck:
    """Measure by how much a change of basis misses what the right one fulfils.

    A rotation is the right one exactly where ``G'G = I`` and ``G'(A'Z)`` is symmetric without a
    negative eigenvalue; a whitened one where that holds of the orthonormalised image; least
    squares where what is left over is orthogonal to the image.
    """
    kind = FIT_KINDS[aligner]
    table, goal = image.astype(np.float64, copy=False), target.astype(np.float64, copy=False)
    if kind == "least squares":
        fitted = table @ change
        size = np.linalg.norm(table) * (np.linalg.norm(fitted) + np.linalg.norm(goal))
        left = np.linalg.norm(table.T @ (fitted - goal))
        return FitCheck(stationarity=float(left / size) if size else float("inf"))
    rotation = change
    if kind == "whitened rotation":
        table, triangle = np.linalg.qr(table)
        size = np.linalg.norm(goal) / np.sqrt(goal.shape[1])
        rotation = triangle @ change / size
    return _of_rotation(rotation, table.T @ goal)


def _of_rotation(rotation: Matrix, cross: Matrix) -> FitCheck:
    """Measure a rotation against ``A'Z``; its shorter side is the one that is orthonormal."""
    if rotation.shape[0] < rotation.shape[1]:
        rotation, cross = rotation.T, cross.T
    product = rotation.T @ cross
    size = float(np.linalg.norm(product))
    if not size or not np.isfinite(size) or not np.isfinite(rotation).all():
        return FitCheck(orthogonality=float("inf"))
    smallest = float(np.linalg.eigvalsh((product + product.T) / 2)[0])
    return FitCheck(
        orthogonality=float(np.abs(rotation.T @ rotation - np.eye(rotation.shape[1])).max()),
        asymmetry=float(np.linalg.norm(product - product.T)) / size,
        negative=max(0.0, -smallest / size),
    )


def refuse_wrong_fit(found: FitCheck, *, party: str) -> None:
    """Raise FitCheckError where a fit misses its properties by more than rounding."""
    if found.worst <= FIT_TOLERANCE:
        return
    raise FitCheckError(
        f"the change of basis of party '{party}' is not the fit of its anchor image to the target: "
        f"it is off by {found.worst:.1e}, and rounding explains {FIT_TOLERANCE:.0e}. The file was "
        "changed, or is of another run. Ask the analyst to run again."
    )
