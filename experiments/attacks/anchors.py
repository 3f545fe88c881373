"""The anchor's image: what it says of a secret basis, to outsiders and to who has the anchor."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from cobasis.linalg.arrays import Hidden, Matrix, Places
from cobasis.linalg.threads import one_blas_thread
from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.scores import nearest
from experiments.attacks import basis_behind, image_of

_STEPS = 100
"""A uniform anchor's components stand still after some dozens; a Gaussian one's never do."""


def anchor_ica(release: Release, *, n_features: int) -> Recovered:
    """Look for the directions along which the anchor image is least Gaussian."""
    image = image_of(release)
    n_components = image.shape[1]
    search = FastICA(
        n_components=n_components,
        whiten="unit-variance",
        w_init=np.eye(n_components),  # nothing is left to chance: the same release, same guess
        max_iter=_STEPS,
    )
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what a Gaussian anchor looks like
        found: Matrix = search.fit(image).components_
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    found *= np.where((image @ found.T).mean(axis=0) < 0, -1.0, 1.0)[:, np.newaxis]
    basis = np.zeros((n_features, n_components))
    basis[:n_components] = found
    return Recovered(rows=release.rows @ basis.T, basis=basis)


def row_sums(release: Release, *, entry_mean: float = 0.5) -> Matrix:
    """Read everybody's sum of features off the anchor image's mean row.

    The mean row of A is about ``entry_mean 1'``, so that of ``A F_i`` is about
    ``entry_mean 1' F_i``: the direction of the row sums, seen through the secret basis.
    """
    sums: Matrix = release.rows @ image_of(release).mean(axis=0) / entry_mean
    return sums


def typical_anchor(draws: Iterable[Matrix]) -> Matrix:
    """Return what many anchors of this program have in common, one sign per anchor apart."""
    drawn = list(draws)
    flat = np.array([each.ravel() for each in drawn])
    weights = np.linalg.eigh(flat @ flat.T)[1][:, -1]
    common: Matrix = (weights @ flat).reshape(drawn[0].shape)
    return common


def read_by(release: Release, typical: Matrix) -> Recovered:
    """Take the typical anchor for the secret one: ``F_i ~ A' A_i``."""
    guess = typical.T @ image_of(release, anchor=typical)
    basis: Matrix = guess * (np.sqrt(guess.shape[1]) / np.linalg.norm(guess))
    return Recovered(rows=release.rows @ basis.T, basis=basis)


_ROUNDS = 60


def anchor_rows(release: Release, *, pool: Matrix, first: Matrix) -> Places:
    """Say which row of a public collection each anchor row is, from a first guess of the basis.

    Matches give a basis, a basis gives better matches. The basis is kept to the leading
    directions of the public rows, turned: one right match in ten is then enough to begin with.
    """
    image = image_of(release)
    leading: Matrix = np.linalg.svd(pool, full_matrices=False)[2][: image.shape[1]].T
    found = nearest(image, among=pool @ first)
    for _ in range(_ROUNDS):
        before = found
        left, _, right = np.linalg.svd((pool[found] @ leading).T @ image)
        found = nearest(image, among=pool @ (leading @ (left @ right)))
        if np.array_equal(found, before):
            break
    return found


def collude(release: Release, anchor: Matrix) -> Recovered:
    """Read the basis off the image; a guessed seed, or rows of a public anchor, do the same."""
    return read_through(basis_behind(release, anchor), release.rows)


_ROWS = 200
"""So many anchor rows tell a right guess from thousands of wrong ones; the residual decides."""

_LEVEL = 1e-9
"""Lengths that vary less than this, against the largest, are all the same."""


@dataclass(frozen=True, kw_only=True, repr=False)
class GuessedSeed(Hidden):
    """Somebody knows how the anchor is drawn, and has seeds to try."""

    draw: Callable[[Any], Matrix]
    guesses: Sequence[Any]

    def standings(self, release: Release) -> Matrix:
        """Say of each guess how far it stands out from wrong ones.

        A long row of the anchor has a long image.
        """
        lengths = np.square(image_of(release)[:_ROWS]).sum(axis=1)
        drawn = (np.square(self.draw(each)[: len(lengths)]).sum(axis=1) for each in self.guesses)
        standings: Matrix = np.sqrt(len(lengths)) * np.array(
            [abs(_correlation(each, lengths)) for each in drawn]
        )
        return standings

    def residual(self, release: Release, guess: Any) -> float:
        """Say how much of the anchor image a guess leaves unexplained; nothing of a square one."""
        anchor, image = self.draw(guess), image_of(release)
        left = anchor @ basis_behind(release, anchor) - image
        return float(np.linalg.norm(left) / np.linalg.norm(image))

    def likeness(self, release: Release, guess: Any, *, average: Matrix) -> float:
        """Say how well the released rows' average agrees with an average person seen by a guess."""
        expected = average @ basis_behind(release, self.draw(guess))
        found = release.rows.mean(axis=0)
        return float(expected @ found / (np.linalg.norm(expected) * np.linalg.norm(found)))

    def recover(self, release: Release, *, average: Matrix | None = None) -> Recovered:
        """Take the guess that agrees best, and collude with it."""
        agreement = (
            self.standings(release)
            if average is None
            else [self.likeness(release, each, average=average) for each in self.guesses]
        )
        best = self.guesses[int(np.argmax(agreement))]
        return collude(release, self.draw(best))


def _correlation(first: Matrix, second: Matrix) -> float:
    """Return Pearson's; 0 where one of them does not vary."""
    for each in (first, second):
        if np.ptp(each) <= _LEVEL * np.abs(each).max():
            return 0.0
    return float(np.corrcoef(first, second)[0, 1])
