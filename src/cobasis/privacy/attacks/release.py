"""What leaves a party, as whoever opens it sees it, and what an attack makes of it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from cobasis.linalg.arrays import Hidden, Matrix


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Hidden):
    """An upload, opened: all that an attack may look at besides what its attacker knows."""

    rows: Matrix
    anchor_image: Matrix | None = None
    labels: npt.NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Recovered(Hidden):
    """What an attack made of a release."""

    rows: Matrix
    basis: Matrix | None = None


class Attack(Protocol):
    """What an attacker knows, and one way to use it.

    What it knows are the fields of the class; the truth is in none of them.
    """

    def recover(self, release: Release) -> Recovered:
        """Guess the raw rows of a release."""
        ...
