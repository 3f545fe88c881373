"""A regression table in the columns' own units, from a fit in the frame of the aligned rows.

With as many components as columns an aligned row z is the encoded row x times one invertible M,
the same for all parties. So x'beta = z'gamma for beta = M gamma: coefficients, and with them
their covariance M C M', come back exactly at parties, which know M; the analyst does not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from itertools import compress, product
from math import prod
from typing import ClassVar

import numpy as np

from cobasis.algorithms.readable import Readable, Table, named
from cobasis.errors import EstimateError, OptionError, ShapeError
from cobasis.features.contract import Feature, NumericFeature
from cobasis.features.encoder import EncodedColumn, encoded_columns
from cobasis.features.outcome import Errors
from cobasis.linalg.arrays import Matrix
from cobasis.models import RegressionName
from cobasis.models.regressions import Estimates, Figures, RegressionFit

INTERCEPT, ALL = "(intercept)", "all columns"
_LOGIT = ("odds ratio", "of class {}")
_NAMES: Mapping[RegressionName, tuple[str, str, str]] = {
    "ols": ("Linear regression", "coefficient", ""),
    "logit": ("Logistic regression", *_LOGIT),
    "firth": ("Logistic regression, Firth's penalty", *_LOGIT),
    "poisson": ("Poisson regression", "rate ratio", ""),
    "negative_binomial": ("Negative binomial regression", "rate ratio", ""),
    "cox": ("Cox regression", "hazard ratio", "events"),
    "effect": ("Propensity of treatment", "odds ratio", "treated"),
}
"""What a table is called, what it tells of a column, and what is counted in it besides rows."""

_ERRORS: Mapping[Errors, str] = {
    "model": "by the model",
    "robust": "robust (sandwich)",
    "party": "robust, by party",
}

_ZERO = 1e-4
"""Below this share of the largest, an entry of a dependence is rounding, of float32 rows too."""

_LEAST = 0.001
"""Smaller p-values are written as smaller than this, as journals do."""

_NEAR_ONE = 1e-3
"""A ratio that is as near to 1, as of a single unit of an income, is written to 7 digits."""


@dataclass(frozen=True)
class Across:
    """One coefficient over parties whose own ones differ: random effects (DerSimonian, Laird)."""

    mean: float
    standard_error: float
    tau_squared: float  # the variance of parties' true coefficients
    i_squared: float  # the share of parties' differences that chance does not explain
    estimates: Mapping[str, tuple[float, float]]  # each party's own, and its standard error


@dataclass(frozen=True)
class Line:
    """One column's coefficient, per unit of the raw column; of a word, against the base."""

    name: str
    estimate: float
    standard_error: float
    low: float
    high: float
    statistic: float  # t for least squares, else z
    p: float
    across: Across | None = None

    @property
    def ratio(self) -> tuple[float, float, float]:
        with np.errstate(over="ignore"):
            middle, low, high = np.exp([self.estimate, self.low, self.high]).tolist()
        return middle, low, high


@dataclass(frozen=True, kw_only=True)
class WaldTest:
    names: tuple[str, ...]
    statistic: float  # F for least squares, else chi-squared
    free: tuple[int, ...]  # of F two, of chi-squared one
    p: float


