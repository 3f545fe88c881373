"""Table 7, images: four span conditions.

100 parties of 100 images, pixels in [0, 1], both parts merged, 10,000 random test images; uniform
anchor of 1,000 rows; RBF-SVM (C = 1, gamma scale), MLP (256 ReLU, batches of 32, early stopping).
Three of the 100 parties predict all test images (an SVM's prediction is dear), 20 are trained
alone. Open in the paper: the rows of a party (100 is section 8's), l (100 reproduces its SVM), the
MLP's learning rate (1e-3).
"""

from typing import Any

from cobasis.errors import UndeterminedFitError
from experiments.data.images import deal_images
from experiments.harness.models import Make, mlp, svm
from experiments.harness.study import CONDITIONS, Published, Settings, Study, Values, in_columns
from experiments.harness.systems import OURS, PAPERS, Dealt, alone, central, generator, prefixed
from experiments.harness.uploads import AsPrinted, by_each, uploads

MODELS: dict[str, Make] = {"svm": svm, "mlp": mlp}
RATE = (
    "The learning rate. The paper does not say its MLP's; with 5e-4 in place of 1e-3 this number "
    "agrees (three repeats: study `table_07_open`)."
)
ROUND: dict[str, Any] = {"anchor": "uniform", "n_anchor_rows": 1000, "n_components": 100}
TESTS = 10_000
JUDGES = 3

PRINTED = {  # for each condition in the order above
    "mnist": {
        "imakura/svm": (96.1, 0.1, 96.1, 0.1, 95.1, 0.1, 94.9, 0.1),
        "imakura/mlp": (96.0, 0.1, 95.9, 0.1, 94.4, 0.2, 94.9, 0.1),
        "kawakami/svm": (96.1, 0.1, 96.1, 0.1, 94.7, 0.1, 94.7, 0.1),
        "kawakami/mlp": (95.9, 0.1, 95.8, 0.1, 93.2, 0.2, 93.2, 0.2),
        "odc/svm": (95.6, 0.1, 88.8, 0.2, 94.9, 0.1, 86.5, 0.3),
        "odc/mlp": (95.9, 0.1, 92.6, 0.2, 95.3, 0.1, 91.2, 0.2),
    },
    "fashion-mnist": {
        "imakura/svm": (85.4, 0.2, 85.4, 0.2, 83.4, 0.2, 82.9, 0.2),
        "imakura/mlp": (86.1, 0.2, 86.1, 0.2, 81.8, 0.3, 82.5, 0.3),
        "kawakami/svm": (85.4, 0.2, 85.4, 0.2, 83.0, 0.3, 83.0, 0.3),
        "kawakami/mlp": (86.0, 0.2, 85.9, 0.2, 81.5, 0.3, 81.5, 0.3),
        "odc/svm": (83.7, 0.3, 77.7, 0.3, 82.5, 0.2, 76.3, 0.3),
        "odc/mlp": (86.0, 0.2, 80.5, 0.3, 84.3, 0.2, 78.8, 0.4),
    },
}
SHRUNK = (
    "Scale. Features of Algorithm 3 shrink as 1/sqrt(ac), and an MLP that stops early notices: the "
    "same rows rescaled, or with features standardised, are a point off on average, or less (study "
    "`ours_weighting`). The paper's own Table 15 has lower figures than its Table 7 for the same "
    "setup."
)
PRINTED_ANY = {
    "mnist": {
        "central/svm": (96.0, 0.1),
        "central/mlp": (95.1, 0.1),
        "alone/svm": (66.0, 0.9),
        "alone/mlp": (59.7, 1.4),
    },
    "fashion-mnist": {
        "central/svm": (86.1, 0.2),
        "central/mlp": (86.1, 0.2),
        "alone/svm": (62.9, 0.8),
        "alone/mlp": (61.1, 1.0),
    },
}


def dealt(data: str, repeat: int) -> Dealt:
    """Deal one repeat's images, the same for all conditions and methods."""
    rng = generator(repeat)
    return deal_images(data, rng=rng, n_parties=100, n_rows=100, n_tests=TESTS)


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure all methods under one condition, or what takes part in none."""
    split = dealt(str(settings["data"]), repeat)
    if settings["condition"] == "any":
        return _outside(split, repeat)
    condition = settings["condition"]
    sent = uploads(split, repeat=repeat, judges=JUDGES, span_condition=condition, **ROUND)
    found: Values = {}
    for method, aligner in {**PAPERS, **OURS, "odc": AsPrinted()}.items():
        trained = dict(MODELS)
        if method.endswith("rescaled"):
            del trained["svm"]  # gamma="scale" does not see a rescale
        try:
            found |= by_each(sent, {method: aligner}, repeat=repeat, models=trained)
        except UndeterminedFitError:
            found[f"{method}/refused"] = 1.0
    return found


def _outside(split: Dealt, repeat: int) -> Values:
    found: Values = {}
    for name, make in MODELS.items():
        how: dict[str, Any] = {"make": make, "repeat": repeat}
        found |= prefixed(alone(split, judges=20, **how), "alone", name)
        pooled = central(split, n_components=ROUND["n_components"], **how)
        found |= {f"central/{name}": pooled[""], f"central, raw/{name}": pooled[", raw"]}
    return found


def _published() -> dict[str, Published]:
    found: dict[str, Published] = {}
    for data, rows in PRINTED.items():
        found |= in_columns(PRINTED_ANY[data], ["any"], start=f"{data}/")
        found |= in_columns(rows, CONDITIONS, start=f"{data}/")
    return found


STUDY = Study(
    source="ODC paper, Table 7",
    unit="accuracy, %",
    cells=[{"data": data, "condition": c} for data in PRINTED for c in ("any", *CONDITIONS)],
    run=run,
    published=_published(),
    explained={
        **{f"{d}/{c}/kawakami/mlp": SHRUNK for d in PRINTED for c in CONDITIONS},
        "mnist/any/alone/mlp": RATE,
        "mnist/any/central/mlp": RATE,
        "fashion-mnist/diffspan_orth/odc/mlp": RATE,
    },
)
