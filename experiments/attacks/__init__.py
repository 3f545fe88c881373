"""Attacks that no audit runs; the page on the threat model says who plays each, what stops it."""

import numpy as np

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks import Release


def image_of(release: Release, *, anchor: Matrix | None = None) -> Matrix:
    """Return a release's anchor image; refuse one that is missing, or not of such an anchor."""
    image = release.anchor_image
    if image is None or (anchor is not None and len(anchor) != len(image)):
        raise ShapeError(
            f"the release has an anchor image of {0 if image is None else len(image):,} rows, and "
            "this attack needs another. Give anchor_image, and an anchor of the round's shape."
        )
    return image


def basis_behind(release: Release, anchor: Matrix) -> Matrix:
    """Return the basis through which an anchor's image is nearest to the one that was sent."""
    image = image_of(release, anchor=anchor)
    return np.asarray(np.linalg.lstsq(anchor, image, rcond=None)[0])
