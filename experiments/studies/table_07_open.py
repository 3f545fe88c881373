"""Table 7, images: other learning rates, and alone on projected rows.

Table 7's images, split and seeds. The paper says neither the network's learning rate (1e-3 is
scikit-learn's default) nor whether a party alone trains on X_i or on X_i F_i, which is what it has
at hand for a round. Central here is the network on raw pixels, without the better of two.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from experiments.data.images import IMAGES
from experiments.harness.models import mlp
from experiments.harness.study import CONDITIONS, Study, Values, printed
from experiments.harness.systems import Dealt, Shared, alone, central, judged, prefixed
from experiments.harness.uploads import AsPrinted, uploads
from experiments.studies import table_07_images
from experiments.studies._ours import nearness
from experiments.studies.table_07_images import JUDGES, MODELS, ROUND

OPEN = {"learning rate 5e-4": 5e-4, "learning rate 1e-3": 1e-3, "learning rate 2e-3": 2e-3}
OWN = "alone on X_i F_i"
ALONE = 20  # parties that are trained alone, as in Table 7 here


def run(*, data: str, repeat: int, **cell: str) -> Values:
    split, choice = table_07_images.dealt(data, repeat), cell["open"]
    if choice == OWN:
        return _on_own_directions(split)
    make = partial(mlp, learning_rate_init=OPEN[choice])
    found = prefixed(alone(split, judges=ALONE, make=make), "any/alone/mlp")
    found["any/central/mlp"] = central(split, n_components=None, make=make)[""]
    for condition in CONDITIONS:
        sent = uploads(split, judges=JUDGES, span_condition=condition, **ROUND)
        found |= prefixed(judged(sent.aligned(AsPrinted()), make=make), condition, "odc/mlp")
    return found


def _on_own_directions(split: Dealt) -> Values:
    sent = uploads(split, judges=ALONE, span_condition="diffspan_orth", **ROUND)
    own = [
        Shared(rows=sent.rows[name], labels=split.parties[name][1], tests=[(test, 1)], dealt=split)
        for name, test in sent.tests.items()
    ]
    return {
        f"any/alone/{name}": float(np.mean([judged(each, make=make)[""] for each in own]))
        for name, make in MODELS.items()
    }


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    pattern = r"(\S+/any/(?:alone/\w+|central/mlp)|\S+/odc/mlp)"
    columns = {choice: (values, "/", f"/{choice}/") for choice in (*OPEN, OWN)}
    of = printed("table_07_images")
    return nearness("number", of, pattern=pattern, corner="number", columns=columns)


STUDY = Study(
    source="ours: sensitivity of ODC paper, Table 7",
    unit="accuracy, %",
    cells=[{"data": data, "open": choice} for data in IMAGES for choice in (*OPEN, OWN)],
    repeats=3,
    charted=(),
)
