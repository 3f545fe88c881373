"""Comparing two uploads of nearly the same people: who came, who left.

**Who.** The analyst alone; with a party's anchor it also sees new features of the person who came.
**What stops it.** Changing many rows at once: those who came stand out as a crowd, not one by one,
so 1 to 10 changed rows are a finding before anything leaves. One span for life hides what a new
person would add to the span. **What does not.** Shuffled rows, a new rotation, a new span, which
hardly differs.
"""

from dataclasses import dataclass

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.linalg.polar import polar
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks.anchor_image import basis_behind, image_of


@dataclass(frozen=True, kw_only=True, repr=False)
class Difference(Hidden):
    """Somebody kept an earlier upload of the same party."""

    before: Release
    anchor: Matrix | None = None

    def came(self, release: Release) -> Matrix:
        """Score each row of the later upload for having nobody like it in the earlier one."""
        return _apart(self._aligned(release), self.before.rows)

    def left(self, release: Release) -> Matrix:
        """Score each row of the earlier upload for having nobody like it in the later one."""
        return _apart(self.before.rows, self._aligned(release))

    def outside(self, release: Release) -> Matrix:
        """Return the direction in which the later span leaves the earlier one, the anchor known."""
        if self.anchor is None:
            raise ShapeError(
                "spans can be compared feature by feature only with the anchor. Give anchor."
            )
        uploads = (self.before, release)
        bases = [basis_behind(image_of(each), self.anchor) for each in uploads]
        first, second = (np.linalg.qr(each)[0] for each in bases)
        direction: Matrix = np.linalg.svd(second - first @ (first.T @ second))[0][:, 0]
        return direction

    def _aligned(self, release: Release) -> Matrix:
        """Return the later rows in the earlier frame."""
        images = image_of(self.before), image_of(release)
        if len(images[0]) != len(images[1]):
            raise ShapeError(
                f"the uploads' anchor images have {len(images[0])} and {len(images[1])} rows, so "
                "they are not of one anchor. Give two uploads of one consortium secret."
            )
        change: Matrix = polar(images[1].T @ images[0]).rotation
        return as_matrix(release.rows, name="the release's rows") @ change


def _apart(rows: Matrix, others: Matrix) -> Matrix:
    """Return each row's distance to the nearest of some others."""
    distances: Matrix = np.linalg.norm(rows - others[nearest(rows, among=others)], axis=1)
    return distances
