"""Table 7, molecules: which part of the tasks it is of.

Table 7's molecules under the two orthonormal conditions. The paper has *the dataset-provided
train/test partitions*; its middle version trains on training and validation part. Here both are
those of TDC's random split, or the validation part is left out, or all parts are those of TDC's
scaffold split (seed 42, made again as PyTDC makes it), which tests on ring systems that no model
has seen.
"""

from collections.abc import Mapping

from experiments.harness.study import ORTHONORMAL, Study, Values, crossed, printed
from experiments.harness.systems import PAPERS
from experiments.harness.uploads import AsPrinted, by_each, uploads
from experiments.studies import table_07_tdc
from experiments.studies._ours import nearness
from experiments.studies.table_07_tdc import SPLITS, deal

TASKS = ("ames", "cyp1a2_veith", "cyp2d6_veith", "cyp3a4_veith")
METHODS = {"imakura": PAPERS["imakura"], "kawakami": PAPERS["kawakami"], "odc": AsPrinted()}


def run(*, data: str, split: str, condition: str, repeat: int) -> Values:
    dealt = deal(data, repeat=repeat, split=split)
    sent = uploads(dealt, span_condition=condition, **table_07_tdc.ROUND)
    return by_each(sent, METHODS)


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    tasks, conditions, methods = map("|".join, (TASKS, ORTHONORMAL, METHODS))
    pattern = f"({tasks})/(?:{conditions})/(?:{methods})/.*"
    columns = {split: (values, "/", f"/{split}/") for split in SPLITS}
    of, what = printed("table_07_tdc"), "numbers of a task"
    return nearness(what, of, pattern=pattern, corner="task", columns=columns)


STUDY = Study(
    source="ours: sensitivity of ODC paper, Tables 7 and 16",
    unit="ROC-AUC (roc) and PR-AUC (pr), %",
    cells=crossed(data=TASKS, split=SPLITS, condition=ORTHONORMAL),
    repeats=3,
    charted=(),
)
