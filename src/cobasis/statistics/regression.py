"""Regressions on aligned rows, by statsmodels and lifelines, in whatever frame the rows are.

No fit has a penalty but Firth's, which is a determinant, so another frame changes nothing else.
Each is made on columns without correlation, where Newton's method converges alike from any frame.

Weights: least squares reads them as inverse variances, the others count a row so many times, robust
errors square them as a sample's weights need, and rows of weight 0 are left out. Robust errors are
HC1 of least squares and HC0 of the others; errors by party have Stata's factor G/(G-1) (n-1)/(n-q).
A Cox model's are R's, without a factor.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np

from cobasis.errors import CobasisError, EstimateError
from cobasis.features.outcome import Outcome, Records, part_of
from cobasis.linalg.arrays import EPS, Array, Matrix
from cobasis.models import RegressionName, needing
from cobasis.models.regressions import RegressionFit
from cobasis.statistics.sample import FEWEST, Sample, grouped, refuse_few
from cobasis.statistics.survival import score_residuals

DEPENDENT = 1e-6
"""A combination of columns whose spread is so small a share of the largest is taken for none: rows
sent as float32 leave 3e-8 of one that is none."""

_STEPS, _TIGHT, _AT_REST = 60, 1e-11, 1e-6
_FLAT = 1e-7
"""Where the likelihood is so much flatter than elsewhere, some rows' outcome is told without error.
There statsmodels drops a direction, and takes it for rest."""

_NEAR, _LEAST, _MOST = 1e-4, 1e-3, 1e3  # the first: from where Newton's steps end
"""Alpha is looked for from where it adds the second, a share, to a mean count's variance, up to the
third. Below, floats are too coarse to tell it from none, and errors are as good as Poisson's."""


def fit_regression(
    rows: Matrix, labels: Records, *, model: RegressionName, outcome: Outcome, owners: Array
) -> RegressionFit:
    """Fit aligned rows of owners (names or numbers) to labels: classes' positions, or records."""
    sample = Sample(model=model, outcome=outcome, rows=rows, labels=labels, owners=owners)
    fit = _fit(sample)
    if not outcome.compare_parties or fit.dependent.shape[1]:
        return fit
    errors = "model" if outcome.errors == "model" else "robust"
    own = {"errors": errors, "strata_by_party": False, "horizons": ()}
    alone = replace(sample, outcome=outcome.model_copy(update=own))
    parties = {}
    for name in np.unique(owners):
        with suppress(EstimateError):
            found = _fit(alone.some(owners == name), fewest=FEWEST)
            if not found.dependent.shape[1]:
                parties[str(name)] = (found.weights, found.covariance)
    left_out = (str(name) for name in np.unique(owners) if str(name) not in parties)
    return replace(fit, parties=parties, left_out=tuple(left_out))


def _fit(sample: Sample, *, fewest: int = 1) -> RegressionFit:
    sample = sample.some(sample.weights > 0)
    n_rows, n_columns = len(sample.rows), sample.rows.shape[1] + (sample.model != "cox")
    told = sample.part("event", otherwise=1.0) if sample.model == "cox" else sample.value
    n_events = int(np.count_nonzero(told))
    refuse_few(sample, n_events=n_events, n_columns=n_columns, fewest=fewest)
    whole, back, dependent = _conditioned(sample)
    fit = RegressionFit.unfitted(
        sample.model,
        errors=sample.outcome.errors,
        n_rows=n_rows,
        n_events=n_events,
        dependent=dependent,
    )
    if dependent.shape[1]:
        return fit
    found = _FITS[sample.model](sample, whole)
    weights, more = back @ found.weights, {**found.more}
    weights[0] -= np.log(sample.exposure)
    if "hazards" in more:  # so far at the mean of all rows, where nothing overflows
        with np.errstate(over="ignore"):
            more["hazards"] = more["hazards"] * np.exp(-sample.rows.mean(axis=0) @ weights)
    return replace(
        fit,
        weights=weights,
        covariance=back @ _errors(found, sample)[: len(weights), : len(weights)] @ back.T,
        log_likelihood=float(found.likelihood),
        null_log_likelihood=float(found.null),
        **more,
    )


class _Found(NamedTuple):
    weights: Matrix
    bread: Matrix  # the inverse information; of a negative binomial model alpha's too
    scores: Matrix  # each row's slope of the log-likelihood; where there is a penalty none
    likelihood: float
    null: float
    more: Mapping[str, Any] = {}  # what else is known of a fit, by its field


def _conditioned(sample: Sample) -> tuple[Matrix, Matrix, Matrix]:
    """Return a design without correlation, the map of its weights, and what columns depend.

    A Cox model's columns are centred stratum by stratum, which leaves its likelihood as it is: one
    that varies between strata alone tells it nothing, and shows here.
    """
    n_rows, width = sample.rows.shape
    counts = np.bincount(sample.strata)
    means = grouped(sample.strata, sample.rows, count=len(counts)) / counts[:, None]
    left, sizes, axes = np.linalg.svd(sample.rows - means[sample.strata], full_matrices=False)
    least = max(DEPENDENT * sizes[0], EPS * n_rows * float(np.abs(sample.rows).max()))
    nulls, whole = axes[sizes <= least].T, left * n_rows**0.5
    back = axes.T / np.maximum(sizes, least) * n_rows**0.5
    if sample.model == "cox":
        return whole, back, nulls
    whole = np.column_stack([np.ones(n_rows), whole])
    back = np.block([[np.ones((1, 1)), -means @ back], [np.zeros((width, 1)), back]])
    return whole, back, np.vstack([-means @ nulls, nulls])


