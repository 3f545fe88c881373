"""What leaves a party, as whoever opens it sees it, and what an attack makes of it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from cobasis.linalg.arrays import Hidden, Matrix


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
