"""The one table of aligners, with what each claims, and the toy rounds that test the claims.

Every property test runs on every row.
"""

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

import numpy as np
import pytest
from hypothesis import settings
from scipy.linalg import subspace_angles

from cobasis import GOPP, ODC, Imakura, Kawakami, Whitened
from cobasis.algorithms import SpanCondition
from cobasis.algorithms.anchors import draw_anchor
from cobasis.algorithms.base import align
from cobasis.algorithms.bases import bases_under
from cobasis.errors import PrivacyWarning
from cobasis.linalg.rng import KeyStream, haar_columns

EPS = float(np.finfo(np.float64).eps)

GOLDEN = 1e-13
"""How far numbers that pass through libm or BLAS may be from those of another machine."""

VISIBLE = 0.05
"""A relative difference that nobody takes for rounding."""

STILL = 1e-4
"""How far from its limit GOPP may stop: its rule is on the objective, which is flat there."""

CONDITIONS = get_args(SpanCondition)

STEADY = settings(max_examples=25, deadline=None, derandomize=True, database=None)
"""Hypothesis without clocks and luck: the same examples on every machine."""


def key_of(number):
    return number.to_bytes(32, "big")


def haar(number, size):
    return haar_columns(KeyStream(key_of(number), "tests/haar"), n_rows=size, n_columns=size)


def normal(number, *shape):
    return KeyStream(key_of(number), "tests/normal").normal(shape)


def with_values(number, values, *, rows=None, columns=None):
    """Return a matrix, square if nothing is said, of the given singular values."""
    size = len(values)
    left, right = haar(2 * number, rows or size), haar(2 * number + 1, columns or size)
    return left[:, :size] * values @ right[:size]


def invertible(number, size, *, condition=3.0):
    return with_values(number, np.geomspace(condition, 1.0, size))


def principal_cosines(first, second):
    return np.cos(np.sort(subspace_angles(first, second)))


def apart_but_for_a_rotation(first, second):
    left, right = (np.vstack([each[party] for party in first]) for each in (first, second))
    outer, _, inner = np.linalg.svd(left.T @ right)
    return float(np.linalg.norm(left @ outer @ inner - right) / np.linalg.norm(right))


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    method: type
    options: dict = field(default_factory=dict)  # of the method; a function is of n_components
    # Its fits are rotations, and it compares bases that are: orthonormal, of one span and no wider
    # than the target. The others have one global scalar, and take bases of one span as they are.
    turns: bool = False
    # how far two orders of the parties may take F_i G_i apart, beyond rounding: above 0 for a
    # method that iterates until it stands still
    order_slack: float = 0.0

    def make(self, size, **scale):
        options = {k: each(size) if callable(each) else each for k, each in self.options.items()}
        return self.method(**options, **scale)


FIRST = {"reference": "p0"}
ALIGNERS = (
    Row(name="odc", method=ODC, options=FIRST, turns=True),
    Row(name="odc-turned", method=ODC, options=FIRST | {"rotation": partial(haar, 5)}, turns=True),
    Row(name="gopp", method=GOPP, turns=True, order_slack=STILL),
    Row(name="whitened", method=Whitened, options=FIRST),
    Row(name="imakura", method=Imakura),
    Row(name="kawakami", method=Kawakami),
    Row(name="kawakami-weighted", method=Kawakami, options={"weighting": "eigen"}),
)


def on(rows):
    return pytest.mark.parametrize("row", list(rows), ids=lambda row: row.name)


on_every_aligner = on(ALIGNERS)
on_every_scaled = on(row for row in ALIGNERS if not row.turns)
on_every_condition = pytest.mark.parametrize("condition", CONDITIONS)
on_every_anchor = pytest.mark.parametrize("anchor", ["isometric", "gaussian", "uniform"])


class Toy:
    """A round small enough to look at, with everything that is secret in a real one."""

    def __init__(self, *, anchor, bases):
        self.anchor, self.bases = anchor, bases
        self.images = {party: anchor.apply(basis) for party, basis in bases.items()}

    @property
    def condition(self):
        return max(float(np.linalg.cond(image)) for image in self.images.values())

    def rounding(self, *, power=2):
        """How far two numbers may differ that are equal on paper: 100 eps cond(A_i)^power."""
        return 100 * EPS * self.condition**power

    def align(self, row):
        return align(row.make(next(iter(self.bases.values())).shape[1]), self.images)

    def products(self, alignment):
        changes = alignment.changes_of_basis
        return {party: self.bases[party] @ change for party, change in changes.items()}


def make_anchor(kind, *, number=1, **options):
    """Draw an anchor, without the warning that others test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return draw_anchor(kind, key=key_of(number), **options)


def make_toy(
    condition, *, anchor="gaussian", number=1, n_parties=4, n_components=4, n_anchor_rows=30
):
    """Make a round of random rows under one of the papers' four span conditions."""
    parties = [f"p{index}" for index in range(n_parties)]
    rows, streams = (
        {party: KeyStream(key_of(number), f"{what}/{party}") for party in parties}
        for what in ("rows", "basis")
    )
    rows = {party: stream.normal((20, 12)) for party, stream in rows.items()}
    return Toy(
        anchor=make_anchor(anchor, n_rows=n_anchor_rows, n_features=12, number=number),
        bases=bases_under(condition, rows, n_components=n_components, streams=streams),
    )


def spread(products):
    """Return how far the F_i G_i are from their mean, relative: 0 where concordance holds."""
    stacked = np.stack(list(products.values()))
    mean = stacked.mean(axis=0)
    return float(np.max(np.linalg.norm(stacked - mean, axis=(1, 2))) / np.linalg.norm(mean))
