"""Seed 002, Figure 3: accuracy over the latent dimension, where all spans agree."""

from experiments.harness.study import Settings, Study, Values
from experiments.studies.v2_fig_2 import OPEN, C, methods, outside, setting

DIMENSIONS = (10, 20, 30, 40, 50, 70, 100)


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one dimension, or what has none."""
    if settings["l"] == "any":
        return outside(setting(n_parties=C, n_components=1, repeat=repeat))
    return methods(setting(n_parties=C, n_components=int(settings["l"]), repeat=repeat))


STUDY = Study(
    title="Middle version, Figure 3: accuracy over dimensions",
    source="ODC paper's middle version, Figure 3",
    settings=(
        f"c = {C}. {OPEN} The figure prints no numbers; its text says that accuracy settles at "
        "about l = 50."
    ),
    unit="accuracy, %",
    cells=[{"l": "any"}, *({"l": size} for size in DIMENSIONS)],
    run=run,
)
