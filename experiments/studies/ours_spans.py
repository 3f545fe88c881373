"""Whitened ODC under an isometric anchor, in the four span conditions of Table 7."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from experiments.data.molecules import TASKS as MOLECULES
from experiments.data.molecules import deal_molecules
from experiments.harness.models import ACCURACY, Make, Metric, mlp
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import JUDGES, OURS, Shared, generator, judged, prefixed
from experiments.harness.uploads import Uploads, uploads
from experiments.studies import table_07_images, table_07_tdc

CONDITIONS = table_07_images.CONDITIONS
METHOD = "whitened"


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one condition."""
    how = {METHOD: partial(Uploads.aligned, aligner=OURS[METHOD])}
    return as_in_table_7(settings, methods=how, repeat=repeat, anchor="isometric")


def as_in_table_7(
    settings: Settings,
    *,
    methods: Mapping[str, Callable[[Uploads], Shared]],
    repeat: int,
    **options: Any,
) -> Values:
    """Measure methods with Table 7's rows, bases and models; options change its round."""
    task = str(settings["data"])
    molecules = task in MOLECULES
    table: Any = table_07_tdc if molecules else table_07_images
    split = deal_molecules(task, rng=generator(repeat)) if molecules else table.dealt(task, repeat)
    sent = uploads(
        split,
        repeat=repeat,
        judges=JUDGES if molecules else table_07_images.JUDGES,
        span_condition=settings["condition"],
        **{**table.ROUND, **options},
    )
    models: dict[str, Make] = {"": mlp} if molecules else table_07_images.MODELS
    metrics: dict[str, Metric] = dict(table_07_tdc.METRICS) if molecules else {"": ACCURACY}
    found: Values = {}
    for method, align in methods.items():
        shared = align(sent)
        for name, make in models.items():
            values = judged(shared, split.test_labels, make=make, metrics=metrics, repeat=repeat)
            found |= prefixed(values, *([method, name] if name else [method]))
    return found


STUDY = Study(
    title="Span conditions: whitened ODC under an isometric anchor",
    source="ours",
    settings=(
        "Rows, parties, secret bases, test sets, models and sizes of Table 7, with its repeats, "
        "and an isometric anchor of as many rows as its uniform one. Where bases are orthonormal "
        "so are their images under this anchor, and whitened ODC is ODC itself; where they are "
        "not, it undoes E_i."
    ),
    unit="accuracy (images), ROC-AUC (roc) and PR-AUC (pr), %",
    cells=[
        {"data": data, "condition": condition}
        for data in ("mnist", "fashion-mnist", *MOLECULES)
        for condition in CONDITIONS
    ],
    run=run,
    repeats=3,
)
