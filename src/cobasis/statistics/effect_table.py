"""A treatment's effects for people, and how alike its groups are in the columns' own units.

With as many components as columns an aligned row z is the encoded row x times one invertible M. So
differences of means come back exactly as d_x = d_z M^-1, covariances as M^-T C M^-1: balance of all
parties' rows in raw columns, without another exchange.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cobasis.algorithms.readable import Readable, Table, named
from cobasis.errors import EstimateError
from cobasis.features.contract import Feature
from cobasis.linalg.arrays import Matrix
from cobasis.models.regressions import EffectFit, RegressionFit
from cobasis.statistics.coefficients import figure, p_value, table_of, to_raw

ALIKE = 0.1
"""Standardised differences below this are commonly taken for balance."""

_NAMES = {"doubly_robust": "doubly robust", "dml": "DML"}
_TARGETS = {
    "ATE": "ATE: of all rows but those left out.",
    "ATT": "ATT: of rows like the treated.",
    "ATO": "ATO: of all rows, where the effect is the same for all; else those count more whose "
    "propensity is near a half.",
}

_CAUSES = (
    "It is an effect only if the columns hold every cause of both treatment and outcome, which no "
    "figure here can show."
)


@dataclass(frozen=True)
class Effect:
    """One estimate of a treatment's effect: a difference of means, or of shares without event."""

    name: str  # estimator, target and horizon
    target: str  # "ATE", "ATT" or "ATO"
    horizon: float  # of a share without event; 0 of a mean
    treated: float  # were all treated
    control: float  # were none
    estimate: float
    standard_error: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, kw_only=True)
class Balance(Readable):
    """How far apart treated and control rows are in each column, before and after adjustments."""

    names: tuple[str, ...]  # the encoded columns
    adjusted: tuple[str, ...]  # "before", then each weighting and matching
    # of shape (n_adjusted, n_columns): means of treated rows less those of control rows, in raw
    # units; and over the root of the mean of both groups' variances before
    differences: Matrix = field(repr=False)
    standardised: Matrix = field(repr=False)
    sizes: Matrix = field(repr=False)  # (n_adjusted, 2): effective rows, treated and control

    def table(self) -> Table:
        words = [each.replace("weighting", "IPW").replace("ing", "") for each in self.adjusted]
        lines = zip(self.names, self.standardised.T, strict=True)
        told = (f"{one:,.0f} + {two:,.0f}" for one, two in self.sizes)
        found = [(name, *(f"{each:.3f}" for each in line)) for name, line in lines]
        names, off = np.array(self.names), np.abs(self.standardised) > ALIKE
        apart = (
            f"After {word} still apart by more than {ALIKE:g}: {named(names[far].tolist())} "
            f"[{EstimateError.code}]."
            for word, far in zip(self.adjusted[1:], off[1:], strict=True)
            if far.any()
        )
        sure = "Effective rows: so many of one weight are as sure, treated + control."
        return Table(
            title="Standardised differences of means, treated less control",
            header=("", *words),
            rows=[*found, ("effective rows", *told)],
            notes=(sure, *apart),
        )


@dataclass(frozen=True, kw_only=True)
class EffectTable(Readable):
    effects: tuple[Effect, ...]  # in the order of the agreed estimators
    balance: Balance
    # rows of treated and of control: all; left out for their propensity; and without a match
    counts: tuple[int, int]
    trimmed: tuple[int, int]
    unmatched: tuple[int, int]

    @property
    def shares(self) -> dict[str, dict[float, float]]:
        """Shares without event by target and group, at each horizon; nothing of a number."""
        found: dict[str, dict[float, float]] = {}
        for each in self.effects:
            if each.horizon:
                found.setdefault(f"{each.target}: treated", {})[each.horizon] = each.treated
                found.setdefault(f"{each.target}: control", {})[each.horizon] = each.control
        return found

    def summary(self) -> str:
        return f"{super().summary()}\n\n{self.balance.summary()}"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.balance._repr_html_()

    def table(self) -> Table:
        told = ("treated", "control", "estimate", "standard_error", "low", "high")
        targets = dict.fromkeys(each.target for each in self.effects)
        word = "share without event" if self.effects[0].horizon else "mean outcome"
        left = {"For a propensity near 0 or 1 left out": self.trimmed}
        left |= {"Without a match within the caliper": self.unmatched}
        lost = (
            "{}: {:,} treated, {:,} control rows.".format(what, *counts)
            for what, counts in left.items()
            if any(counts)
        )
        read = (
            f"Treated and control: the {word} were all treated, or none. Low and high: "
            "95 % interval, normal; errors know that propensities are estimates."
        )
        return Table(
            title="Effect of a treatment: {:,} treated and {:,} control rows".format(*self.counts),
            header=("", "treated", "control", "effect", "std err", "low", "high", "p"),
            rows=[
                (each.name, *(figure(getattr(each, name)) for name in told), p_value(each.p))
                for each in self.effects
            ],
            notes=(*map(_TARGETS.__getitem__, targets), read, *lost, _CAUSES),
        )


def effects_of(fit: RegressionFit, *, turn: Matrix, features: Sequence[Feature]) -> EffectTable:
    """Read effects, and their balance in raw columns, by M = F_i G_i, of shape (m, m)."""
    columns = table_of(fit, turn=turn, features=features).columns  # or columns depend
    found, back = fit.effects, np.linalg.inv(to_raw(turn, columns, first=0))
    if found is None:
        raise EstimateError(
            f"model='{fit.model}' estimates no effect of a treatment. Agree on task='effect'."
        )
    differences = found.differences @ back
    balance = Balance(
        names=tuple(each.name for each in columns),
        adjusted=found.adjusted,
        differences=differences,
        standardised=differences / np.sqrt(np.diag(back.T @ found.spread @ back)),
        sizes=found.sizes,
    )
    return EffectTable(
        effects=tuple(_effects(found)),
        balance=balance,
        counts=(fit.n_events, fit.n_rows - fit.n_events),
        trimmed=found.trimmed,
        unmatched=found.unmatched,
    )


def _effects(found: EffectFit) -> Iterator[Effect]:
    from scipy.stats import norm

    treated, control, errors = found.means.T
    gains, reach = treated - control, norm.ppf(0.975) * errors
    tails = 2 * norm.sf(np.abs(gains) / np.where(errors > 0, errors, np.nan))
    figures = [treated, control, gains, errors, gains - reach, gains + reach, tails]
    names = (
        f"{_NAMES.get(estimator, estimator)} {target}{f' at {horizon:g}' if horizon else ''}"
        for estimator, target, horizon in found.kinds
    )
    _, targets, horizons = zip(*found.kinds, strict=True)
    return map(Effect, names, targets, horizons, *np.stack(figures).tolist())
