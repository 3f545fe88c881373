"""Seed 002, Figure 6: alignment time over the size of the anchor."""

from experiments.harness.study import Settings, Study, Values
from experiments.studies.v2_fig_4 import HOW, TIMES, C, L, measured


def run(settings: Settings, *, repeat: int) -> Values:
    """Measure one anchor size."""
    return measured(a=int(settings["a"]), repeat=repeat)


STUDY = Study(
    title="Middle version, Figure 6: alignment time over anchor rows",
    source="ODC paper's middle version, Figure 6",
    settings=f"l = {L}, c = {C}. {HOW}",
    unit="seconds, or times ODC's",
    cells=[{"a": rows} for rows in (1000, 4000, 10_000, 16_000, 22_000, 31_000, 40_000)],
    run=run,
    repeats=3,
    more=False,
    times=TIMES,
)
