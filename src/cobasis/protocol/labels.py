"""Labels as a party holds them, and as they travel."""

from typing import cast

import numpy as np
import numpy.typing as npt

from cobasis.errors import LabelError, LocalError
from cobasis.linalg.arrays import as_matrix
from cobasis.models import Task
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.messages import Labels


def encode_labels(
    labels: npt.ArrayLike | None, agreement: Agreement, *, n_rows: int, party: str
) -> Labels | None:
    """Check labels against the agreement and turn classes into their positions."""
    if agreement.task == "representation":
        return None
    if labels is None:
        raise LabelError(
            f"party '{party}' gave no labels, and task='{agreement.task}' needs one per row."
        )
    array = as_labels(labels, name=f"the labels of party '{party}'")
    if array.ndim != 1 or len(array) != n_rows:
        raise LabelError(
            f"party '{party}' has labels of shape {array.shape} for {n_rows} rows; one column with "
            "one label per row is needed. Train several outputs in several rounds."
        )
    return (
        _numbers(array, party)
        if agreement.task == "regression"
        else _classes(array, agreement, party)
    )


def as_labels(labels: npt.ArrayLike, *, name: str) -> npt.NDArray[np.generic]:
    """Return labels as an array, unless they are ragged, masked or of another byte order."""
    try:
        array = np.asarray(labels)
    except ValueError:
        array = np.empty(0, dtype="V1")
    if array.dtype.kind == "V" or np.ma.is_masked(labels) or not array.dtype.isnative:
        raise LabelError(
            f"{name} cannot be used: they are ragged, masked or of another machine's byte order, "
            "so some would be guessed. Give one plain label per row."
        )
    return array


def _numbers(array: npt.NDArray[np.generic], party: str) -> npt.NDArray[np.float64]:
    """Return regression targets as float64."""
    try:
        if array.dtype.kind in "fiu":
            return as_matrix(array[:, np.newaxis], name="labels")[:, 0].copy()
    except LocalError:
        pass
    raise LabelError(
        f"party '{party}' has labels of dtype {array.dtype} for a regression, which need to be "
        "finite real numbers that float64 holds. Convert them, and drop rows without a label."
    )


def _classes(
    array: npt.NDArray[np.generic], agreement: Agreement, party: str
) -> npt.NDArray[np.int64]:
    """Return each label's position among the agreed classes."""
    words = isinstance(agreement.classes[0], str)
    kind = "US" if words else "iub"
    listed = array.tolist()
    if array.dtype.kind == "O" and words and all(isinstance(label, str) for label in listed):
        kind = "O"
    if array.dtype.kind not in kind:
        expected = "text" if words else "integers"
        raise LabelError(
            f"party '{party}' has labels of dtype {array.dtype}, the agreement's classes are "
            f"{expected}. Convert the labels, so that equal classes are written equally."
        )
    positions = {label: position for position, label in enumerate(agreement.classes)}
    unknown = sum(label not in positions for label in listed)
    if unknown:
        raise LabelError(
            f"party '{party}' has {unknown} label(s) that are none of the {len(positions)} agreed "
            "classes. Correct them, or agree on more classes."
        )
    return np.array([positions[label] for label in listed], dtype=np.int64)


def decode_labels(predicted: Labels, agreement: Agreement) -> npt.NDArray[np.generic]:
    """Turn positions back into classes; leave regression targets as they are."""
    if agreement.task == "classification":
        classes: npt.NDArray[np.generic] = np.array(agreement.classes)
        return classes[predicted.astype(np.int64)]
    return predicted


def scored(
    labels: npt.ArrayLike, predicted: npt.NDArray[np.generic], *, agreement: Agreement, party: str
) -> float:
    """Check labels as a party's and return how good predictions of them are."""
    truth = encode_labels(labels, agreement, n_rows=len(predicted), party=party)
    return figure_of(
        decode_labels(cast("Labels", truth), agreement), predicted, task=agreement.task
    )


def figure_of(
    truth: npt.NDArray[np.generic], predicted: npt.NDArray[np.generic], *, task: Task
) -> float:
    """Return accuracy for classification, R2 for regression.

    Examples
    --------
    >>> figure_of(np.array([1, 2, 3]), np.array([1, 2, 4]), task="regression")
    0.5
    """
    if task == "classification":
        return float(np.mean(truth == predicted))
    true, found = truth.astype(np.float64), predicted.astype(np.float64)
    spread, missed = np.sum((true - true.mean()) ** 2), np.sum((true - found) ** 2)
    return float(1 - missed / spread) if spread else float(missed == 0)
