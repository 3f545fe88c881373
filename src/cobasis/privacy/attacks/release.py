"""What leaves a party, as whoever opens it sees it, and what an attack makes of it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Hidden):
    """An upload, opened: all that an attack may look at besides what its attacker knows.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_components)
        ``X_i F_i``.
    anchor_image : ndarray of shape (n_anchor_rows, n_components) or None
        ``A F_i``; None where the attack has no use for it.
    labels : ndarray of shape (n_rows,) or None
        In the clear, as they are uploaded.

    Notes
    -----
    **Who sees what.** The analyst sees all of it. **Cost.** None.
    """

    rows: Matrix
    anchor_image: Matrix | None = None
    labels: npt.NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Recovered(Hidden):
    """What an attack made of a release.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_features)
        Its guess of the raw rows ``X_i``, in the release's order.
    basis : ndarray of shape (n_features, n_components) or None
        Its guess of the secret basis ``F_i``, where it has one: candidates can be projected on it.

    Notes
    -----
    **Who sees what.** As private as the rows themselves. **Cost.** None.
    """

    rows: Matrix
    basis: Matrix | None = None


class Attack(Protocol):
    """What an attacker knows, and one way to use it.

    What it knows are the fields of the class; the truth is in none of them.
    """

    def recover(self, release: Release) -> Recovered:
        """Guess the raw rows of a release.

        Parameters
        ----------
        release : Release
            What left.

        Returns
        -------
        Recovered
            Rows, and the basis where the attack finds one.

        Raises
        ------
        ShapeError
            What the attacker knows does not fit the release.

        Notes
        -----
        **Who sees what.** Runs wherever it is called; for a party's own audit, at the party.

        **Cost.** As the attack says.
        """
        ...


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
