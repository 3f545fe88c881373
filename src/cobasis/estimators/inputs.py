"""What callers hand to an estimator: a table, one party name per row, labels, a random state."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from cobasis.errors import DtypeError, LabelError, OptionError, ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.protocol.labels import as_labels

Array = npt.NDArray[Any]


def as_table(X: npt.ArrayLike) -> Matrix:
    """Check that `X` is a dense, finite table."""
    if issparse(X):
        raise DtypeError(
            "X is sparse, and sparse input is not supported: a secret basis is dense, so the "
            "projected rows would be too. Convert it with X.toarray()."
        )
    return as_matrix(X, name="X")


def party_column(parties: npt.ArrayLike | None, *, n_rows: int) -> Array:
    """Check the party names, one per row."""
    if parties is None:
        raise OptionError(
            "parties is missing: every row needs the name of the party that holds it. Give "
            "parties=[...], one name per row; in cross-validation params={'parties': ...}, which "
            "the default scoring passes on and scoring='accuracy' does not."
        )
    names = np.asarray(parties, dtype=object)
    if names.shape != (n_rows,):
        raise ShapeError(
            f"parties has shape {names.shape} for {n_rows} rows, so it is not known whose rows "
            "they are. Give one name per row; for one party np.full(len(X), 'north')."
        )
    listed = names.tolist()
    other = sum(not (isinstance(name, str) and name) for name in listed)
    if other:
        raise OptionError(
            f"{other} of {n_rows} party names are not text, or are empty. Parties have names: "
            "write np.asarray(parties).astype(str), and drop rows that belong to nobody."
        )
    return np.array(listed, dtype=np.str_)


def label_column(y: npt.ArrayLike | None, *, n_rows: int, estimator: str) -> Array:
    """Check that there is one label per row."""
    if y is None:
        raise LabelError(
            f"{estimator} requires y to be passed, but the target y is None. Give one label per "
            "row, or use CollaborativeTransformer, which needs none."
        )
    labels = as_labels(y, name="the labels y")
    if labels.shape != (n_rows,):
        raise LabelError(
            f"y has shape {labels.shape} for {n_rows} rows, and y should be a 1d array with one "
            "label per row. Flatten a single column with y.ravel(); train several outputs in "
            "several rounds."
        )
    return labels


def travelling_classes(labels: Array) -> tuple[Array, Array]:
    """Return the classes, and the labels as an agreement can name them."""
    text = labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
    if not text and labels.dtype.kind not in "Uiub":
        kind = "continuous" if labels.dtype.kind == "f" else "unknown"
        raise LabelError(
            f"Unknown label type: {kind}, y has dtype {labels.dtype}; classes are text, integers "
            "or booleans, all of one type. Convert with y.astype(int) or y.astype(str), and drop "
            "rows without a label."
        )
    travelling = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
    return np.unique(labels), travelling


def whole_number(value: object, *, name: str) -> int:
    """Return an integer of Python's or NumPy's as Python's own."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise OptionError(
            f"{name}={value!r} is no integer. Give a whole number, or None for the default."
        )
    return operator.index(value)


def generator(random_state: object) -> np.random.Generator:
    """Make the generator that a simulation draws its keys from."""
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=8, dtype=np.int64))
    seed = whole_number(random_state, name="random_state")
    if seed < 0:
        raise OptionError(
            f"random_state={seed} is negative, and seeds start at 0. Give another integer."
        )
    return np.random.default_rng(seed)
