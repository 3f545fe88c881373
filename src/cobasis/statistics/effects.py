"""Effects of a treatment on aligned rows, by their propensity, in whatever frame the rows are.

The propensity is a logistic regression on all columns without a penalty, outcomes are linear in
each group, and matches are near in the propensity alone: so an invertible change of frame changes
no figure. Errors are those of estimators stacked on the propensity model; matching's are Abadie and
Imbens' (2006), with what an estimated propensity changes in them (2016).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cobasis.errors import EstimateError
from cobasis.features.outcome import EffectName, Outcome, Records, part_of
from cobasis.linalg.arrays import Array, Mask, Matrix
from cobasis.models.regressions import BEFORE, EffectFit, Kind, RegressionFit, Target
from cobasis.models.tuning import folds
from cobasis.statistics.regression import DEPENDENT, fit_regression

FEWEST = 10
"""So many rows more than columns each group needs where propensities overlap."""

_NEAR = 4
"""Rows of a group near in propensity that conditional variances are told from, at least."""

_GRID = 1e-9
"""Logits as near as this are one: rows that are alike in one frame stay so in all, and tie."""

_BY_PROPENSITY: tuple[Target, ...] = ("ATE", "ATT")

Told = tuple[Target, float, Any, Any, Any]
"""Target, horizon, the means of treated and of control rows, and their difference's variance."""


class _Study:
    """Rows, who of them was treated and how likely that was, and a design that no frame changes."""

    def __init__(
        self, rows: Matrix, labels: Records, *, outcome: Outcome, seed: int, fit: RegressionFit
    ) -> None:
        self.rows, self.outcome, self.seed = rows, outcome, seed
        self.treated = np.asarray(part_of(labels, "treatment")) > 0
        self.value = np.asarray(part_of(labels), dtype=np.float64)
        self.event = part_of(labels, "event")
        whole = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[0]
        self.design = np.column_stack([np.ones(len(rows)), whole * len(rows) ** 0.5])
        self.logits = fit.weights[0] + self.rows @ fit.weights[1:]
        self.places = np.round(self.logits / _GRID).astype(np.int64)  # whose distances are exact
        self.shares = shares = 1 / (1 + np.exp(-self.logits))
        spread = (shares * (1 - shares))[:, None] * self.design
        self.bread = np.linalg.inv(self.design.T @ spread)  # their model's inverse information
        # each row's influence on that model's weights
        self.nuisance = (self.treated - shares)[:, None] * self.design @ self.bread
        self.kept = (shares >= self.outcome.trim) & (shares <= 1 - self.outcome.trim)

    def arm(self, group: int) -> Mask:
        return np.asarray(self.kept & (self.treated == group))


def fit_effects(rows: Matrix, labels: Records, *, outcome: Outcome, seed: int) -> RegressionFit:
    """Estimate a treatment's effects from aligned rows, by the agreed estimators; folds by seed."""
    treated = np.asarray(part_of(labels, "treatment")) > 0
    fit = _propensity(rows, treated)
    if fit.dependent.shape[1]:
        return fit
    study = _Study(rows, labels, outcome=outcome, seed=seed, fit=fit)
    _refuse(study)
    made = [(name, each) for name in outcome.estimators for each in _ESTIMATORS[name](study)]
    kinds: list[Kind] = [(name, *each[:2]) for name, each in made]
    found = np.array([each[2:] for _, each in made])
    designs = {BEFORE: np.ones(len(rows))}  # the rows' weights, then those of each adjustment
    for target in _BY_PROPENSITY * ("weighting" in outcome.estimators):
        designs[f"weighting {target}"], _ = _weights(study, target)
    for target in _BY_PROPENSITY * ("matching" in outcome.estimators):
        designs[f"matching {target}"] = _pairs(study, target).used
    arms = [(each * treated, each * ~treated) for each in designs.values()]
    alone = study.kept & ~_pairs(study, "ATE").matched & ("matching" in outcome.estimators)
    return replace(
        fit,
        effects=EffectFit(
            kinds=tuple(kinds),
            trimmed=_by_group(~study.kept, treated),
            unmatched=_by_group(alone, treated),
            adjusted=tuple(designs),
            means=np.column_stack([found[:, :2], np.maximum(found[:, 2], 0.0) ** 0.5]),
            differences=np.array([a @ rows / a.sum() - b @ rows / b.sum() for a, b in arms]),
            # so many rows of one weight are as sure (Kish)
            sizes=np.array([[each.sum() ** 2 / (each @ each) for each in pair] for pair in arms]),
            spread=np.atleast_2d(np.cov(rows[treated].T) + np.cov(rows[~treated].T)) / 2,
        ),
    )


