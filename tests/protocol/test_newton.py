"""Regression tables of sums: step by step, under masks, as the pooled fit has them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from scipy.optimize import least_squares
from scipy.special import expit
from statsmodels.api import GLM, OLS, add_constant
from statsmodels.genmod.families import Binomial, Poisson

from cobasis import CategoryFeature, DPTerms, NumericFeature, SumsTerms, simulate
from cobasis.errors import AgreementError, EstimateError, LabelError, MessageError, StepError
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, turn_of
from cobasis.features.outcome import Outcome, record_type
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.protocol.newton import NewtonLayout, newton_chain
from cobasis.protocol.sums import SumsAnalyst
from protocol.summed import PUBLIC, agree, dealt, party, summing

N_ROWS = 900
FEATURES = (
    NumericFeature(name="age", low=0.0, high=120.0, centre=55.0, scale=10.0),
    NumericFeature(name="creatinine", low=0.0, high=20.0, centre=1.0, scale=0.5),
    CategoryFeature(name="ward", values=("a", "b", "c"), base="a"),
)
GRID = tuple(range(15, 120, 15))
TIMES = tuple(map(float, GRID))
TIGHT = {"tol": 1e-12, "tol_criterion": "params"}


def people(seed=0, n_rows=N_ROWS):
    """Columns as parties have them, and each one's linear predictor."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(60, 12, n_rows).clip(0, 120).round(),
            "creatinine": np.exp(rng.normal(0, 0.5, n_rows)).round(2),
            "ward": rng.choice(["a", "b", "c"], n_rows, p=[0.5, 0.3, 0.2]),
        }
    )
    along = 0.04 * table["age"] + 0.3 * table["creatinine"] - 0.7 * (table["ward"] == "b") - 2.7
    return table, along.to_numpy(), rng


def sick(**sizes):
    """Columns of people and, by their linear predictor, two classes."""
    table, along, rng = people(**sizes)
    return table, (rng.random(len(table)) < expit(along)).astype(int)


def design(table):
    """What a pooled fit takes."""
    wards = {f"ward={each}": (table["ward"] == each).astype(float) for each in "bc"}
    return table[["age", "creatinine"]].assign(**wards)


def times(*, n_rows=4000):
    """Times and events; and as a pooled fit takes them, rounded up, to the end of the grid."""
    table, along, rng = people(n_rows=n_rows)
    time = rng.exponential(60 / np.exp(along - along.mean()))
    lost = rng.uniform(5, 250, len(table))
    seen = pd.DataFrame({"value": np.minimum(time, lost).clip(0.1), "died": 1.0 * (time <= lost)})
    place = np.searchsorted(GRID, seen["value"])
    inside = place < len(GRID)
    rounded = np.where(inside, np.array(GRID)[np.minimum(place, len(GRID) - 1)], 999.0)
    return table, seen, pd.DataFrame({"value": rounded, "died": seen["died"] * inside})


def summed(task, table, labels, **options):
    rng = np.random.default_rng(7)
    given = {"release": "sums", "task": task, "features": FEATURES, **options}
    return simulate(dealt(table, labels), rng=rng, **given)


def agrees(done, fit, *, errors, likelihoods):
    found = done.parties["north"].coefficients()
    told = [(each.estimate, each.standard_error) for each in found.lines]
    np.testing.assert_allclose(told, np.column_stack([fit, errors]), rtol=1e-6)
    seen = found.log_likelihood, found.null_log_likelihood
    np.testing.assert_allclose(seen, likelihoods, rtol=1e-9)
    return found


def test_least_squares_are_the_pooled_ones_in_one_step():
    table, along, rng = people()
    target = (100 * along + rng.normal(0, 50, N_ROWS)).round(1)
    done = summed("regression", table, target, model="ols")
    right = OLS(target, add_constant(design(table))).fit()
    null = OLS(target, np.ones(N_ROWS)).fit().llf
    found = agrees(done, right.params, errors=right.bse, likelihoods=(right.llf, null))
    assert found.dispersion == pytest.approx(right.scale, rel=1e-6)
    assert (found.free, (len(done.analyst.before) + 1)) == (N_ROWS - 5, 1)
    np.testing.assert_allclose(done.predict(table)["east"], right.fittedvalues, rtol=1e-6)


