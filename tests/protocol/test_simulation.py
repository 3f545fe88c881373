"""simulate: every option of the table takes part in a real round."""

import re
import warnings
from typing import get_args

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from cobasis import ODC, NumericFeature, Outcome, PrivacyWarning, simulate
from cobasis.algorithms import AlignerName
from cobasis.errors import CobasisError, StepError
from cobasis.features.maps import Mixed, RandomFourier, turn_of
from cobasis.protocol.newton import N_STEPS
from protocol.consortium import COMPONENTS, NAMES, WIDTH, simulated, tables, trained


def accuracy(done):
    return np.mean([*done.score(*tables(0, n_rows=200)["west"]).values()])


def public_rows():
    return tables(0, names=("public",), n_rows=40)["public"][0]


@pytest.mark.parametrize("aligner", get_args(AlignerName))
@pytest.mark.parametrize("basis", ["svd", "pca", "lpp", "consensus"])
def test_every_aligner_learns_from_every_basis_that_needs_no_public_rows(aligner, basis):
    assert accuracy(simulated(aligner=aligner, basis=basis)) > 0.9


ANCHORS = {
    "isometric": ({}, WIDTH, None),
    "gaussian": ({}, 1000, None),
    "uniform": ({}, 1000, r"\[CB501\]$"),
    "public": ({"public_rows": public_rows()}, len(public_rows()), "colluder"),
    "smote": ({"public_rows": public_rows()}, 1000, "mixes public rows"),
}


@pytest.mark.parametrize("anchor", ANCHORS)
def test_every_anchor_learns_and_warns_once_where_it_tells_of_rows(anchor):
    options, n_rows, warning = ANCHORS[anchor]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = simulated(anchor=anchor, **options)
    assert [each.category for each in caught] == [PrivacyWarning] * (warning is not None)
    assert all(re.search(warning, str(each.message)) for each in caught)
    assert done.agreement.n_anchor_rows == n_rows
    assert accuracy(done) > 0.9


@pytest.mark.parametrize("condition", ["samespan_orth", "samespan", "diffspan_orth", "diffspan"])
def test_the_papers_span_conditions_are_what_they_are_called(condition):
    done = simulated(span_condition=condition, aligner="whitened")
    assert accuracy(done) > 0.9
    if condition.endswith("_orth"):
        residuals = [each.residual for each in done.analyst.certificate.parties.values()]
        assert (max(residuals) < 1e-10) is (condition == "samespan_orth")


KNOWN = public_rows()
MAPS = RandomFourier(n_waves=8, bandwidth=9.0), Mixed.from_public_rows(KNOWN, pieces=2, n_waves=4)


@pytest.mark.parametrize("basis", ["haar", "public"])
@pytest.mark.parametrize("each", MAPS, ids=lambda each: each.kind)
def test_rows_through_a_map_and_a_whole_basis_give_the_pooled_fit_of_mapped_rows(each, basis):
    rows, told = tables(), {"maps": [each], "n_components": 16 if each.kind == "rff" else 20}
    told |= {"public_rows": KNOWN} if basis == "public" else {}
    done = simulated(basis=basis, model=Ridge(alpha=0.01), task="regression", **told)
    features, table = done.agreement.features, np.vstack([x for x, _ in rows.values()])
    mapped = turn_of(each, features).apply(table)
    labels = np.hstack([y for _, y in rows.values()])
    right = Ridge(alpha=0.01).fit(mapped, labels).predict(mapped)
    size = (done.agreement.n_features, done.agreement.n_anchor_rows, mapped.shape[1])
    assert size == (told["n_components"],) * 3
    for name, found in done.predict(table).items():
        np.testing.assert_allclose(found, right, atol=1e-8, err_msg=name)


