"""What callers hand to an estimator: a table, a party label per row, labels, a random state."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.sparse import issparse

from cobasis.errors import DtypeError, FeatureError, LabelError, OptionError, ShapeError
from cobasis.features.contract import Feature, columns_in, listed_features
from cobasis.features.encoder import as_frame, column_names
from cobasis.linalg.arrays import Array, Matrix, as_matrix, as_table
from cobasis.protocol.messages import as_labels

Features = Sequence[Feature]
Cells = npt.ArrayLike | nw.DataFrame[Any]

LONGEST_NAME = 100  # of a party, in an agreement


def open_table(X: npt.ArrayLike, *, names: Sequence[str] | None) -> Cells:
    """Return a data frame with names as a frame, whatever else as it is.

    Where columns are taken by `names`, those of `fit`, an array as wide gets them: scikit-learn
    makes arrays of some frames.
    """
    if issparse(X):
        raise DtypeError(
            "X is sparse, and sparse input is not supported: a secret basis is dense, so the "
            "projected rows would be too. Convert it with X.toarray()."
        )
    own = column_names(X)
    if own and (frame := as_frame(X)) is not None:
        return frame
    names = own or names
    if names is None:
        return X
    array = np.asarray(X)
    if array.shape[1:] != (len(names),):
        raise ShapeError(
            f"X has shape {array.shape}, and {len(names)} columns are expected, as in fit. Give a "
            "data frame, or all of its columns."
        )
    columns = {name: array[:, at].tolist() for at, name in enumerate(names)}
    return nw.from_native(pl.DataFrame(columns, strict=False), eager_only=True)


def take_parties(table: Cells, column: str | int) -> tuple[Cells, list[Any]]:
    names = [*getattr(table, "columns", range(np.shape(table)[-1] if np.ndim(table) > 1 else 0))]
    if column not in names:
        raise FeatureError(
            f"party_column={column!r} is no column of X. Give a data frame's column by its name, "
            "an array's by its position from 0."
        )
    if isinstance(table, nw.DataFrame):
        return table.drop(str(column)), table.get_column(str(column)).to_list()
    array, at = np.asarray(table), names.index(column)
    return np.delete(array, at, axis=1), array[:, at].tolist()


def take_features(table: Cells, features: Features | None) -> "Matrix | nw.DataFrame[Any]":
    """Return the columns that features name, or all as numbers where none are given."""
    if features is None:
        return table if isinstance(table, nw.DataFrame) else as_matrix(table, name="X")
    names = [each.name for each in columns_in(listed_features(features))]
    if not isinstance(table, nw.DataFrame):
        return as_table(table, name="X", columns=len(names))
    if missing := [name for name in names if name not in table.columns]:
        raise FeatureError(
            f"X has no column {', '.join(missing[:5])}, which features= names. It has "
            f"{', '.join(table.columns[:10])}. Correct one of the two."
        )
    return table[names]


def party_labels(parties: Any, *, n_rows: int) -> list[Hashable]:  # noqa: ANN401 -- of any library
    """Return the parties' labels, one per row: anything that can be told apart by hash."""
    if parties is None:
        raise OptionError(
            "parties is missing: every row needs the label of its party. Give parties=[...], or "
            "party_column=... for a column of X; in cross-validation params={'parties': ...}, "
            "which the default scoring passes on and scoring='accuracy' does not."
        )
    if not hasattr(parties, "shape"):
        sized = isinstance(parties, Iterable) and not isinstance(parties, str | bytes | Mapping)
        parties = as_column(parties) if sized else np.array(parties, dtype=object)
    if tuple(parties.shape) != (n_rows,):
        raise ShapeError(
            f"parties has shape {tuple(parties.shape)} for {n_rows} rows, so it is not known whose "
            "rows they are. Give one label per row; for one party np.full(len(X), 'north')."
        )
    labels = [each.item() if isinstance(each, np.generic) else each for each in parties]
    if nobody := n_rows - sum(map(_is_somebody, labels)):
        raise OptionError(
            f"there are missing or empty party labels, or lists: {nobody} of {n_rows}. Give text, "
            "numbers or tuples, and drop rows that belong to nobody."
        )
    return labels


def _is_somebody(label: object) -> bool:
    """Whether a label is not None, NaN, NA, masked or empty text, and has a hash."""
    try:
        known = label is not np.ma.masked and label not in {None, ""}
        return known and bool(label == label)  # noqa: PLR0124 -- only NaN is not itself
    except (TypeError, ValueError):  # a list, and pandas' NA, which is neither itself nor not
        return False


def names_of(labels: Iterable[Hashable]) -> dict[Hashable, str]:
    """Name parties as their labels are written, or by numbers where two would be one."""
    found = dict.fromkeys(labels)
    try:
        distinct = sorted(found)  # type: ignore[type-var]  # which is what is tried
    except TypeError:
        distinct = sorted(found, key=lambda label: (type(label).__name__, str(label)))
    names = [str(label) for label in distinct]
    # an agreement takes names that differ in case alone for one
    if len({*map(str.casefold, names)}) < len(names) or max(map(len, names)) > LONGEST_NAME:
        names = [f"party {number}" for number in range(len(names))]
    return dict(zip(distinct, names, strict=True))


def members_of(labels: Sequence[Hashable], named: Mapping[Hashable, str]) -> dict[str, Array]:
    """Return the positions of the rows of each party that has some, by its name."""
    column = np.array([named[label] for label in labels])
    found = {name: np.flatnonzero(column == name) for name in named.values()}
    return {name: own for name, own in found.items() if own.size}


def as_column(labels: Iterable[Hashable]) -> Array:
    """Return labels as an array of one dimension, of their type where they have one."""
    listed = list(labels)
    if len({type(label) for label in listed}) == 1 and isinstance(listed[0], str | int | float):
        return np.array(listed)
    return np.fromiter(listed, dtype=object, count=len(listed))


def label_column(y: npt.ArrayLike | None, *, n_rows: int, estimator: str) -> Array:
    if y is None:
        raise LabelError(
            f"{estimator} requires y to be passed, but the target y is None. Give one label per "
            "row, or use CollaborativeTransformer, which needs none."
        )
    labels = as_labels(y, name="the labels y")
    if labels.shape != (n_rows,):
        raise LabelError(
            f"y has shape {labels.shape} for {n_rows} rows, and y should be a 1d array. Flatten a "
            "single column with y.ravel(); train several outputs in several rounds."
        )
    return labels


def travelling_classes(labels: Array) -> Array:
    """Return labels as an agreement can name them; LabelError where they are no classes."""
    text = labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
    if not text and labels.dtype.kind not in "Uiub":
        kind = "continuous" if labels.dtype.kind == "f" else "unknown"
        raise LabelError(
            f"Unknown label type: {kind}, y has dtype {labels.dtype}; classes are text, integers "
            "or booleans, all of one type. Use y.astype(int) or y.astype(str); drop empty ones."
        )
    return labels.astype(np.int64) if labels.dtype.kind == "b" else labels


def generator(random_state: Any) -> np.random.Generator:  # noqa: ANN401 -- anything may be given
    drawn = isinstance(random_state, np.random.RandomState)
    seed = random_state.randint(0, 2**32, size=8, dtype=np.int64) if drawn else random_state
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise OptionError(
            f"random_state={seed!r} is no seed. Give an integer from 0, or None for a new one."
        ) from None
