"""Seed 002, Figure 3: accuracy over the latent dimension, where all spans agree."""

from experiments.harness.study import Settings, Study, Values
from experiments.studies.v2_fig_2 import OPEN, C, deal, methods, outside


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one dimension, or what has none."""
    dealt, size = deal(C, repeat=repeat), settings["l"]
    if size == "any":
        return outside(dealt, repeat=repeat)
    return methods(dealt, size=int(size), repeat=repeat)


STUDY = Study(
    title="Middle version, Figure 3: accuracy over dimensions",
    source="ODC paper's middle version, Figure 3",
    settings=(
        f"c = {C}. {OPEN} The figure prints no numbers; its text says that accuracy settles at "
        "about l = 50."
    ),
    unit="accuracy, %",
    cells=[{"l": size} for size in ("any", 10, 20, 30, 40, 50, 70, 100)],
    run=run,
)
