"""Numeric features: names, order, and the centre and scale that all parties share.

Centre and scale are constants of the agreement. A party that centred by its own mean would
add an offset that no change of basis can undo.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from cobasis.errors import FeatureError, NotFiniteError
from cobasis.linalg.arrays import Matrix, as_matrix

LARGEST = 1e50
"""Above this, sums of squares and cubes over the rows would not stay finite."""


class NumericFeature(BaseModel):
    """One numeric column of the agreement: ``(value - centre) / scale`` goes into the round.

    Attributes
    ----------
    name : str
        The column's name.
    centre, scale : float
        Public constants, the scale above zero.

    Notes
    -----
    **Who sees what.** Public: a field of the agreement.

    **Cost.** None.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    centre: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0


def numeric_features(
    names: Iterable[str], *, centre: npt.ArrayLike = 0.0, scale: npt.ArrayLike = 1.0
) -> tuple[NumericFeature, ...]:
    """Make a tuple of numeric features from names and constants.

    Parameters
    ----------
    names : iterable of str
        Column names in their order.
    centre, scale : float or array-like of shape (n_features,)
        Public constants.

    Returns
    -------
    tuple of NumericFeature
        For ``Agreement(features=...)``.

    Raises
    ------
    FeatureError
        An empty name, a scale that is not above zero, or constants of another shape.

    Notes
    -----
    **Who sees what.** The constants are public: take them from a code book or from public
    data, not from the rows of one party.

    **Cost.** None.

    Examples
    --------
    >>> numeric_features(["age"], centre=60, scale=20)
    (NumericFeature(name='age', centre=60.0, scale=20.0),)
    """
    listed = list(names)
    try:
        centres = np.broadcast_to(np.asarray(centre, dtype=np.float64), len(listed))
        scales = np.broadcast_to(np.asarray(scale, dtype=np.float64), len(listed))
        return tuple(
            NumericFeature(name=str(name), centre=float(middle), scale=float(unit))
            for name, middle, unit in zip(listed, centres, scales, strict=True)
        )
    except ValueError as error:
        msg = (
            f"these {len(listed)} features need names, and one finite centre and one scale above "
            "zero for all or for each. Correct the constants."
        )
        raise FeatureError(msg) from error


def encode(rows: npt.ArrayLike, features: Sequence[NumericFeature], *, party: str) -> Matrix:
    """Check a party's rows against the features and put them on the agreed scale.

    Parameters
    ----------
    rows : array-like or data frame of shape (n_rows, n_features)
        Columns in the agreed order; names are compared where `rows` has ``columns``.
    features : sequence of NumericFeature
        The agreement's.
    party : str
        For the message.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        ``(rows - centre) / scale``, a new array.

    Raises
    ------
    FeatureError
        Other names, or another order.
    NotFiniteError, DtypeError, ShapeError
        No finite table of that width, or numbers above 1e50 after scaling.

    Notes
    -----
    **Who sees what.** The party alone. The message shows column names and no value.

    **Cost.** One pass over the rows.
    """
    expected = [feature.name for feature in features]
    names = getattr(rows, "columns", None)
    if names is not None:
        refuse_names([str(name) for name in names], expected, party=party)
    table = as_matrix(rows, name=f"the rows of party '{party}'", columns=len(features))
    scaling = Scaling.of(features)
    with np.errstate(over="ignore"):
        encoded: Matrix = table - scaling.centre
        encoded /= scaling.scale
    refuse_huge(encoded, name=f"the rows of party '{party}'")
    return encoded


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Centre and scale of all features, to be applied block by block.

    Attributes
    ----------
    centre, scale : ndarray of shape (n_features,)
        The agreement's constants.
    """

    centre: Matrix
    scale: Matrix

    @classmethod
    def of(cls, features: Sequence[NumericFeature]) -> Self:
        """Return the constants of an agreement's features."""
        return cls(
            centre=np.array([feature.centre for feature in features]),
            scale=np.array([feature.scale for feature in features]),
        )

    def put(self, columns: Iterable[npt.NDArray[Any]], out: Matrix) -> bool:
        """Write columns on the agreed scale into the rows of `out`, as `encode` does.

        Parameters
        ----------
        columns : iterable of ndarray of shape (n_rows,)
            One per feature, in the agreed order, of any real type.
        out : ndarray of shape (n_features, n_rows)
            Where to. Its transpose is what `encode` returns, to the last bit.

        Returns
        -------
        bool
            Whether all of it is finite and small enough for sums of squares. One sum of
            squares tells; only where it is too large for comfort is every entry looked at.

        Notes
        -----
        **Who sees what.** The party alone.

        **Cost.** One pass; constants of 0 and 1 cost nothing.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            for column, centre, scale, row in zip(
                columns, self.centre, self.scale, out, strict=True
            ):
                np.copyto(row, column)
                if centre:
                    np.subtract(row, centre, out=row)
                if scale != 1:
                    np.divide(row, scale, out=row)
            flat = out.reshape(-1)
            squares = float(flat @ flat)
            return squares <= LARGEST**2 or bool(np.abs(out).max() <= LARGEST)


def refuse_huge(table: Matrix, *, name: str) -> None:
    """Raise NotFiniteError for a scaled table whose squares would not stay finite.

    Parameters
    ----------
    table : ndarray of shape (n_rows, n_columns)
        After centre and scale.
    name : str
        What to call it in the error.

    Raises
    ------
    NotFiniteError
        An entry is above 1e50.

    Notes
    -----
    **Who sees what.** The message shows no entry.

    **Cost.** One pass.
    """
    if not max(table.max(), -table.min()) <= LARGEST:
        msg = (
            f"an entry of {name} is above {LARGEST:.0e} after centre and scale, so sums of "
            "squares leave float64's range. Agree on scales that suit the units."
        )
        raise NotFiniteError(msg)


def refuse_names(names: Sequence[str], expected: Sequence[str], *, party: str) -> None:
    """Raise FeatureError unless `names` are exactly `expected`, in that order.

    Parameters
    ----------
    names, expected : sequence of str
        The party's column names and the agreement's.
    party : str
        For the message.

    Raises
    ------
    FeatureError
        Says which are missing, unknown or out of order.

    Notes
    -----
    **Who sees what.** Column names only.

    **Cost.** None.
    """
    if list(names) == list(expected):
        return
    given, agreed = set(names), set(expected)
    missing = [name for name in expected if name not in given]
    unknown = [name for name in names if name not in agreed]
    if missing or unknown:
        reason = f"missing {_short(missing)}; not agreed {_short(unknown)}"
    elif len(names) != len(expected):
        reason = f"{len(names)} columns, some of one name, where {len(expected)} are agreed"
    else:
        first = next(i for i, (a, b) in enumerate(zip(names, expected, strict=False)) if a != b)
        reason = f"column {first + 1} is '{names[first]}', agreed is '{expected[first]}'"
    msg = (
        f"the columns of party '{party}' are not the agreement's: {reason}. Every party needs the "
        "same features in the same order, or its rows mean something else. Select and order them."
    )
    raise FeatureError(msg)


def _short(names: Sequence[str]) -> str:
    """Return at most five names."""
    listed = ", ".join(f"'{name}'" for name in names[:5]) or "none"
    return f"{listed} and {len(names) - 5} more" if len(names) > 5 else listed  # noqa: PLR2004
