"""Effects of a treatment without pooling are those of pooled rows, and their intervals hold.

What they are compared with is statsmodels, lifelines, or a few plain lines on the raw columns.
"""

from collections import defaultdict
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from lifelines import KaplanMeierFitter
from statsmodels.treatment.treatment_effects import TreatmentEffect

from cli.round_by_commands import NAMES, Typed
from cobasis import Agreement, NumericFeature, Outcome
from cobasis.errors import AgreementError, CobasisError, EstimateError, LabelError, ModelFileError
from cobasis.features.contract import CategoryFeature
from cobasis.features.encoder import encode
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.models.onnx import raw_graph
from cobasis.models.tuning import folds
from cobasis.report.estimates import survival_plot, write_effects
from cobasis.statistics.effects import _share, fit_effects
from models.test_onnx import agree, run
from regressions import cohort
from regressions.cohort import in_three

FEATURES = (
    NumericFeature(name="age", centre=60, scale=12),
    CategoryFeature(name="sex", values=("female", "male"), base="female"),
    NumericFeature(name="crp", centre=3, scale=4),
)
SURVIVAL = {"event": "event", "horizons": (5.0, 12.0), "estimators": ("weighting",)}


def trial(n_rows, seed, *, unlike=0.0):
    """People of whom the old and ill are treated more often; at the mean age the effect is 1."""
    rng = np.random.default_rng(seed)
    age, male, crp = rng.normal(size=n_rows), rng.integers(0, 2, n_rows), rng.exponential(1, n_rows)
    share = 1 / (1 + np.exp(-(-1 + 0.8 * age + 0.6 * male + 0.3 * crp)))
    treated = rng.random(n_rows) < share
    number = 2 + 1.5 * age + male - 0.8 * crp + treated * (1 + unlike * age)
    hazard = np.exp(0.7 * age - 0.4 * male - 0.6 * treated) / 10
    time, end = rng.exponential(1 / hazard), rng.uniform(2, 30, n_rows)
    raw = pd.DataFrame({"age": 60 + 12 * age, "sex": np.where(male, "male", "female")})
    labels = {"treated": treated * 1.0, "value": number + rng.normal(size=n_rows), "share": share}
    labels |= {"event": (time <= end) * 1.0, "days": np.minimum(time, end)}
    return raw.assign(crp=4 * crp), pd.DataFrame(labels)


def plain(raw):
    return raw.assign(sex=(raw["sex"] == "male") * 1.0).to_numpy(float)


records = partial(cohort.records, treatment="treated")


def fitted(rows, labels, **terms):
    outcome = Outcome(treatment="treated", **terms)
    return fit_effects(rows, labels, outcome=outcome, seed=0).effects


def estimates(effects):
    pairs = zip(effects.kinds, effects.means, strict=True)
    return {kind[:2]: (treated - control, error) for kind, (treated, control, error) in pairs}


def in_parties(raw=None, *, features=FEATURES, **terms):
    outcome = Outcome(treatment="treated", **terms)
    rows = RAW if raw is None else raw
    return in_three(rows, TOLD, task="effect", features=features, outcome=outcome)


def weights(share):
    found = {"before": np.ones(len(T)), "weighting ATT": np.where(T == 1, 1, share / (1 - share))}
    return found | {"weighting ATE": np.where(T == 1, 1 / share, 1 / (1 - share))}


RAW, TOLD = trial(900, 3)
X, T, Y = plain(RAW), TOLD["treated"].to_numpy(), TOLD["value"].to_numpy()
DESIGN = sm.add_constant(X)
LOGIT = sm.Logit(T, DESIGN).fit(disp=0, tol=1e-14)
SHARE = LOGIT.predict()


