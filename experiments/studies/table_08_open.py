"""Table 8: other halves of the features, and fewer components."""

from collections.abc import Mapping, Sequence

from experiments.data.adult import adult, partition
from experiments.harness.store import RECORDED, Results
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import PAPERS, generator
from experiments.studies import table_08
from experiments.studies._ours import from_print, nearness
from experiments.studies.table_08 import (
    BLOCKS,
    CONDITIONS,
    PART,
    PRINTED,
    TESTS,
    joined,
    together,
)

SIZE = 25
METHODS = {name: PAPERS[name] for name in PRINTED}


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one condition: halves of seven columns, and a smaller l."""
    split = partition(adult(), rng=generator(repeat), n_blocks=BLOCKS, n_tests=TESTS)
    condition = str(settings["condition"])
    given = joined(split, condition=condition, repeat=repeat, size=SIZE)
    return together(given, METHODS, split, repeat)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Say how near this comes to the paper's numbers."""
    as_ours = Results("table_08", folder=RECORDED).read().values()
    rows = {
        condition: [_distance(each, condition) for each in (as_ours, values)]
        for condition in CONDITIONS
    }
    columns = (
        f"Table 8's: every other feature, l = {PART} for each party",
        f"the first and the last seven columns, l = {SIZE}",
    )
    return nearness("numbers of a condition", corner="condition", columns=columns, rows=rows)


def _distance(values: Mapping[str, Sequence[float]], condition: str) -> str:
    """Return the mean distance from what is printed for a condition."""
    places = [f"{condition}/{method}" for method in PRINTED]
    return from_print(values, table_08.STUDY.published, dict(zip(places, places, strict=True)))


STUDY = Study(
    title="Table 8, Adult: other halves of the features, and fewer components",
    source="ours: sensitivity of ODC paper, Table 8",
    settings=(
        "Table 8's blocks. The paper says neither which features a party has nor l. Here the two "
        "parties of a block have the first and the last seven of Adult's columns, 50 and 58 "
        f"features, and l = {SIZE} ({2 * SIZE} joined): the poorest block's half has 27 "
        "independent directions."
    ),
    unit="accuracy, %",
    cells=[{"condition": condition} for condition in CONDITIONS],
    run=run,
    analysis=analysis,
    charted=(),
)
