"""Somebody knows the raw records of a few of a party's people, and where they stand."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Hidden, Matrix, as_matrix
from cobasis.privacy.attacks.release import Recovered, Release
from cobasis.privacy.attacks.scores import nearest

_PENALTIES = (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
"""Shares of what known records have outside the basis: how much the fit is held back."""

_NONE = 1e-13
"""Of the largest squared singular value: the least penalty, where nothing is outside."""

_ASKED = 200
"""People among whom `fewest_known` looks; of larger tables as many are drawn."""


@dataclass(frozen=True, kw_only=True, repr=False)
class KnownRecords(Hidden):
    """The records of k of the party's people, and which released rows are theirs."""

    places: npt.NDArray[np.intp]
    records: Matrix

    def recover(self, release: Release) -> Recovered:
        """Fit what takes the known people's released rows back to their records."""
        rows = as_matrix(release.rows, name="the release's rows")
        records = as_matrix(self.records, name="records")
        places = np.asarray(self.places)
        if places.shape != (len(records),) or len(np.unique(places)) < len(places):
            raise ShapeError(
                f"{len(records)} records stand at places of shape {places.shape}, of which "
                f"{len(np.unique(places))} are different. Give each record one place of its own."
            )
        if not 0 <= places.min() <= places.max() < len(rows):
            raise ShapeError(
                f"places run from {places.min()} to {places.max()}, and the release has "
                f"{len(rows)} rows. Count them from 0."
            )
        basis = np.linalg.lstsq(records, rows[places], rcond=None)[0].astype(np.float64)
        return Recovered(rows=rows @ _back(rows[places], records), basis=basis)


def _back(released: Matrix, records: Matrix) -> Matrix:
    """Return the l x m matrix that takes known released rows to their records."""
    left, values, right = np.linalg.svd(released, full_matrices=False)
    if len(records) == 1:
        penalty = 0.0
    else:
        gram = records @ records.T
        outside = (np.trace(gram) - np.sum(values**2)) / len(records)
        scale = max(float(outside), _NONE * float(values[0] ** 2), np.finfo(np.float64).tiny)
        penalties = [scale * share for share in _PENALTIES]
        penalty = min(penalties, key=lambda each: _left_out(left, values, gram, penalty=each))
    weights = np.divide(
        values, values**2 + penalty, out=np.zeros_like(values), where=values > _NONE * values[0]
    )
    back: Matrix = (right.T * weights) @ (left.T @ records)
    return back


def _left_out(left: Matrix, values: Matrix, gram: Matrix, *, penalty: float) -> float:
    """Return the squared error of each known record when the others explain it, summed."""
    rest = np.eye(len(gram)) - (left * (values**2 / (values**2 + penalty))) @ left.T
    errors = np.einsum("ij,ij->i", rest @ gram, rest)
    return float(np.sum(errors / np.maximum(np.diag(rest), _NONE) ** 2))


@dataclass(frozen=True, kw_only=True)
class FewestKnown:
    """How few known people are enough."""

    explained: int | None
    named: int | None
    tried: int


def fewest_known(
    release: Release,
    truth: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    draws: int = 5,
    most: int | None = None,
    explained: float = 0.5,
    named: float = 0.09,
) -> FewestKnown:
    """Find how many known people are enough to rebuild half, or to name one in eleven."""
    rows = as_matrix(truth, name="truth")
    if len(rows) != len(release.rows):
        raise ShapeError(
            f"the release has {len(release.rows)} rows and the truth {len(rows)}. Give the raw "
            "rows that the release was made of."
        )
    width = release.rows.shape[1]
    tried = max(1, min(2 * width if most is None else most, len(rows) // 2))
    orders = [rng.permutation(len(rows)) for _ in range(draws)]
    measured: dict[int, tuple[float, float]] = {}

    def at(known: int) -> tuple[float, float]:
        if known not in measured:
            found = [_figures(release, rows, order, known=known) for order in orders]
            measured[known] = (
                float(np.mean([each for each, _ in found])),
                float(np.mean([each for _, each in found])),
            )
        return measured[known]

    return FewestKnown(
        explained=_first(lambda known: at(known)[0] >= explained, tried),
        named=_first(lambda known: at(known)[1] >= named, tried),
        tried=tried,
    )


def _figures(
    release: Release, rows: Matrix, order: npt.NDArray[np.intp], *, known: int
) -> tuple[float, float]:
    """Return R2 and re-identification of people who are not known."""
    places, asked = order[:known], order[known:][-_ASKED:]
    back = _back(release.rows[places], rows[places])
    guessed, true = release.rows[asked] @ back, rows[asked]
    spread = float(np.sum((true - true.mean(axis=0)) ** 2))
    missed = float(np.sum((guessed - true) ** 2))
    share = 1 - missed / spread if spread > 0 else float(missed == 0)
    return share, float(np.mean(nearest(guessed, among=rows) == asked))


def _first(enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number up to `most` that is enough, where more always are."""
    if not enough(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
