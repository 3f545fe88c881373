"""Local fit: whether 20 deals can tell that it is worse than a hospital's own model.

Heart disease as in `ours_local_fit`, whose 20 deals are the first here: four hospitals, of which
Long Beach alone is judged, as it alone was more than a point below. It has 200 patients, 149 of
them ill; each deal holds 40 back. Bounds are 95 %: *of deals* is what more deals of these patients
could change; *of people*, what other patients could, corrected for rows that deals share.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from experiments.harness.study import Study, Values, table
from experiments.studies.ours_local_fit import STUDY as FIRST
from experiments.studies.ours_local_fit import corrected
from experiments.studies.ours_local_fit import run as measured

DEALS = 20  # of the study whose finding is tried here


def run(*, data: str, parties: str, model: str, repeat: int) -> Values:
    return measured(data=data, parties=parties, model=model, repeat=repeat, only="va")


def analysis(values: Mapping[str, list[float]]) -> list[str]:
    lines = []
    for party in (each.removesuffix("/local/points") for each in values if "/local/" in each):
        local, alone, together = (
            np.array(values[f"{party}/{what}/points"]) for what in ("local", "alone", "together")
        )
        more, count = local - alone, len(local)
        mean, least = corrected(more)
        deals = stats.t.ppf(0.975, count - 1) * np.std(more, ddof=1) / np.sqrt(count)
        told = f"{mean:+.2f} ± {deals:.2f} of deals, ± {mean - least:.1f} of people"
        parts = (f"{np.mean(part):+.2f}" for part in (more[:DEALS], more[DEALS:]))
        means = (f"{np.mean(each):.1f}" for each in (together, alone, local))
        lines.append([party.split("/")[2], *means, told, *parts])
    head = ["model", "together", "alone", "local", "local minus alone"]
    return table([*head, f"first {DEALS} deals", "the others"], lines)


STUDY = Study(
    source="ours",
    unit="accuracy, %; log loss",
    cells=[cell for cell in FIRST.cells if cell["data"] == "heart disease"],
    repeats=200,
    charted=(),
)
