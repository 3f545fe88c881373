"""What an attacker makes of a release: arrays in, a guess of the raw rows out.

What an attacker knows are the arguments of a function; the truth is in none of them. ``scores``
sets a guess against the truth, with what guessing blindly gives beside it. Attacks that no audit
runs are in ``experiments/attacks``.
"""

from dataclasses import dataclass

from cobasis.linalg.arrays import Array, Hidden, Matrix


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Hidden):
    """An upload, opened: all that an attack may look at besides what its attacker knows."""

    rows: Matrix
    anchor_image: Matrix | None = None
    labels: Array | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Recovered(Hidden):
    """What an attack made of a release: raw rows, and the secret basis that it takes for true."""

    rows: Matrix
    basis: Matrix
