"""Middle version, Figure 3: accuracy over dimensions.

c = {v2_fig_2.C}. {v2_fig_2.OPEN} The figure prints no numbers; its text says that accuracy settles
at about l = 50.
"""

from experiments.harness.study import Study, Values
from experiments.studies import v2_fig_2


def run(*, l: int | str, repeat: int) -> Values:
    dealt = v2_fig_2.deal(v2_fig_2.C, repeat=repeat)
    if isinstance(l, str):
        return v2_fig_2.outside(dealt)
    return v2_fig_2.methods(dealt, size=l)


STUDY = Study(
    source="ODC paper's middle version, Figure 3",
    unit="accuracy, %",
    cells=[{"l": size} for size in ("any", 10, 20, 30, 40, 50, 70, 100)],
)