def test_a_logistic_table_is_the_pooled_one():
    table, labels = sick()
    done = summed("classification", table, labels, model="logit")
    right = GLM(labels, add_constant(design(table)), family=Binomial()).fit(**TIGHT)
    likelihoods = right.llf, right.llnull
    found = agrees(done, right.params, errors=right.bse, likelihoods=likelihoods)
    assert (len(done.analyst.before) + 1) <= 6
    fit = done.parties["north"].model.fit
    assert (fit.finished, fit.n_events, fit.n_rows) == (True, labels.sum(), N_ROWS)
    south = done.parties["south"].coefficients()
    np.testing.assert_array_equal(south.covariance, found.covariance)
    rows = encode(table, FEATURES, party="all")
    likely = done.parties["north"].model.scores(rows, method="predict_proba")
    np.testing.assert_allclose(likely[:, 1], right.fittedvalues, rtol=1e-6)
    assert "Model logit" in repr(done) or "Model logit" in str(done)
    assert "of all steps: green." in done.result.aggregate


def test_a_poisson_table_with_exposures_is_the_pooled_one():
    table, along, rng = people()
    years = rng.uniform(0.2, 30, N_ROWS)
    labels = pd.DataFrame({"value": rng.poisson(years * np.exp(along - 2)), "years": years})
    done = summed("count", table, labels, outcome=Outcome(exposure="years"))
    x, offset = add_constant(design(table)), np.log(years)
    right = GLM(labels["value"], x, family=Poisson(), offset=offset).fit(**TIGHT)
    agrees(done, right.params, errors=right.bse, likelihoods=(right.llf, right.llnull))


def test_a_cox_table_on_a_grid_is_the_pooled_one_of_the_rounded_times():
    table, seen, rounded = times()
    outcome = Outcome(event="died", grid=TIMES, horizons=(30.0, 90.0))
    done = summed("survival", table, seen, outcome=outcome)
    fitter = CoxPHFitter()
    how = {"precision": 1e-20, "r_precision": 0.0}
    fitter.fit(design(table).join(rounded), "value", "died", fit_options=how)
    value, ratio = fitter.log_likelihood_, fitter.log_likelihood_ratio_test().test_statistic
    likelihoods = value, value - ratio / 2
    errors = fitter.standard_errors_
    found = agrees(done, fitter.params_, errors=errors, likelihoods=likelihoods)
    assert found.n_events == rounded["died"].sum()
    model, rows = done.parties["north"].model, encode(table, FEATURES, party="all")
    curves = fitter.predict_survival_function(design(table), times=[30.0, 90.0]).to_numpy().T
    np.testing.assert_allclose(model.survival(rows), curves, atol=1e-6)


def of_columns_alike(table, _):
    table["creatinine"] = (table["age"] / 6).clip(0, 20)
    return sick()[1]


def of_exposures_unlike(table, _):
    return pd.DataFrame({"value": 20.0, "years": np.where(table.index == 0, 1e9, 1.0)})


NARROW = Outcome(event="died", grid=tuple(np.arange(0.25, 130, 0.65).tolist()))
NO_TABLE = {
    "separation": (lambda table, _: 1 * (table["age"] > 60), {"model": "logit"}, "separation"),
    "columns alike": (of_columns_alike, {"model": "logit"}, "'age', 'creatinine', 1 follow"),
    "five rows": (lambda *_: np.arange(5) % 2, {"model": "logit"}, "5 rows are too few for so"),
    "a long exposure": (
        of_exposures_unlike,
        {"task": "count", "outcome": Outcome(exposure="years")},
        "another unit of exposure",
    ),
    "one number": (
        lambda *_: np.full(N_ROWS, 7.0),
        {"task": "regression", "model": "ols"},
        "all labels are one number",
    ),
    "few leave": (
        lambda _, seen: seen,
        {"task": "survival", "outcome": NARROW},
        r"fewer than \d+ rows have their event.*wider",
    ),
}


@pytest.mark.parametrize("kind", NO_TABLE)
def test_rows_that_determine_nothing_end_without_a_table(kind):
    labels, how, words = NO_TABLE[kind]
    table, seen, _ = times(n_rows=N_ROWS)
    told = labels(table, seen)
    with pytest.raises(EstimateError, match=words):
        summed(**{"task": "classification", "table": table[: len(told)], "labels": told} | how)


CLASSES = {"features": FEATURES, "task": "classification", "classes": (0, 1), "model": "logit"}
CLASSES["sums"] = SumsTerms(most_rows=900, most_rows_in_all=2000, steps=8)


def terms(**changes):
    return {"sums": CLASSES["sums"].model_copy(update=changes)}


COUNTS = CLASSES | {"task": "count", "classes": (), "model": "poisson"}
COUNTS |= terms(target_range=(0.0, 20.0))
SURVIVAL = CLASSES | {"task": "survival", "classes": (), "model": "cox"}
SURVIVAL |= {"outcome": Outcome(event="died", grid=TIMES)}


