"""Seed 002, Figure 6: alignment time over the size of the anchor."""

from experiments.studies.v2_fig_4 import over

LEVELS = (1000, 4000, 10_000, 16_000, 22_000, 31_000, 40_000)
STUDY = over("a", LEVELS, figure=6, what="anchor rows")
