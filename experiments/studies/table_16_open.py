"""Table 16, PubChem anchors: what the paper leaves open, compounds and components."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.harness.study import Settings, Study, Values
from experiments.harness.uploads import uploads
from experiments.studies import table_16
from experiments.studies._ours import from_print, nearness
from experiments.studies.table_07_tdc import deal, measured
from experiments.studies.table_16 import ALIGNERS, PRINTED, SIZES, pubchem

OPEN: Mapping[str, Mapping[str, Any]] = {
    "200 components": {},
    "smaller compounds": {"smaller": True},
    "250 components": {"n_components": 250},
}
N_COMPONENTS = 200
ANCHOR = "pubchem/diffspan_orth"


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one size with one choice."""
    how = OPEN[str(settings["open"])]
    dealt = deal("ames", repeat=repeat, split="random split")
    sent = uploads(
        dealt,
        repeat=repeat,
        span_condition="diffspan_orth",
        n_components=how.get("n_components", N_COMPONENTS),
        **pubchem(int(settings["a"]), repeat=repeat, smaller=how.get("smaller", False)),
    )
    return measured(sent, methods=ALIGNERS, repeat=repeat)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Say which choice comes nearest to the paper's numbers."""
    rows = {
        str(size): [_distance(values, f"{choice}/{size}", size) for choice in OPEN]
        for size in SIZES
    }
    return nearness("numbers of a size", corner="a", columns=OPEN, rows=rows)


def _distance(values: Mapping[str, Sequence[float]], start: str, size: int) -> str:
    """Return the mean distance from what is printed for a size."""
    pairs = {f"{start}/{row}": f"{ANCHOR}/{size}/{row}" for row in PRINTED[ANCHOR]}
    return from_print(values, table_16.STUDY.published, pairs)


STUDY = Study(
    title="Table 16, AMES: what it leaves open of PubChem anchors",
    source="ours: sensitivity of ODC paper, Table 16",
    settings=(
        "Table 16's PubChem anchors under diffspan_orth; training and validation rows are dealt. "
        "The paper says neither which compounds it took nor how many components. Here the anchor "
        "is of all compounds with 200 components, or of compounds from the half with the fewest "
        "fingerprint bits, or of all with 250 components."
    ),
    unit="ROC-AUC (roc) and PR-AUC (pr), %",
    cells=[{"open": choice, "a": size} for choice in OPEN for size in SIZES],
    run=run,
    analysis=analysis,
    charted=(),
)
