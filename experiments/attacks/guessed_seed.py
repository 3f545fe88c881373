"""Guessing the seed that the anchor was drawn from; each guess is tested on the anchor's image."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cobasis.linalg.arrays import Hidden, Matrix
from cobasis.privacy.attacks import Recovered, Release
from experiments.attacks import basis_behind, image_of
from experiments.attacks.collusion import collude

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
