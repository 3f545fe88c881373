"""Seed 002, Figure 2: accuracy over the number of parties, where all spans agree."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import ortho_group
from sklearn.preprocessing import StandardScaler

from cobasis import ODC, Imakura, Kawakami, align
from experiments.data.images import deal_images
from experiments.harness.models import ACCURACY, Make, Table, mlp
from experiments.harness.study import Published, Settings, Study, Values
from experiments.harness.systems import (
    Dealt,
    Shared,
    alone,
    generator,
    judged,
    prefixed,
    top_directions,
)
from experiments.harness.uploads import Uploads, uploads

STEPS = (10, 20, 30, 40, 50, 60, 80, 100)
L, C = 50, 50
ROUND: dict[str, Any] = {
    "anchor": "uniform",
    "n_anchor_rows": 1000,
    "span_condition": "samespan_orth",
}
SIZES: dict[str, int] = {"n_rows": 100, "n_tests": 1000}
NETWORK: Make = partial(mlp, learning_rate_init=2e-3)
DRAW = 2
"""Tells the generator of O from that of the split."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One point of the figures: a split, and how to judge on it."""

    dealt: Dealt  # c parties, and test images
    n_components: int
    repeat: int

    def judge(self, shared: Shared) -> float:
        """Train the figures' network once and return its accuracy."""
        values = judged(
            shared,
            self.dealt.test_labels,
            make=NETWORK,
            metrics={"": ACCURACY},
            repeat=self.repeat,
        )
        return values[""]

    def on(self, turn: Table | None) -> float:
        """Return the accuracy of pooled rows, raw or projected."""
        rows, labels = self.dealt.pooled()
        test = self.dealt.test_rows
        if turn is not None:
            rows, test = rows @ turn, test @ turn
        return self.judge(Shared(rows=rows, labels=labels, tests=[(test, 1)]))


def setting(*, n_parties: int, n_components: int, repeat: int) -> Setting:
    """Deal MNIST for one point."""
    dealt = deal_images("mnist", rng=generator(repeat), n_parties=n_parties, **SIZES)
    return Setting(dealt=dealt, n_components=n_components, repeat=repeat)


def methods(point: Setting) -> Values:
    """Measure what depends on l: the methods, and pooled rows on their own top directions."""
    size, repeat = point.n_components, point.repeat
    sent = uploads(point.dealt, repeat=repeat, n_components=size, **ROUND)
    turn = ortho_group.rvs(size, random_state=generator(repeat, DRAW))
    plain = {
        "imakura": Imakura(scale="paper"),
        "imakura, rescaled": Imakura(),
        "kawakami": Kawakami(scale="paper"),
        "kawakami, rescaled": Kawakami(),
        "odc": ODC(rotation=turn),
    }
    found = {name: point.judge(sent.aligned(aligner)) for name, aligner in plain.items()}
    found["kawakami, feature scaling"] = point.judge(feature_scaled(sent))
    pooled, _ = point.dealt.pooled()
    return {**found, "central, top directions": point.on(top_directions(pooled, size))}


def outside(point: Setting) -> Values:
    """Measure what does not: raw pooled rows, and every party alone."""
    how: dict[str, Any] = {"make": NETWORK, "metrics": {"": ACCURACY}, "repeat": point.repeat}
    return {"central": point.on(None), **prefixed(alone(point.dealt, **how), "alone")}


def feature_scaled(sent: Uploads) -> Shared:
    """Align by Kawakami-DC, standardise each aligned feature, then weight it.

    The weights are read off the two targets, which differ in nothing else. Where all spans
    agree they are 1.
    """
    plain = align(Kawakami(scale="paper"), sent.images).target
    weighted = align(Kawakami(scale="paper", weighting="eigen"), sent.images).target
    weights = np.linalg.norm(weighted.rows, axis=0) / np.linalg.norm(plain.rows, axis=0)
    shared = sent.aligned(Kawakami(scale="paper"))
    scaler = StandardScaler().fit(shared.rows)
    return Shared(
        rows=scaler.transform(shared.rows) * weights,
        labels=shared.labels,
        tests=[(scaler.transform(rows) * weights, count) for rows, count in shared.tests],
    )


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one number of parties."""
    point = setting(n_parties=int(settings["c"]), n_components=L, repeat=repeat)
    return {**methods(point), **outside(point)}


OPEN = (
    "100 MNIST images a party, 1,000 random test images, uniform anchor of 1,000 rows, all bases "
    "of one orthonormal span, R = I, O Haar; MLP (256 ReLU, Adam, learning rate 2e-3). Each repeat "
    "redraws split, anchor, bases, O and model seed. Kawakami's *feature scaling* is read from its "
    "authors' code: each aligned feature standardised, then weighted; where all spans agree all "
    "weights are 1, and what is left is the standardisation. Open in the paper: the network's "
    "batches (32) and epochs (early stopping), the implementation. Our rows: Imakura and "
    "Kawakami with one scalar that gives their features the size of ODC's, Kawakami without "
    "feature scaling, and pooled images on their own top l directions."
)

STUDY = Study(
    title="Middle version, Figure 2: accuracy over parties",
    source="ODC paper's middle version, Figure 2",
    settings=(
        f"l = {L}. {OPEN} The figure prints no numbers. Its text says that central reaches about "
        "96 to 97 % as c grows (shown here at c = 100), that ODC nearly matches it, that Imakura "
        "is about 5 points lower, and Kawakami lower still."
    ),
    unit="accuracy, %",
    cells=[{"c": count} for count in STEPS],
    run=run,
    published={"100/central": Published(value=96.5, margin=0.5)},
)
