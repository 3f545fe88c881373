"""Tables 15 and 17: anchor size on images.

Uniform anchors of a rows; parties, test images and MLP as in Table 7. All sizes of one repeat have
the same split, bases and model seed. Open in the paper: parties (100), rows of a party (100) and l
(100), "the setup of section 7"; the MLP's learning rate (1e-3). With a = 196 and 392 the anchor has
fewer rows than the images have pixels, which the paper's theorems exclude. *Rescaled* is the same
method with one scalar that takes the anchor's size out of the features: what is left of a trend
then is no matter of scale. The paper's Kawakami row lies 1 to 3 points below that of its own Table
7, which is at a = 1000. ODC is Algorithm 4 by the letter: with a = 196 the library refuses a
direction of one of a hundred parties as undetermined, and GOPP is refused now and then.
"""

from collections.abc import Mapping
from typing import Any

from experiments.data.images import deal_images
from experiments.harness.statistics import one_way
from experiments.harness.store import there
from experiments.harness.study import (
    Published,
    Settings,
    Study,
    Values,
    but,
    in_columns,
    key,
    table,
)
from experiments.harness.systems import OURS, PAPERS, generator
from experiments.harness.uploads import AsPrinted, Uploads, by_each, by_gopp, kept, uploads

DATA = ("mnist", "fashion-mnist")
CONDITIONS = ("samespan_orth", "diffspan_orth")
SIZES = (196, 392, 784, 1568)
ROUND: dict[str, Any] = {"anchor": "uniform", "n_components": 100}
PARTIES: dict[str, int] = {"n_parties": 100, "n_rows": 100, "n_tests": 10_000}
ALIGNERS: dict[str, Any] = {
    **{name: PAPERS[name] for name in ("imakura", "kawakami")},
    "odc": AsPrinted(),
    **{name: OURS[name] for name in ("imakura, rescaled", "kawakami, rescaled")},
}

