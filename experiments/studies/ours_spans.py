"""Span conditions: whitened ODC under an isometric anchor.

Rows, parties, secret bases, test sets, models and sizes of Table 7, with its repeats, and an
isometric anchor of as many rows as its uniform one. Where bases are orthonormal so are their images
under this anchor, and whitened ODC is ODC itself; where they are not, it undoes E_i.
"""

from collections.abc import Mapping
from typing import Any

from experiments.data.images import IMAGES
from experiments.data.molecules import TASKS as MOLECULES
from experiments.data.molecules import deal_molecules
from experiments.harness.study import CONDITIONS, Study, Values, crossed
from experiments.harness.systems import OURS
from experiments.harness.uploads import by_each, uploads
from experiments.studies import table_07_images, table_07_tdc


def run(*, repeat: int, **cell: str) -> Values:
    methods = {"whitened": OURS["whitened"]}
    return as_in_table_7(**cell, methods=methods, repeat=repeat, anchor="isometric")


def as_in_table_7(
    *, data: str, condition: str, methods: Mapping[str, Any], repeat: int, **options: Any
) -> Values:
    """Measure methods with Table 7's rows, bases and models; options change its round."""
    how: dict[str, Any] = {"span_condition": condition}
    if data in MOLECULES:
        split = deal_molecules(data, repeat=repeat)
        sent = uploads(split, **how, **{**table_07_tdc.ROUND, **options})
        return by_each(sent, methods)
    split = table_07_images.dealt(data, repeat)
    how |= {"judges": table_07_images.JUDGES, **table_07_images.ROUND, **options}
    return by_each(uploads(split, **how), methods, models=table_07_images.MODELS)


STUDY = Study(
    source="ours",
    unit="accuracy (images), ROC-AUC (roc) and PR-AUC (pr), %",
    cells=crossed(data=(*IMAGES, *MOLECULES), condition=CONDITIONS),
    repeats=3,
)
