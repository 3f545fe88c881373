"""The one table of aligners, with what each claims, and the toy rounds that test the claims.

Every property test runs on every row.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import settings

from cobasis import GOPP, ODC, Imakura, Kawakami, Whitened
from cobasis.algorithms import AnchorKind, SpanCondition
from cobasis.algorithms.anchors import Anchor, draw_anchor
from cobasis.algorithms.base import Aligner, Alignment, align
from cobasis.algorithms.bases import bases_under
from cobasis.errors import PrivacyWarning
from cobasis.linalg.arrays import Matrix
from cobasis.linalg.rng import KeyStream, haar_columns

EPS = float(np.finfo(np.float64).eps)

GOLDEN = 1e-13
"""How far numbers that pass through libm or BLAS may be from those of another machine."""

VISIBLE = 0.05
"""A relative difference that nobody takes for rounding."""

STILL = 1e-4
"""How far from its limit GOPP may stop: its rule is on the objective, which is flat there."""

CONDITIONS: tuple[SpanCondition, ...] = ("samespan_orth", "samespan", "diffspan_orth", "diffspan")

STEADY = settings(max_examples=25, deadline=None, derandomize=True, database=None)
"""Hypothesis without clocks and luck: the same examples on every machine."""


def key_of(number: int) -> bytes:
    """Return 32 bytes that tests may choose."""
    return number.to_bytes(32, "big")


def haar(number: int, size: int) -> Matrix:
    """Return a Haar orthogonal matrix, of either determinant."""
    return haar_columns(KeyStream(key_of(number), "tests/haar"), n_rows=size, n_columns=size)


def normal(number: int, *shape: int) -> Matrix:
    """Return Gaussian numbers."""
    return KeyStream(key_of(number), "tests/normal").normal(shape)


def invertible(number: int, size: int, *, condition: float = 3.0) -> Matrix:
    """Return an invertible matrix of the given condition number."""
    stretch = np.geomspace(condition, 1.0, size)
    return haar(2 * number, size) * stretch @ haar(2 * number + 1, size)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One aligner and its claims."""

    name: str
    make: Callable[[int], Aligner]  # from n_components, at its default scale
    concordant_under: frozenset[str]  # the span conditions under which all F_i G_i are equal
    # every G_i is orthogonal, whatever the images, so that no party is wider than the target
    orthogonal: bool = False
    # how far two orders of the parties may take F_i G_i apart, beyond rounding: above 0 for a
    # method that iterates until it stands still
    order_slack: float = 0.0
    # what is left open by the order of the parties: a rotation, or any common factor
    frame: Literal["rotation", "factor"] = "rotation"
    paper: Callable[[int], Aligner] | None = None  # the same without the one global scalar


def turning(name: str, make: Callable[[int], Aligner], *, slack: float = 0.0) -> Row:
    """Return an aligner whose fits are rotations, and which compares bases that are."""
    same = frozenset({"samespan_orth"})
    return Row(name=name, make=make, concordant_under=same, orthogonal=True, order_slack=slack)


def scaled(
    name: str, make: Callable[..., Aligner], *, frame: Literal["rotation", "factor"] = "rotation"
) -> Row:
    """Return an aligner that has one global scalar, from ``make(l, scale=...)``."""
    same = frozenset({"samespan_orth", "samespan"})
    paper = partial(make, scale="paper")
    return Row(name=name, make=make, concordant_under=same, frame=frame, paper=paper)


def given(method: Callable[..., Aligner], **options: Any) -> Callable[..., Aligner]:
    """Return what makes an aligner whose options do not depend on l."""
    return lambda _, **scale: method(**options, **scale)


ALIGNERS = (
    turning("odc", lambda _: ODC(reference="p0")),
    turning("odc-turned", lambda size: ODC(reference="p0", rotation=haar(5, size))),
    turning("gopp", lambda _: GOPP(), slack=STILL),
    turning("gopp-warm", lambda _: GOPP(start="odc"), slack=STILL),
    scaled("whitened", given(Whitened, reference="p0")),
    scaled("imakura", given(Imakura)),
    scaled("imakura-sigma", given(Imakura, factor="sigma")),
    scaled(
        "imakura-given",
        lambda size, **how: Imakura(factor=invertible(6, size), **how),
        frame="factor",
    ),
    scaled("kawakami", given(Kawakami)),
    scaled("kawakami-weighted", given(Kawakami, weighting="eigen")),
)


