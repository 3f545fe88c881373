"""How much of the truth an attack recovered, with what guessing gives beside each figure."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.attacks.release import Recovered

CLOSE = 0.1
"""A cell counts as recovered within this share of its column's range."""

_WORST = 0.01
_BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class Share:
    """A figure, and what somebody who knows nothing of the release would reach."""

    value: float
    chance: float


@dataclass(frozen=True, kw_only=True)
class Content:
    """How much of the raw values was recovered."""

    distance: Share
    explained: Share
    worst_explained: float
    cells: Share
    named: Share


@dataclass(frozen=True, kw_only=True)
class Decision:
    """How well an attack tells two kinds of people apart."""

    auc: Share
    at_one_percent: Share


def score_content(
    recovered: Recovered, truth: npt.ArrayLike, *, known: npt.ArrayLike = ()
) -> Content:
    """Set recovered rows against the raw ones."""
    rows = as_matrix(truth, name="truth")
    if recovered.rows.shape != rows.shape:
        raise ShapeError(
            f"the attack returned rows of shape {recovered.rows.shape}, the truth has {rows.shape}."
            " Give the raw rows that the release was made of."
        )
    asked = np.setdiff1d(np.arange(len(rows)), np.asarray(known, dtype=np.intp))
    if not asked.size:
        raise ShapeError(
            "all people were known beforehand, so nobody is left to be recovered. Keep some back."
        )
    guessed, true = recovered.rows[asked], rows[asked]
    average = np.broadcast_to(true.mean(axis=0), true.shape)
    errors, spread = _squares(guessed - true), _squares(true - average)
    reach = CLOSE * np.ptp(rows, axis=0)
    return Content(
        distance=Share(
            value=_ratio(errors.sum(), _squares(true).sum()) ** 0.5,
            chance=_ratio(spread.sum(), _squares(true).sum()) ** 0.5,
        ),
        explained=Share(value=1 - _ratio(errors.sum(), spread.sum()), chance=0.0),
        worst_explained=_worst(errors, spread),
        cells=Share(value=_within(guessed, true, reach), chance=_within(average, true, reach)),
        named=Share(
            value=float(np.mean(nearest(guessed, among=rows) == asked)), chance=1 / len(rows)
        ),
    )


def score_linkage(
    release_rows: npt.ArrayLike,
    recovered: Recovered,
    *,
    candidates: npt.ArrayLike,
    places: npt.ArrayLike,
) -> Share:
    """Link released rows with a list of candidates, projected on the basis that was guessed."""
    if recovered.basis is None:
        raise ShapeError("the attack found no basis to project candidates on. Use score_content.")
    listed = as_matrix(candidates, name="candidates", columns=len(recovered.basis))
    released = as_matrix(release_rows, name="release_rows", columns=recovered.basis.shape[1])
    found = nearest(released, among=listed @ recovered.basis)
    return Share(value=float(np.mean(found == np.asarray(places))), chance=1 / len(listed))


def score_decision(scores: npt.ArrayLike, truth: npt.ArrayLike) -> Decision:
    """Set an attack's scores against which people are of the kind it looks for."""
    given, really = np.asarray(scores, dtype=float), np.asarray(truth, dtype=bool)
    if given.shape != really.shape or given.ndim != 1 or not 0 < really.sum() < len(really):
        raise ShapeError(
            f"scores of shape {given.shape} and a truth of shape {really.shape} with "
            f"{int(really.sum())} positives cannot be compared. Give one of each per person, "
            "and people of both kinds."
        )
    ranks = rankdata(given)
    positives, negatives = int(really.sum()), int((~really).sum())
    auc = (ranks[really].sum() - positives * (positives + 1) / 2) / (positives * negatives)
    bar = np.quantile(given[~really], 1 - _WORST, method="higher")
    return Decision(
        auc=Share(value=float(auc), chance=0.5),
        at_one_percent=Share(value=float(np.mean(given[really] > bar)), chance=_WORST),
    )


def nearest(rows: Matrix, *, among: Matrix) -> npt.NDArray[np.intp]:
    """Return for each row the place of the nearest of some others (Euclidean, in blocks)."""
    halves = _squares(among) / 2
    parts = [
        np.argmin(halves - rows[at : at + _BLOCK] @ among.T, axis=1)
        for at in range(0, len(rows), _BLOCK)
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)


def _squares(rows: Matrix) -> Matrix:
    """Return the squared length of each row."""
    squares: Matrix = np.einsum("ij,ij->i", rows, rows)
    return squares


