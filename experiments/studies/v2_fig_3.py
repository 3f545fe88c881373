"""Middle version, Figure 3: accuracy over dimensions.

c = {v2_fig_2.C}. {v2_fig_2.OPEN} The figure prints no numbers; its text says that accuracy settles
at about l = 50.
"""

from experiments.harness.study import Settings, Study, Values
from experiments.studies import v2_fig_2


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one dimension, or what has none."""
    dealt, size = v2_fig_2.deal(v2_fig_2.C, repeat=repeat), settings["l"]
    if size == "any":
        return v2_fig_2.outside(dealt, repeat=repeat)
    return v2_fig_2.methods(dealt, size=int(size), repeat=repeat)


STUDY = Study(
    source="ODC paper's middle version, Figure 3",
    unit="accuracy, %",
    cells=[{"l": size} for size in ("any", 10, 20, 30, 40, 50, 70, 100)],
    run=run,
)
