"""Splines and interactions of an agreement give the pooled fit that the same formula gives.

What it is compared with is formulaic's design of raw columns, fitted by statsmodels or lifelines.
"""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from formulaic import model_matrix
from lifelines import CoxPHFitter

from cobasis import NumericFeature, errors, simulate
from cobasis.features.contract import Interaction, columns_in, formula_of
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, turn_of
from cobasis.statistics.formula import with_formula
from regressions.cohort import FEATURES, gap, people, table

RAW, LABELS = people()
SPLINE = "cr(income, knots=(35000, 50000), lower_bound=22000, upper_bound=70000)"
KNOTS = ("22000", "35000", "50000", "70000")
FORMULAS = {
    "two": "age * ward + income",
    "three": "income + (age + ward + protein) ** 3",
    "a spline in interactions": f"protein + {SPLINE} * ward + age : ward + age",
}


def design(formula, names):
    """formulaic's columns by our names, without those of a spline's first knot."""
    made, told = pd.DataFrame(model_matrix(formula, RAW)), {}
    for name in made:
        ours = re.sub(r"cr\((\w+),.*?\)\[(\d)\]", lambda x: f"{x[1]}[{KNOTS[int(x[2]) - 1]}]", name)
        told[name] = re.sub(r"\[T\.(\w+)\]", r"=\1", ours).replace("Intercept", "(intercept)")
    return made.rename(columns=told)[names]