def _by_group(rows: Mask, treated: Mask) -> tuple[int, int]:
    return int(np.sum(rows & treated)), int(np.sum(rows & ~treated))


def _propensity(rows: Matrix, treated: Mask) -> RegressionFit:
    """Fit the odds of treatment; refuse groups that columns tell apart."""
    _need_enough(treated, ~treated, n_columns=rows.shape[1])
    told, nothing = treated.astype(np.float64), Outcome()
    try:
        found = fit_regression(rows, told, model="logit", outcome=nothing, owners=treated)
    except EstimateError as error:
        raise EstimateError(
            f"in {len(rows):,} rows columns tell treated and control apart: propensities come to 0 "
            "or 1. Agree on rows that could have had either, or leave out the column that decides "
            "it; 'dml' learns from four fifths of the rows, where a rare level may decide it."
        ) from error
    return replace(found, model="effect")


def _need_enough(*groups: Mask, n_columns: int, trim: float = 0.0) -> None:
    counts, least = [int(each.sum()) for each in groups], n_columns + FEWEST
    if min(counts) < least:
        raise EstimateError(
            f"{counts[0]} treated and {counts[1]} control rows have a propensity from {trim:g} to "
            f"{1 - trim:g}, and {least} of each are needed; 'dml' has four fifths of them. Look at "
            "the column of the treatment, and agree on rows that could have had either, or on "
            "fewer columns."
        )


def _refuse(study: _Study) -> None:
    left, outcome = [study.arm(group) for group in (1, 0)], study.outcome
    _need_enough(*left, n_columns=study.rows.shape[1], trim=outcome.trim)
    event = study.value if study.event is None else study.event
    if not np.ptp(study.value[study.kept]) or not event[study.kept].any():
        raise EstimateError(
            "the outcome is one number in all rows, or no row has an event. Look at the columns of "
            "labels."
        )
    followed = min(study.value[each].max() for each in left)
    if max(outcome.horizons, default=0.0) > followed:
        raise EstimateError(
            f"one of the groups was followed for {followed:g} at most, and the horizon "
            f"{max(outcome.horizons):g} lies beyond. Agree on an earlier one."
        )


# ---------------------------------------------------------------- weighting


def _weights(study: _Study, target: Target) -> tuple[Array, Array]:
    """Return the rows' weights, and their slopes in the log-odds."""
    odds, base = np.exp(study.logits), 1.0 * (target == "ATE")
    weights = np.where(study.treated, 1 + base / odds, base + odds)
    return study.kept * weights, study.kept * np.where(study.treated, -base / odds, odds)


def _weighting(study: _Study) -> Iterator[Told]:
    """Compare weighted means (Hajek), or shares without event (Kaplan-Meier)."""
    for target in _BY_PROPENSITY:
        for horizon in study.outcome.horizons or (0.0,):
            means, influence = [], np.zeros(len(study.rows))
            weights, slopes = _weights(study, target)
            for sign, mine in ((1, study.treated), (-1, ~study.treated)):
                own = weights * mine
                mean, by_weight = (_share if horizon else _mean)(study, own, horizon)
                means.append(mean)
                through = study.nuisance @ ((slopes * mine * by_weight) @ study.design)
                influence += sign * (own * by_weight + through)
            yield target, horizon, means[0], means[1], influence @ influence


def _mean(study: _Study, weights: Array, _: float) -> tuple[float, Array]:
    """Return a weighted mean, and its slope in each row's weight."""
    mean = float(weights @ study.value / weights.sum())
    return mean, (study.value - mean) / weights.sum()


