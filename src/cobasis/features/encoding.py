"""Rows in memory, as arrays or data frames, checked and put on the agreed scale."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cobasis.errors import FeatureError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.columns import Encoder, Scaling
from cobasis.features.numeric import NumericFeature
from cobasis.features.reading import Array, as_frame
from cobasis.features.refusals import not_whole, refuse_huge, refuse_names
from cobasis.linalg.arrays import Matrix, as_matrix, as_table


def encode(
    rows: npt.ArrayLike,
    features: Sequence[NumericFeature | CategoryFeature],
    *,
    party: str,
) -> Matrix:
    """Check a party's rows against the features and encode them.

    Parameters
    ----------
    rows : array-like or data frame of shape (n_rows, n_columns)
        Columns in the agreed order; names are compared where `rows` has ``columns``. Categories
        need a data frame, of any library that narwhals knows.
    features : sequence of NumericFeature or CategoryFeature
        The agreement's.
    party : str
        For the message.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        ``(rows - centre) / scale`` of numbers, zeros and ones of categories; a new array.

    Raises
    ------
    FeatureError
        Other names, or another order; words outside a vocabulary; categories in an array.
    NotFiniteError, DtypeError, ShapeError
        No finite table of that width, or numbers above 1e50 after scaling.

    Notes
    -----
    **Who sees what.** The party alone. The message shows column names and no value.

    **Cost.** One pass over the rows.
    """
    what = f"the rows of party '{party}'"
    encoder = Encoder(features)
    # what another library calls columns may be the cells themselves, as pyarrow does
    frame = as_frame(rows) if hasattr(rows, "columns") else None
    names = getattr(rows if frame is None else frame, "columns", None)
    if names is not None:
        refuse_names([str(name) for name in names], encoder.names, party=party)
    if frame is not None:
        return _of_columns(encoder.read(frame, what=what), encoder, name=what)
    numbers = [each for each in encoder.features if isinstance(each, NumericFeature)]
    if len(numbers) < len(encoder.features):
        words = next(each.name for each in encoder.features if isinstance(each, CategoryFeature))
        msg = (
            f"{what} are no data frame, and the agreement has categories ('{words}'), which an "
            "array has no place for. Give a data frame, with the agreement's columns by name."
        )
        raise FeatureError(msg)
    return _of_array(rows, Scaling(numbers), name=what, columns=encoder.width)


def _of_array(rows: npt.ArrayLike, scaling: Scaling, *, name: str, columns: int) -> Matrix:
    """Encode a table of numbers."""
    check = as_table if scaling.fills else as_matrix
    table = check(rows, name=name, columns=columns)
    encoded: Matrix = np.empty_like(table)
    scaling.put(table, encoded)
    if scaling.fills:
        as_matrix(encoded, name=name)
    refuse_huge(encoded, name=name)
    return encoded


def _of_columns(raw: list[Array], encoder: Encoder, *, name: str) -> Matrix:
    """Encode a frame's columns."""
    n_rows = raw[0].shape[-1]
    if not n_rows:
        msg = f"{name} are empty: 0 rows. Leave the party out, or give it rows."
        raise ShapeError(msg)
    out = np.empty((encoder.width, n_rows))
    if not encoder.put(raw, out):
        raise not_whole(name, bad_cells(raw, encoder), n_rows=n_rows)
    return out.T


def bad_cells(raw: list[Array], encoder: Encoder) -> dict[str, int]:
    """Count, for each column of numbers, the cells that nothing stands for.

    Parameters
    ----------
    raw : list of ndarray
        What ``Encoder.read`` gave.
    encoder : Encoder
        Of the same features.

    Returns
    -------
    dict of str to int
        Infinite ones, and NaN where it is not filled.

    Notes
    -----
    **Who sees what.** The party alone.

    **Cost.** One pass.
    """
    counts = {}
    columns = (column for each in raw for column in np.atleast_2d(each))
    for feature, column in zip(encoder.features, columns, strict=True):
        if isinstance(feature, NumericFeature):
            fine = np.isfinite(column)
            if feature.missing == "fill":
                fine |= np.isnan(column)
            counts[feature.name] = int(len(column) - np.count_nonzero(fine))
    return counts
