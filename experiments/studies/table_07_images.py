"""Table 7, images: four span conditions.

100 parties of 100 images, pixels in [0, 1], both parts merged, 10,000 random test images; uniform
anchor of 1,000 rows; RBF-SVM (C = 1, gamma scale), MLP (256 ReLU, batches of 32, early stopping).
Three of the 100 parties predict all test images (an SVM's prediction is dear), 20 are trained
alone. Open in the paper: the rows of a party (100 is section 8's), l (100 reproduces its SVM), the
MLP's learning rate (1e-3).
"""

from typing import Any

from cobasis.errors import UndeterminedFitError
from experiments.data.images import IMAGES, deal_images
from experiments.harness.models import Make, mlp, svm
from experiments.harness.study import CONDITIONS, Study, Values
from experiments.harness.systems import OURS, PAPERS, Dealt, alone, central, prefixed
from experiments.harness.uploads import AsPrinted, by_each, uploads

MODELS: dict[str, Make] = {"svm": svm, "mlp": mlp}
RATE = (
    "The learning rate. The paper does not say its MLP's; with 5e-4 in place of 1e-3 this number "
    "agrees (three repeats: study `table_07_open`)."
)
ROUND: dict[str, Any] = {"anchor": "uniform", "n_anchor_rows": 1000, "n_components": 100}
PARTIES: dict[str, int] = {"n_parties": 100, "n_rows": 100, "n_tests": 10_000}
JUDGES = 3

SHRUNK = (
    "Scale. Features of Algorithm 3 shrink as 1/sqrt(ac), and an MLP that stops early notices: the "
    "same rows rescaled, or with features standardised, are a point off on average, or less (study "
    "`ours_weighting`). The paper's own Table 15 has lower figures than its Table 7 for the same "
    "setup."
)


def dealt(data: str, repeat: int) -> Dealt:
    return deal_images(data, repeat=repeat, **PARTIES)


def run(*, data: str, condition: str, repeat: int) -> Values:
    split = dealt(data, repeat)
    if condition == "any":
        return _outside(split)
    sent = uploads(split, judges=JUDGES, span_condition=condition, **ROUND)
    found: Values = {}
    for method, aligner in {**PAPERS, **OURS, "odc": AsPrinted()}.items():
        trained = dict(MODELS)
        if method.endswith("rescaled"):
            del trained["svm"]  # gamma="scale" does not see a rescale
        try:
            found |= by_each(sent, {method: aligner}, models=trained)
        except UndeterminedFitError:
            found[f"{method}/refused"] = 1.0
    return found


def _outside(split: Dealt) -> Values:
    found: Values = {}
    for name, make in MODELS.items():
        found |= prefixed(alone(split, judges=20, make=make), "alone", name)
        pooled = central(split, n_components=ROUND["n_components"], make=make)
        found |= {f"central/{name}": pooled[""], f"central, raw/{name}": pooled[", raw"]}
    return found


STUDY = Study(
    source="ODC paper, Table 7",
    unit="accuracy, %",
    cells=[{"data": data, "condition": c} for data in IMAGES for c in ("any", *CONDITIONS)],
    explained={
        **{f"{d}/{c}/kawakami/mlp": SHRUNK for d in IMAGES for c in CONDITIONS},
        "mnist/any/alone/mlp": RATE,
        "mnist/any/central/mlp": RATE,
        "fashion-mnist/diffspan_orth/odc/mlp": RATE,
    },
)
