"""A table of parties' aligned rows is the table of their pooled raw columns, to 1e-8.

What it is compared with is statsmodels or lifelines on the raw columns, without our code.
"""

from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
import statsmodels.api as sm
from lifelines import CoxPHFitter
from lifelines.exceptions import ConvergenceWarning, StatisticalWarning

from cobasis.features.encoder import encode
from regressions.cohort import FEATURES, columns, dataset, fitted, gap, people, table

RAW, LABELS = people()
X = sm.add_constant(columns(RAW))
OWNERS = np.unique(LABELS.owner, return_inverse=True)[1]
CLOSE = 1e-8
PARTY = {"cov_type": "cluster", "cov_kwds": {"groups": OWNERS}}
TIGHT = {"precision": 1e-20, "r_precision": 0.0}


def ols(**told):
    return sm.OLS(LABELS.number, X).fit(use_t=True, **told)


def wls(**told):
    return sm.WLS(LABELS.number, X, weights=LABELS.share).fit(use_t=True, **told)


def glm(value="class", *, fit=None, **told):
    tight, families = {"tol": 1e-13, "tol_criterion": "params"}, sm.families
    family = families.Binomial() if value == "class" else families.Poisson()
    return sm.GLM(LABELS[value], X, family=family, **told).fit(**tight, **fit or {})


def negative(**told):
    asked = sm.NegativeBinomial(LABELS.counts, X, offset=np.log(LABELS.exposure))
    near = [*glm("counts", exposure=LABELS.exposure).params, 0.5]
    return asked.fit(start_params=near, method="newton", tol=1e-13, disp=0, **told)


HC0, HC1 = {"cov_type": "HC0"}, {"cov_type": "HC1"}
SHARE, WEIGHT, TIME = {"weight": "share"}, {"weight": "weight"}, {"exposure": "exposure"}
ROBUST, BY_PARTY = {"errors": "robust"}, {"errors": "party"}
VALUES = {"ols": "number", "logit": "class", "poisson": "count", "negative_binomial": "counts"}
CASES = {  # the model, what is agreed on, the pooled fit
    "ols": ("ols", {}, ols),
    "ols, robust": ("ols", ROBUST, lambda: ols(**HC1)),
    "ols, by party": ("ols", BY_PARTY, lambda: ols(**PARTY)),
    "ols, weights": ("ols", SHARE, wls),
    "ols, weights, robust": ("ols", SHARE | ROBUST, lambda: wls(**HC1)),
    "logit": ("logit", {}, glm),
    "logit, weights": ("logit", WEIGHT, lambda: glm(freq_weights=LABELS.weight)),
    "logit, both": ("logit", SHARE | ROBUST, lambda: glm(fit=HC0, var_weights=LABELS.share)),
    "logit, by party": ("logit", BY_PARTY, lambda: glm(fit=PARTY)),
    "poisson": ("poisson", TIME, lambda: glm("count", exposure=LABELS.exposure)),
    "poisson, robust": ("poisson", ROBUST, lambda: glm("count", fit=HC0)),
    "negative binomial": ("negative_binomial", TIME, negative),
    "the same, robust": ("negative_binomial", TIME | ROBUST, lambda: negative(**HC0)),
}


@pytest.mark.parametrize("case", CASES)
def test_regressions_agree_with_statsmodels_on_pooled_columns(case):
    model, told, pooled = CASES[case]
    found, count = pooled(), X.shape[1]
    params, p = found.params[:count], found.pvalues[:count]
    covariance = np.asarray(found.cov_params())[:count, :count]
    interval = np.asarray(found.conf_int())[:count]
    for kind in ("orthogonal", "invertible"):
        made = table(RAW, LABELS, VALUES[model], model=model, kind=kind, **told)
        assert gap(made, params, covariance, p=p) < CLOSE
        assert [line.name for line in made.lines][1:] == list(X)[1:]
        assert [(line.low, line.high) for line in made.lines] == pytest.approx(interval, rel=1e-7)
        assert made.log_likelihood == pytest.approx(found.llf, rel=1e-10)


