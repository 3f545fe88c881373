"""What callers hand to an estimator: a table, one party name per row, labels, a random state."""

import operator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from cobasis.errors import DtypeError, FeatureError, LabelError, OptionError, ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.protocol.labels import as_labels

Array = npt.NDArray[Any]


def as_table(X: npt.ArrayLike) -> Matrix:
    """Check that `X` is a dense, finite table.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        Rows of all parties.

    Returns
    -------
    ndarray of shape (n_rows, n_features), float64
        The same numbers.

    Raises
    ------
    DtypeError, ShapeError, NotFiniteError
        As ``as_matrix``; `X` is sparse.

    Notes
    -----
    **Who sees what.** The message shows shapes and types, no number.

    **Cost.** One pass.
    """
    if issparse(X):
        msg = (
            "X is sparse, and sparse input is not supported: a secret basis is dense, so the "
            "projected rows would be too. Convert it with X.toarray()."
        )
        raise DtypeError(msg)
    return as_matrix(X, name="X")


def column_names(X: npt.ArrayLike) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns, or None where there are none.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        Names are read from ``X.columns``.

    Returns
    -------
    tuple of str or None
        None for arrays, and for columns that are only numbered.

    Raises
    ------
    FeatureError
        Some names are text and some are not.

    Notes
    -----
    **Who sees what.** Column names only.

    **Cost.** None.
    """
    names = list(getattr(X, "columns", ()))
    named = sum(isinstance(name, str) for name in names)
    if named not in {0, len(names)}:
        msg = (
            f"{named} of the {len(names)} columns have a name that is text, so they cannot be "
            "compared with another table's. Write X.columns = X.columns.astype(str)."
        )
        raise FeatureError(msg)
    return tuple(names) if named else None


def party_column(parties: npt.ArrayLike | None, *, n_rows: int) -> Array:
    """Check the party names, one per row.

    Parameters
    ----------
    parties : array-like of shape (n_rows,) or None
        Text.
    n_rows : int
        How many there have to be.

    Returns
    -------
    ndarray of shape (n_rows,)
        The names as text.

    Raises
    ------
    OptionError
        There are none, or some are not text.
    ShapeError
        Not one per row.

    Notes
    -----
    **Who sees what.** The message shows no name.

    **Cost.** One pass.
    """
    if parties is None:
        msg = (
            "parties is missing: every row needs the name of the party that holds it. Give "
            "parties=[...], one name per row; in cross-validation params={'parties': ...}, which "
            "the default scoring passes on and scoring='accuracy' does not."
        )
        raise OptionError(msg)
    names = np.asarray(parties, dtype=object)
    if names.shape != (n_rows,):
        msg = (
            f"parties has shape {names.shape} for {n_rows} rows, so it is not known whose rows "
            "they are. Give one name per row; for one party np.full(len(X), 'north')."
        )
        raise ShapeError(msg)
    listed = names.tolist()
    other = sum(not (isinstance(name, str) and name) for name in listed)
    if other:
        msg = (
            f"{other} of {n_rows} party names are not text, or are empty. Parties have names: "
            "write np.asarray(parties).astype(str), and drop rows that belong to nobody."
        )
        raise OptionError(msg)
    return np.array(listed, dtype=np.str_)


def label_column(y: npt.ArrayLike | None, *, n_rows: int, estimator: str) -> Array:
    """Check that there is one label per row.

    Parameters
    ----------
    y : array-like of shape (n_rows,) or None
        Labels of any type.
    n_rows : int
        How many there have to be.
    estimator : str
        Who asks, for the message.

    Returns
    -------
    ndarray of shape (n_rows,)
        As they are.

    Raises
    ------
    LabelError
        Missing or masked, of another length, or several per row.

    Notes
    -----
    **Who sees what.** The message shows a shape, no label.

    **Cost.** None.
    """
    if y is None:
        msg = (
            f"{estimator} requires y to be passed, but the target y is None. Give one label per "
            "row, or use CollaborativeTransformer, which needs none."
        )
        raise LabelError(msg)
    labels = as_labels(y, name="the labels y")
    if labels.shape != (n_rows,):
        msg = (
            f"y has shape {labels.shape} for {n_rows} rows, and y should be a 1d array with one "
            "label per row. Flatten a single column with y.ravel(); train several outputs in "
            "several rounds."
        )
        raise LabelError(msg)
    return labels


def travelling_classes(labels: Array) -> tuple[Array, Array]:
    """Return the classes, and the labels as an agreement can name them.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        Text, integers or booleans.

    Returns
    -------
    classes : ndarray of shape (n_classes,)
        Sorted, of the type of `labels`.
    travelling : ndarray of shape (n_rows,)
        `labels`, but 0 and 1 for booleans: agreements know text and integers.

    Raises
    ------
    LabelError
        Labels of another type.

    Notes
    -----
    **Who sees what.** The message shows a type, no label.

    **Cost.** One sort.
    """
    text = labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels)
    if not text and labels.dtype.kind not in "Uiub":
        kind = "continuous" if labels.dtype.kind == "f" else "unknown"
        msg = (
            f"Unknown label type: {kind}, y has dtype {labels.dtype}; classes are text, integers "
            "or booleans, all of one type. Convert with y.astype(int) or y.astype(str), and drop "
            "rows without a label."
        )
        raise LabelError(msg)
    travelling = labels.astype(np.int64) if labels.dtype.kind == "b" else labels
    return np.unique(labels), travelling


def whole_number(value: object, *, name: str) -> int:
    """Return an integer of Python's or NumPy's as Python's own.

    Parameters
    ----------
    value : int
        What the caller gave.
    name : str
        The parameter, for the message.

    Returns
    -------
    int
        The same number.

    Raises
    ------
    OptionError
        It is a float, a boolean, or no number.

    Notes
    -----
    **Who sees what.** A public option.

    **Cost.** None.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        msg = f"{name}={value!r} is no integer. Give a whole number, or None for the default."
        raise OptionError(msg)
    return operator.index(value)


def generator(random_state: object) -> np.random.Generator:
    """Make the generator that a simulation draws its keys from.

    Parameters
    ----------
    random_state : int, RandomState or None
        None draws fresh entropy from the system, never from NumPy's global state.

    Returns
    -------
    numpy.random.Generator
        The same for the same integer; a RandomState moves on.

    Raises
    ------
    OptionError
        Something else, or a negative integer.

    Notes
    -----
    **Who sees what.** Whoever knows the integer can draw every key: simulation only.

    **Cost.** None.
    """
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, size=8, dtype=np.int64))
    seed = whole_number(random_state, name="random_state")
    if seed < 0:
        msg = f"random_state={seed} is negative, and seeds start at 0. Give another integer."
        raise OptionError(msg)
    return np.random.default_rng(seed)
