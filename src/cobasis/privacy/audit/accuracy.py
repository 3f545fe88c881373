"""What an upload is worth to a model: one figure, the same for all settings that are compared."""

import numpy as np
import numpy.typing as npt

from cobasis.linalg.arrays import Matrix
from cobasis.models.training import Labels
from cobasis.privacy.audit.subject import Subject

Places = npt.NDArray[np.intp]

_FEWEST = 60


def accuracy(subject: Subject, *, task: str, seed: int) -> float | None:
    """Fit a ridge model on half of the released rows, and score it on the other half.

    Parameters
    ----------
    subject : Subject
        What is about to leave, with the table's own labels.
    task : {"classification", "regression", "representation"}
        As agreed.
    seed : int
        Splits the rows; no secret depends on it.

    Returns
    -------
    float or None
        Accuracy, or R2 for regression; None for a representation, without labels, with fewer than
        60 rows, or where one half holds one class only.

    Notes
    -----
    It is a figure for comparison: the round's model sees everybody's rows and is another family.

    **Who sees what.** The party alone.

    **Cost.** One singular value decomposition of half of the rows.
    """
    labels = subject.labels
    if labels is None or task == "representation" or subject.n_rows < _FEWEST:
        return None
    order = np.random.default_rng(seed).permutation(subject.n_rows)
    half = len(order) // 2
    fitted, held = order[:half], order[half:]
    rows = subject.release.rows
    if task == "regression":
        return _scored(rows, labels, fitted=fitted, held=held, classes=False)
    if len(np.unique(labels[fitted])) == 1:
        return None
    return _scored(rows, labels, fitted=fitted, held=held, classes=True)


def _scored(rows: Matrix, labels: Labels, *, fitted: Places, held: Places, classes: bool) -> float:
    """Fit and score."""
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV  # noqa: PLC0415 -- a second to load

    scales = np.logspace(-4, 3, 8) * float(np.mean(np.einsum("ij,ij->i", rows, rows)) or 1.0)
    model = (RidgeClassifierCV if classes else RidgeCV)(alphas=scales)
    model.fit(rows[fitted], labels[fitted])
    return float(model.score(rows[held], labels[held]))
