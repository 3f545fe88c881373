"""How far one person can move a release: rows kept inside a ball that was declared beforehand."""

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from cobasis.errors import OptionError
from cobasis.linalg.arrays import Matrix, as_matrix

Adjacency = Literal["replace-one", "add-remove"]

_SLACK = 1e-12  # rows end this much inside the ball, so that rounding cannot put one outside


def clip_rows(rows: npt.ArrayLike, *, radius: float, centre: npt.ArrayLike | None = None) -> Matrix:
    """Move every row that lies outside a ball to its edge; the others stay as they are.

    Parameters
    ----------
    rows : array-like of shape (n_rows, n_features)
        Finite: NaN would pass any comparison with the radius, so it is refused before.
    radius : float
        r of the L2 ball, in the rows' unit: a public constant that all parties agreed on.
    centre : array-like of shape (n_features,), optional
        c, public too; by default the origin. A mean of public rows keeps more of the signal.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        ``c + (x - c) min(1, r / |x - c|)``, a copy. No row is further than r from c: those on
        the edge are put inside it by 1e-12 of ``r + |c|``, which is what rounding could add.

    Raises
    ------
    NotFiniteError, DtypeError, ShapeError
        `rows` is no finite table, or `centre` no finite vector of its width.
    OptionError
        The radius is not finite, not above 0, or below the rounding of the centre.

    Notes
    -----
    **Who sees what.** Stays at the party. Radius and centre must not be taken from private
    rows, or the noise that they are the scale of protects nobody.
    **Cost.** Three passes over the rows.

    References
    ----------
    The papers' "normalised within the range r" is a guarantee only in this sense: entries in
    [0, 1] leave rows ``sqrt(m)`` apart.

    Examples
    --------
    >>> clip_rows([[3.0, 4.0], [0.3, 0.4]], radius=1).round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    table = as_matrix(rows, name="rows")
    given = np.zeros(table.shape[1]) if centre is None else np.asarray(centre)
    middle = as_matrix(given[np.newaxis], name="centre", columns=table.shape[1])[0]
    inside = _inside(radius, middle)
    # The guarantee needs |row - c| <= r in exact arithmetic for *every* finite row. So nothing
    # here may overflow or vanish: halves of finite entries never differ by more than the largest
    # float, and lengths are taken after division by the largest entry, for the square of 1e200
    # is infinite and that of 1e-200 is zero. A length beyond the largest float is outside.
    halves = table / 2 - middle / 2
    largest = np.abs(halves).max(axis=1, keepdims=True)
    largest[largest == 0] = 1.0
    directions = halves / largest
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        outside = 2 * (lengths * largest) > inside
    lengths[lengths == 0] = 1.0
    return np.where(outside, middle + directions / lengths * inside, table)


def sensitivity_of(
    *, radius: float, adjacency: Adjacency = "replace-one", rows_per_person: int = 1
) -> float:
    """Return how far one person can move a release of clipped, projected rows.

    Parameters
    ----------
    radius : float
        r that the rows were clipped to.
    adjacency : {"replace-one", "add-remove"}
        Which two tables must look alike. Replace-one: one record is another, and the number
        of rows is public. Add-remove: one record is there or not; since the number of rows
        would tell, a row of the centre stands where none is.
    rows_per_person : int
        The most rows that one person has; the party has to see to it.

    Returns
    -------
    float
        D: ``2 r`` for replace-one, ``r`` for add-remove, times ``sqrt(rows_per_person)``.

    Raises
    ------
    OptionError
        No such adjacency, or a number out of its range.

    Notes
    -----
    **Who sees what.** Public numbers only. Holds for a basis with orthonormal columns that is
    fixed without the rows (``haar``, ``public``); where rows shape their basis, one record can
    move all n, and the true figure is ``r sqrt(n - 1)``.
    **Cost.** None.

    References
    ----------
    ODC paper's first version, eq. (4), which has r for every case.

    Examples
    --------
    >>> sensitivity_of(radius=1.5)
    3.0
    """
    if adjacency not in get_args(Adjacency):
        raise OptionError(
            f"adjacency '{adjacency}' does not exist. Choose one of "
            f"{', '.join(get_args(Adjacency))}."
        )
    whole = not isinstance(rows_per_person, bool) and float(rows_per_person).is_integer()
    if not whole or rows_per_person < 1:
        raise OptionError(
            "rows_per_person has to be a whole number of at least 1. Count the rows of a person."
        )
    _inside(radius, np.zeros(1))
    radii = 2 if adjacency == "replace-one" else 1
    return radii * float(radius) * math.sqrt(rows_per_person)


def _inside(radius: float, centre: Matrix) -> float:
    """Return the radius that rows are put on, or refuse one that no row could keep."""
    # Adding the centre to a row of length r rounds by up to 3e-16 of r + |c| (measured): without
    # this slack half of the rows on the edge would stand outside the ball.
    inside = radius - _SLACK * (radius + float(np.linalg.norm(centre)))
    if not 0 < inside < math.inf:
        raise OptionError(
            f"radius={radius} is no ball's: it has to be finite, above 0, and not lost in the "
            "rounding of the centre. Agree on a radius from public rows, such as their median "
            "distance from the centre."
        )
    return inside
