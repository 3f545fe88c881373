"""What an upload is worth to a model: one figure, the same for all settings that are compared."""

from dataclasses import dataclass

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.models.passes import Labels
from cobasis.privacy.audit.subject import Subject

_FEWEST = 60

SPLITS = 3
"""One split says how well a model did; three also say by how much that is chance."""


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a simple model makes of released rows."""

    mean: float  # over three splits: accuracy, or R2 for numbers
    least: float
    most: float
    n_rows: int  # people that each split is scored on, whom its model was not fitted on


def accuracy(subject: Subject, *, task: str, seed: int) -> Worth | None:
    """Fit a ridge model on half of the released rows, and score it on the other half's people.

    It is fitted on labels as they are sent, and scored on the table's own; where none are sent,
    on the table's own as well: what the rows are worth to whoever has labels from elsewhere. It
    is scored on rows through the basis without noise, which is how a party predicts. It is a
    figure for comparison: the round's model sees everybody's rows and is another family.
    """
    labels = subject.labels
    if labels is None or task == "representation" or subject.n_rows < _FEWEST:
        return None
    taught = labels if subject.release.labels is None else subject.release.labels
    rng, half = np.random.default_rng(seed), subject.n_rows // 2
    rows, exact = subject.release.rows, subject.rows @ subject.basis
    classes, scores = task == "classification", []
    for _ in range(SPLITS):
        order = rng.permutation(subject.n_rows)
        fitted, held = order[:half], order[half:]
        if classes and len(np.unique(taught[fitted])) == 1:
            return None
        seen, unseen = (rows[fitted], taught[fitted]), (exact[held], labels[held])
        scores.append(_scored(seen, unseen, classes=classes))
    return Worth(
        mean=float(np.mean(scores)),
        least=min(scores),
        most=max(scores),
        n_rows=subject.n_rows - half,
    )


def _scored(seen: tuple[Matrix, Labels], unseen: tuple[Matrix, Labels], *, classes: bool) -> float:
    """Fit on some people and score on others."""
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV  # noqa: PLC0415 -- a second to load

    rows = seen[0]
    scales = np.logspace(-4, 3, 8) * float(np.mean(np.einsum("ij,ij->i", rows, rows)) or 1.0)
    model = (RidgeClassifierCV if classes else RidgeCV)(alphas=scales)
    model.fit(*seen)
    return float(model.score(*unseen))
