"""How much of a secret basis an attack recovered: its span, or its rows one by one."""

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.attacks.release import Recovered
from cobasis.privacy.attacks.scoring import Share


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
