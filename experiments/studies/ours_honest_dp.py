"""Honest differential privacy, beside the noise of the papers.

{PARTIES} parties of {ROWS} images, {TESTS:,} test images, l = {COMPONENTS}, MLP as in Table 7.
**public, haar**: differential privacy of each image's pixels, replace-one with n_i public, delta =
{DELTA:g} <= 1 / (10 n_i): rows clipped to the ball about the mean of {PUBLIC} public images that
half of them fit into, sensitivity twice its radius, analytic Gaussian noise on the projected rows,
on a basis that no private row has shaped; labels are public by declaration. Test images are clipped
and get no noise: they stay with their party. Measured with noise from a seed, as everything in a
simulation; a release needs it from the key stream, on a grid. **{PAPERS_NOISE}**: on X_i F_i, basis
from the rows, sensitivity 1, delta = 1e-3; its epsilon is a label. **{ON_IMAGES}**: the same sigma
on A_i instead of the rows (seed 001, section 5). Strongest over weakest: by how much the worst
change of basis stretches noise in one direction against another.
"""

from collections.abc import Mapping
from typing import Any

from experiments.data.images import IMAGES, deal_images, images
from experiments.harness.models import Table
from experiments.harness.noise import PAPERS_NOISE, Ball, on_images, papers_scale, stretch
from experiments.harness.study import Study, Values
from experiments.harness.systems import OURS, PAPERS, Dealt, generator, judged, prefixed
from experiments.harness.uploads import Uploads, uploads

EPSILONS = (0.5, 2.0, 8.0, 32.0)
DELTA = 1e-4
PARTIES, ROWS, TESTS, PUBLIC, COMPONENTS = 20, 500, 2000, 500, 50
NAMES = ("odc", "imakura", "kawakami", "imakura, rescaled", "kawakami, rescaled")
METHODS = {name: {**PAPERS, **OURS}[name] for name in NAMES}
NOISES = ("no noise", "epsilon *")
ON_IMAGES = "papers' noise on A_i, no guarantee"


def run(*, data: str, release: str, anchor: str, repeat: int) -> Values:
    how: dict[str, Any] = {"anchor": anchor, "n_components": COMPONENTS}
    dealt, public = _drawn(data, repeat)
    if release in {PAPERS_NOISE, ON_IMAGES}:
        sent = uploads(dealt, basis="svd", **how)
        scales = {epsilon: papers_scale(epsilon) for epsilon in EPSILONS}
        return _measured(sent, scales, images=release == ON_IMAGES)
    ball = Ball.of(public)
    if release == "public":
        how["public_rows"] = ball.clipped(public)
    sent = uploads(ball.dealt(dealt), basis=release, judges=1, **how)
    scales = {epsilon: ball.noise(epsilon=epsilon, delta=DELTA) for epsilon in EPSILONS}
    return _measured(sent, scales)


def _drawn(data: str, repeat: int) -> tuple[Dealt, Table]:
    n_dealt = TESTS + PARTIES * ROWS
    rest = generator(repeat).permutation(len(images(data)[0]))[n_dealt : n_dealt + PUBLIC]
    dealt = deal_images(data, repeat=repeat, n_parties=PARTIES, n_rows=ROWS, n_tests=TESTS)
    return dealt, images(data)[0][rest] / 255.0


def _measured(sent: Uploads, scales: Mapping[float, float], *, images: bool = False) -> Values:
    found: Values = {}
    for name, aligner in METHODS.items():
        changes = sent.changes(aligner)
        found[f"{name}, noise in strongest over weakest direction"] = stretch(changes)
        clean = judged(sent.turned(changes))
        found |= prefixed(clean, f"{name}, no noise")
        for epsilon, scale in scales.items():
            if images:
                changes = on_images(sent, noise=scale).changes(aligner)
            noisy = sent.turned(changes, noise=0.0 if images else scale)
            found |= prefixed(judged(noisy), f"{name}, epsilon {epsilon:g}")
    return found


STUDY = Study(
    source="ours",
    unit="accuracy, %",
    cells=[
        {"data": data, "release": release, "anchor": anchor}
        for data in IMAGES
        for release, anchor in (
            ("public", "isometric"),
            ("public", "uniform"),
            ("haar", "isometric"),
            (PAPERS_NOISE, "isometric"),
            (PAPERS_NOISE, "uniform"),
            (ON_IMAGES, "uniform"),
        )
    ],
    repeats=3,
    charted=[f"{name}, {noise}" for name in ("odc", "imakura, rescaled") for noise in NOISES],
)
