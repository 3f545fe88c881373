"""ODC-GOPP: Procrustes onto a mean of all images (ODC paper, arXiv v4, Appendix B)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cobasis.algorithms.base import Fit, Target
from cobasis.algorithms.fits import procrustes_fits, turned_onto
from cobasis.algorithms.images import Images, batches, check_image
from cobasis.algorithms.options import require_word
from cobasis.algorithms.stacked import leading_directions
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.linalg.pool import in_order


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

    **Cost.** ``4 a c l^2 + 18 c l^3`` operations and one reading of the images an iteration,
    and three readings more; one batch of images in memory.

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

    def target(self, images: Images, *, workers: int | None = None) -> Target:
        """Alternate until the objective stands still."""
        require_word(self.start, ("spectral", "odc"), option="start")
        mean, first, before = self._start(images, workers), 0.0, np.inf
        converged, step, n_widest = False, 0, 0
        while step < self.max_iterations and not converged:
            step += 1
            turned = _turned(images, mean, workers)
            mean, n_widest = turned.total / len(images), turned.n_widest
            if step > 1:  # the first start is no mean, so that distances from it say nothing
                first, now = first or turned.distance, turned.distance
                converged = before - now <= self.tolerance * first or now <= 1e-28 * turned.energy
                before = now
        self._refuse_arbitrary(images, mean, n_widest=n_widest)
        return Target(
            rows=_in_the_frame_of(next(iter(images.values())), mean),
            shaped_by=tuple(images),
            iterations=step,
            converged=converged,
        )

    def _start(self, images: Images, workers: int | None) -> Matrix:
        """Return the first Z."""
        if self.start == "odc":
            return _widest(images)
        return leading_directions(images, size=max, workers=workers).directions

    @staticmethod
    def _refuse_arbitrary(images: Images, mean: Matrix, *, n_widest: int) -> None:
        """Raise UndeterminedFitError where a party agrees with nothing but itself.

        Z contains every image, so a fit to Z itself is always determined. A party that is
        wider than all others is spared: it stands for the frame.
        """
        for batch in batches(images):
            for party, image in batch.items():
                if len(images) > 1 and (n_widest > 1 or image.shape[1] < mean.shape[1]):
                    own = image @ polar(image.T @ mean).rotation
                    rest = Target(rows=mean - own / len(images), shaped_by=())
                    procrustes_fits({party: image}, rest)

    def fits(self, images: Images, target: Target) -> Mapping[str, Fit]:
        """Rotate images onto the consensus."""
        return procrustes_fits(images, target)


@dataclass(kw_only=True)
class _Turned:
    """Sums over images that are turned towards a mean.

    Attributes
    ----------
    total : ndarray of shape (n_anchor_rows, n_components)
        Of the turned images.
    distance : float
        Of their squared distances from the mean.
    energy : float
        Of their squares.
    n_widest : int
        How many are as wide as the mean.
    """

    total: Matrix
    distance: float = 0.0
    energy: float = 0.0
    n_widest: int = 0


def _turned(images: Images, mean: Matrix, workers: int | None) -> _Turned:
    """Turn all images towards the mean, in one pass."""

    def turn(batch: dict[str, Matrix]) -> _Turned:
        rotations = turned_onto(batch, mean).rotation
        sums = _Turned(total=np.zeros_like(mean))
        for table, rotation in zip(batch.values(), rotations, strict=True):
            image = table @ rotation
            sums.total += image
            sums.n_widest += table.shape[1] == mean.shape[1]
            sums.energy += float(np.vdot(image, image))
            sums.distance += float(np.sum((image - mean) ** 2))
        return sums

    whole = _Turned(total=np.zeros_like(mean))
    for part in in_order(turn, batches(images), workers=workers):
        whole.total += part.total
        whole.distance += part.distance
        whole.energy += part.energy
        whole.n_widest += part.n_widest
    return whole


def _widest(images: Images) -> Matrix:
    """Return the first of the widest images."""
    found: Matrix | None = None
    for batch in batches(images):
        for party, image in batch.items():
            if found is None or image.shape[1] > found.shape[1]:
                found = check_image(party, image, n_rows=None)
    return np.empty((0, 0)) if found is None else found


def _in_the_frame_of(table: Matrix, mean: Matrix) -> Matrix:
    """Fix the common rotation: turn Z so that the first party's own rotation is I."""
    turn = polar(table.T @ mean).rotation
    return mean @ turn.T if turn.shape[0] == turn.shape[1] else mean