@dataclass(frozen=True, kw_only=True)
class CoefficientTable(Figures, Readable):
    lines: tuple[Line, ...]  # the intercept first where there is one; then columns in their order
    covariance: Matrix = field(repr=False)  # q x q, of the estimates
    columns: tuple[EncodedColumn, ...] = field(repr=False)
    likely: str = "1"  # the class whose odds are told, of a logistic regression
    # of a Cox model: the share without event at each agreed horizon, of the row of reference
    shares: Mapping[float, float] = field(default_factory=dict)
    reference: ClassVar = "a row at every centre, first knot and base"

    @property
    def effect(self) -> str:
        return _NAMES[self.model][1]

    def wald(self, *names: str) -> WaldTest:
        from scipy.special import chdtrc, fdtrc

        known = [{line.name} for line in self.lines]
        first = len(known) - len(self.columns)
        for own, column in zip(known[first:], self.columns, strict=True):
            own.add(column.feature.name)
        if unknown := {*names}.difference(*known):
            raise OptionError(
                f"no line is called '{unknown.pop()}'; there are "
                f"{', '.join(repr(each.name) for each in self.lines)}. Name one of these."
            )
        asked = {*names} or {line.name for line in self.lines[first:]}
        places = [at for at, own in enumerate(known) if own & asked]
        some = np.array([self.lines[place].estimate for place in places])
        spread = np.sqrt(np.diag(self.covariance)[places])
        alike = self.covariance[np.ix_(places, places)] / np.outer(spread, spread)
        count = len(places)
        if np.linalg.matrix_rank(alike, hermitian=True) < count:
            raise EstimateError(
                f"{count} coefficients cannot be tested together: errors by party have no more "
                "directions than parties. Test fewer at a time."
            )
        found = float(some / spread @ np.linalg.solve(alike, some / spread))
        told = tuple(self.lines[place].name for place in places)
        if self.model == "ols":
            found, free = found / count, (count, self.free)
            return WaldTest(names=told, statistic=found, free=free, p=float(fdtrc(*free, found)))
        p = float(chdtrc(count, found))
        return WaldTest(names=told, statistic=found, free=(count,), p=p)

    @property
    def tests(self) -> Mapping[str, WaldTest]:
        """Of all columns, and of each that has several lines: whether they are zero together."""
        lines = Counter(each.feature.name for each in self.columns)
        several = [name for name, count in lines.items() if 1 < count < lines.total()]
        found = {}
        for name in [ALL] * (len(self.columns) > 1) + several:
            with suppress(EstimateError):  # of errors by party, which may be too few directions
                found[name] = self.wald(*() if name == ALL else (name,))
        return found

    def table(self) -> Table:
        name, _, word = _NAMES[self.model]
        counted = f", {self.n_events:,} {word.format(self.likely)}" if word else ""
        ratio, header = self.model != "ols", ["", "estimate", "std err"]
        header += ["ratio"] * ratio + ["low", "high", "p"] + ["I2"] * bool(self.lines[0].across)
        found = []
        for each in self.lines:
            interval = each.ratio if ratio else (each.low, each.high)
            figures = map(figure, (each.estimate, each.standard_error, *interval))
            alike = [f"{100 * each.across.i_squared:.0f} %"] if each.across else []
            found.append((each.name, *figures, p_value(each.p), *alike))
        title = f"{name}: {self.n_rows:,} rows{counted}"
        return Table(title=title, header=tuple(header), rows=found, notes=self._notes())

    def _notes(self) -> tuple[str, ...]:
        of = f"of the {self.effect}, " if self.model != "ols" else ""
        quantile = f"t with {self.free:,} degrees of freedom" if self.model == "ols" else "normal"
        told = [
            f"Low and high: 95 % interval {of}{quantile}.",
            f"Standard errors {_ERRORS[self.errors]}.",
            f"Log-likelihood: {self.log_likelihood:.6g}.",
            f"Without any column: {self.null_log_likelihood:.6g}.",
        ]
        if self.model in {"ols", "negative_binomial"}:
            word = "Variance of residuals" if self.model == "ols" else "Alpha"
            told.append(f"{word}: {self.dispersion:.6g}.")
        test_of, kind = ("F", "F") if self.model == "ols" else ("Wald", "chi-squared")
        for name, test in self.tests.items():
            free = ", ".join(f"{one:,}" for one in test.free)
            statistic = f"{kind}({free}) = {figure(test.statistic)}"
            told.append(f"{test_of} test of {name}: {statistic}, p {p_value(test.p)}.")
        if self.shares:
            found = (f"{share:.3f} at {time:g}" for time, share in self.shares.items())
            told.append(f"Without event, of {self.reference}: {', '.join(found)}.")
        if self.lines[0].across:
            told.append(
                "I2: how much of the differences of parties' own coefficients is no chance."
            )
        for each in dict.fromkeys(one.feature for one in self.columns if one.level):
            if isinstance(each, NumericFeature):
                told += [f"{each.name}[...]: at each knot, against {each.knots[0]:g}."]
        if self.left_out:
            told.append(f"Own rows determine no table: {named(self.left_out)}.")
        return tuple(told)


def figure(value: float) -> str:
    plain = f"{value:.7g}" if abs(value - 1) < _NEAR_ONE else f"{value:.4g}"
    return f"{value:.2e}" if "e" in plain else plain


def p_value(p: float) -> str:
    return "<.001" if p < _LEAST else f"{p:.3f}".removeprefix("0")


