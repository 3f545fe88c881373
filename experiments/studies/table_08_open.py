"""Table 8, own spans: other halves of the features, and more components."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from experiments.data.adult import Partitioned, adult, partition
from experiments.harness.store import recorded
from experiments.harness.study import Settings, Study, Values
from experiments.harness.systems import PAPERS, generator
from experiments.studies import table_08
from experiments.studies._ours import nearness
from experiments.studies.table_08 import BLOCKS, PART, PRINTED, TESTS, joined, together

CONDITIONS = ("diffspan_orth", "diffspan")
SIZE = 40
METHODS = {name: PAPERS[name] for name in PRINTED}


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one condition with other halves and a larger l."""
    split = in_turn(partition(adult(), rng=generator(repeat), n_blocks=BLOCKS, n_tests=TESTS))
    condition = str(settings["condition"])
    return together(joined(split, condition=condition, repeat=repeat, size=SIZE), METHODS, repeat)


def in_turn(split: Partitioned) -> Partitioned:
    """Give every other feature to one half, so that no half is of rare words alone."""
    first = np.arange(split.dealt.test_rows.shape[1]) % 2 == 0
    return replace(split, halves=(first, ~first))


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Say how near this comes to the paper's numbers."""
    rows = {condition: [f"{condition}/{method}" for method in PRINTED] for condition in CONDITIONS}
    theirs = f"Table 8's: the first and the last seven columns, l = {PART} for each party"
    here = f"every other feature, l = {SIZE}"
    columns = {theirs: (recorded("table_08").values(), "", ""), here: (values, "", "")}
    what, printed = "numbers of a condition", table_08.STUDY.published
    return nearness(what, printed, corner="condition", rows=rows, columns=columns)


STUDY = Study(
    title="Table 8, Adult: other halves of the features, and more components",
    source="ours: sensitivity of ODC paper, Table 8",
    settings=(
        "Table 8's blocks under the conditions with own spans. The paper says neither which "
        "features a party has nor l. Here the two parties of a block have every other of the 108 "
        f"features, and l = {SIZE} ({2 * SIZE} joined). The poorest block has some 35 independent "
        "directions in a half; the rest of its basis is what the decomposition fills in, as any "
        "code does that does not ask."
    ),
    unit="accuracy, %",
    cells=[{"condition": condition} for condition in CONDITIONS],
    run=run,
    analysis=analysis,
    charted=(),
)