FEW = tables(names=NAMES[1:])
FEW["west"] = tuple(each[:2] for each in FEW["west"])  # fewer rows than components
WRONG = {
    "aligner": ({"aligner": "foo"}, "aligner 'foo' does not exist; there are odc, gopp, whitened"),
    "an aligner's class": ({"aligner": ODC}, r"an aligner such as ODC\(\)"),
    "anchor": ({"anchor": 3}, "anchor 3 does not exist; there are isometric, gaussian"),
    "table": ({"task": "table"}, "task='table' is for parties' own tables"),
    "model": ({"model": "forest"}, "model 'forest' does not exist; there are logistic, ridge"),
    "a number for a model": ({"model": 3}, "model is n"),
    "span condition": ({"span_condition": "otherspan"}, "'otherspan' does not exist"),
    "a condition and a basis": (
        {"basis": "haar", "span_condition": "samespan"},
        "basis='haar' would have no effect",
    ),
    "rng": ({"rng": 7}, r"np.random.default_rng\(seed\)"),
    "no features": ({"features": ()}, "features is empty"),
    "names": ({"features": ["age"]}, r"features holds 'age'.*numeric_features\(names\)"),
    "rows": ({"rows": [1, 2]}, r"\{'north': \(X, y\)\}"),
    "a party's rows": ({"rows": {"north": np.eye(6)}}, r"\{'north': \(X, y\)\}"),
    "basis": ({"basis": "magic"}, "basis 'magic' does not exist"),
    "anchor rows": ({"n_anchor_rows": 0}, "n_anchor_rows=0 is no whole number"),
    "no components": ({"n_components": None}, "n_components=None is no whole number"),
    "dp": ({"dp": {"epsilon": 1}}, "dp is no DPTerms"),
    "public rows unused": ({"public_rows": np.eye(6)}, "public_rows go with"),
    "two at once": ({"aligner": "foo", "rng": None}, "rng is no .*; aligner 'foo' does not"),
    "public rows of one direction": (
        {"basis": "public", "public_rows": np.ones((5, WIDTH))},
        "5 public rows have 1 independent",
        "CB303",
    ),
    "nobody": ({"rows": {}}, "no party", "CB102"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_an_option_does_not_take_is_refused_in_the_words_of_the_call(case):
    given, reason, code = (*WRONG[case], "CB107")[:3]
    with pytest.raises(CobasisError, match=rf"{reason}.*\[{code}\]$") as caught:
        simulated(**given)
    assert "sign" not in str(caught.value)


def test_a_representation_round_sends_no_labels_trains_no_model_and_transforms():
    rows = {name: (X, None) for name, (X, _) in tables().items()}
    done = simulated(rows, task="representation", model=None)
    assert all(done.analyst.uploads[name].labels is None for name in NAMES)
    assert done.parties["north"].transform(rows["south"][0]).shape == (30, COMPONENTS)
    assert all(each.model is None for each in trained(done.analyst).values())
    with pytest.raises(StepError, match="trained no model"):
        done.parties["north"].predict(rows["north"][0])


def test_what_has_several_columns_of_labels_is_not_scored_by_one_and_one_column_is():
    rows = {
        name: (X, {"value": 1.0 + X[:, 0] ** 2, "died": y}) for name, (X, y) in tables().items()
    }
    given = {"n_components": None, "model": None}
    done = simulated(rows, task="survival", outcome=Outcome(event="died"), **given)
    with pytest.raises(StepError, match=r"survival' has no one label.*\[CB305\]$"):
        done.score({"west": rows["west"][0]}, {"west": rows["west"][1]})
    lines = {name: (X, X[:, 0]) for name, (X, _) in rows.items()}
    given["model"] = "ols"
    done = simulated(lines, task="regression", outcome=Outcome(errors="robust"), **given)
    assert min(done.score(*lines["west"]).values()) > 1 - 1e-9


def test_excluded_parties_get_nothing_and_leave_no_trace_and_one_alone_makes_a_round():
    done = simulated(exclude=["north"])
    returned = done.parties["south"]._return
    assert returned.trained_on == returned.target_carries + NAMES[2:] == NAMES[1:]
    with pytest.raises(StepError, match="no return"):
        done.parties["north"].predict(tables()["north"][0])
    assert accuracy(simulated(tables(names=("only",)))) > 0.8


@pytest.mark.parametrize("basis", ["consensus", "weighted_consensus"])
def test_a_party_with_two_rows_takes_part_through_a_consensus_basis(basis):
    assert accuracy(simulated(FEW, basis=basis)) > 0.9


def test_steep_counts_take_more_steps_than_a_usual_agreement_has():
    rng = np.random.default_rng(0)
    dose = rng.uniform(-3, 3, (600, 1))
    counts = rng.poisson(np.exp(2 * dose[:, 0] - 2))
    rows = {name: (dose[at::3], counts[at::3]) for at, name in enumerate(["a", "b", "c"])}
    told = {"task": "count", "features": [NumericFeature(name="dose", low=-3.0, high=3.0)]}
    done = simulate(rows, rng=rng, release="sums", model="poisson", **told)
    [_, slope] = done.parties["a"].coefficients().lines
    assert slope.estimate == pytest.approx(2, abs=0.1)
    assert len(done.analyst.before) + 1 > N_STEPS


@pytest.mark.parametrize("names", [(1, 2), ("well", "ill")])
def test_class_weights_of_an_estimator_go_by_the_labels_that_parties_have(names):
    first, rows = min(names), tables()
    named = {name: (X, np.array(names)[y]) for name, (X, y) in rows.items()}
    heavy = LogisticRegression(class_weight={first: 1.0, max(names): 1e-9})
    found = simulated(named, model=make_pipeline(heavy)).predict(rows["west"][0])
    assert {*np.concatenate([*found.values()]).tolist()} == {first}
    assert heavy.class_weight[first] == 1.0