def stepped(rows, *, model=None, before=(), south=None, **changes):
    """The analyst after one exchange, for which party south may have been sent another model."""

    def sent(one, *table):
        own = south if south and one.name == "south" else model
        if own is not None:
            one.accept(own)
        return one.prepare(*table, exchange=1 + len(before))

    return summing(agree(**CLASSES | changes), rows, send=sent, before=before)


@pytest.fixture
def first():
    """Rows by party, and the analyst after their first step."""
    rows = dealt(*sick())
    return rows, stepped(rows)


def test_a_return_between_steps_has_weights_and_no_errors_yet(first):
    rows, analyst = first
    model = analyst.run().model
    assert not model.fit.finished
    assert not model.fit.covariance.any()
    data = encode_chain(model)
    again = decode_chain(data, n_components=4, task="classification", n_classes=2)
    assert encode_chain(again) == data
    assert not again.fit.finished
    one = party("north", agree(**CLASSES))
    one.accept(model)
    with pytest.raises(StepError, match="has not taken its last step"):
        one.coefficients()
    second = stepped(rows, model=model, before=(analyst.total,))
    assert second.run().model.fit.log_likelihood > model.fit.log_likelihood


def test_a_step_of_other_rows_models_or_exchanges_is_refused(first):
    """Masks of parties that were sent two models do not cancel."""
    rows, analyst = first
    model = analyst.run().model
    told, [layer] = {"model": model, "before": (analyst.total,)}, model.layers
    other = replace(model, layers=(replace(layer, weights=layer.weights * 1.000001),))
    with pytest.raises(MessageError, match="what no rows have"):
        stepped(rows, **told, south=other).run()
    fewer = rows | {"east": tuple(each[1:] for each in rows["east"])}
    with pytest.raises(MessageError, match="of other rows than in the step before"):
        stepped(fewer, **told).run()
    late = party("north", analyst.agreement).prepare(*rows["north"])
    with pytest.raises(MessageError, match="another step or attempt"):
        SumsAnalyst(analyst.agreement, keys=PUBLIC, before=told["before"]).receive(late)


NO_ROWS_HAVE = [(0, -1), (0, 2001), (1, -1), (1, 901), (2, -1), (14, 2**60), (-1, -(2**60))]


def test_a_total_of_steps_that_no_rows_have_is_void(first):
    deaths = summing(agree(**SURVIVAL), dealt(*times(n_rows=900)[:2]))
    more = (len(GRID) + 1, 900)  # than leave in an interval
    for analyst, changes in ((first[1], NO_ROWS_HAVE), (deaths, [more])):
        right = analyst.total.copy()
        for word, wrong in changes:
            analyst.total[:] = right
            analyst.total[word] = wrong
            with pytest.raises(MessageError, match="what no rows have"):
                analyst.run()


def test_labels_and_exposures_beyond_what_is_agreed_stay_at_the_party():
    table, numbers = people(n_rows=30)[0], COUNTS | {"task": "regression", "model": "ols"}
    numbers |= terms(target_range=(0.0, 20.0), steps=None)
    for fields, beyond in ((COUNTS, 21), (numbers, 21), (numbers, -0.1)):
        with pytest.raises(LabelError, match="outside the agreed range from 0 to 20"):
            party("north", agree(**fields)).prepare(table, np.full(30, beyond))
    most = terms(target_range=(0.0, 20.0), most_exposure=5.0)
    agreement = agree(**COUNTS | most, outcome=Outcome(exposure="years"))
    labels = pd.DataFrame({"value": np.ones(30), "years": np.full(30, 6.0)})
    with pytest.raises(LabelError, match="an exposure above 5"):
        party("north", agreement).prepare(table, labels)


BEYOND = [("logit", -63, -65), ("poisson", 1.3, 1.4), ("poisson", -79, -81), ("cox", 9.6, 9.8)]


@pytest.mark.parametrize(("model", "within", "beyond"), BEYOND)
def test_rows_for_which_no_sum_has_a_bound_are_counted_and_left_out(model, within, beyond):
    layout = NewtonLayout(model=model, n_columns=1, most_rows=9, grid=(1.0,) * (model == "cox"))
    labels = np.ones(2, dtype=record_type({"event": "died"}))
    turn = turn_of(Columns(), [NumericFeature(name="x", low=-1.0, high=1.0)])
    told = SimpleNamespace(outputs=lambda _: np.array([[within], [beyond]]))
    given = {"turn": turn, "model": told}
    words = layout.added(np.zeros((2, 1)), labels if layout.grid else labels["value"], **given)
    assert words[layout.n_counts - 1] == 1
    assert (np.abs(words) < 2**62).all()


