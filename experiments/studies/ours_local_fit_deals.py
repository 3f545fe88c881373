"""Local fit: whether 20 deals can tell that it is worse than a hospital's own model.

The 20 deals of heart disease in `ours_local_fit` are the first here; Long Beach alone is judged, as
it alone was more than a point below: 200 patients, 149 ill, 40 held back; log loss in brackets.
Bounds are 95 %: *of deals*, what more deals of these patients could change; *of people*, what other
patients could, corrected for rows that deals share.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.harness.study import table
from experiments.studies import ours_local_fit as first

run = partial(first.run, only="va")


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    shown, lines = (*first.OTHERS, "local"), []
    for place in (key.removesuffix("/rows") for key in values if key.endswith("/rows")):
        found = {what: np.array(values[f"{place}/{what}/points"]) for what in shown}
        lost = {what: np.mean(values[f"{place}/{what}/log loss"]) for what in shown}
        mean, least = first.corrected(more := found["local"] - found["alone"])
        deals = (mean - least) / np.sqrt(1 + first.SHARE * len(more))
        told = f"{mean:+.2f} ± {deals:.2f} of deals, ± {mean - least:.1f} of people"
        means = (f"{found[what].mean():.1f} ({lost[what]:.3f})" for what in shown)
        parts = (f"{part.mean():+.2f}" for part in (more[:20], more[20:]))
        lines.append([place.split("/")[2], *means, told, *parts])
    return table(["model", *shown, "local minus alone", "first 20 deals", "the others"], lines)


STUDY = replace(first.STUDY, cells=first.STUDY.cells[:3], repeats=200)  # of heart disease
