"""Table 7, molecules: which of TDC's parts the paper may have trained and tested on."""

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.data.molecules import deal_molecules
from experiments.harness.store import RECORDED, Results
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import PAPERS, generator
from experiments.harness.uploads import AsPrinted, uploads
from experiments.studies import table_07_tdc
from experiments.studies._ours import from_print, nearness
from experiments.studies.table_07_tdc import PRINTED, measured

SPLITS: Mapping[str, Mapping[str, Any]] = {
    "random split, without the validation part": {"validation": False},
    "scaffold split": {"by_scaffold": True},
}
TASKS = ("ames", "cyp1a2_veith", "cyp2d6_veith", "cyp3a4_veith")
CONDITIONS = ("samespan_orth", "diffspan_orth")
METHODS = {"imakura": PAPERS["imakura"], "kawakami": PAPERS["kawakami"], "odc": AsPrinted()}


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one task with other molecules than Table 7's."""
    how = SPLITS[str(settings["split"])]
    dealt = deal_molecules(str(settings["data"]), rng=generator(repeat), **how)
    sent = uploads(dealt, repeat=repeat, span_condition=settings["condition"], **table_07_tdc.ROUND)
    return measured(sent, methods=METHODS, repeat=repeat)


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    """Say which molecules come nearest to the paper's numbers."""
    as_ours = Results("table_07_tdc", folder=RECORDED).read().values()
    rows = {
        data: [
            _distance(as_ours, data, f"{data}/"),
            *(_distance(values, data, f"{data}/{split}/") for split in SPLITS),
        ]
        for data in TASKS
    }
    columns = ("Table 7's: random split, with the validation part", *SPLITS)
    return nearness("numbers of a task", corner="task", columns=columns, rows=rows)


def _distance(values: Mapping[str, Sequence[float]], data: str, start: str) -> str:
    """Return the mean distance from what is printed for a task."""
    places = [f"{condition}/{row}" for condition in CONDITIONS for row in PRINTED[data]]
    pairs = {f"{start}{place}": f"{data}/{place}" for place in places}
    return from_print(values, table_07_tdc.STUDY.published, pairs)


STUDY = Study(
    title="Table 7, molecules: other parts of the same tasks",
    source="ours: sensitivity of ODC paper, Tables 7 and 16",
    settings=(
        "Table 7's molecules under the two orthonormal conditions, with other rows. The paper has "
        "*the dataset-provided train/test partitions*; its middle version trains on training and "
        "validation part, as we do in Table 7. Here the validation part is left out, or training, "
        "validation and test part are those of TDC's scaffold split (seed 42, made again as PyTDC "
        "makes it), which tests on ring systems that no model has seen."
    ),
    unit="ROC-AUC (roc) and PR-AUC (pr), %",
    cells=[
        {"data": data, "split": split, "condition": condition}
        for data in TASKS
        for split in SPLITS
        for condition in CONDITIONS
    ],
    run=run,
    analysis=analysis,
    repeats=3,
    charted=(),
)
