"""Public feature maps: of mapped rows sums are made, and rows may go through one before the basis.

Every map is fixed by the agreement, and all its numbers lie from -1 to 1, so that sums over many
rows have a bound. Random Fourier features have length 1 for every row, whatever the row.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from math import prod
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
import scipy
from pydantic import Field, field_validator

from cobasis.features.contract import Feature, Finite, NumericFeature, columns_in, width_of
from cobasis.features.encoder import bent, encoded_columns, spline_through
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KeyStream
from cobasis.strict_json import Strict


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A map of encoded rows: bends, an affine map, and cosines of what that gives."""

    weights: Matrix = field(repr=False)
    offset: Matrix = field(repr=False)
    factor: Matrix = field(repr=False)  # what each feature is multiplied by at last
    n_waves: int  # features begin with so many cosines, then as many sines; 0 of an affine map
    bends: tuple[Matrix, Matrix] | None = field(default=None, repr=False)

    def apply(self, rows: Matrix) -> Matrix:
        if self.bends is not None:
            rows = np.maximum(rows @ self.bends[0] + self.bends[1], 0.0)
        mapped, n_waves = np.empty((len(rows), len(self.offset))), self.n_waves
        np.matmul(rows, self.weights[:, n_waves:], out=mapped[:, n_waves:])
        mapped[:, 2 * n_waves :] += self.offset[2 * n_waves :]
        if n_waves:
            # A cosine and its sine have one angle, so one product gives both, and one tangent of
            # half of it: NumPy's is some ten times as fast as its cosine, and both are right to
            # the last bit or two.
            cosines, sines = mapped[:, :n_waves], mapped[:, n_waves : 2 * n_waves]
            sines += self.offset[:n_waves]
            sines *= 0.5
            np.tan(sines, out=sines)
            squares = np.square(sines)
            shares = 1.0 / (1.0 + squares)
            np.multiply(np.subtract(1.0, squares, out=squares), shares, out=cosines)
            sines *= np.multiply(shares, 2.0, out=shares)
            np.cos(mapped[:, 2 * n_waves :], out=mapped[:, 2 * n_waves :])
        mapped *= self.factor
        return mapped


Knots = Annotated[tuple[Finite, ...], Field(min_length=2, max_length=257)]


class Columns(Strict):
    """The columns themselves: of sums each from its agreed low to its agreed high.

    Attributes
    ----------
    kind : {"columns"}
        What tells it from other maps.

    Notes
    -----
    **Who sees what.** Public. Its total holds every two-way table of the categories.
    **Cost.** None.
    """

    kind: Literal["columns"] = "columns"


