"""ODC-GOPP: Procrustes onto a mean of all images (ODC paper, arXiv v4, Appendix B)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cobasis.algorithms.base import Fit, Target, require_word
from cobasis.algorithms.fits import procrustes_fit
from cobasis.algorithms.images import Images
from cobasis.algorithms.stacked import leading_directions
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar


@dataclass(frozen=True, kw_only=True)
class GOPP:
    r"""Generalised orthogonal Procrustes: :math:`\min_{Z, G_i \in O} \sum \|A_i G_i - Z\|^2`.

    Alternates between the rotations for a given Z and the mean of what they rotate.

    Parameters
    ----------
    start : {"spectral", "odc"}
        From the top left singular vectors of all images, or warm from the widest image.
    tolerance : float
        Stops when an iteration lowers the objective by less than this share of the first
        one's value. The papers give no rule.
    max_iterations : int
        Stops anyway; ``Target.converged`` is then False.

    Notes
    -----
    **Who sees what.** Z is a mean of all rotated images and carries a trace of each.

    **Cost.** ``4 a c l^2 + 22 c l^3`` operations an iteration, and one more at
    the end; all images in memory.

    References
    ----------
    ODC paper (arXiv v4), Appendix B, Algorithm 2; Ling (2023), generalised power method.

    Examples
    --------
    >>> GOPP(start="odc")
    GOPP(start='odc', tolerance=1e-09, max_iterations=1000)
    """

    start: Literal["spectral", "odc"] = "spectral"
    tolerance: float = 1e-9
    max_iterations: int = 1000

    def target(self, images: Images) -> Target:
        """Alternate until the objective stands still."""
        require_word(self.start, ("spectral", "odc"), option="start")
        tables = list(images.values())
        mean, first, before = self._start(tables), 0.0, np.inf
        energy = sum(float(np.sum(table**2)) for table in tables)
        converged, step = False, 0
        while step < self.max_iterations and not converged:
            step += 1
            turned = [table @ polar(table.T @ mean).rotation for table in tables]
            mean = sum(turned[1:], start=turned[0]) / len(turned)
            now = sum(float(np.sum((table - mean) ** 2)) for table in turned)
            first = first or now
            converged = before - now <= self.tolerance * first or now <= 1e-28 * energy
            before = now
        self._refuse_arbitrary(images, mean)
        return Target(
            rows=_in_the_frame_of(tables[0], mean),
            shaped_by=tuple(images),
            iterations=step,
            converged=converged,
        )

    def _start(self, tables: list[Matrix]) -> Matrix:
        """Return the first Z."""
        widest = max(tables, key=lambda table: table.shape[1])
        if self.start == "odc":
            return widest
        return leading_directions(tables, widest.shape[1])[0]

    @staticmethod
    def _refuse_arbitrary(images: Images, mean: Matrix) -> None:
        """Raise UndeterminedFitError where a party agrees with nothing but itself.

        Z contains every image, so a fit to Z itself is always determined. A party that is
        wider than all others is spared: it stands for the frame.
        """
        widths = sorted(image.shape[1] for image in images.values())
        for party, image in images.items():
            if len(widths) > 1 and image.shape[1] <= widths[-2]:
                own = image @ polar(image.T @ mean).rotation
                procrustes_fit(image, mean - own / len(images), party=party)

    def fit(self, image: Matrix, target: Target, *, party: str) -> Fit:
        """Rotate one image onto the consensus."""
        return procrustes_fit(image, target.rows, party=party)


def _in_the_frame_of(table: Matrix, mean: Matrix) -> Matrix:
    """Fix the common rotation: turn Z so that the first party's own rotation is I."""
    turn = polar(table.T @ mean).rotation
    return mean @ turn.T if turn.shape[0] == turn.shape[1] else mean
