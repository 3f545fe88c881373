"""Seed 002, Figure 5: alignment time over the latent dimension."""

from experiments.harness.study import Settings, Study, Values
from experiments.studies.v2_fig_4 import HOW, TIMES, A, C, measured


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one dimension."""
    return measured(l=int(settings["l"]), repeat=repeat)


STUDY = Study(
    title="Middle version, Figure 5: alignment time over dimensions",
    source="ODC paper's middle version, Figure 5",
    settings=f"a = {A}, c = {C}. {HOW}",
    unit="seconds, or times ODC's",
    cells=[{"l": size} for size in (50, 100, 150, 200, 300, 400, 500)],
    run=run,
    repeats=3,
    more=False,
    times=TIMES,
)