def test_small_cells_of_words_and_of_intervals_are_counted(first):
    table, seen, _ = times(n_rows=60)
    table["ward"] = ["b"] * 3 + ["c"] * 5 + ["a"] * 52
    one, later = (party("north", agree(**CLASSES)) for _ in range(2))
    [layer] = (model := first[1].run().model).layers  # at thrice its weights risks are uneven
    later.accept(replace(model, layers=(replace(layer, weights=3 * layer.weights),)))
    labels = (seen["died"] > 0).astype(int)
    for exchange, each in ((1, one), (2, later)):
        each.prepare(table, labels, exchange=exchange)
        cells = pd.crosstab(table["ward"], labels)
        assert each.small_cells == 1 + np.isin(cells, range(1, 5)).sum()
    (one := party("north", agree(**SURVIVAL))).prepare(table, seen)
    assert one.small_cells > 7


def test_a_chain_of_no_settled_step_is_refused_at_the_last():
    only = stepped(dealt(*sick()), **terms(steps=1))
    with pytest.raises(EstimateError, match="did not come to rest in 1 steps"):
        only.run()
    layout = NewtonLayout(model="logit", n_columns=4, most_rows=2000, steps=2)
    assert not newton_chain(layout, [only.total], agreement=only.agreement).fit.finished


def test_of_fewer_rows_than_an_interval_takes_the_steps_give_every_column_back():
    """Why there are fewest: five tables of four rows' columns have one set of rows behind them."""
    rng = np.random.default_rng(0)
    rows, steps, upper = rng.uniform(-1, 1, (4, 4)), 5, np.triu_indices(5)
    weights = [np.zeros(4), *rng.normal(0, 0.5, (steps - 1, 4))]

    def totals(flat):
        ones = np.column_stack([np.ones(4), flat.reshape(4, 4)])
        products = ones[:, upper[0]] * ones[:, upper[1]]
        return np.concatenate([np.exp(ones[:, 1:] @ each) @ products for each in weights])

    told, starts = totals(rows), rng.uniform(-1, 1, (6, 16))
    how = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
    tried = [least_squares(lambda x: totals(x) - told, start, **how) for start in starts]
    found = min(tried, key=lambda each: each.cost).x.reshape(4, 4)
    far = [np.abs(found - row).max(axis=1).min() for row in rows]
    assert max(far) < 1e-6
    layout = NewtonLayout(model="cox", n_columns=4, most_rows=900, steps=steps, grid=(1.0, 2.0))
    assert layout.fewest_leavers == 19  # 5 steps of 15 sums, and 19 rows of 4 numbers
    assert replace(layout, n_columns=1, steps=1).fewest_leavers == 10


NOISE = DPTerms(epsilon=1.0, delta=1e-7, radius=1.0, most_rows=900, lifetime_epsilon=1.0)


def survival(**changes):
    return {"outcome": SURVIVAL["outcome"].model_copy(update=changes)}


NO_RANGE = {"features": (NumericFeature(name="age"), *FEATURES[1:])}
REFUSED = {
    "no range": (CLASSES, NO_RANGE, "no range from low to high"),
    "no steps": (CLASSES, terms(steps=None), "steps goes with a model"),
    "maps": (CLASSES, terms(maps=(Columns(),)), "maps with all that is no table"),
    "scores": (CLASSES, {**terms(scores=True), "holdout": 0.2}, "nor coefficients"),
    "another model": (CLASSES, {"model": "firth"}, "model='firth' takes release='rows'"),
    "three classes": (CLASSES, {"classes": (0, 1, 2)}, "takes two classes"),
    "weights": (CLASSES, {"outcome": Outcome(weight="w")}, "sums take event, exposure"),
    "robust errors": (SURVIVAL, survival(errors="robust"), "sums take event, exposure"),
    "no grid": (SURVIVAL, survival(grid=()), "takes outcome.grid"),
    "a horizon beyond": (SURVIVAL, survival(horizons=(999.0,)), "beyond the grid"),
    "counts from one": (COUNTS, terms(target_range=(1.0, 9.0)), "of counts from 0"),
    "large counts": (COUNTS, terms(target_range=(0.0, 1e12)), "too large for 64 bits"),
    "no largest exposure": (COUNTS, {"outcome": Outcome(exposure="t")}, "most_exposure goes with"),
    "noise": (CLASSES, {"dp": NOISE}, "takes no .dp."),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_an_agreement_says_what_sums_cannot_make(kind):
    fields, changes, match = REFUSED[kind]
    with pytest.raises(AgreementError, match=match):
        agree(**fields | changes)