def _share(study: _Study, weights: Array, horizon: float) -> tuple[float, Array]:
    """Return the share without event at a horizon, and its slope in each row's weight."""
    time = study.value
    dead = (np.asarray(study.event) > 0) & (weights > 0) & (time <= horizon)
    times, place = np.unique(time[dead], return_inverse=True)
    order = np.argsort(time)
    before = np.concatenate([[0.0], np.cumsum(weights[order])])
    at_risk = before[-1] - before[np.searchsorted(time[order], times)]
    left = np.maximum(at_risk - np.bincount(place, weights[dead], len(times)), 0.0)
    share = float(np.prod(left / at_risk))
    if not share:  # nobody is left, whatever the weights
        return share, np.zeros(len(time))
    # of a sum of log(left / at_risk): both grow with a row's weight, left not with that of a death
    lost = np.concatenate([[0.0], np.cumsum(1 / left - 1 / at_risk)])
    slope = lost[np.searchsorted(times, time, "right")]
    slope[dead] -= (1 / left)[place]
    return share, share * slope


# ---------------------------------------------------------------- matching


class _Pairs(NamedTuple):
    """The nearest rows of the other group, all of those that tie."""

    matched: Mask  # of the target's rows, which have any
    other: Array  # the mean outcome of a row's matches
    used: Array  # how often a row counts: as itself, and as others' match
    squares: Array  # its squared shares in others' matches


def _pairs(study: _Study, target: Target) -> _Pairs:
    """Match rows with replacement by the log-odds of their propensity, within the caliper."""
    places = study.places
    reach = study.outcome.caliper * study.logits[study.kept].std() / _GRID
    other, counts, squares, ties = np.zeros((4, len(places)))
    for group in (1, 0) if target == "ATE" else (1,):
        mine, theirs = np.flatnonzero(study.arm(group)), np.flatnonzero(study.arm(1 - group))
        known, codes, sizes = np.unique(places[theirs], return_inverse=True, return_counts=True)
        right = np.searchsorted(known, places[mine])
        sides = np.stack([np.maximum(right - 1, 0), np.minimum(right, len(known) - 1)])
        apart = np.abs(known[sides] - places[mine])
        near = (apart == apart.min(axis=0)) & (apart <= reach)
        near[1] &= sides[0] != sides[1]
        ties[mine] = (near * sizes[sides]).sum(axis=0)
        share = near / np.maximum(ties[mine], 1)
        other[mine] = (share * np.bincount(codes, study.value[theirs])[sides]).sum(axis=0)
        counts[theirs] += np.bincount(sides.ravel(), share.ravel(), len(known))[codes]
        squares[theirs] += np.bincount(sides.ravel(), share.ravel() ** 2, len(known))[codes]
    return _Pairs(ties > 0, other, (ties > 0) + counts, squares)


def _local(study: _Study, group: int) -> tuple[Array, Array, Array]:
    """Return, of a group's rows near each row, mean, variance, and covariance with columns.

    Near are the nearest four, and all that are no farther: of rows that tie, none is chosen.
    """
    mine = np.flatnonzero(study.arm(group))
    mine = mine[np.argsort(study.places[mine], kind="stable")]
    points, off = study.places[mine], study.value - study.value.mean()
    around = np.searchsorted(points, study.places)[:, None] + np.arange(-_NEAR, _NEAR)
    apart = np.abs(points[np.clip(around, 0, len(mine) - 1)] - study.places[:, None])
    apart[(around < 0) | (around >= len(mine))] = np.iinfo(np.int64).max
    reach = np.partition(apart, _NEAR - 1, axis=1)[:, _NEAR - 1]
    first = np.searchsorted(points, study.places - reach)
    last = np.searchsorted(points, study.places + reach, "right")
    design, own = study.design[mine], off[mine, None]
    sums = np.cumsum(np.hstack([own, own**2, design, own * design]), axis=0)
    sums = np.vstack([np.zeros((1, sums.shape[1])), sums])
    found, count, width = sums[last] - sums[first], (last - first)[:, None], design.shape[1]
    mean = found[:, :1] / count
    variance = np.maximum(found[:, 1:2] - count * mean**2, 0.0) / (count - 1)
    along = (found[:, 2 + width :] - mean * found[:, 2 : 2 + width]) / (count - 1)
    return mean[:, 0], variance[:, 0], along


