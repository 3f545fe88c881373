"""Regression tables of sums: step by step, under masks, as the pooled fit has them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from scipy.optimize import least_squares
from statsmodels.api import GLM, OLS, add_constant
from statsmodels.genmod.families import Binomial, Poisson

from cobasis import DPTerms, NumericFeature, SumsTerms, simulate
from cobasis.errors import AgreementError, EstimateError, LabelError, MessageError, StepError
from cobasis.features.encoder import encode
from cobasis.features.maps import Columns, turn_of
from cobasis.features.outcome import Outcome, record_type
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.protocol.newton import NewtonLayout, newton_chain
from cobasis.protocol.sums import SumsAnalyst
from cobasis.statistics.ascent import Slopes, ascend, inverse_of
from protocol.summed import PUBLIC, agree, dealt, party, summing
from regressions import cohort
from regressions.cohort import columns

N_ROWS = 900
RAW, LABELS = cohort.people(N_ROWS)
SICK = LABELS["class"].astype(int)
SEEN = LABELS[["time", "event"]].set_axis(["value", "died"], axis=1)
MOST = {"age": 140.0, "income": 4e5, "protein": 0.01, "ward": None}
FEATURES = tuple(
    each.model_copy(update={"low": 0.0, "high": MOST[each.name]} if MOST[each.name] else {})
    for each in cohort.FEATURES
)
TIMES = (5.0, 10.0, 20.0, 30.0, 40.0)


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
    np.testing.assert_array_equal(done.parties["south"].coefficients().covariance, found.covariance)
    return found


EXPOSED = LABELS[["count", "exposure"]].set_axis(["value", "years"], axis=1)
TIGHT = {"tol": 1e-12, "tol_criterion": "params"}


def counted(x):
    return GLM(LABELS["count"], x, Poisson(), exposure=LABELS["exposure"]).fit(**TIGHT)


POOLED = {  # the task, its labels, what else is agreed on, and the pooled fit of some columns
    "ols": ("regression", LABELS["number"], {}, lambda x: OLS(LABELS["number"], x).fit()),
    "logit": ("classification", SICK, {}, lambda x: GLM(SICK, x, Binomial()).fit(**TIGHT)),
    "poisson": ("count", EXPOSED, {"outcome": Outcome(exposure="years")}, counted),
}


@pytest.mark.parametrize("model", POOLED)
def test_a_table_of_steps_is_the_pooled_one(model):
    task, labels, more, fit = POOLED[model]
    done, x = summed(task, RAW, labels, model=model, **more), add_constant(columns(RAW))
    right = fit(x)
    likelihoods = right.llf, fit(x[["const"]]).llf
    found = agrees(done, right.params, errors=right.bse, likelihoods=likelihoods)
    if model == "ols":
        assert found.dispersion == pytest.approx(right.scale, rel=1e-6)
        assert found.free == right.df_resid
    assert len(done.analyst.before) <= 5 * (model != "ols")
    told = done.parties["north"].model
    n_events = SICK.sum() * (model == "logit")
    assert (told.fit.finished, told.fit.n_events, told.fit.n_rows) == (True, n_events, N_ROWS)
    levels = told.outputs(encode(RAW, FEATURES, party="all"))[:, -1]
    np.testing.assert_allclose(levels, x @ right.params, rtol=1e-6, atol=1e-8)
    assert f"Model {model}" in str(done)
    assert "of all steps: " in done.result.aggregate


@pytest.mark.filterwarnings("ignore::lifelines.exceptions.ConvergenceWarning")  # of small units
def test_a_cox_table_on_a_grid_is_the_pooled_one_of_the_rounded_times():
    table, labels = cohort.people(4000)
    outcome = Outcome(event="died", grid=TIMES, horizons=(10.0, 30.0))
    seen = labels[["time", "event"]].set_axis(["value", "died"], axis=1)
    done = summed("survival", table, seen, outcome=outcome)
    place = np.searchsorted(TIMES, seen["value"])
    given = columns(table).assign(time=[*TIMES, 99.0] @ (place[:, None] == range(6)).T)
    given["died"] = seen["died"] * (place < len(TIMES))  # behind the grid nobody is followed
    fitter = CoxPHFitter()
    fitter.fit(given, "time", "died", fit_options={"precision": 1e-20, "r_precision": 0.0})
    value, ratio = fitter.log_likelihood_, fitter.log_likelihood_ratio_test().test_statistic
    likelihoods, errors = (value, value - ratio / 2), fitter.standard_errors_
    found = agrees(done, fitter.params_, errors=errors, likelihoods=likelihoods)
    assert found.n_events == given["died"].sum()
    model, rows = done.parties["north"].model, encode(table, FEATURES, party="all")
    curves = fitter.predict_survival_function(columns(table), times=[10.0, 30.0]).to_numpy().T
    np.testing.assert_allclose(model.survival(rows), curves, atol=1e-6)


NARROW = Outcome(event="died", grid=tuple(np.arange(0.4, 60, 0.4).tolist()))
ALIKE = RAW.assign(income=RAW["age"] * 1000)
UNLIKE = pd.DataFrame({"value": 20.0, "years": np.where(RAW.index == 0, 1e9, 1.0)})
LOGIT = {"task": "classification", "model": "logit"}
BY_TIME = {"task": "count", "outcome": Outcome(exposure="years")}
NO_TABLE = {  # columns, labels, what is agreed on, and what is said
    "separation": (RAW, 1 * (RAW["age"] > 60), LOGIT, "separation"),
    "columns alike": (ALIKE, SICK, LOGIT, "'age', 'income', 1 follow"),
    "five rows": (RAW[:5], np.arange(5) % 2, LOGIT, "5 rows are too few for so many columns"),
    "a long exposure": (RAW, UNLIKE, BY_TIME, "another unit of exposure"),
    "no counts": (RAW, 0 * RAW["age"], {"task": "count"}, "all counts are 0"),
    "one number": (RAW, 0 * RAW["age"], {"task": "regression", "model": "ols"}, "one number"),
    "few leave": (RAW, SEEN, {"task": "survival", "outcome": NARROW}, r"fewer than \d+ .*wider"),
}


@pytest.mark.parametrize("kind", NO_TABLE)
def test_rows_that_determine_nothing_end_without_a_table(kind):
    table, labels, how, words = NO_TABLE[kind]
    with pytest.raises(EstimateError, match=words):
        summed(table=table, labels=labels, **how)


CLASSES = {"features": FEATURES, "task": "classification", "classes": (0, 1), "model": "logit"}
CLASSES["sums"] = SumsTerms(most_rows=900, most_rows_in_all=2000, steps=8)


def terms(**changes):
    return {"sums": CLASSES["sums"].model_copy(update=changes)}


COUNTS = CLASSES | {"task": "count", "classes": (), "model": "poisson"}
COUNTS |= terms(target_range=(0.0, 20.0))
SURVIVAL = CLASSES | {"task": "survival", "classes": (), "model": "cox"}
SURVIVAL |= {"outcome": Outcome(event="died", grid=TIMES)}


def stepped(rows, *, returns=(), before=(), **changes):
    """The analyst after one exchange, before which every party got its last of the returns."""

    def sent(one, *table):
        for each in returns:
            if each.party == one.name:
                one.accept(each)
        return one.prepare(*table, exchange=1 + len(before))

    return summing(agree(**CLASSES | changes), rows, send=sent, before=before)


@pytest.fixture
def first():
    rows = dealt(RAW, SICK)
    return rows, stepped(rows)


def test_a_return_between_steps_has_weights_and_no_errors_yet(first):
    rows, analyst = first
    model = analyst.run().model
    assert not model.fit.finished
    assert not model.fit.covariance.any()
    data = encode_chain(model)
    again = decode_chain(data, n_components=5, task="classification", n_classes=2)
    assert (encode_chain(again), again.fit.finished) == (data, False)
    one = party("north", agree(**CLASSES))
    one.accept(next(analyst.returns(model)))
    with pytest.raises(StepError, match="has not taken its last step"):
        one.coefficients()
    second = stepped(rows, returns=[*analyst.returns(model)], before=(analyst.total,))
    assert second.run().model.fit.log_likelihood > model.fit.log_likelihood


def test_a_step_of_other_rows_models_or_exchanges_is_refused(first):
    """Masks of parties that were sent two models do not cancel."""
    rows, analyst = first
    model = analyst.run().model
    told, [layer] = {"returns": [*analyst.returns(model)], "before": (analyst.total,)}, model.layers
    other = replace(model, layers=(replace(layer, weights=layer.weights * 1.000001),))
    unlike = told | {"returns": [*told["returns"], [*analyst.returns(other)][1]]}
    with pytest.raises(MessageError, match="what no rows have"):
        stepped(rows, **unlike).run()
    fewer = rows | {"east": tuple(each[1:] for each in rows["east"])}
    with pytest.raises(MessageError, match="of other rows than in the step before"):
        stepped(fewer, **told).run()
    late = party("north", analyst.agreement).prepare(*rows["north"])
    with pytest.raises(MessageError, match="another step or attempt"):
        SumsAnalyst(analyst.agreement, keys=PUBLIC, before=told["before"]).receive(late)


NO_ROWS_HAVE = [(0, -1), (0, 2001), (1, -1), (1, 901), (2, -1), (16, 2**60), (-1, -(2**60))]


def test_a_total_of_steps_that_no_rows_have_is_void(first):
    deaths = summing(agree(**SURVIVAL), dealt(RAW, SEEN))
    more = (len(TIMES) + 1, 900)  # than leave in an interval
    for analyst, changes in ((first[1], NO_ROWS_HAVE), (deaths, [more])):
        right = analyst.total.copy()
        for word, wrong in changes:
            analyst.total[:] = right
            analyst.total[word] = wrong
            with pytest.raises(MessageError, match="what no rows have"):
                analyst.run()


def test_labels_and_exposures_beyond_what_is_agreed_stay_at_the_party():
    table, numbers = RAW[:30], COUNTS | {"task": "regression", "model": "ols"}
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
    table = RAW[:60].assign(ward=["surgery"] * 3 + ["other"] * 5 + ["icu"] * 52)
    one, later = (party("north", agree(**CLASSES)) for _ in range(2))
    [layer] = (model := first[1].run().model).layers  # at thrice its weights risks are uneven
    steep = replace(model, layers=(replace(layer, weights=3 * layer.weights),))
    later.accept(next(first[1].returns(steep)))
    labels = SICK[:60]
    for exchange, each in ((1, one), (2, later)):
        each.prepare(table, labels, exchange=exchange)
        cells = pd.crosstab(table["ward"], labels)
        assert each.small_cells == 1 + np.isin(cells, range(1, 5)).sum()
    (one := party("north", agree(**SURVIVAL))).prepare(table, SEEN[:60])
    assert one.small_cells == 19  # of words, and of those who leave in an interval


def test_a_chain_of_no_settled_step_is_refused_at_the_last():
    only = stepped(dealt(RAW, SICK), **terms(steps=1))
    with pytest.raises(EstimateError, match="did not come to rest in 1 steps"):
        only.run()
    layout = NewtonLayout(model="logit", n_columns=5, most_rows=2000, steps=2)
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


def test_too_long_a_step_is_halved_until_the_likelihood_grows():
    asked = []

    def at(_, weights):  # -log cosh: from 2 Newton's step goes to -12, where rows are left out
        [x] = weights
        asked.append(x)
        told = {"value": -np.log(np.cosh(x)), "curvature": np.array([[1 / np.cosh(x) ** 2]])}
        told |= {"value": 0.0, "beyond": True} if x < -5 else {}
        return Slopes(slope=-np.tanh(weights), **told)

    start = np.array([2.0])
    found = ascend(at(None, start), start, later=range(12), at=at)
    assert asked[1] < -10
    assert asked[2:4] == pytest.approx([2 + (asked[1] - 2) / 2, 2 + (asked[1] - 2) / 4])
    assert found.settled
    assert found.weights == pytest.approx(0, abs=1e-9)
    for off, rest in ((1e-5, False), (1e-7, True)):  # by so many standard errors a step would move
        assert ascend(at(None, [off]), [off], later=(), at=at).settled == rest
    near = np.array([1e-9])  # nor is it at rest where a step was worse, however short
    worse = replace(at(None, near), value=-1.0)
    assert not ascend(at(None, near), near, later=range(1), at=lambda *_: worse).settled
    flat = replace(worse, value=1.0, curvature=np.zeros((1, 1)))
    with pytest.raises(EstimateError, match="columns tell nothing any more"):
        ascend(at(None, near), near, later=range(1), at=lambda *_: flat)


@pytest.mark.parametrize(("gap", "lost"), [(1e-11, 1), (1e-9, 0)])
def test_columns_that_are_nearly_alike_are_told_from_those_that_follow(gap, lost):
    assert inverse_of(np.array([[1.0, 1.0 - gap], [1.0 - gap, 1.0]]))[1].shape == (2, lost)
