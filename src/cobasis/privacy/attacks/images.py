"""An anchor image and an anchor that fit each other, and the basis between them."""

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.privacy.attacks.release import Release


def image_of(release: Release) -> Matrix:
    """Return a release's anchor image, which the attack cannot do without.

    Parameters
    ----------
    release : Release
        What left.

    Returns
    -------
    ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.

    Raises
    ------
    ShapeError
        It has none, or one that does not fit its rows.

    Notes
    -----
    **Who sees what.** The analyst has it. **Cost.** None.
    """
    if release.anchor_image is None:
        msg = "the release has no anchor image, which this attack works from. Give anchor_image."
        raise ShapeError(msg)
    rows = as_matrix(release.rows, name="the release's rows")
    return as_matrix(release.anchor_image, name="the release's anchor_image", columns=rows.shape[1])


def anchor_behind(image: Matrix, anchor: npt.ArrayLike) -> Matrix:
    """Return an anchor if it has as many rows as the image.

    Parameters
    ----------
    image : ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.
    anchor : array-like of shape (n_anchor_rows, n_features)
        ``A``, or a guess.

    Returns
    -------
    ndarray of shape (n_anchor_rows, n_features)
        `anchor`.

    Raises
    ------
    ShapeError
        It has not.

    Notes
    -----
    **Who sees what.** Shapes only. **Cost.** None.
    """
    rows = as_matrix(anchor, name="the anchor")
    if len(rows) != len(image):
        msg = (
            f"the anchor has {len(rows)} rows and its image {len(image)}, so they are not of one "
            "round. Give an anchor of the shape that the agreement says."
        )
        raise ShapeError(msg)
    return rows


def basis_behind(image: Matrix, anchor: npt.ArrayLike) -> Matrix:
    """Return the basis through which an anchor's image is nearest to the one that was sent.

    Parameters
    ----------
    image : ndarray of shape (n_anchor_rows, n_components)
        ``A F_i``.
    anchor : array-like of shape (n_anchor_rows, n_features)
        ``A``, or a guess.

    Returns
    -------
    ndarray of shape (n_features, n_components)
        ``A^+ A_i``: the secret basis itself where the anchor is right and of full rank.

    Raises
    ------
    ShapeError
        The anchor has not as many rows as the image.

    Notes
    -----
    **Who sees what.** As private as the basis.

    **Cost.** One least-squares solution of a x m.
    """
    return np.asarray(np.linalg.lstsq(anchor_behind(image, anchor), image, rcond=None)[0])