def table_of(
    fit: RegressionFit,
    *,
    features: Sequence[Feature],
    classes: Sequence[str | int] = (),
    horizons: Sequence[float] = (),
    turn: Matrix | None = None,
) -> CoefficientTable:
    """Read a fit in raw columns: its rows are encoded rows, or these times M, of shape (m, m)."""
    from scipy.stats import norm, t

    columns = encoded_columns(features)
    turn = np.eye(len(columns)) if turn is None else turn
    first = int(fit.model != "cox")
    count = first + len(columns)
    if turn.shape != (len(columns),) * 2 or len(fit.weights) != count:
        raise ShapeError(
            f"a table needs as many components as columns, {len(columns)}, and {count} weights. "
            f"Here are {turn.shape} and {len(fit.weights)}."
        )
    if fit.dependent.shape[1]:
        raise _dependent(turn @ fit.dependent[first:], columns)
    back = to_raw(turn, columns, first=first)
    estimates, covariance = back @ fit.weights, back @ fit.covariance @ back.T
    names = [*[INTERCEPT][:first], *(each.name for each in columns)]
    spread = np.sqrt(np.diag(covariance))
    statistics = estimates / spread
    known = t(fit.free) if fit.model == "ols" else norm
    tails, reach = 2 * known.sf(abs(statistics)), float(known.ppf(0.975))
    ends = estimates - reach * spread, estimates + reach * spread
    figures = np.column_stack([estimates, spread, *ends, statistics, tails]).tolist()
    own = {name: (back @ one, back @ two @ back.T) for name, (one, two) in fit.parties.items()}
    lines = map(Line, names, *zip(*figures, strict=True), _across(own, count))
    shared = {each.name: getattr(fit, each.name) for each in fields(Figures)}
    shared |= {"columns": columns, "likely": str([1, *classes][-1])}
    shared["shares"] = dict(zip(horizons, np.exp(-fit.hazards).tolist(), strict=False))
    return CoefficientTable(lines=tuple(lines), covariance=covariance, **shared)


def to_raw(turn: Matrix, columns: Sequence[EncodedColumn], *, first: int) -> Matrix:
    """Return the map from weights in the frame to coefficients of raw columns."""
    # (x - a) (y - b) = xy - bx - ay + ab: a product's weight belongs to the raw product, and in
    # part to each lesser one; what is left of all belongs to the intercept, of raw zeros.
    of = [(), *(each.of or (at,) for at, each in enumerate(columns))]
    places, back = {frozenset(each): at for at, each in enumerate(of)}, np.eye(len(of))
    for at, each in enumerate(columns, start=1):
        for keep in product((False, True), repeat=len(of[at])):
            kept = frozenset(compress(of[at], keep))
            left = prod(-columns[place].centre for place in of[at] if place not in kept)
            back[places[kept], at] = left / each.scale
    back[:, 1:] = back[:, 1:] @ turn
    return back[1 - first :, 1 - first :]


def _dependent(found: Matrix, columns: Sequence[EncodedColumn]) -> EstimateError:
    sizes = np.abs(found).max(axis=1)
    least = _ZERO * sizes.max()
    names = [repr(x.name) for x, size in zip(columns, sizes, strict=True) if size > least]
    return EstimateError(
        f"of the columns {', '.join(names)}, {found.shape[1]} follow from the others and a "
        "constant in every row of all parties, or vary a million times less than others on the "
        "agreed scales. Leave so many of them out, agree on scales that suit the units, or name a "
        "base where they are levels of one category."
    )


def _across(parties: Mapping[str, Estimates], count: int) -> Iterable[Across | None]:
    """Combine parties' own coefficients, one by one (DerSimonian and Laird 1986)."""
    if len(parties) < 2:  # noqa: PLR2004 -- nothing to compare
        return [None] * count
    estimates = np.array([weights for weights, _ in parties.values()])
    variances = np.array([np.diag(covariance) for _, covariance in parties.values()])
    certain = 1 / variances
    total = certain.sum(axis=0)
    fixed = (certain * estimates).sum(axis=0) / total
    apart = (certain * (estimates - fixed) ** 2).sum(axis=0)  # Cochran's Q
    excess = np.maximum(apart - (len(parties) - 1), 0.0)
    tau = excess / (total - (certain**2).sum(axis=0) / total)
    shares = 1 / (variances + tau)
    means = (shares * estimates).sum(axis=0) / shares.sum(axis=0)
    errors, explained = shares.sum(axis=0) ** -0.5, excess / np.where(excess > 0, apart, 1.0)
    own = np.stack([estimates, np.sqrt(variances)], axis=-1).tolist()
    known = (dict(zip(parties, map(tuple, each), strict=True)) for each in zip(*own, strict=True))
    return map(Across, *np.stack([means, errors, tau, explained]).tolist(), known)