def _errors(found: _Found, sample: Sample) -> Matrix:
    """Return the inverse information, or a sandwich in it of rows' or parties' scores."""
    scores, bread, errors = found.scores, found.bread, sample.outcome.errors
    if errors == "model":
        return bread
    (n_rows, n_columns), factor = scores.shape, 1.0
    if errors == "party":
        parties, owners = np.unique(sample.owners, return_inverse=True)
        scores, count = grouped(owners, scores, count=len(parties)), len(parties)
        if sample.model != "cox":
            factor = count / (count - 1) * (n_rows - 1) / (n_rows - n_columns)
    elif sample.model == "ols":
        factor = n_rows / (n_rows - n_columns)
    lean = scores @ bread
    return np.asarray(factor * lean.T @ lean)


@contextmanager
def _fitting(package: str, sample: Sample) -> Iterator[None]:
    """Say what is missing, and put what a library warns of or raises into our words."""
    with needing(package, extra="statistics", what=f"model='{sample.model}'"):
        if package == "lifelines":
            import lifelines  # noqa: F401
        else:  # at whose first import filters are set, so that it comes before ours
            import statsmodels.tools.sm_exceptions  # noqa: F401
    with catch_warnings(), np.errstate(all="ignore"):
        for kind in (RuntimeWarning, UserWarning):  # of convergence, which is checked and said here
            simplefilter("ignore", kind)
        try:
            yield
        except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
            if isinstance(error, CobasisError):
                raise
            raise _diverged(sample) from error


def _diverged(sample: Sample) -> EstimateError:
    return EstimateError(
        f"model='{sample.model}' did not converge on {len(sample.rows)} rows, so there is no "
        "estimate: a combination of columns may tell some rows' outcome without error "
        "(separation), or a level may be too rare. Agree on fewer columns, or merge rare levels; "
        "of two classes model='firth' is always finite."
    )


def _least_squares(sample: Sample, whole: Matrix) -> _Found:
    with _fitting("statsmodels", sample):
        from statsmodels.regression.linear_model import WLS

        found = WLS(sample.value, whole, weights=sample.weights).fit()
        null = WLS(sample.value, whole[:, :1], weights=sample.weights).fit()
        scores = whole * (sample.weights * found.resid / found.scale)[:, None]
    more = {"dispersion": float(found.scale)}
    if sample.outcome.errors == "party":
        more["free"] = len(np.unique(sample.owners)) - 1
    bread = found.scale * found.normalized_cov_params
    return _Found(found.params, bread, scores, found.llf, null.llf, more)


def _glm(sample: Sample, whole: Matrix) -> _Found:
    value, weights = sample.value, sample.weights
    with _fitting("statsmodels", sample):
        from statsmodels.genmod.families import Binomial, Poisson
        from statsmodels.genmod.generalized_linear_model import GLM

        asked = GLM(
            value,
            whole,
            family=Binomial() if sample.model == "logit" else Poisson(),
            offset=sample.offset,
            freq_weights=weights,
        )
        # The deviance, which the default looks at, is flat where it is least.
        found = asked.fit(maxiter=_STEPS, tol=_TIGHT, tol_criterion="params")
        likelihoods = found.llf, found.llnull
    spread = weights * asked.family.variance(found.mu)
    sizes = np.linalg.svd(whole * np.sqrt(spread)[:, None], compute_uv=False)
    if not found.converged or sizes[-1] <= _FLAT * sizes[0]:
        raise _diverged(sample)
    scores = whole * (weights * (value - found.mu))[:, None]
    return _Found(found.params, found.normalized_cov_params, scores, *likelihoods)


def _negative_binomial(sample: Sample, whole: Matrix) -> _Found:
    value, offset = sample.value, sample.offset
    _glm(replace(sample, model="poisson"), whole)  # refused where rows are separated
    with _fitting("statsmodels", sample):
        from statsmodels.discrete.discrete_model import NegativeBinomial

        asked = [NegativeBinomial(value, each, offset=offset) for each in (whole[:, :1], whole)]
        near = [_near(each) for each in asked]
        if near[1][-1] * value.mean() < 2 * _LEAST:
            raise EstimateError(
                "counts vary no more than a Poisson model has them, so alpha has no estimate above "
                "0. Agree on model='poisson'."
            )
        null, found = (
            each.fit(start_params=start, method="newton", maxiter=_STEPS, tol=_TIGHT, disp=0)
            for each, start in zip(asked, near, strict=True)
        )
        bread = np.linalg.inv(-asked[1].hessian(found.params))
        scores = asked[1].score_obs(found.params)
    if not (found.mle_retvals["converged"] and (np.diag(bread) > 0).all()):
        raise _diverged(sample)
    more = {"dispersion": float(found.params[-1])}
    return _Found(found.params[:-1], bread, scores, found.llf, null.llf, more)