def test_weights_and_doubly_robust_estimates_are_those_of_statsmodels_on_pooled_rows():
    done = in_parties(trim=0.0)
    found = {each.name: each for each in done.parties["north"].effects().effects}
    pooled = TreatmentEffect(sm.OLS(Y, DESIGN), T, results_select=LOGIT)
    for name, right in {
        "weighting ATE": pooled.ipw(),
        "weighting ATT": pooled.ipw(effect_group=1),
        "doubly robust ATE": pooled.aipw(),
    }.items():
        assert abs(found[name].estimate - right.effect[0]) < 1e-8
        # whose errors take derivatives from differences
        error = pytest.approx(right.results_gmm.bse[0], rel=2e-6)
        assert found[name].standard_error == error
        assert (found[name].high - found[name].estimate) / 1.959963985 == error
    table = done.parties["south"].coefficients()
    assert np.allclose([each.estimate for each in table.lines], LOGIT.params, rtol=1e-8)
    assert np.allclose(done.parties["east"].predict(RAW), SHARE, atol=1e-10)
    told = done.parties["south"].attributions(RAW)
    assert told.explained == "log-odds of treatment"
    added = told.values.sum(axis=1) + told.base  # noqa: PD011 -- no frame
    assert np.allclose(added, np.log(SHARE / (1 - SHARE)))


def test_matches_and_folds_are_those_of_plain_lines_on_pooled_rows():
    effects, logit = fitted(X, records(TOLD), trim=0.0, caliper=0.1), DESIGN @ LOGIT.params
    found, apart = estimates(effects), np.abs(logit[:, None] - logit)
    apart[T[:, None] == T] = np.inf
    gains = (2 * T - 1) * (Y - Y[apart.argmin(axis=1)])
    near = apart.min(axis=1) <= 0.1 * logit.std()
    assert abs(found["matching", "ATE"][0] - gains[near].mean()) < 1e-10
    assert abs(found["matching", "ATT"][0] - gains[near & (T == 1)].mean()) < 1e-10
    # of Abadie and Imbens, of matches by an estimated propensity (Econometrica 2016, Theorem 1)
    nearest, covariance = apart.argmin(axis=1), LOGIT.cov_params()
    spreads, along, means, lines = [], [], [], []
    for group in (1, 0):
        mine = np.flatnonzero(group == T)
        four = mine[np.argsort(np.abs(logit[:, None] - logit[mine]), axis=1)[:, :4]]
        off = Y[four] - Y[four].mean(axis=1, keepdims=True)
        spreads.append(np.sum(off**2, axis=1) / 3)
        along.append(np.einsum("ij,ijk->ik", off, DESIGN[four]) / 3)
        means.append(Y[four].mean(axis=1))
        lines.append(sm.OLS(Y[mine], DESIGN[mine]).fit().predict(DESIGN))
    balanced = {"ATE": ((1 - SHARE) @ along[0] + SHARE @ along[1]) / len(Y)}
    gain, weigh = found["matching", "ATT"][0], SHARE * (1 - SHARE) / SHARE.sum()
    balanced["ATT"] = weigh @ ((means[0] - means[1] - gain)[:, None] * DESIGN + along[0])
    balanced["ATT"] += (weigh * SHARE / (1 - SHARE)) @ along[1]
    slope = {"ATE": 0 * covariance[0], "ATT": (weigh * (lines[0] - lines[1] - gain)) @ DESIGN}
    for target, own in {"ATE": near, "ATT": near & (T == 1)}.items():
        times = np.bincount(nearest[own], minlength=len(Y))
        square = np.sum((gains[own] - gains[own].mean()) ** 2)
        square += ((own + times) ** 2 - own - times) @ np.where(T == 1, *spreads)
        right = square / own.sum() ** 2 + slope[target] @ covariance @ slope[target]
        right -= balanced[target] @ covariance @ balanced[target]
        assert found["matching", target][1] == pytest.approx(right**0.5, rel=1e-6)
    assert effects.unmatched == (np.sum(~near & (T == 1)), np.sum(~near & (T == 0)))
    ours, theirs = np.zeros((2, len(Y)))
    for learned, rest in folds(T > 0, task="classification", seed=0):
        own = sm.Logit(T[learned], DESIGN[learned]).fit(disp=0, tol=1e-14)
        ours[rest] = T[rest] - own.predict(DESIGN[rest])
        theirs[rest] = Y[rest] - sm.OLS(Y[learned], DESIGN[learned]).fit().predict(DESIGN[rest])
    mean = ours @ theirs / (ours @ ours)
    assert abs(found["dml", "ATO"][0] - mean) < 1e-8
    right = np.linalg.norm(ours * (theirs - mean * ours)) / (ours @ ours)
    assert found["dml", "ATO"][1] == pytest.approx(right, rel=1e-7)


