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
from itertools import product
from typing import Any

from experiments.data.images import IMAGES
from experiments.harness import study
from experiments.harness.statistics import one_way
from experiments.harness.store import there
from experiments.harness.study import ORTHONORMAL, Study, Values
from experiments.harness.systems import OURS, PAPERS
from experiments.harness.uploads import AsPrinted, by_each, by_gopp, uploads
from experiments.studies import table_07_images

SIZES = (196, 392, 784, 1568)
ROUND: dict[str, Any] = {"anchor": "uniform", "n_components": 100}
ALIGNERS: dict[str, Any] = {
    **{name: PAPERS[name] for name in ("imakura", "kawakami")},
    "odc": AsPrinted(),
    **{name: OURS[name] for name in ("imakura, rescaled", "kawakami, rescaled")},
}


def run(*, data: str, condition: str, a: int, system: str = "", repeat: int) -> Values:
    dealt = table_07_images.dealt(data, repeat)
    sent = uploads(dealt, span_condition=condition, n_anchor_rows=a, **ROUND)
    if system:
        return by_gopp(sent)
    return by_each(sent, ALIGNERS)


def analysis(values: Mapping[str, list[float]]) -> list[str]:
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
    for data, condition, method in product(IMAGES, ORTHONORMAL, (*ALIGNERS, "gopp/")):
        places = [f"{data}/{condition}/{size}/{method}" for size in SIZES]
        groups = [there(values.get(place, ())) for place in places]
        if min(map(len, groups)) > 1:
            found = one_way(groups)
            ours = [f"{found.f:.3g}", f"{found.p:.2g}", f"{found.effect:.2f}"]
            theirs = study.printed_variance("table_17", f"{data}/{condition}/{method}", "{:.3g}")
            lines.append([f"{data}, {condition}", method.rstrip("/"), *ours, *theirs])
    head = ["data, condition", "method", "F", "p", "f", "paper's F", "p", "f"]
    return [told, "", *study.table(head, lines)]


STUDY = Study(
    source="ODC paper, Tables 15 and 17",
    unit="accuracy, %",
    cells=[
        {**cell, **system}
        for system in ({}, {"system": "gopp"})
        for cell in study.crossed(data=IMAGES, condition=ORTHONORMAL, a=SIZES)
    ],
)
