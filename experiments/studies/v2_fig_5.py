"""Middle version, Figure 5: alignment time over dimensions.

a = 1000, c = 50. {v2_fig_4.HOW}
"""

from experiments.studies import v2_fig_4

run = v2_fig_4.run
STUDY = v2_fig_4.over("l", (50, 100, 150, 200, 300, 400, 500), figure=5)
