"""Cox regression without pooling: bias and coverage where sites are small.

{N_ROWS:,} people with four columns (one a word of three in ten), hazards of known log ratios .8,
-.5, .3 and 0, four events in ten, dealt over 6, 20 or 40 sites; {DRAWS} draws a repeat. *Aligned*:
our round at l = m. *Pooled*: lifelines on all rows. *Mean of sites*: each site's own fit, weighted
by its inverse variance, as a meta-analysis of site estimates does; sites whose fit does not
converge are left out. *One site*: the first. C-index on {N_TEST} new people. Of normal intervals at
95 %, how many hold the truth.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines.exceptions import ConvergenceError, ConvergenceWarning
from lifelines.utils import concordance_index

from cobasis import Outcome, simulate
from experiments.harness.models import Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, table
from experiments.harness.systems import generator

TRUE = np.array([0.8, -0.5, 0.3, 0.0])
N_ROWS, N_TEST, DRAWS = 1_200, 500, 10
SITES = (6, 20, 40)
CLOSE = 1.959964
EVENT = Outcome(event="event")


def run(*, sites: int, repeat: int) -> Values:
    found: Values = {}
    drawn = [*_drawn(sites, rng=generator(repeat, 34))]
    for name in drawn[0]:
        told = [each[name] for each in drawn]
        estimates = np.array([each[0] for each in told])
        errors = np.array([each[1] for each in told])
        inside = np.abs(estimates - TRUE) <= CLOSE * errors
        found[f"bias of log hazard ratio .8, %, {name}"] = float(
            100 * (estimates[:, 0].mean() / TRUE[0] - 1)
        )
        found[f"coverage of 95 %, {name}"] = float(100 * inside.mean())
        found[f"C-index, {name}"] = float(100 * np.mean([each[2] for each in told]))
    return found


def _drawn(sites: int, *, rng: np.random.Generator) -> Iterator[dict[str, tuple[Any, Any, float]]]:
    """Yield of each draw every method's estimates, their errors, and the C-index on new rows."""
    for _ in range(DRAWS):
        rows, labels = _people(N_ROWS, rng=rng)
        parties = {
            f"site-{at}": (
                rows[at::sites],
                labels.iloc[at::sites].rename(columns={"time": "value"}),
            )
            for at in range(sites)
        }
        done = simulate(parties, rng=rng, task="survival", outcome=EVENT)
        lines = done.parties["site-0"].coefficients().lines
        test, truth = _people(N_TEST, rng=rng)
        own = [
            *filter(None, (_fit(rows[at::sites], labels.iloc[at::sites]) for at in range(sites)))
        ]
        shares = np.array([1 / errors**2 for _, errors in own])
        told = {
            "aligned": (
                np.array([each.estimate for each in lines]),
                np.array([each.standard_error for each in lines]),
            ),
            "pooled": _fit(rows, labels),
            "mean of sites": (
                np.sum([each * share for (each, _), share in zip(own, shares, strict=True)], axis=0)
                / shares.sum(axis=0),
                shares.sum(axis=0) ** -0.5,
            ),
            "one site": own[0],
        }
        yield {
            name: (*each, concordance_index(truth["time"], -test @ each[0], truth["event"]))
            for name, each in told.items()
            if each
        }


def _people(n: int, *, rng: np.random.Generator) -> tuple[Table, pd.DataFrame]:
    """Draw columns, and times of which four in ten end with an event."""
    rows = rng.normal(size=(n, len(TRUE)))
    rows[:, 2] = rng.random(n) < 0.3
    time, end = rng.exponential(np.exp(-rows @ TRUE)), rng.exponential(0.7, n)
    return rows, pd.DataFrame({"time": np.minimum(time, end), "event": (time <= end) * 1.0})


def _fit(rows: Table, labels: pd.DataFrame) -> tuple[Table, Table] | None:
    """Fit by lifelines; nothing of rows that determine no estimate."""
    frame = pd.DataFrame(rows).join(labels.reset_index(drop=True))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            fit = CoxPHFitter().fit(frame, "time", "event")
    except (ConvergenceError, ConvergenceWarning, np.linalg.LinAlgError):
        return None
    return fit.params_.to_numpy(), fit.standard_errors_.to_numpy()


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    lines = [
        [f"{sites}", name, *(f"{summary(values[f'{sites}/{what}, {name}'])}" for what in MEASURES)]
        for sites in SITES
        for name in ("aligned", "pooled", "mean of sites", "one site")
        if f"{sites}/{MEASURES[0]}, {name}" in values
    ]
    return table(["sites", "method", *MEASURES], lines)


MEASURES = ("bias of log hazard ratio .8, %", "coverage of 95 %", "C-index")
STUDY = Study(
    source="ours",
    unit="%",
    cells=[{"sites": sites} for sites in SITES],
    repeats=20,
    charted=("coverage of 95 %, *",),
)
