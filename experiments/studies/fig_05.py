"""Figure 5: break-even rounds over parameters, by participation.

100 parties of 1,000 rows, 784 features, l = 100, anchor of 1,000 rows. The paper sends the anchor
to each party; cobasis makes it from a secret that is shared once.
"""

from typing import Any

from experiments.harness.study import Study, Values
from experiments.studies.traffic import COPIES, SECRET, exchange

ANCHORS = {"anchor sent": COPIES, "anchor from a secret": SECRET}


def run(**settings: Any) -> Values:
    return {
        name: exchange(anchor=anchor, n_parameters=settings["parameters"]).break_even(
            settings["share taking part"]
        )
        for name, anchor in ANCHORS.items()
    }


STUDY = Study(
    source="ODC paper, Figure 5; the paper prints the curves only",
    unit="federated rounds R*",
    cells=[
        {"share taking part": share, "parameters": parameters}
        for share in (0.1, 0.25, 0.5, 0.75, 1.0)
        for parameters in (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
    ],
    exact=True,
)
