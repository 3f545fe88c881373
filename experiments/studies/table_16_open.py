"""Table 16, AMES: what it leaves open of PubChem anchors.

Table 16's PubChem anchors under diffspan_orth; training and validation rows are dealt. The paper
says neither which compounds it took nor how many components. Here the anchor is of all compounds
with 200 components, or of compounds from the half with the fewest fingerprint bits, or of all with
250 components.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.harness.study import Study, Values, printed
from experiments.harness.uploads import by_each, uploads
from experiments.studies._ours import nearness
from experiments.studies.table_07_tdc import deal
from experiments.studies.table_16 import ALIGNERS, SIZES, pubchem

OPEN: Mapping[str, Mapping[str, Any]] = {
    "200 components": {},
    "smaller compounds": {"smaller": True},
    "250 components": {"n_components": 250},
}
N_COMPONENTS = 200
ANCHOR = "pubchem/diffspan_orth"


def run(*, a: int, repeat: int, **cell: str) -> Values:
    how = dict(OPEN[cell["open"]])
    size = how.pop("n_components", N_COMPONENTS)
    sent = uploads(
        deal("ames", repeat=repeat, split="random split"),
        span_condition="diffspan_orth",
        n_components=size,
        **pubchem(a, repeat=repeat, **how),
    )
    return by_each(sent, ALIGNERS)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    pattern = rf"{ANCHOR}/(\d+)/(?:{'|'.join(ALIGNERS)})/.*"
    columns = {choice: (values, ANCHOR, choice) for choice in OPEN}
    of = printed("table_16")
    return nearness("numbers of a size", of, pattern=pattern, corner="a", columns=columns)


STUDY = Study(
    source="ours: sensitivity of ODC paper, Table 16",
    unit="ROC-AUC (roc) and PR-AUC (pr), %",
    cells=[{"open": choice, "a": size} for choice in OPEN for size in SIZES],
    charted=(),
)