@pytest.mark.parametrize("model", ["poisson", "negative_binomial"])
def test_the_unit_of_an_exposure_moves_the_intercept_alone(model):
    """Where statsmodels starts without columns, small exposures led out of the numbers' range."""
    made, small = (
        table(RAW, LABELS.assign(exposure=LABELS.exposure * unit), "counts", model=model, **TIME)
        for unit in (1.0, 1e-6)
    )
    moved = [one.estimate - two.estimate for one, two in zip(small.lines, made.lines, strict=True)]
    assert moved == pytest.approx([6 * np.log(10), *[0.0] * (len(moved) - 1)], abs=1e-8)
    assert small.covariance == pytest.approx(made.covariance, rel=1e-6)
    assert small.null_log_likelihood == pytest.approx(made.null_log_likelihood, rel=1e-9)


def test_one_row_or_all_with_very_many_events_do_not_hide_how_much_counts_vary():
    """The slope at alpha 0 is below 0, and an alpha of 1e-5 doubles the variance of 100,000."""
    far, many = RAW.index == 0, np.rint(np.random.default_rng(0).gamma(5e4, 2, len(RAW)))
    few = np.where(far, 1e6, LABELS.counts), np.where(far, 1e6, RAW.income), 0.3
    for counts, income, least in (few, (many, RAW.income, 5e-6)):
        raw, labels = RAW.assign(income=income), LABELS.assign(counts=counts)
        made = table(raw, labels, "counts", model="negative_binomial")
        asked = sm.NegativeBinomial(labels.counts, sm.add_constant(columns(raw)))
        start = [*(line.estimate for line in made.lines), made.dispersion]
        found = asked.fit(start_params=start, method="newton", tol=1e-13, disp=0)
        assert least < made.dispersion == pytest.approx(found.params["alpha"], rel=1e-8)


def cox(raw, labels, *, time="days", **told):
    named = [told[each] for each in ("entry_col", "weights_col", "cluster_col") if each in told]
    whole = columns(raw).join(labels[[time, "event", *named, *told.get("strata", ())]])
    with catch_warnings():
        simplefilter("ignore", StatisticalWarning)  # weights with a fraction
        simplefilter("ignore", ConvergenceWarning)  # a column that hardly varies
        return CoxPHFitter().fit(whole, time, "event", fit_options=TIGHT, **told)


STRATUM, PARTIES = {"stratum": "stratum"}, {"strata_by_party": True}
ALL = ROBUST | SHARE | STRATUM
SANDWICH = {"robust": True, "weights_col": "share", "strata": ["stratum"]}
SURVIVAL = {  # the data, the column of times, what is agreed on, what lifelines is told
    "ties": ("people", "days", {}, {}),
    "lung": ("lung", "days", {}, {}),
    "rossi": ("rossi", "days", {}, {}),
    "entry": ("people", "time", {"entry": "entry"}, {"entry_col": "entry"}),
    "stratum": ("people", "days", STRATUM, {"strata": ["stratum"]}),
    "strata by party": ("lung", "days", PARTIES, {"strata": ["owner"]}),
    "weights": ("people", "days", WEIGHT, {"weights_col": "weight"}),
    "robust": ("people", "time", ROBUST, {"robust": True}),
    "all": ("people", "time", ALL, SANDWICH),
    "by party": ("people", "time", BY_PARTY, {"cluster_col": "owner"}),
}
DATA = {"people": (FEATURES, RAW, LABELS), "lung": dataset("lung"), "rossi": dataset("rossi")}