def _near(asked: Any) -> Matrix:  # noqa: ANN401 -- statsmodels' negative binomial model
    """Return weights and alpha in turns, each best for the other, as R's glm.nb does."""
    # from further away steps in both leave the numbers' range where counts are in the thousands
    from scipy.optimize import minimize_scalar
    from statsmodels.genmod.families import NegativeBinomial
    from statsmodels.genmod.generalized_linear_model import GLM

    alpha, bounds = 1.0, (float(np.log(_LEAST / asked.endog.mean())), float(np.log(_MOST)))
    for _ in range(_STEPS):
        before, family = alpha, NegativeBinomial(alpha=alpha)
        found = GLM(asked.endog, asked.exog, family=family, offset=asked.offset).fit()
        told = lambda log, means=found.mu: (  # noqa: E731
            -NegativeBinomial(alpha=np.exp(log)).loglike(asked.endog, means)
        )
        alpha = float(np.exp(minimize_scalar(told, bounds=bounds, method="bounded").x))
        if abs(alpha / before - 1) < _NEAR:
            break
    return np.append(found.params, alpha)


def _firth(sample: Sample, whole: Matrix) -> _Found:
    """Fit with Jeffreys' penalty (Firth 1993), to which another frame adds a constant."""
    from scipy.special import expit

    value, weight, weights = sample.value, sample.weights, np.zeros(whole.shape[1])
    for _ in range(5 * _STEPS):  # many, for the penalty's curvature is not in them
        share = expit(whole @ weights)
        spread = weight * share * (1 - share)
        covariance = np.asarray(np.linalg.inv((whole * spread[:, None]).T @ whole), np.float64)
        leverage = spread * np.sum(whole @ covariance * whole, axis=1)
        step = covariance @ (whole.T @ (weight * (value - share) + leverage * (0.5 - share)))
        weights += step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < _TIGHT:
            break
    else:
        raise _diverged(sample)
    odds = np.average(value, weights=weight)
    both = (whole @ weights, np.log(odds / (1 - odds)))
    told, null = (float(weight @ (value * each - np.logaddexp(0, each))) for each in both)
    return _Found(weights, covariance, np.empty(0), told, null)


def _cox(sample: Sample, whole: Matrix) -> _Found:
    with _fitting("lifelines", sample):
        from lifelines import CoxPHFitter
        from pandas import DataFrame

        # Of small weights a log-likelihood may be above 0, where lifelines stops too early.
        size = float(sample.weights.mean())
        columns = {
            "weights_col": sample.weights / size,
            "entry_col": part_of(sample.labels, "entry"),
            "strata": sample.strata if sample.strata.any() else None,
        }
        known = {name: each for name, each in columns.items() if each is not None}
        table = DataFrame(whole, columns=[f"x{at}" for at in range(whole.shape[1])])
        found = CoxPHFitter().fit(
            table.assign(time=sample.value, event=sample.labels["event"], **known),
            "time",
            "event",
            **dict(zip(known, known, strict=True)),
            # The default stops where the likelihood hardly grows, 1e-5 of an error too early.
            fit_options={"precision": 1e-20, "r_precision": 0.0, "max_steps": _STEPS},
        )
        weights, bread = found.params_.to_numpy(), found.variance_matrix_.to_numpy() / size
        moved = float(np.log(size) * sample.weights @ sample.labels["event"])
        likelihood = size * float(found.log_likelihood_) - moved
        null = likelihood - size * float(found.log_likelihood_ratio_test().test_statistic) / 2
        scores, more = _residuals(sample, whole, weights)
    # Where the estimate has no bound lifelines stops in the flat part, where a step is still long.
    if not np.abs(whole @ (bread @ scores.sum(axis=0))).max() < _AT_REST:
        raise _diverged(sample)
    return _Found(weights, bread, scores, likelihood, null, more)


def _residuals(sample: Sample, whole: Matrix, weights: Matrix) -> tuple[Matrix, dict[str, Matrix]]:
    """Return rows' scores, and hazards at the horizons where there is one baseline."""
    scores, hazards = np.zeros_like(whole), np.zeros(len(sample.outcome.horizons))
    for stratum in np.unique(sample.strata):
        mine = sample.strata == stratum
        found = score_residuals(sample.some(mine), whole[mine], weights=weights)
        scores[mine], times, steps = found
        hazards += [steps[times <= each].sum() for each in sample.outcome.horizons]
    return scores, {} if sample.strata.any() else {"hazards": hazards}


_FITS: Mapping[RegressionName, Callable[[Sample, Matrix], _Found]] = {
    "ols": _least_squares,
    "logit": _glm,
    "firth": _firth,
    "poisson": _glm,
    "negative_binomial": _negative_binomial,
    "cox": _cox,
}
