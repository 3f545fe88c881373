"""Figure 4: break-even rounds over rows and parameters.

Above R* federated rounds one round of ours has taken less. 100 parties, 784 features, l = 100,
anchor of 1,000 rows, a copy sent to each. Open in the paper: the ranges. As models grow, R* goes to
1 / (2p), not to 0: the return holds the model once.
"""

from typing import Any

from experiments.harness.study import Study, Values
from experiments.studies.traffic import exchange

SHARES = (0.1, 0.25, 0.5, 1.0)


def run(**settings: Any) -> Values:
    size = exchange(n_rows=settings["rows a party"], n_parameters=settings["parameters"])
    return {"R*": size.break_even(settings["share taking part"])}


STUDY = Study(
    source="ODC paper, Figure 4; the paper prints colours only",
    unit="federated rounds R*",
    cells=[
        {"share taking part": share, "rows a party": rows, "parameters": parameters}
        for share in SHARES
        for rows in (100, 1_000, 10_000, 100_000)
        for parameters in (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
    ],
    exact=True,
)
