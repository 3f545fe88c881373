"""Table 8, Adult: other halves of the features, and fewer components.

Table 8's blocks. The paper says neither which features a party has nor l. Here the two parties of a
block have the first and the last seven of Adult's columns, 50 and 58 features, and l = {SIZE} (50
joined): the poorest block's half has 27 independent directions.
"""

from collections.abc import Mapping, Sequence

from experiments.data.adult import adult, partition
from experiments.harness.store import recorded
from experiments.harness.study import CONDITIONS, Study, Values, printed
from experiments.harness.systems import PAPERS
from experiments.studies._ours import nearness
from experiments.studies.table_08 import BLOCKS, PART, TESTS, joined, together

SIZE = 25
METHODS = {name: PAPERS[name] for name in ("imakura", "kawakami", "odc")}


def run(*, condition: str, repeat: int) -> Values:
    """Measure one condition: halves of seven columns, and a smaller l."""
    split = partition(adult(), repeat=repeat, n_blocks=BLOCKS, n_tests=TESTS)
    return together(joined(split, condition=condition, size=SIZE), METHODS)


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Say how near this comes to the paper's numbers."""
    pattern = f"({'|'.join(CONDITIONS)})/(?:{'|'.join(METHODS)})"
    theirs = f"Table 8's: every other feature, l = {PART} for each party"
    here = f"the first and the last seven columns, l = {SIZE}"
    columns = {theirs: (recorded("table_08").values(), "", ""), here: (values, "", "")}
    what, of = "numbers of a condition", printed("table_08")
    return nearness(what, of, pattern=pattern, corner="condition", columns=columns)


STUDY = Study(
    source="ours: sensitivity of ODC paper, Table 8",
    unit="accuracy, %",
    cells=[{"condition": condition} for condition in CONDITIONS],
    charted=(),
)
