"""Ours: what honest differential privacy costs, beside the noise of the papers."""

from typing import Any

from cobasis import ODC, Imakura, Kawakami
from experiments.data.images import deal_images, images
from experiments.harness.models import ACCURACY, Table, mlp
from experiments.harness.noise import (
    PAPERS_NOISE,
    Ball,
    changes_by,
    papers_scale,
    shared_by,
    stretch,
)
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import Dealt, generator, judged, prefixed
from experiments.harness.uploads import Uploads, uploads

EPSILONS = (0.5, 2.0, 8.0, 32.0)
DELTA = 1e-4
PARTIES, ROWS, TESTS, PUBLIC, COMPONENTS = 20, 500, 2000, 500, 50
METHODS: dict[str, Any] = {
    "odc": ODC(),
    "imakura": Imakura(scale="paper"),
    "kawakami": Kawakami(scale="paper"),
    "imakura, rescaled": Imakura(),
    "kawakami, rescaled": Kawakami(),
}
NOISES = ("no noise", "epsilon *")
ON_IMAGES = "papers' noise on A_i, no guarantee"


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure all methods and epsilons on one basis and anchor."""
    anchor: dict[str, Any] = {"anchor": settings["anchor"], "n_components": COMPONENTS}
    dealt, public = _drawn(str(settings["data"]), repeat)
    release = str(settings["release"])
    if release in {PAPERS_NOISE, ON_IMAGES}:
        sent = uploads(dealt, repeat=repeat, basis="svd", **anchor)
        scales = {epsilon: papers_scale(epsilon) for epsilon in EPSILONS}
        on_images = release == ON_IMAGES
        return _measured(sent, dealt, repeat=repeat, scales=scales, on_images=on_images)
    ball = Ball.of(public)
    clipped = ball.dealt(dealt)
    if release == "public":
        anchor |= {"public_rows": ball.clipped(public)}
    sent = uploads(clipped, repeat=repeat, basis=release, judges=1, **anchor)
    scales = {epsilon: ball.noise(epsilon=epsilon, delta=DELTA) for epsilon in EPSILONS}
    return _measured(sent, clipped, repeat=repeat, scales=scales)


def _drawn(data: str, repeat: int) -> tuple[Dealt, Table]:
    """Deal images, and take public ones from the same data that nobody holds."""
    rng = generator(repeat)
    n_dealt = TESTS + PARTIES * ROWS
    rest = generator(repeat).permutation(len(images(data)[0]))[n_dealt : n_dealt + PUBLIC]
    dealt = deal_images(data, rng=rng, n_parties=PARTIES, n_rows=ROWS, n_tests=TESTS)
    return dealt, images(data)[0][rest] / 255.0


def _measured(
    sent: Uploads,
    dealt: Dealt,
    *,
    repeat: int,
    scales: dict[float, float],
    on_images: bool = False,
) -> Values:
    """Return each method's accuracy without noise and at every epsilon."""
    found: Values = {}
    for name, aligner in METHODS.items():
        changes = changes_by(aligner, sent)
        found[f"{name}, noise in strongest over weakest direction"] = stretch(changes)
        for epsilon, scale in {float("inf"): 0.0, **scales}.items():
            noise = 0.0 if on_images else scale
            if on_images:
                changes = changes_by(aligner, sent, repeat=repeat, image_noise=scale)
            shared = shared_by(changes, sent, repeat=repeat, noise=noise)
            values = judged(
                shared, dealt.test_labels, make=mlp, metrics={"": ACCURACY}, repeat=repeat
            )
            label = "no noise" if epsilon == float("inf") else f"epsilon {epsilon:g}"
            found |= prefixed(values, f"{name}, {label}")
    return found


STUDY = Study(
    title="Honest differential privacy, beside the noise of the papers",
    source="ours",
    settings=(
        f"{PARTIES} parties of {ROWS} images, {TESTS:,} test images, l = {COMPONENTS}, MLP as in "
        "Table 7. **public, haar**: differential privacy of each image's pixels, replace-one with "
        f"n_i public, delta = {DELTA:g} <= 1 / (10 n_i): rows clipped to the ball about the mean "
        f"of {PUBLIC} public images that half of them fit into, sensitivity twice its radius, "
        "analytic Gaussian noise on the projected rows, on a basis that no private row has shaped; "
        "labels are public by declaration. Test images are clipped and get no noise: they stay "
        "with their party. Measured with noise from a seed, as everything in a simulation; a "
        "release needs it from the key stream, on a grid. "
        f"**{PAPERS_NOISE}**: on X_i F_i, basis from the rows, sensitivity 1, delta = 1e-3; its "
        f"epsilon is a label. **{ON_IMAGES}**: the same sigma on A_i instead of the rows (seed "
        "001, section 5). Strongest over weakest: by how much "
        "the worst change of basis stretches noise in one direction against another."
    ),
    unit="accuracy, %",
    cells=[
        {"data": data, "release": release, "anchor": anchor}
        for data in ("mnist", "fashion-mnist")
        for release, anchor in (
            ("public", "isometric"),
            ("public", "uniform"),
            ("haar", "isometric"),
            (PAPERS_NOISE, "isometric"),
            (PAPERS_NOISE, "uniform"),
            (ON_IMAGES, "uniform"),
        )
    ],
    run=run,
    repeats=3,
    charted=[f"{name}, {noise}" for name in ("odc", "imakura, rescaled") for noise in NOISES],
)
