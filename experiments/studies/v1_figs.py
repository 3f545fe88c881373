"""Figures 2 and 3 of the first version: papers' noise, no guarantee.

{ANCHOR:,} uniform anchor rows, parties of {ROWS} images, {TESTS:,} test images, spans alike
(samespan_orth), MLP with learning rate 0.002. Around epsilon 8, l = 100, c = 50, one at a time; of
the paper's ten c five, and of its points in time seven. *Papers' noise, no guarantee*: Gaussian
noise on X_i F_i for delta = 1e-3 and a sensitivity of 1, though the basis is made from the rows and
rows are about 9 long. Without noise stands beside it. *Rescaled*: the same uploads, aligned to
features of the size of ODC's. Central and alone have raw pixels and no noise. Open in the paper:
the batch (32) and when training stops (early stopping), the sensitivity. Of two alignments the
faster counts, on one core, by our implementations. The paper prints curves without numbers.
"""

from functools import partial
from typing import Any

from benchmarks.timing import seconds

from cobasis import align
from experiments.data.images import deal_images
from experiments.harness import systems
from experiments.harness.models import mlp
from experiments.harness.noise import papers_scale
from experiments.harness.study import Study, Values
from experiments.harness.uploads import Uploads, uploads

EPSILON, COMPONENTS, PARTIES = 8.0, 100, 50
SWEEPS: dict[str, tuple[float, ...]] = {
    "epsilon": (2, 4, 8, 16, 32, 64),
    "l": (20, 40, 60, 80, 100),
    "c": (10, 30, 50, 70, 100),
}
TIMES = {"l": (20, 60, 100), "c": (10, 40, 70, 100)}
ROWS, TESTS, ANCHOR = 100, 1000, 3000
METHODS: dict[str, Any] = {name: systems.PAPERS[name] for name in ("imakura", "kawakami", "odc")}
RESCALED = ", rescaled"
"""Behind the name of a sweep, and of the two methods that have a size of their own."""

FAIR: dict[str, Any] = {
    name: each for name, each in systems.OURS.items() if name.endswith(RESCALED)
}
TIMED = 2  # alignments of which the fastest counts
make = partial(mlp, learning_rate_init=0.002)


def run(*, data: str, sweep: str, at: Any, repeat: int) -> Values:
    if sweep == "time":
        return _times(data, repeat)
    point = {"epsilon": EPSILON, "l": COMPONENTS, "c": PARTIES, sweep.removesuffix(RESCALED): at}
    dealt, sent = _sent(data, repeat, n_parties=int(point["c"]), n_components=int(point["l"]))
    found: Values = {}
    noise = papers_scale(point["epsilon"])
    for name, aligner in (FAIR if sweep.endswith(RESCALED) else METHODS).items():
        changes = sent.changes(aligner)
        noisy = sent.turned(changes, noise=noise)
        found |= systems.prefixed(systems.judged(noisy, make=make), name)
        if sweep.startswith("epsilon"):
            continue  # without noise there is no epsilon
        clean = systems.judged(sent.turned(changes), make=make)
        found |= systems.prefixed(clean, f"{name}, without noise")
    if sweep == "c":
        found |= {"central": systems.central(dealt, n_components=None, make=make)[""]}
        found |= systems.prefixed(systems.alone(dealt, make=make), "alone")
    return found


def _sent(
    data: str, repeat: int, *, n_parties: int, n_components: int
) -> tuple[systems.Dealt, Uploads]:
    dealt = deal_images(data, repeat=repeat, n_parties=n_parties, n_rows=ROWS, n_tests=TESTS)
    anchor: dict[str, Any] = {"anchor": "uniform", "n_anchor_rows": ANCHOR}
    anchor |= {"n_components": n_components, "span_condition": "samespan_orth"}
    return dealt, uploads(dealt, judges=1, **anchor)  # of one span all see the same


def _times(data: str, repeat: int) -> Values:
    found: Values = {}
    for sweep, points in TIMES.items():
        for at in points:
            point = {"c": PARTIES, "l": COMPONENTS, sweep: at}
            _, sent = _sent(data, repeat, n_parties=point["c"], n_components=point["l"])
            for name, aligner in METHODS.items():
                once = partial(align, aligner, sent.images, workers=1)
                fastest = min(seconds(once) for _ in range(TIMED))
                found[f"{sweep} = {at}, {name}, seconds"] = fastest
    return found


STUDY = Study(
    source="Seed 001, Figures 2 and 3",
    unit="accuracy, %",
    cells=[
        *(
            {"data": data, "sweep": sweep + scale, "at": at}
            for data in ("mnist", "fashion-mnist")
            for sweep, points in SWEEPS.items()
            for scale in ("", RESCALED)
            for at in points
        ),
        {"data": "mnist", "sweep": "time", "at": "all"},
    ],
    repeats=3,
)