def _ratio(part: float, whole: float) -> float:
    """Return part / whole; 0 / 0 is 0: where nothing varies, nothing was missed."""
    return float(part / whole) if whole > 0 else (0.0 if part == 0 else float("inf"))


def _worst(errors: Matrix, spread: Matrix) -> float:
    """Return R2 over the 1 % whose records were recovered best."""
    each = errors / np.where(spread > 0, spread, 1.0)
    chosen = np.argsort(each, kind="stable")[: max(1, round(_WORST * len(each)))]
    return 1 - _ratio(errors[chosen].sum(), spread[chosen].sum())


def _within(guessed: Matrix, true: Matrix, reach: Matrix) -> float:
    """Return the share of cells within reach; where no column varies, all are known."""
    varied = reach > 0
    if not varied.any():
        return 1.0
    return float(np.mean(np.abs(guessed - true)[:, varied] <= reach[varied]))


def score_span(guessed: npt.ArrayLike | None, basis: npt.ArrayLike) -> Share:
    """Say how much of the secret span lies in the one that was guessed."""
    true, guess = _two_bases(guessed, basis)
    overlap = np.linalg.qr(guess)[0].T @ np.linalg.qr(true)[0]
    return Share(
        value=float(np.sum(overlap**2) / true.shape[1]), chance=min(guess.shape) / len(guess)
    )


def score_entries(guessed: npt.ArrayLike | None, basis: npt.ArrayLike) -> Share:
    """Say how near a guessed basis comes to the secret one, entry by entry."""
    true, guess = _two_bases(guessed, basis)
    _refuse_other_shape(guess, true)
    lengths = np.linalg.norm(true) * np.linalg.norm(guess)
    return Share(
        value=float(abs(np.sum(true * guess)) / lengths) if lengths > 0 else 0.0,
        chance=float(np.sqrt(2 / np.pi / true.size)),
    )


def in_order(recovered: Recovered, basis: npt.ArrayLike) -> Recovered:
    """Put features that were found without their names in the order that fits the truth best."""
    true, guessed = _two_bases(recovered.basis, basis)
    _refuse_other_shape(guessed, true)
    likeness = _unit(true) @ _unit(guessed).T
    order = linear_sum_assignment(-np.abs(likeness))[1]
    signs = np.where(likeness[np.arange(len(true)), order] < 0, -1.0, 1.0)
    return Recovered(
        rows=recovered.rows[:, order] * signs, basis=guessed[order] * signs[:, np.newaxis]
    )


def score_directions(recovered: Recovered, basis: npt.ArrayLike) -> Share:
    """Say how near the rows of a guessed basis come to the true ones, in their best order."""
    true = as_matrix(basis, name="basis")
    found = _matched(recovered, true)
    n_found = int(np.count_nonzero(np.any(found != 0, axis=1)))
    size = true.shape[1]
    blind = np.zeros_like(true)
    some = haar_columns(KeyStream(bytes(32), "attacks/chance"), n_rows=size, n_columns=size)
    blind[:n_found] = np.tile(some, (n_found // size + 1, 1))[:n_found]
    guess = _matched(Recovered(rows=recovered.rows, basis=blind), true)
    return Share(value=_mean_cosine(found, true), chance=_mean_cosine(guess, true))


def _matched(recovered: Recovered, true: Matrix) -> Matrix:
    basis = in_order(recovered, true).basis
    return true if basis is None else basis


def _mean_cosine(guessed: Matrix, true: Matrix) -> float:
    """Return the mean cosine of rows; the sign is right, since rows are in their best order."""
    asked = np.any(guessed != 0, axis=1)
    return float(np.mean(np.sum(_unit(guessed)[asked] * _unit(true)[asked], axis=1)))


def _unit(rows: Matrix) -> Matrix:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = rows / np.where(lengths > 0, lengths, 1.0)
    return unit


def _two_bases(guessed: npt.ArrayLike | None, basis: npt.ArrayLike) -> tuple[Matrix, Matrix]:
    """Return the truth and the guess, of as many features."""
    true = as_matrix(basis, name="basis")
    if guessed is None:
        raise ShapeError(
            "the attack found no basis to compare with the secret one. Use score_content."
        )
    guess = as_matrix(guessed, name="the attack's basis")
    if len(guess) != len(true):
        raise ShapeError(
            f"the attack returned a basis of {len(guess)} features, the truth has {len(true)}. "
            "Give the basis that the release was made with."
        )
    return true, guess


def _refuse_other_shape(guess: Matrix, true: Matrix) -> None:
    if guess.shape != true.shape:
        raise ShapeError(
            f"the attack returned a basis of shape {guess.shape}, the truth has {true.shape}. "
            "Give the basis that the release was made with."
        )
