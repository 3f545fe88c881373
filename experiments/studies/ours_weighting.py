"""Kawakami-DC with and without weighting.

Rows, parties, secret bases, anchor, test sets, models and sizes of Table 7, with its repeats, under
the two orthonormal conditions. *Weighted* multiplies each aligned feature by a weight that falls
with its eigenvalue (`Kawakami(weighting="eigen")`); where all spans agree every weight is 1.
*Feature scaling*, in the middle version's figures, standardises each aligned feature first.
Algorithm 3 as printed has neither, and which of them the paper's rows had is open.
"""

from collections.abc import Mapping
from typing import Any

from cobasis import Kawakami
from experiments.harness.study import ORTHONORMAL, Study, Values, printed
from experiments.harness.systems import PAPERS
from experiments.studies._ours import nearness
from experiments.studies.ours_spans import as_in_table_7
from experiments.studies.v2_fig_2 import feature_scaled

TASKS = ("mnist", "fashion-mnist", "ames", "tox21_sr-are")
METHODS: Mapping[str, Any] = {
    "kawakami": PAPERS["kawakami"],
    "kawakami, weighted": Kawakami(scale="paper", weighting="eigen"),
    "kawakami, weighted, rescaled": Kawakami(weighting="eigen"),
    "kawakami, feature scaling": feature_scaled,
}
PUBLISHED = {**printed("table_07_images"), **printed("table_07_tdc")}


def run(*, repeat: int, **cell: str) -> Values:
    return as_in_table_7(**cell, methods=METHODS, repeat=repeat)


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    pattern = f"({'|'.join(TASKS)})/(?:{'|'.join(ORTHONORMAL)})/kawakami/.*"
    columns = {method: (values, "/kawakami/", f"/{method}/") for method in METHODS}
    what = "Kawakami rows of a task"
    return nearness(what, PUBLISHED, pattern=pattern, corner="task", columns=columns)


STUDY = Study(
    source="ours: sensitivity of ODC paper, Table 7",
    unit="accuracy (images), ROC-AUC (roc) and PR-AUC (pr), %",
    cells=[{"data": data, "condition": condition} for data in TASKS for condition in ORTHONORMAL],
)
