"""What an audit attacks: arrays that are to leave, and the raw rows behind them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from cobasis.features.contract import Feature
from cobasis.linalg.arrays import Array, Hidden, Matrix, Places
from cobasis.privacy.attacks import Release

MOST_ROWS, MOST_CELLS, FEWEST_ROWS = 2_000, 1_600_000, 400
"""How large a sample is at most: so many rows, or cells where a row is wide, but not fewer rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Subject(Hidden):
    """One party's upload, and the raw rows that it was made of, in the same order."""

    rows: Matrix  # X_i on the agreed scale, mapped as agreed
    release: Release  # after noise and rounding, as it is written
    basis: Matrix
    labels: Array | None = None  # as they are in the table, also where others are sent
    features: tuple[Feature, ...] = ()  # as agreed; empty where each column is a number
    precision: str = "fp64"
    noisy: bool = False
    sensitive: Mapping[str, Matrix] = field(default_factory=dict)  # as numbers
    public_rows: Matrix | None = None
    unmapped: Matrix | None = None  # the rows before the agreed map, if they go through one
    # inside the agreed ball: everybody knows it, so an attacker moves people into it as well
    clipped: Matrix | None = None

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def n_components(self) -> int:
        return int(self.basis.shape[1])

    @property
    def listed(self) -> Matrix:
        """The rows as whoever has a list of these people compares them with the upload."""
        return self.rows if self.clipped is None else self.clipped

    @property
    def columns(self) -> Matrix:
        """The rows as they are encoded: what somebody wants to know."""
        return self.rows if self.unmapped is None else self.unmapped

    @property
    def classes(self) -> Array | None:
        """The labels that are sent, where an attacker can match people class by class."""
        sent = self.release.labels
        return None if sent is None or sent.dtype.kind == "f" else sent

    def some(self, most: int, *, seed: int) -> Self:
        """Return a random part; all in their order where there are no more."""
        if self.n_rows <= most:
            return self
        return self.only(np.random.default_rng(seed).permutation(self.n_rows)[:most])

    def only(self, places: Places) -> Self:
        def taken(values: Array | None) -> Any:  # noqa: ANN401 -- an array for an array
            return None if values is None else values[places]

        release = self.release
        return replace(
            self,
            rows=self.rows[places],
            release=replace(release, rows=release.rows[places], labels=taken(release.labels)),
            labels=taken(self.labels),
            sensitive={name: values[places] for name, values in self.sensitive.items()},
            unmapped=taken(self.unmapped),
            clipped=taken(self.clipped),
        )


def sample_size(n_rows: int, n_features: int) -> int:
    return min(n_rows, MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // n_features))