def test_no_figure_hangs_on_frame_or_order_where_rows_tie():
    twice, rng = np.repeat(np.arange(300), 3), np.random.default_rng(1)
    rows, told = X[twice], records(TOLD)
    told["treatment"] = rng.random(900) < SHARE[twice]
    turn, order = rng.normal(size=(3, 3)), rng.permutation(900)
    terms = {"estimators": ("weighting", "matching", "doubly_robust")}
    one, two = fitted(rows, told, **terms), fitted((rows @ turn)[order], told[order], **terms)
    assert np.allclose(one.means, two.means, rtol=1e-9)
    assert np.allclose(one.sizes, two.sizes, rtol=1e-9)


def test_errors_of_matching_hold_where_only_a_few_people_or_kinds_of_them_are():
    rows = np.column_stack([X[:, 0] > 60, X[:, 1], X[:, 2] > 4]) * 1.0
    found = estimates(fitted(rows, records(TOLD)))
    # all of a kind tie, and matching comes to standardising by kinds
    assert found["matching", "ATE"][1] == pytest.approx(found["doubly_robust", "ATE"][1], rel=0.1)
    raw, told = trial(60, 2)  # here the correction for an estimated propensity leaves nothing
    found = estimates(fitted(plain(raw), records(told)))
    assert all(error > 0.1 for _, error in found.values())


def test_every_party_reads_the_balance_of_all_raw_rows():
    done, kept = in_parties(), (SHARE >= 0.01) & (SHARE <= 0.99)
    spread = np.sqrt((X[T == 1].var(axis=0, ddof=1) + X[T == 0].var(axis=0, ddof=1)) / 2)
    for table in (each.effects() for each in done.parties.values()):
        balance = table.balance
        assert np.allclose(balance.standardised * spread, balance.differences, atol=1e-9)
        for word, each in weights(SHARE).items():
            own = each * (kept | (word == "before"))
            one, two = (np.average(X[at == T], axis=0, weights=own[at == T]) for at in (1, 0))
            found = balance.differences[balance.adjusted.index(word)]
            assert np.allclose(found, one - two, atol=1e-9 * spread.max())
    told = table.summary()
    assert max(map(len, told.splitlines())) <= 80
    assert "After matching ATT still apart by more than 0.1: sex=male, crp [CB109]." in told
    assert "every cause of both treatment and outcome" in " ".join(told.split())
    assert table._repr_html_().count("<table>") == 2


@pytest.mark.filterwarnings("ignore:It looks like your weights")
def test_weighted_survival_is_that_of_lifelines_and_both_groups_curves_are_drawn(tmp_path):
    labels = TOLD[["days", "treated", "event"]].rename(columns={"days": "value"})
    told = {"task": "effect", "outcome": Outcome(treatment="treated", trim=0.0, **SURVIVAL)}
    party = in_three(RAW, labels, features=FEATURES, **told).parties["south"]
    made = party.effects()
    assert party.agreement.horizons == ()  # a row has a propensity, and no share without event
    assert np.allclose(party.predict(RAW), SHARE, atol=1e-10)
    assert write_effects(made, tmp_path).read_text().count("<svg") == 2
    axes, own = survival_plot(made.shares).axes[0], weights(SHARE)
    drawn = {each.get_label(): [*each.get_ydata()] for each in axes.lines}
    for target in ("ATE", "ATT"):
        for group, name in ((1, "treated"), (0, "control")):
            mine, given = TOLD[group == T], own[f"weighting {target}"][group == T]
            curve = KaplanMeierFitter().fit(mine["days"], mine["event"], weights=given)
            means = curve.predict([5.0, 12.0])
            assert drawn[f"{target}: {name}"] == pytest.approx([1.0, *means], abs=1e-9)