@pytest.mark.parametrize("model", ["logit", "cox"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_gives_the_pooled_coefficients_and_errors(formula, model):
    asked, known = FORMULAS[formula], {"event": "event", "stratum": "stratum"}
    value, told = ("class", {}) if model == "logit" else ("time", known)
    features = with_formula(FEATURES, asked)
    assert with_formula(FEATURES, formula_of(features)) == features
    raw = RAW[[each.name for each in columns_in(features)]]
    made = table(raw, LABELS, value, model=model, features=features, **told)
    x = design(asked, [each.name for each in made.lines])
    x /= (scale := x.abs().max())  # else products of raw columns lose the pooled fit its digits
    if model == "cox":
        whole = x.join(LABELS[["time", "event", "stratum"]])
        tight = {"precision": 1e-20, "r_precision": 0.0}
        fit = CoxPHFitter().fit(whole, "time", "event", strata="stratum", fit_options=tight)
        estimates, covariance = fit.params_, fit.variance_matrix_
    else:
        fit = sm.GLM(LABELS[value], x, family=sm.families.Binomial()).fit(tol=1e-14)
        estimates, covariance = fit.params, fit.cov_params()
    assert gap(made, estimates / scale, covariance.to_numpy() / np.outer(scale, scale)) < 1e-8
    if "spline" in formula:
        assert made.wald("income").names == tuple(f"income[{knot}]" for knot in KNOTS[1:])
        assert "income[...]: at each knot, against 22000." in made.summary()


BENT = NumericFeature(name="age", low=10.0, high=80.0, knots=(20.0, 40.0, 60.0),
                      missing="fill", fill=30.0)  # fmt: skip
DOSE = NumericFeature(name="dose", scale=2.0, low=-4.0, high=4.0)
PAIR = (BENT, DOSE, Interaction(of=("age", "dose")))


@pytest.mark.parametrize("kind", ["floats", "whole numbers", "array"])
def test_a_spline_is_one_at_its_knot_filled_and_straight_beyond(kind):
    ages = pl.Series("age", [20.0, 40.0, 60.0, 70.0, 80.0, 10.0, 0.0, 30.0, None])
    rows = pl.DataFrame({"age": ages, "dose": 4.0})
    rows = rows.cast(pl.Int64) if kind == "whole numbers" else rows
    given = rows.with_columns(pl.col("age").fill_null(np.nan)).to_numpy()
    made = encode(given if kind == "array" else rows, PAIR, party="north")
    np.testing.assert_allclose(made[:3, :2], [[0, 0], [1, 0], [0, 1]], atol=1e-15)
    np.testing.assert_allclose(made[4] - made[3], made[3] - made[2], atol=1e-14)
    np.testing.assert_allclose(made[6] - made[5], made[5] - made[0], atol=1e-14)
    np.testing.assert_array_equal(made[8], made[7])
    np.testing.assert_array_equal(made[:, 3:], 2 * made[:, :2])
    with pytest.raises(errors.NotFiniteError, match="infinity, in 'age'"):
        encode(pl.DataFrame({"age": [np.inf], "dose": [1.0]}), PAIR, party="north")


def test_columns_that_are_summed_keep_to_their_bounds_and_a_spline_reaches_them():
    grid = np.array([(age, dose) for dose in (-4.0, 0.5, 4.0) for age in np.linspace(10, 80, 7001)])
    placed = turn_of(Columns(), PAIR).apply(encode(grid, PAIR, party="north"))
    assert np.abs(placed).max() <= 1 + 1e-12
    assert np.ptp(placed[:, :3], axis=0) == pytest.approx([2, 2, 2], abs=1e-6)


BAD_FORMULAS = {
    "age + weight": (errors.FeatureError, "There are age, income, protein, ward."),
    "cr(age, knots=(50, 70))": (errors.FeatureError, "the column's low and high"),
    "cr(age, knots=(70, 50), lower_bound=9, upper_bound=99)": (errors.FeatureError, "are to rise"),
    "cr(ward, knots=(1,))": (errors.FeatureError, "no spline of numbers"),
    "age + age:ward": (errors.OptionError, "the interaction age:ward has no ward before it"),
    "number ~ age": (errors.OptionError, "the right side alone"),
    "age - 1": (errors.OptionError, "keeps the constant"),
    f"income + {SPLINE}": (errors.EstimateError, "in two ways"),
    "cr(age, df=4)": (errors.FeatureError, "df would take them from rows that nobody has together"),
    "age / ward": (errors.OptionError, r"has no ward before it\. Write a\*b for"),
}
OTHERS = ("bs(age, df=4)", "{age / 2}", "np.log(age)", "C(age)", "Q('age')", "age + strata(ward)")
BAD_FORMULAS |= dict.fromkeys(OTHERS, (errors.FeatureError, "no such column. There are"))


def test_a_category_may_be_named_as_one():
    named = with_formula(FEATURES, "age * C(ward) + C( `ward` )")
    assert named == with_formula(FEATURES, "age * ward")
    given = [NumericFeature(name="log(age)"), NumericFeature(name="C(x)")]
    assert with_formula(given, "`log(age)` + `C(x)`") == tuple(given)


@pytest.mark.parametrize("formula", BAD_FORMULAS)
def test_a_formula_that_cannot_be_agreed_on_is_refused(formula):
    kind, words = BAD_FORMULAS[formula]
    with pytest.raises(kind, match=words):
        with_formula(FEATURES, formula)


AGE, WARD, BOTH = FEATURES[0], FEATURES[3], Interaction(of=("age", "ward"))
WHOLE = Interaction(of=("age", "ward", "dose"))
BAD = {
    "the interaction age:ward has no ward before it": (AGE, BOTH),
    "dose stands behind an interaction": (AGE, WARD, BOTH, DOSE),
    "or there twice": (AGE, WARD, BOTH, Interaction(of=("ward", "age"))),
    "has no age:dose, ward:dose before it": (AGE, WARD, DOSE, BOTH, WHOLE),
}


@pytest.mark.parametrize("words", BAD)
def test_interactions_that_are_of_no_whole_model_are_refused(words):
    given = {"task": "regression", "model": "ols", "features": BAD[words]}
    with pytest.raises(errors.AgreementError, match=words):
        simulate({"a": (RAW, LABELS.number)}, rng=np.random.default_rng(0), **given)