@pytest.mark.parametrize("case", SURVIVAL)
def test_survival_agrees_with_lifelines_on_pooled_columns(case):
    name, time, told, known = SURVIVAL[case]
    features, raw, labels = DATA[name]
    found = cox(raw, labels, time=time, **known)
    robust = known.keys() & {"robust", "cluster_col"}
    covariance = found.variance_matrix_.to_numpy()
    if robust:  # of the sandwich it tells the diagonal only
        covariance = np.full_like(covariance, np.nan)
        np.fill_diagonal(covariance, found.standard_errors_**2)
    null = found.log_likelihood_ - found.log_likelihood_ratio_test().test_statistic / 2
    for kind in ("orthogonal", "invertible"):
        options = {"model": "cox", "event": "event", "features": features, "kind": kind}
        made = table(raw, labels, time, **options, **told)
        assert gap(made, found.params_, covariance, p=found.summary["p"]) < CLOSE
        assert made.log_likelihood == pytest.approx(found.log_likelihood_, rel=1e-12)
        assert made.null_log_likelihood == pytest.approx(null, rel=1e-12)
        assert made.n_events == labels.event.sum()


def test_weights_that_add_up_to_one_give_the_table_of_weights_whose_mean_is_one():
    """The log-likelihood of the former is above 0, where lifelines stops at once."""
    told = {"model": "cox", "event": "event", "weight": "share"}
    whole = LABELS.assign(share=LABELS.share / LABELS.share.mean())
    made = table(RAW, whole, "days", errors="robust", **told)
    small = table(RAW, whole.assign(share=whole.share / len(RAW)), "days", errors="robust", **told)
    assert small.log_likelihood > 0
    estimates = [line.estimate for line in made.lines]
    assert [line.estimate for line in small.lines] == pytest.approx(estimates, rel=1e-8)
    assert small.covariance == pytest.approx(made.covariance, rel=1e-6)
    moved = np.log(len(RAW)) * whole.share @ whole.event  # what a weight is to Cox's likelihood
    for name in ("log_likelihood", "null_log_likelihood"):
        assert len(RAW) * getattr(small, name) == pytest.approx(getattr(made, name) + moved)


def test_with_ties_entries_and_weights_robust_errors_are_how_estimates_move_with_weights():
    """The sandwich is the sum of squares of w_i times the derivative by w_i: no formula of ours."""
    raw, labels = (each.iloc[:30].reset_index(drop=True) for each in (RAW, LABELS))
    labels = labels.assign(days=np.ceil(labels.days / 6), entry=np.floor(labels.entry / 12))
    labels["entry"] = np.minimum(labels.entry, labels.days - 1)
    told = {"model": "cox", "event": "event", "entry": "entry", "weight": "share"}
    made = table(raw, labels, "days", errors="robust", **told)
    moved = []
    for row in range(len(raw)):
        ends = []
        for step in (1e-4, -1e-4):
            other = labels.copy()
            other.loc[row, "share"] *= 1 + step
            ends.append(cox(raw, other, entry_col="entry", weights_col="share").params_.to_numpy())
        moved.append((ends[0] - ends[1]) / 2e-4)
    expected = np.transpose(moved) @ moved
    estimates = [line.estimate for line in made.lines]
    assert gap(made, estimates, expected) < 1e-5


def test_hazards_count_rows_by_their_weight_and_nobody_before_entry():
    told = {"model": "cox", "event": "event", "entry": "entry", "horizons": (10.0, 30.0)}
    fit, turn = fitted(RAW, LABELS, "days", weight="share", **told)
    risk = LABELS.share * np.exp(encode(RAW, FEATURES, party="pooled") @ turn @ fit.weights)
    time, entry, dead = LABELS.days, LABELS.entry, LABELS.event > 0
    for horizon, hazard in zip((10.0, 30.0), fit.hazards, strict=True):
        steps = [
            weight / risk[(entry < each) & (time >= each)].sum()
            for each, weight in zip(time[dead], LABELS.share[dead], strict=True)
            if each <= horizon
        ]
        assert hazard == pytest.approx(sum(steps), rel=CLOSE)