def _matching(study: _Study) -> Iterator[Told]:
    mean_1, variance_1, along_1 = _local(study, 1)
    mean_0, variance_0, along_0 = _local(study, 0)
    treated, shares, design = study.treated, study.shares, study.design
    for target in _BY_PROPENSITY:
        found = _pairs(study, target)
        count = int(found.matched.sum())
        if not count:
            raise EstimateError(
                f"no row has one of the other group within the caliper {study.outcome.caliper:g}. "
                "Agree on a wider one, or leave out matching."
            )
        both = np.where(treated, [study.value, found.other], [found.other, study.value])
        one, two = both[:, found.matched].mean(axis=1)
        gains = (both[0] - both[1] - (one - two))[found.matched]
        # a row counts `used` times, which its own gain and its matches' tell in part
        more = found.used**2 - found.matched - found.squares
        variance = (gains @ gains + more @ np.where(treated, variance_1, variance_0)) / count**2
        # An estimated propensity balances columns better than the true one does.
        if target == "ATE":
            slopes = (1 - shares)[:, None] * along_1 + shares[:, None] * along_0
            along = slopes[study.kept].mean(axis=0)
        else:
            weighed = study.kept * shares * (1 - shares) / shares[study.kept].sum()
            local = (mean_1 - mean_0 - (one - two))[:, None] * design
            along = weighed @ (local + along_1 + (shares / (1 - shares))[:, None] * along_0)
            lines = [design @ _line(study, study.arm(group)) for group in (1, 0)]
            moved = (weighed * (lines[0] - lines[1] - (one - two))) @ design
            variance += moved @ study.bread @ moved
        less = along @ study.bread @ along  # of few rows it may leave nothing
        yield target, 0.0, one, two, variance - less * (less < variance)


# ---------------------------------------------------------------- outcome models


def _line(study: _Study, rows: Mask) -> Array:
    found, _, rank, _ = np.linalg.lstsq(study.design[rows], study.value[rows], rcond=DEPENDENT)
    if rank < study.design.shape[1]:
        raise EstimateError(
            f"in {int(rows.sum())} rows of a group or a fold columns depend on each other. Leave "
            "out a column, or merge rare levels."
        )
    return np.asarray(found)


def _doubly_robust(study: _Study) -> Iterator[Told]:
    """Correct lines of both groups by weighted residuals (augmented inverse propensity)."""
    design, odds, count = study.design, np.exp(study.logits), int(study.kept.sum())
    means, influence = [], np.zeros(len(study.rows))
    for group, sign in ((1, 1), (0, -1)):
        mine, odd = study.arm(group), odds if group else 1 / odds
        line = design @ _line(study, mine)
        missed = mine * (study.value - line)
        told = study.kept * line + (1 + 1 / odd) * missed
        means.append(told.sum() / count)
        # the mean's slopes in the weights of this line, and of the propensity
        by_line = (study.kept - mine * (1 + 1 / odd)) @ design
        by_odds = (-sign * missed / odd) @ design
        inverse = np.linalg.inv(design[mine].T @ design[mine])
        influence += sign * study.kept * (told - means[-1])
        influence += sign * (missed * (design @ inverse @ by_line) + study.nuisance @ by_odds)
    yield "ATE", 0.0, means[0], means[1], influence @ influence / count**2


def _double_learning(study: _Study) -> Iterator[Told]:
    """Take out of treatment and outcome what columns tell of them, fold by fold."""
    places = np.flatnonzero(study.kept)
    treated, value = study.treated[places], study.value[places]
    apart, missed = np.zeros((2, len(places)))
    for learned, rest in folds(treated, task="classification", seed=study.seed):
        own, at = places[learned], places[rest]
        fit = _propensity(study.rows[own], study.treated[own])
        line = _line(study, np.isin(np.arange(len(study.rows)), own))  # raises for dependence
        logits = fit.weights[0] + study.rows[at] @ fit.weights[1:]
        apart[rest] = treated[rest] - 1 / (1 + np.exp(-logits))
        missed[rest] = value[rest] - study.design[at] @ line
    mean = float(apart @ missed / (apart @ apart))
    influence = apart * (missed - mean * apart) / (apart @ apart)
    base = float(value.mean() - mean * treated.mean())
    yield "ATO", 0.0, base + mean, base, influence @ influence


_ESTIMATORS: dict[EffectName, Callable[[_Study], Iterator[Told]]] = {
    "weighting": _weighting,
    "matching": _matching,
    "doubly_robust": _doubly_robust,
    "dml": _double_learning,
}
