"""Anchors at equal upload size, own spans.

diffspan_orth. Molecules: four parties of one label each, of at most 1,000 rows (Table 7 has all
rows), the given test part, a = 3,000, l = 200. Images: 50 parties of 100, 2,000 test images, a =
1,000, l = 100. All anchors of a task have one a, so that uploads have one size. `smote` mixes 1,000
PubChem rows, or 1,000 images that nobody holds: each anchor row lies between one of them and one of
its 25 nearest, up to 1.5 times as far. ODC by the letter of Algorithm 4. Where a number is missing,
the library refused the method. Logistic regression (C = 1) with every aligner, the papers' MLP with
ODC. Pooled: the better of raw rows and their top l directions. Masked sums have no anchor: 1,000
random Fourier features and ridge, as by default; n/D is rows for each feature.
"""

from collections.abc import Mapping
from typing import Any

from cobasis import RemoteError
from experiments.data.images import IMAGES, deal_images
from experiments.data.molecules import TASKS as MOLECULES
from experiments.harness.models import Make, mlp
from experiments.harness.study import Study, Values, crossed
from experiments.harness.systems import OURS, PAPERS, Dealt, central
from experiments.harness.uploads import AsPrinted, by_each, uploads
from experiments.studies._ours import SUMS, added_up, deal, logistic, public

ANCHORS = ("isometric", "gaussian", "uniform", "smote")
METHODS: Mapping[str, Any] = {**PAPERS, **OURS, "odc": AsPrinted()}
MODELS: Mapping[str, Make] = {"logistic": logistic, "mlp": mlp}
POOL = 1000  # public rows that a SMOTE anchor is mixed from


def dealt(task: str, repeat: int) -> Dealt:
    """Deal molecules to four parties of one label, and images to 50 parties of 100."""
    if task in MOLECULES:
        return deal(task, repeat=repeat, skewed=True)
    return deal_images(task, repeat=repeat, n_parties=50, n_rows=100, n_tests=2000)


def sizes(task: str) -> dict[str, int]:
    if task in MOLECULES:
        return {"n_components": 200, "n_anchor_rows": 3000}
    return {"n_components": 100, "n_anchor_rows": 1000}


def run(*, data: str, anchor: str, repeat: int) -> Values:
    split = dealt(data, repeat)
    if anchor == SUMS:
        return added_up(split, data)
    if anchor == "none: pooled":
        size = sizes(data)["n_components"]
        return {
            name: central(split, n_components=size, make=make)[""] for name, make in MODELS.items()
        }
    options: dict[str, Any] = {"span_condition": "diffspan_orth", "anchor": anchor, **sizes(data)}
    if anchor == "smote":
        options["public_rows"] = public(data, repeat=repeat, count=POOL)
    sent = uploads(split, **options)
    found: Values = {}
    for method, aligner in METHODS.items():  # the network with ODC and pooled rows only, for time
        models = MODELS if method == "odc" else {"logistic": logistic}
        try:
            found |= by_each(sent, {method: aligner}, models=models)
        except RemoteError:
            continue  # the method is refused, as settings say
    return found


STUDY = Study(
    source="ours",
    unit="ROC-AUC (molecules) or accuracy (images), %",
    cells=crossed(data=(*MOLECULES, *IMAGES), anchor=(*ANCHORS, "none: pooled", SUMS)),
    repeats=3,
)
