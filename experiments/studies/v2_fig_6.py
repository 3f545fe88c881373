"""Middle version, Figure 6: alignment time over anchor rows.

l = 50, c = 50. {v2_fig_4.HOW}
"""

from experiments.studies import v2_fig_4

run = v2_fig_4.run
LEVELS = (1000, 4000, 10_000, 16_000, 22_000, 31_000, 40_000)
STUDY = v2_fig_4.over("a", LEVELS, figure=6)