PRINTED = {  # for each size in the order above, value and margin
    "mnist": {
        "samespan_orth/imakura": (95.74, 0.12, 95.92, 0.14, 95.65, 0.14, 95.59, 0.11),
        "samespan_orth/kawakami": (94.78, 0.15, 94.63, 0.21, 94.11, 0.24, 93.41, 0.25),
        "samespan_orth/odc": (96.03, 0.13, 96.04, 0.14, 95.9, 0.12, 95.96, 0.12),
        "diffspan_orth/imakura": (93.33, 0.14, 94.49, 0.17, 94.61, 0.14, 94.47, 0.13),
        "diffspan_orth/kawakami": (91.81, 0.21, 92.27, 0.27, 91.22, 0.34, 90.32, 0.26),
        "diffspan_orth/odc": (94.02, 0.15, 94.83, 0.15, 94.92, 0.14, 95.15, 0.12),
    },
    "fashion-mnist": {
        "samespan_orth/imakura": (86.08, 0.23, 86.22, 0.22, 85.91, 0.22, 85.7, 0.19),
        "samespan_orth/kawakami": (84.32, 0.29, 83.93, 0.26, 83.23, 0.31, 82.69, 0.24),
        "samespan_orth/odc": (86.05, 0.23, 86.23, 0.2, 86.35, 0.23, 86.07, 0.18),
        "diffspan_orth/imakura": (80.22, 0.35, 82.19, 0.3, 82.57, 0.29, 82.76, 0.25),
        "diffspan_orth/kawakami": (78.82, 0.37, 79.71, 0.26, 79.79, 0.3, 80.42, 0.25),
        "diffspan_orth/odc": (80.36, 0.32, 81.81, 0.27, 82.24, 0.26, 82.88, 0.22),
    },
}
PRINTED_ANOVA = {  # Table 17: F, p, Cohen's f
    "mnist": {
        "samespan_orth/imakura": (5.04, 0.002, 0.19),
        "samespan_orth/kawakami": (32.37, 6.79e-19, 0.47),
        "samespan_orth/odc": (1.05, 0.371, 0.09),
        "diffspan_orth/imakura": (59.41, 3.38e-32, 0.64),
        "diffspan_orth/kawakami": (39.7, 1.1e-22, 0.52),
        "diffspan_orth/odc": (47.2, 2.05e-26, 0.57),
    },
    "fashion-mnist": {
        "samespan_orth/imakura": (4.44, 0.004, 0.18),
        "samespan_orth/kawakami": (28.1, 1.41e-16, 0.45),
        "samespan_orth/odc": (1.74, 0.158, 0.11),
        "diffspan_orth/imakura": (59.3, 5.56e-32, 0.65),
        "diffspan_orth/kawakami": (19.76, 5.33e-12, 0.38),
        "diffspan_orth/odc": (63.44, 7.54e-34, 0.67),
    },
}


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure all methods with one anchor size; the split is the same for all sizes."""
    sent = kept(_sent, settings["data"], settings["condition"], settings["a"], repeat)
    if "system" in settings:
        return by_gopp(sent, repeat=repeat)
    return by_each(sent, ALIGNERS, repeat=repeat)


def _sent(data: str, condition: str, size: int, repeat: int) -> Uploads:
    dealt = deal_images(data, rng=generator(repeat), **PARTIES)
    anchor = {**ROUND, "n_anchor_rows": size}
    return uploads(dealt, repeat=repeat, span_condition=condition, **anchor)


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    """Return Table 17, whether the size matters to each method."""
    repeats = min((len(each) for name, each in values.items() if "gopp" not in name), default=0)
    if repeats < 2:
        msg = "one repeat has no spread"
        raise ValueError(msg)
    within = len(SIZES) * (repeats - 1)
    chance = ((len(SIZES) - 1) / within) ** 0.5
    told = (
        "Table 17: one-way analysis of variance over the four sizes. F grows with the number of "
        f"repeats ({repeats} here, 100 in the paper), Cohen's f does not, so f is what compares; "
        f"with {repeats} repeats a size that does not matter at all still gives an f of about "
        f"{chance:.2f} (with 100, {(3 / 396) ** 0.5:.2f}). All sizes use the same splits, which "
        "the test takes for independent: it errs towards no effect."
    )
    lines = []
    for data, printed in PRINTED_ANOVA.items():
        for condition in CONDITIONS:
            for method in (*ALIGNERS, "gopp/"):
                places = [
                    key({"data": data, "condition": condition, "a": size}, method) for size in SIZES
                ]
                groups = [there(values.get(place, ())) for place in places]
                if min(map(len, groups)) < 2:
                    continue
                found = one_way(groups)
                ours = [f"{found.f:.3g}", f"{found.p:.2g}", f"{found.effect:.2f}"]
                theirs = [f"{x:.3g}" for x in printed.get(f"{condition}/{method}", ())]
                row = [f"{data}, {condition}", method.rstrip("/"), *ours]
                lines.append([*row, *(theirs or ["", "", ""])])
    head = ["data, condition", "method", "F", "p", "f", "paper's F", "p", "f"]
    return [told, "", *table(head, lines)]


def _published() -> dict[str, Published]:
    found: dict[str, Published] = {}
    for data, rows in PRINTED.items():
        for name, numbers in rows.items():
            condition, method = name.split("/")
            columns = [f"{condition}/{size}" for size in SIZES]
            found |= in_columns({method: numbers}, columns, start=f"{data}/")
    return found


STUDY = Study(
    source="ODC paper, Tables 15 and 17",
    unit="accuracy, %",
    cells=[
        {"data": data, "condition": condition, "a": size, **system}
        for system in ({}, {"system": "gopp"})
        for data in DATA
        for condition in CONDITIONS
        for size in SIZES
    ],
    run=run,
    published=_published(),
    analysis=analysis,
    round_of=but("system"),
)