def test_a_share_moves_with_each_rows_weight_as_its_slope_says():
    rng, told = np.random.default_rng(0), TOLD[:40]
    study = SimpleNamespace(value=np.ceil(told["days"].to_numpy()), event=told["event"].to_numpy())
    weights, step = rng.uniform(0.5, 2, 40), 1e-6 * np.eye(40)
    ends = [[_share(study, weights + sign * each, 9.0)[0] for each in step] for sign in (1, -1)]
    found = _share(study, weights, 9.0)[1]
    np.testing.assert_allclose(found, np.subtract(*ends) / 2e-6, atol=1e-8)


@pytest.mark.soak
@pytest.mark.parametrize("unlike", [0.0, 0.5])
def test_intervals_of_95_percent_hold_the_truth_in_95_of_100_trials(unlike):
    raw, told = trial(200_000, 99)  # whose truth is a thirtieth as uncertain as one trial's
    share, hits, off = told["share"], defaultdict(list), defaultdict(list)
    by_target = {"ATE": share * 0 + 1, "ATT": share, "ATO": share * (1 - share)}
    effect = 1 + unlike * (raw["age"] - 60) / 12
    truth = {word: np.average(effect, weights=own) for word, own in by_target.items()}
    for seed in range(500):
        raw, told = trial(800, seed, unlike=unlike)
        for kind, (found, error) in estimates(fitted(plain(raw), records(told))).items():
            off[kind].append(found - truth[kind[1]])
            hits[kind].append(abs(off[kind][-1]) < 1.959964 * error)
    for kind, each in hits.items():
        assert 0.915 < np.mean(each) < 0.98, (kind, np.mean(each))  # a Monte Carlo error is .01
        assert abs(np.mean(off[kind])) < 0.2 * np.std(off[kind]), kind


BAD = {  # a column of labels and what it holds; what is agreed on
    "nobody treated": ("treatment", 0.0, {}, "0 treated and 900 control"),
    "an age that decides": ("treatment", RAW["age"] > 60, {}, "propensities come to 0 or 1"),
    "no overlap": ("value", Y, {"trim": 0.49}, "propensity from 0.49 to 0.51"),
    "one outcome": ("value", 1.0, {}, "the outcome is one number"),
    "no match": ("value", Y, {"caliper": 1e-13}, "within the caliper"),
    "nobody's event": ("event", 0.0, SURVIVAL, "no row has an event"),
    "a late horizon": ("value", np.minimum(TOLD["days"], 4), SURVIVAL, "followed for 4 at most"),
    "columns depend in a group": ("value", Y, {}, "rows of a group or a fold columns depend"),
}
LOOSE = np.where(T == 1, 0, np.random.default_rng(0).normal(size=len(T)))


@pytest.mark.parametrize("kind", BAD)
def test_groups_that_cannot_be_compared_are_refused(kind):
    role, values, terms, words = BAD[kind]
    told = records(TOLD, **{"value": "days", "event": "event"} if "event" in terms else {})
    told[role] = values
    rows = np.column_stack([X, X[:, 0] + LOOSE]) if "columns depend" in kind else X
    with pytest.raises(EstimateError, match=rf"{words}.*\[CB109\]$"):
        fitted(rows, told, **terms)


def test_a_rare_level_that_one_fold_alone_tells_apart_is_no_lack_of_overlap():
    first, second = np.flatnonzero(T == 1)[0], np.flatnonzero(T == 0)[0]
    rare = np.isin(np.arange(len(T)), [first, second])  # each is away from some fold
    rows = np.column_stack([X, rare])
    with pytest.raises(EstimateError, match=r"in 7\d\d rows .*'dml' learns from four fifths"):
        fitted(rows, records(TOLD))
    assert len(fitted(rows, records(TOLD), estimators=("weighting",)).kinds) == 2