def on(rows: Iterable[Row]) -> pytest.MarkDecorator:
    """Return what lets a test run on some aligners."""
    return pytest.mark.parametrize("row", list(rows), ids=lambda row: row.name)


on_every_aligner = on(ALIGNERS)
on_every_scaled = on(row for row in ALIGNERS if row.paper)
on_every_condition = pytest.mark.parametrize("condition", CONDITIONS)
on_every_anchor = pytest.mark.parametrize("anchor", ["isometric", "gaussian", "uniform"])


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A round small enough to look at, with everything that is secret in a real one."""

    anchor: Anchor
    bases: Mapping[str, Matrix]
    images: Mapping[str, Matrix] = field(init=False)

    def __post_init__(self) -> None:
        """Project the anchor."""
        images = {party: self.anchor.apply(basis) for party, basis in self.bases.items()}
        object.__setattr__(self, "images", images)

    @property
    def condition(self) -> float:
        """The worst condition number of an image."""
        return max(float(np.linalg.cond(image)) for image in self.images.values())

    def rounding(self, *, power: int = 2) -> float:
        """How far two numbers may differ that are equal on paper: 100 eps cond(A_i)^power."""
        return 100 * EPS * self.condition**power

    def align(self, row: Row) -> Alignment:
        """Align by one row of the table."""
        return align(row.make(next(iter(self.bases.values())).shape[1]), self.images)

    def products(self, alignment: Alignment) -> dict[str, Matrix]:
        """Return F_i G_i by party name."""
        changes = alignment.changes_of_basis
        return {party: self.bases[party] @ change for party, change in changes.items()}


def make_anchor(kind: AnchorKind, *, n_rows: int, n_features: int, number: int = 1) -> Anchor:
    """Draw an anchor, without the warning that others test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return draw_anchor(kind, key=key_of(number), n_rows=n_rows, n_features=n_features)


def make_toy(
    condition: SpanCondition,
    *,
    anchor: AnchorKind = "gaussian",
    number: int = 1,
    n_parties: int = 4,
    n_features: int = 12,
    n_components: int = 4,
    n_anchor_rows: int = 30,
) -> Toy:
    """Make a round of random rows under one of the papers' four span conditions."""
    parties = [f"p{index}" for index in range(n_parties)]
    rows = {
        party: KeyStream(key_of(number), f"rows/{party}").normal((20, n_features))
        for party in parties
    }
    streams = {party: KeyStream(key_of(number), f"basis/{party}") for party in parties}
    return Toy(
        anchor=make_anchor(anchor, n_rows=n_anchor_rows, n_features=n_features, number=number),
        bases=bases_under(condition, rows, n_components=n_components, streams=streams),
    )


def spread(products: Mapping[str, Matrix]) -> float:
    """Return how far the F_i G_i are from their mean, relative: 0 where concordance holds."""
    stacked = np.stack(list(products.values()))
    mean = stacked.mean(axis=0)
    return float(np.max(np.linalg.norm(stacked - mean, axis=(1, 2))) / np.linalg.norm(mean))


def apart_but_for_a_rotation(first: Mapping[str, Matrix], second: Mapping[str, Matrix]) -> float:
    """Return how far two families of matrices are apart, relative, after the best rotation."""
    left, right = _stacked(first, second)
    outer, _, inner = np.linalg.svd(left.T @ right)
    return float(np.linalg.norm(left @ outer @ inner - right) / np.linalg.norm(right))


def apart_but_for_a_factor(first: Mapping[str, Matrix], second: Mapping[str, Matrix]) -> float:
    """Return how far two families of matrices are apart, relative, after the best factor."""
    left, right = _stacked(first, second)
    factor = np.linalg.lstsq(left, right)[0]
    return float(np.linalg.norm(left @ factor - right) / np.linalg.norm(right))


def _stacked(first: Mapping[str, Matrix], second: Mapping[str, Matrix]) -> tuple[Matrix, Matrix]:
    """Stack both families in the order of the first."""
    return np.vstack(list(first.values())), np.vstack([second[party] for party in first])
