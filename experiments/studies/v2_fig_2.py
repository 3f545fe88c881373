"""Middle version, Figure 2: accuracy over parties.

l = {L}. {OPEN} The figure prints no numbers. Its text says that central reaches about 96 to 97 % as
c grows (shown here at c = 100), that ODC nearly matches it, that Imakura is about 5 points lower,
and Kawakami lower still.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import ortho_group
from sklearn.preprocessing import StandardScaler

from cobasis import ODC, Kawakami, align
from experiments.data.images import deal_images
from experiments.harness import systems
from experiments.harness.models import Make, mlp
from experiments.harness.study import Study, Values
from experiments.harness.uploads import Uploads, by_each, uploads

PLAIN = ("imakura", "imakura, rescaled", "kawakami", "kawakami, rescaled")
STEPS = (10, 20, 30, 40, 50, 60, 80, 100)
L, C = 50, 50
ROUND: Any = {"anchor": "uniform", "n_anchor_rows": 1000, "span_condition": "samespan_orth"}
SIZES: dict[str, int] = {"n_rows": 100, "n_tests": 1000}
NETWORK: Make = partial(mlp, learning_rate_init=2e-3)
DRAW = 2  # tells the generator of O from that of the split


def deal(n_parties: int, *, repeat: int) -> systems.Dealt:
    return deal_images("mnist", repeat=repeat, n_parties=n_parties, **SIZES)


def methods(dealt: systems.Dealt, *, size: int) -> Values:
    """Measure what depends on l: the methods, and pooled rows on their own top directions."""
    sent = uploads(dealt, n_components=size, **ROUND)
    turn = ortho_group.rvs(size, random_state=systems.generator(dealt.repeat, DRAW))
    plain = {
        **{name: {**systems.PAPERS, **systems.OURS}[name] for name in PLAIN},
        "odc": ODC(rotation=turn),
        "kawakami, feature scaling": feature_scaled,
    }
    found = by_each(sent, plain, models={"": NETWORK})
    top = dealt.shared(systems.top_directions(dealt.pooled()[0], size))
    pooled = systems.judged(top, make=NETWORK)
    return {name: found[name] for name in plain} | systems.prefixed(
        pooled, "central, top directions"
    )


def outside(dealt: systems.Dealt) -> Values:
    """Measure what does not: raw pooled rows, and every party alone."""
    central = systems.judged(dealt.shared(), make=NETWORK)
    alone = systems.alone(dealt, make=NETWORK)
    return systems.prefixed(central, "central") | systems.prefixed(alone, "alone")


def feature_scaled(sent: Uploads) -> systems.Shared:
    """Align by Kawakami-DC, standardise each aligned feature, then weight it."""
    plain = align(Kawakami(scale="paper"), sent.images)
    weighted = align(Kawakami(scale="paper", weighting="eigen"), sent.images).target.rows
    weights = np.linalg.norm(weighted, axis=0) / np.linalg.norm(plain.target.rows, axis=0)
    shared = sent.turned(plain.changes_of_basis)
    scaler = StandardScaler().fit(shared.rows)
    return replace(
        shared,
        rows=scaler.transform(shared.rows) * weights,
        tests=[(scaler.transform(rows) * weights, count) for rows, count in shared.tests],
    )


def run(*, c: int, repeat: int) -> Values:
    dealt = deal(c, repeat=repeat)
    return methods(dealt, size=L) | outside(dealt)


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
    source="ODC paper's middle version, Figure 2",
    unit="accuracy, %",
    cells=[{"c": count} for count in STEPS],
)
