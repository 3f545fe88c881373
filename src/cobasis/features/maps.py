"""Public feature maps: what a release of sums adds up is made of mapped rows.

Every map is fixed by the agreement, and all its numbers lie from -1 to 1, so that sums over many
rows have a bound. Random Fourier features have length 1 for every row, whatever the row.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from cobasis.errors import AgreementError
from cobasis.features.contract import Feature, NumericFeature, width_of
from cobasis.features.encoder import encoded_columns
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KeyStream


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A map of encoded rows: an affine one, whose numbers may be angles of cosines and sines."""

    weights: Matrix = field(repr=False)
    offset: Matrix = field(repr=False)
    cosines: bool

    @property
    def factor(self) -> float:
        """What each cosine is multiplied by, so that all of a row have length 1."""
        return np.sqrt(2.0 / len(self.offset)) if self.cosines else 1.0

    def apply(self, rows: Matrix) -> Matrix:
        """Map encoded rows."""
        mapped: Matrix = rows @ self.weights
        mapped += self.offset
        if self.cosines:
            np.cos(mapped, out=mapped)
            mapped *= self.factor
        return mapped


class Columns(BaseModel):
    """The columns themselves, each from its agreed low to its agreed high.

    Attributes
    ----------
    kind : {"columns"}
        What tells it from other maps.

    Notes
    -----
    **Who sees what.** Public. Its total holds every two-way table of the categories.
    **Cost.** None.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    kind: Literal["columns"] = "columns"


class RandomFourier(BaseModel):
    """Cosines and sines of random waves: a Gaussian kernel of a bandwidth, in n_waves pairs.

    Attributes
    ----------
    kind : {"rff"}
        What tells it from other maps.
    n_waves : int
        Each wave gives two features, so ``D = 2 n_waves``.
    bandwidth : float
        Of the kernel ``exp(-|x - y|^2 / (2 bandwidth^2))``, in the units of encoded rows.
    seed : int
        Of the waves; public.

    Notes
    -----
    **Who sees what.** Public. **Cost.** D n_features numbers.

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    kind: Literal["rff"] = "rff"
    n_waves: Annotated[int, Field(ge=1, le=10_000)] = 500
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


FeatureMap: TypeAlias = Annotated[Columns | RandomFourier, Field(discriminator="kind")]


def width_under(each: FeatureMap, features: Sequence[Feature]) -> int:
    """Return how many numbers a map makes of a row."""
    return width_of(features) if isinstance(each, Columns) else 2 * each.n_waves


def turn_of(each: FeatureMap, features: Sequence[Feature]) -> Turn:
    """Return what a map does to encoded rows: of waves first all cosines, then all sines."""
    if isinstance(each, Columns):
        return _ranges(features)
    # The keyed stream and not NumPy's generator: whoever reads the agreement in ten years, on
    # whatever machine, has to draw the very same waves, or sums of two maps would be added.
    key = hashlib.sha256(f"cobasis/waves/{each.seed}".encode()).digest()
    waves = KeyStream(key, "waves").normal((width_of(features), each.n_waves)) / each.bandwidth
    sides = np.repeat([0.0, -np.pi / 2], each.n_waves)  # sin x = cos(x - pi / 2)
    return Turn(weights=np.hstack([waves, waves]), offset=sides, cosines=True)


def _ranges(features: Sequence[Feature]) -> Turn:
    """Map the middle of each range to 0 and its ends to -1 and 1."""
    middles, halves = np.zeros(width_of(features)), np.ones(width_of(features))
    for at, column in enumerate(encoded_columns(features)):
        each = column.feature
        if isinstance(each, NumericFeature):
            if each.low is None or each.high is None or each.low == each.high:
                raise AgreementError(
                    f"column '{each.name}' has no range from low to high, and without one a sum "
                    "has no bound. Agree on low and high for every number, or on the map 'rff' "
                    "alone."
                )
            halves[at] = (each.high - each.low) / 2 / each.scale
            middles[at] = ((each.high + each.low) / 2 - each.centre) / each.scale
    return Turn(weights=np.diag(1.0 / halves), offset=-middles / halves, cosines=False)
