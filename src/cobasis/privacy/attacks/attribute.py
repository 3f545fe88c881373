"""Knowing one fact of a few people, somebody reads the same fact of all others off a release."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cobasis.errors import OptionError, ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_decision

_STRENGTH = 10.0
"""Inverse weight of the penalty, for rows of size 1: between 1 and 100 it hardly matters."""


@dataclass(frozen=True, kw_only=True, repr=False)
class KnownAttribute(Hidden):
    """A yes-or-no fact of k of the party's people, and which released rows are theirs."""

    places: npt.NDArray[np.intp]
    values: npt.NDArray[np.bool_]

    def decide(self, release: Release) -> Matrix:
        """Score everybody by a logistic regression on the known people's released rows."""
        rows = as_matrix(release.rows, name="the release's rows")
        size = float(np.sqrt(np.mean(np.einsum("ij,ij->i", rows, rows)))) or 1.0
        return _scores(rows / size, self)

    def decide_by_labels(self, release: Release) -> Matrix:
        """Score everybody by the known people's labels alone, to compare with."""
        return _scores(_label_columns(release), self)


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """How well a fact is read off a release, beside what the labels say of it anyway."""

    auc: float
    from_labels: float

    @property
    def gain(self) -> float:
        """What the rows add to the labels."""
        return self.auc - self.from_labels


def infer_attribute(
    release: Release,
    column: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_known: int = 20,
    draws: int = 10,
) -> Inferred:
    """Try to read whether a person is above the median of a column, knowing it of a few."""
    if n_known < 2 or draws < 1:  # noqa: PLR2004 -- one of each kind
        raise OptionError(
            f"n_known={n_known} and draws={draws}: at least 2 people and 1 draw are needed."
        )
    above = _above(np.asarray(column), n_rows=len(release.rows))
    found = []
    for _ in range(draws):
        places = _chosen(above, n_known=n_known, rng=rng)
        asked = np.setdiff1d(np.arange(len(above)), places)
        if not 0 < above[asked].sum() < len(asked):
            raise ShapeError(
                f"of {len(above)} people {n_known} are known, and the others do not differ in this "
                "column. Choose a smaller n_known, or another column."
            )
        known = KnownAttribute(places=places, values=above[places])
        found.append(
            [
                score_decision(scores[asked], above[asked]).auc.value
                for scores in (known.decide(release), known.decide_by_labels(release))
            ]
        )
    auc, from_labels = np.mean(found, axis=0)
    return Inferred(auc=float(auc), from_labels=float(from_labels))


def _scores(columns: Matrix, known: KnownAttribute) -> Matrix:
    """Fit the known people and score all."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 -- keeps imports light

    places, values = np.asarray(known.places), np.asarray(known.values, dtype=bool)
    fits = values.shape == places.shape and places.ndim == 1
    if not fits or not 0 < values.sum() < len(values) or places.max() >= len(columns):
        raise ShapeError(
            f"places of shape {places.shape} and values of shape {values.shape} say nothing about "
            f"{len(columns)} released people. Give one value per place, and both kinds of people."
        )
    fitted = LogisticRegression(C=_STRENGTH, max_iter=1000).fit(columns[places], values)
    scores: Matrix = fitted.decision_function(columns)
    return scores


def _label_columns(release: Release) -> Matrix:
    """Return labels as numbers: one column a class, or the standardised value."""
    labels: npt.NDArray[Any] | None = release.labels
    if labels is None:
        return np.zeros((len(release.rows), 1))
    given = np.asarray(labels)
    if given.dtype.kind == "f":
        spread = float(given.std()) or 1.0
        numbers: Matrix = ((given - given.mean()) / spread).reshape(len(given), -1)
        return numbers
    columns: Matrix = (given[:, np.newaxis] == np.unique(given)).astype(float)
    return columns


def _above(column: npt.NDArray[Any], *, n_rows: int) -> npt.NDArray[np.bool_]:
    """Return who is above the column's median."""
    if column.shape != (n_rows,):
        raise ShapeError(
            f"the column has shape {column.shape}, and {n_rows} people were released. Give all."
        )
    median = np.median(column)
    above: npt.NDArray[np.bool_] = column > median
    if not above.any():
        above = column >= median
    if above.all() or not above.any():
        raise ShapeError(
            "all people have one value in this column, so there is nothing to infer. Leave it out."
        )
    return above


def _chosen(
    above: npt.NDArray[np.bool_], *, n_known: int, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Choose people at random, but at least one of each kind."""
    one = [int(rng.choice(np.flatnonzero(above == kind))) for kind in (True, False)]
    others = np.setdiff1d(np.arange(len(above)), one)
    more = rng.choice(others, size=min(n_known - 2, len(others)), replace=False)
    return np.concatenate([np.asarray(one, dtype=np.intp), more])
