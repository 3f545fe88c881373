"""DC-QE: the effect of a treatment without pooling, at small unlike sites.

{SITES} sites of {N_ROWS} people, three columns; treatment and outcome follow from all three, and
sites differ in the first, so that 28 to 63 % of a site are treated. The mean effect over all is
{ATE:g}. {DRAWS} draws a repeat. *Aligned*: our round at l = m, propensities below {TRIM:g} trimmed.
*Mean of sites*: each site's own estimate, weighted by its inverse variance, sites left out whose
groups do not overlap; *one site*: the first. *Pooled*: Hajek's estimate on all raw rows with
statsmodels' propensities, and *to pooled* the largest distance from it. *Imbalance*: the largest
standardised difference of a column, before and after weighting; of the mean of sites within each.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product

import numpy as np
import pandas as pd
import statsmodels.api as sm

from cobasis import EstimateError, Outcome, simulate
from experiments.harness.models import Table
from experiments.harness.statistics import summary
from experiments.harness.study import Study, Values, table
from experiments.harness.systems import generator

SITES, N_ROWS, DRAWS, TRIM, CLOSE = 10, 80, 10, 0.01, 1.959964
ATE = 1.0
GROWTH = {"the same for all": 0.0, "grows with the first column": 0.5}
ESTIMATORS = ("weighting ATE", "doubly robust ATE")
METHODS = ("aligned", "pooled", "mean of sites", "one site", "no adjustment")
MEASURES = ("bias", "RMSE", "coverage, %", "to pooled", "imbalance", "imbalance, weighted")
TREATED = Outcome(treatment="treated", trim=TRIM, estimators=("weighting", "doubly_robust"))


def run(*, effect: str, repeat: int) -> Values:
    rng, found = generator(repeat, 36), Values()
    drawn = [_draw(rng, growth=GROWTH[effect]) for _ in range(DRAWS)]
    for name in METHODS:
        told = np.array([each[name] for each in drawn])
        for at, estimator in enumerate(ESTIMATORS):
            off, errors = told[:, at] - ATE, told[:, 2 + at]
            inside = np.where(errors > 0, abs(off) <= CLOSE * errors, errors)
            far = abs(told[:, at] - [each["pooled"][at] for each in drawn]).max()
            measured = (off.mean(), np.mean(off**2) ** 0.5, 100 * inside.mean(), far)
            balance = () if at else told[:, 4:].mean(axis=0)  # of weights, and of no line
            for what, each in zip(MEASURES, (*measured, *balance), strict=False):
                found |= {} if np.isnan(each) else {f"{estimator}, {name}: {what}": float(each)}
    return found


def _draw(rng: np.random.Generator, *, growth: float) -> dict[str, Table]:
    """Return two estimates, their errors, and imbalance before and after, as each method has it."""
    sites = {f"site-{at}": _people(at, rng=rng, growth=growth) for at in range(SITES)}
    rows = np.vstack([each for each, _ in sites.values()])
    told = pd.concat([each for _, each in sites.values()])
    treated, value = told["treated"].to_numpy(), told["value"].to_numpy()
    kept: list[Table] = []
    for name, each in sites.items():
        with suppress(EstimateError):
            kept.append(_found({name: each}, rng=rng))
    alone = np.array(kept)
    shares = 1 / alone[:, 2:4] ** 2
    means = (shares * alone[:, :2]).sum(axis=0) / shares.sum(axis=0)
    errors, balance = shares.sum(axis=0) ** -0.5, alone[:, 4:].mean(axis=0)
    plain = value[treated > 0].mean() - value[treated == 0].mean()
    return {
        "aligned": _found(sites, rng=rng),
        "mean of sites": np.array([*means, *errors, *balance]),
        "one site": alone[0],
        "no adjustment": np.array([plain, *[np.nan] * 5]),
        "pooled": np.array([_hajek(rows, treated, value), *[np.nan] * 5]),
    }


def _people(at: int, *, rng: np.random.Generator, growth: float) -> tuple[Table, pd.DataFrame]:
    """Draw a site's people: sites differ in the first column, and so in who is treated."""
    rows = rng.normal(size=(N_ROWS, 3))
    rows[:, 0] += np.linspace(-1, 1, SITES)[at]
    rows[:, 2] = rng.random(N_ROWS) < 0.3 + 0.04 * at
    odds = -0.4 + 0.8 * rows[:, 0] + 0.5 * rows[:, 1] + 0.4 * rows[:, 2]
    treated = rng.random(N_ROWS) < 1 / (1 + np.exp(-odds))
    value = 2 + rows @ [1.5, 1.0, 0.5] + treated * (ATE + growth * rows[:, 0])
    value += rng.normal(size=N_ROWS)
    return rows, pd.DataFrame({"value": value, "treated": treated * 1.0})


def _found(sites: Mapping[str, tuple[Table, pd.DataFrame]], *, rng: np.random.Generator) -> Table:
    done = simulate(sites, rng=rng, task="effect", outcome=TREATED)
    made = next(iter(done.parties.values())).effects()
    told = {each.name: each for each in made.effects}
    largest = dict(
        zip(made.balance.adjusted, np.abs(made.balance.standardised).max(1), strict=True)
    )
    estimates = [told[name].estimate for name in ESTIMATORS]
    errors = [told[name].standard_error for name in ESTIMATORS]
    return np.array([*estimates, *errors, largest["before"], largest["weighting ATE"]])


def _hajek(rows: Table, treated: Table, value: Table) -> float:
    """Return the weighted difference of means on pooled raw rows, by statsmodels' propensities."""
    shares = sm.Logit(treated, sm.add_constant(rows)).fit(disp=0, tol=1e-12).predict()
    kept = (shares >= TRIM) & (shares <= 1 - TRIM)
    one, two = treated / shares * kept, (1 - treated) / (1 - shares) * kept
    return float(one @ value / one.sum() - two @ value / two.sum())


def analysis(values: Mapping[str, Sequence[float]]) -> list[str]:
    lines = []
    for effect, name, estimator in product(GROWTH, METHODS, ESTIMATORS):
        told = [values.get(f"{effect}/{estimator}, {name}: {what}") for what in MEASURES]
        cells = [f"{summary(each)}" if each else "" for each in told]
        lines += [[effect, name, estimator, *cells]] if told[0] else []
    return table(["effect", "rows", "estimator", *MEASURES], lines)


STUDY = Study(
    source="ours",
    unit="in units of the outcome",
    cells=[{"effect": effect} for effect in GROWTH],
    repeats=50,
    charted=("*coverage*",),
)