AGAINST = {
    "needs an .outcome. table with treatment": {},
    "outcome.weight is for": {"treatment": "t", "weight": "w"},
    "horizons of an effect go together": {"treatment": "t", "event": "e"},
    "takes estimators=": {"treatment": "t", "event": "e", "horizons": (1.0,)},
    "outcome.errors is for": {"treatment": "t", "errors": "party"},
    "name one twice": {"treatment": "t", "estimators": ("dml", "dml")},
}


def test_what_is_no_effect_is_told():
    done = in_parties()
    for words, terms in AGAINST.items():
        with pytest.raises(AgreementError, match=words):
            Agreement(**{**dict(done.agreement), "outcome": Outcome(**terms)})
    with pytest.raises(LabelError, match="a treatment that is neither 0 nor 1"):
        done.parties["north"].prepare(RAW, TOLD.assign(treated=0.5))
    again = in_parties(RAW.assign(x=RAW["age"]), features=(*FEATURES, NumericFeature(name="x")))
    with pytest.raises(EstimateError, match="'age', 'x', 1 follow from the others"):
        again.parties["north"].effects()
    for told, words in (({"n_components": 2}, "no coefficients"), ({"model": "ols"}, "no effect")):
        with pytest.raises(CobasisError, match=words):
            in_three(X, Y, task="regression", **told).parties["north"].effects()


def test_effects_travel_in_the_models_file_which_is_read_strictly():
    model, terms = in_parties().parties["north"].model, {"task": "effect", "n_classes": 0}
    data = encode_chain(model)
    again = decode_chain(data, n_components=3, **terms)
    assert encode_chain(again) == data
    assert again.fit.effects.model_dump() == model.fit.effects.model_dump()
    for word in (b"doubly_robust", b"trimmed", b"before", b"effects.spread"):
        assert word in data
        with pytest.raises(ModelFileError, match=r"its (fit|effects)|not written"):
            decode_chain(data.replace(word, word.swapcase()), n_components=3, **terms)
    graph = raw_graph(FEATURES, model, map_in=np.eye(3), classes=())
    cells = {name: RAW[[name]].to_numpy() for name in RAW}
    agree(run(graph, cells), model, encode(RAW, FEATURES, party="north"))


def test_an_effect_is_read_by_everybody_who_accepts(tmp_path, monkeypatch):
    typed = Typed(tmp_path, monkeypatch)
    typed.signed_on(
        "--task effect --label value --id patient "
        "--outcome treatment=treated,estimators=weighting/matching/dml,trim=0.02 "
        "--numbers age:centre=60,scale=12 --category sex=female,male --numbers crp:scale=4e-9 "
        "--purpose study --retention-days 30 --minimum-parties 3 --holdout 0 --yes"
    )
    assert 'model = "effect"' in (tmp_path / "icu.toml").read_text()
    for at, name in enumerate(NAMES):
        own = RAW.assign(crp=RAW["crp"] * 1e-9).join(TOLD[["treated", "value"]])[at::3]
        ids = [f"{name}-{row}" for row in range(len(own))]
        own.assign(patient=ids).to_csv(tmp_path / f"{name}.csv", index=False)
    typed.send()
    typed.run()
    typed.accept()
    said = typed("score icu.toml north.csv").stdout
    assert "is not scored on rows that were held back" in " ".join(said.split())
    folders = [tmp_path / f"icu.{name}.table" for name in NAMES]
    files = {"effects.csv", "balance.csv", "effects.tex", "effects.html", "love.svg", "love.png"}
    assert {each.name for each in folders[0].iterdir()} == files
    for name in ("effects.csv", "balance.csv"):
        assert len({(each / name).read_bytes() for each in folders}) == 1
    right = fitted(X, records(TOLD), trim=0.02, estimators=("weighting", "matching"))
    small = pl.read_csv(folders[0] / "balance.csv").row(1)[1:6]  # of a unit that needs its digits
    assert np.allclose(small, 1e-9 * right.differences[:, 2], rtol=1e-6, atol=1e-18)
    lines = pl.read_csv(folders[0] / "effects.csv").iter_rows(named=True)
    for line, (effect, error) in zip(lines, estimates(right).values(), strict=False):
        assert np.allclose([line["estimate"], line["standard_error"]], [effect, error], rtol=1e-8)