class RandomFourier(Strict):
    """Cosines and sines of random waves: a Gaussian kernel of a bandwidth, in n_waves pairs.

    Attributes
    ----------
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

    kind: Literal["rff"] = "rff"
    n_waves: Annotated[int, Field(ge=1, le=10_000)] = 500
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Mixed(Strict):
    """Waves of a few columns each, on normal scores, beside every column bent at its knots.

    Attributes
    ----------
    knots : tuple of tuple of float
        For each encoded column what splits its values into shares of one size, lowest first, as
        `from_public_rows` makes them; values that many rows share stand more than once.
    n_waves : int
        Each wave gives two features.
    bandwidth : float
        As of `RandomFourier`, on normal scores, whose variance is about 1.
    columns_per_wave : int
        A wave is of so many columns, drawn at random.
    seed : int
        Of the waves; public.

    Notes
    -----
    **Who sees what.** Public: take knots from a code book or from public rows, not from private
    ones. **Cost.** As of as many columns as there are knots.
    """

    kind: Literal["mixed"] = "mixed"
    knots: Annotated[tuple[Knots, ...], Field(min_length=1)]
    n_waves: Annotated[int, Field(ge=1, le=10_000)] = 500
    bandwidth: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.5
    columns_per_wave: Annotated[int, Field(ge=1, le=10)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    @field_validator("knots")
    @classmethod
    def _ascends(cls, knots: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        for each in knots:
            if each[0] == each[-1] or any(low > high for low, high in pairwise(each)):
                raise ValueError("a column's knots do not rise from the first to the last")
        return knots

    @classmethod
    def from_public_rows(cls, rows: Matrix, *, pieces: int = 32, **options: Any) -> Self:  # noqa: ANN401
        """Take knots from public rows.

        Parameters
        ----------
        rows : ndarray of shape (n_public, n_features)
            Encoded: with agreed centres and scales, categories as zeros and ones.
        pieces : int
            Into how many shares of one size the knots split a column.
        **options
            The other attributes.

        Returns
        -------
        Mixed
            The map, to be agreed on.
        """
        shares = np.quantile(rows, np.linspace(0.0, 1.0, pieces + 1), axis=0).T.tolist()
        knots = (each if each[0] < each[-1] else (each[0], each[0] + 1.0) for each in shares)
        return cls(knots=tuple(map(tuple, knots)), **options)


FeatureMap: TypeAlias = Annotated[Columns | RandomFourier | Mixed, Field(discriminator="kind")]


def width_under(each: FeatureMap, features: Sequence[Feature]) -> int:
    if isinstance(each, Columns):
        return width_of(features)
    knots = each.knots if isinstance(each, Mixed) else ()
    return 2 * each.n_waves + sum(len({*own}) - 1 for own in knots)


def map_problems(each: FeatureMap, features: Sequence[Feature]) -> Iterator[str]:
    """Yield why these columns have no such map: they have no range, or knots are of others."""
    if isinstance(each, Mixed) and len(each.knots) != (width := width_of(features)):
        yield f"the map 'mixed' has knots of {len(each.knots)} columns: encoded there are {width}"
    numbers = (column for column in columns_in(features) if isinstance(column, NumericFeature))
    for column in numbers if isinstance(each, Columns) else ():
        if column.low is None or column.high is None or column.low == column.high:
            yield f"column '{column.name}' has no range from low to high, which bounds a sum"


def range_of(each: NumericFeature) -> tuple[float, float]:
    """Return from where to where a number goes; `map_problems` has seen that it has a range."""
    return float(each.low or 0.0), float(each.high or 0.0)


def turn_of(each: FeatureMap, features: Sequence[Feature]) -> Turn:
    """Return what a map does to encoded rows: of waves first all cosines, then all sines."""
    if isinstance(each, Columns):
        return _ranges(features)
    # The keyed stream and not NumPy's generator: whoever reads the agreement in ten years, on
    # whatever machine, has to draw the very same waves, or sums of two maps would be added.
    stream = KeyStream(hashlib.sha256(f"cobasis/waves/{each.seed}".encode()).digest(), "waves")
    waves = stream.normal((width_of(features), each.n_waves)) / each.bandwidth
    sides = np.repeat([0.0, -np.pi / 2], each.n_waves)  # sin x = cos(x - pi / 2)
    factor = np.full(2 * each.n_waves, each.n_waves**-0.5)
    weights = np.hstack([waves, waves])
    if isinstance(each, Mixed):
        for wave in range(each.n_waves):
            others = stream.permutation(len(waves))[each.columns_per_wave :]
            weights[others, wave] = weights[others, each.n_waves + wave] = 0.0
        return _mixed(each, weights, sides, factor)
    return Turn(weights=weights, offset=sides, factor=factor, n_waves=each.n_waves)


SMALL = 1e-4


def _mixed(each: Mixed, waves: Matrix, sides: Matrix, factor: Matrix) -> Turn:
    """Write normal scores and hats as sums of bends, max(x - knot, 0), and waves of the scores."""
    # A hat goes through the cosines as well, so that a map is one chain of layers: for small x,
    # cos(x - pi / 2) / SMALL is x / SMALL to a share of SMALL^2 / 6 = 2e-9, which cutting exceeds.
    pieces = [np.unique(knots, return_counts=True) for knots in each.knots]
    level, turns = list[float](), list[Matrix]()
    for places, counts in pieces:
        shares = (np.cumsum(counts) - counts / 2) / counts.sum()
        values = np.column_stack([scipy.special.ndtri(shares), np.eye(len(places))[:, 1:]])
        slopes = np.diff(values, axis=0) / np.diff(places)[:, None]
        turns.append(np.diff(np.vstack([0 * slopes[:1], slopes, 0 * slopes[:1]]), axis=0))
        level.append(values[0, 0])
    beside = scipy.linalg.block_diag
    scores = beside(*(turn[:, :1] for turn in turns))
    hats = beside(*(turn[:, 1:] for turn in turns))
    first = beside(*(np.ones((1, len(turn))) for turn in turns))
    n_hats = hats.shape[1]
    return Turn(
        bends=(first, -np.concatenate([places for places, _ in pieces])),
        weights=np.hstack([scores @ waves, SMALL * hats]),
        offset=np.concatenate([level @ waves + sides, np.full(n_hats, -np.pi / 2)]),
        factor=np.concatenate([factor, np.full(n_hats, 1 / SMALL / np.sqrt(len(pieces)))]),
        n_waves=each.n_waves,
    )


def _ranges(features: Sequence[Feature]) -> Turn:
    """Map the middle of each range to 0 and its ends to -1 and 1."""
    middles, halves = np.zeros(width_of(features)), np.ones(width_of(features))
    for at, column in enumerate(encoded_columns(features)):
        each, ends = column.feature, (-1.0, 1.0)
        if isinstance(each, NumericFeature):
            ends = range_of(each)
            if column.level is not None:
                turning = spline_through(each.knots).derivative().roots()[column.level - 1]
                curve = bent(np.clip([*ends, *turning], *ends), each.knots)[:, column.level - 1]
                ends = np.nanmin(curve), np.nanmax(curve)
        elif column.of:
            sides = ((middles[x] - halves[x], middles[x] + halves[x]) for x in column.of)
            corners = [prod(some) * column.scale for some in product(*sides)]
            ends = min(corners), max(corners)
        halves[at] = (ends[1] - ends[0]) / 2 / column.scale
        middles[at] = ((ends[1] + ends[0]) / 2 - column.centre) / column.scale
    return Turn(
        weights=np.diag(1.0 / halves),
        offset=-middles / halves,
        factor=np.ones(len(halves)),
        n_waves=0,
    )
