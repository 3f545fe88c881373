"""Seed 002, Figure 5: alignment time over the latent dimension."""

from experiments.studies.v2_fig_4 import over

STUDY = over("l", (50, 100, 150, 200, 300, 400, 500), figure=5, what="dimensions")
