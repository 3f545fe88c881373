"""What attacks on an anchor image begin with."""

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.privacy.attacks.release import Release


def image_of(release: Release) -> Matrix:
    """Return a release's anchor image, which the attack cannot do without."""
    if release.anchor_image is None:
        raise ShapeError(
            "the release has no anchor image, which this attack works from. Give anchor_image."
        )
    rows = as_matrix(release.rows, name="the release's rows")
    return as_matrix(release.anchor_image, name="the release's anchor_image", columns=rows.shape[1])


def anchor_behind(image: Matrix, anchor: npt.ArrayLike) -> Matrix:
    """Return an anchor if it has as many rows as the image."""
    rows = as_matrix(anchor, name="the anchor")
    if len(rows) != len(image):
        raise ShapeError(
            f"the anchor has {len(rows)} rows and its image {len(image)}, so they are not of one "
            "round. Give an anchor of the shape that the agreement says."
        )
    return rows


def basis_behind(image: Matrix, anchor: npt.ArrayLike) -> Matrix:
    """Return the basis through which an anchor's image is nearest to the one that was sent."""
    return np.asarray(np.linalg.lstsq(anchor_behind(image, anchor), image, rcond=None)[0])
