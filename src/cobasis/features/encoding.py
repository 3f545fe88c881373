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
    """Check a party's rows against the features and encode them."""
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
        raise FeatureError(
            f"{what} are no data frame, and the agreement has categories ('{words}'), which an "
            "array has no place for. Give a data frame, with the agreement's columns by name."
        )
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
        raise ShapeError(f"{name} are empty: 0 rows. Leave the party out, or give it rows.")
    out = np.empty((encoder.width, n_rows))
    if not encoder.put(raw, out):
        raise not_whole(name, bad_cells(raw, encoder), n_rows=n_rows)
    return out.T


def bad_cells(raw: list[Array], encoder: Encoder) -> dict[str, int]:
    """Count, for each column of numbers, the cells that nothing stands for."""
    counts = {}
    columns = (column for each in raw for column in np.atleast_2d(each))
    for feature, column in zip(encoder.features, columns, strict=True):
        if isinstance(feature, NumericFeature):
            fine = np.isfinite(column)
            if feature.missing == "fill":
                fine |= np.isnan(column)
            counts[feature.name] = int(len(column) - np.count_nonzero(fine))
    return counts
