"""ODC-GOPP: Procrustes onto a mean of all images (ODC paper, arXiv v4, Appendix B)."""

from dataclasses import dataclass

import numpy as np

from cobasis.algorithms.fits import Rotates, Target, turned_onto
from cobasis.algorithms.images import Images, batches
from cobasis.algorithms.stacked import leading_directions
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.polar import polar
from cobasis.linalg.threads import in_order

_EXACT = 1e-25  # the share of squared distances in all squares that is nothing but rounding


@dataclass(frozen=True, kw_only=True)
class GOPP(Rotates):
    r"""Generalised orthogonal Procrustes: :math:`\min_{Z, G_i \in O} \sum \|A_i G_i - Z\|^2`.

    Alternates between the rotations for a given Z and the mean of what they rotate, from the top
    left singular vectors of all images on.

    Parameters
    ----------
    tolerance : float
        Stops when an iteration's new mean lowers the objective by less than this share of the
        first one's value. The papers give no rule.
    max_iterations : int
        Stops anyway; ``Target.converged`` is then False.
    momentum : bool
        Whether each iteration goes on in the direction in which the mean moved, further every
        time and anew once that leads uphill (Nesterov). On the papers' images it ends as low in
        a third to a ninth of the iterations; the papers' algorithm has none.

    Notes
    -----
    **Who sees what.** Z is a mean of all rotated images and carries a trace of each.

    **Cost.** ``4 a c l^2 + 18 c l^3`` operations and one reading of the images an iteration,
    and three readings more; three tables of Z's size and one batch of images in memory.

    References
    ----------
    ODC paper (arXiv v4), Appendix B, Algorithm 2; Ling (2023), generalised power method;
    O'Donoghue and Candes (2015), when to drop momentum.
    """

    tolerance: float = 1e-9
    max_iterations: int = 1000
    momentum: bool = True

    def target(self, images: Images, *, workers: int | None = None) -> Target:
        """Alternate until the objective stands still."""
        # Images are turned towards what lies ahead: their mean, and its last move continued.
        mean = ahead = leading_directions(images, size=max, workers=workers)[0].directions
        first, last = 0.0, float("inf")  # of the objective's values
        step = gaining = 0  # the second since momentum was last dropped
        n_widest, converged = 0.0, False
        while step < self.max_iterations and not converged:
            total, (now, energy, n_widest) = _turned(images, ahead, workers)
            step, before, mean = step + 1, mean, total / len(images)
            if step == 1:  # the first start is no mean, so that distances from it say nothing
                ahead = mean
                continue
            first = first or now
            move, since = mean - ahead, mean - before
            small = len(images) * float(np.vdot(move, move)) <= self.tolerance * first
            rounding = gaining == 0 and now >= last  # a mean itself is always lower
            converged = small or rounding or now <= _EXACT * energy
            # O'Donoghue and Candes: momentum is dropped where it leads uphill, seen by the
            # objective or by a move against the mean's own.
            downhill = self.momentum and now < last and np.vdot(move, since) >= 0
            gaining = gaining + 1 if downhill else 0
            ahead, last = mean + gaining / (gaining + 3) * since, now
        _refuse_arbitrary(images, mean, n_widest=n_widest)
        # The common rotation is free: it is chosen so that the first party's own is I.
        rows, turn = mean, polar(next(iter(images.values())).T @ mean).rotation
        return Target(
            rows=rows @ turn.T if turn.shape[0] == turn.shape[1] else rows,
            shaped_by=tuple(images),
            iterations=step,
            converged=converged,
        )


def _turned(images: Images, mean: Matrix, workers: int | None) -> tuple[Matrix, list[float]]:
    """Turn all images towards the mean, in one pass, and add them up.

    Beside their sum: of squared distances from the mean, of squares, and how many are as wide.
    """

    def turn(batch: dict[str, Matrix]) -> tuple[Matrix, Matrix]:
        total, sums = np.zeros_like(mean), np.zeros(3)
        for table, rotation in zip(batch.values(), turned_onto(batch, mean).rotation, strict=True):
            image = table @ rotation
            total += image
            energy = np.vdot(image, image)
            image -= mean
            sums += np.vdot(image, image), energy, table.shape[1] == mean.shape[1]
        return total, sums

    total, sums = np.zeros_like(mean), np.zeros(3)
    for image, figures in in_order(turn, batches(images), workers=workers):
        total += image
        sums += figures
    return total, sums.tolist()


def _refuse_arbitrary(images: Images, mean: Matrix, *, n_widest: float) -> None:
    """Raise UndeterminedFitError where a party agrees with nothing but itself."""
    # Z contains every image, so a fit to Z itself is always determined; to the mean of the others
    # it may not be. A party that is wider than all others is spared: it stands for the frame.
    for batch in batches(images):
        for party, image in batch.items():
            if len(images) > 1 and (n_widest > 1 or image.shape[1] < mean.shape[1]):
                own = image @ polar(image.T @ mean).rotation
                rest = Target(rows=mean - own / len(images), shaped_by=())
                Rotates().fits({party: image}, rest)
