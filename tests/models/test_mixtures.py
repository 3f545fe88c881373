"""Clusters and novelty of three parties' rows: what scikit-learn finds in the pooled rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from cobasis import numeric_features, simulate
from cobasis.errors import LocalError, MessageError, ModelFileError, RowCarryingError, StepError
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.models.mixtures import fit_clusters, fit_novelty, raw_centres
from cobasis.models.onnx import raw_graph
from cobasis.models.tuning import refuse_row_carrying
from cobasis.protocol.card import card_of, check_card
from cobasis.protocol.training import AlignedRows
from cobasis.report.pages import render_card
from models.test_onnx import agree, run

WIDTH, GROUPS, MODELS = 6, 3, ("kmeans", "gaussian_mixture")
FEATURES = numeric_features("abcdef")


def people(n_rows=600, *, seed=0):
    shapes, rng = np.random.default_rng(7), np.random.default_rng(seed)
    middles, turns = shapes.normal(size=(3, WIDTH)) * 3, shapes.normal(size=(3, WIDTH, WIDTH)) * 0.4
    group = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    rows = middles[group] + np.einsum("ni,nij->nj", rng.normal(size=(n_rows, WIDTH)), turns[group])
    return rows, group


ROWS, GROUP = people()
OWNERS = np.arange(600) % 3


def round_of(task, *, n_components=WIDTH, **options):
    parts = np.array_split(np.argsort(ROWS[:, 0] + 0.3 * ROWS[:, 1]), 3)
    own = {name: (ROWS[part], None) for name, part in zip("abc", parts, strict=True)}
    told = {"n_components": n_components, "basis": "haar", "task": task}
    return simulate(own, rng=np.random.default_rng(1), **told, **options)


def pooled_by(done, **options):
    """The pooled rows in the analyst's order, and scikit-learn's mixture of them."""
    analyst, seed = done.analyst, int.from_bytes(done.agreement.digest()[:4])
    aligned = AlignedRows(analyst.uploads, analyst.alignment.changes_of_basis).block(0).rows
    rows = aligned @ np.linalg.inv(done.parties["a"].transform(np.eye(WIDTH)))
    oracle = GaussianMixture(GROUPS, tol=1e-6, max_iter=200, random_state=seed, **options)
    return rows, oracle.fit(rows)


@pytest.mark.parametrize("model", MODELS)
def test_at_l_equal_m_parties_get_the_clusters_of_the_pooled_rows_and_below_close_ones(model):
    done = round_of("clustering", n_clusters=GROUPS, model=model)
    found = done.predict(ROWS)
    assert all(np.array_equal(each, found["a"]) for each in found.values())
    pooled = KMeans(GROUPS, n_init=10) if model == "kmeans" else GaussianMixture(GROUPS, n_init=5)
    assert adjusted_rand_score(found["a"], pooled.fit_predict(ROWS)) == 1
    sizes = np.bincount(found["a"])[1:]
    assert [*sizes] == sorted(sizes, reverse=True)
    below = round_of("clustering", n_clusters=GROUPS, model=model, n_components=4)
    for truth in (found["a"], GROUP):
        assert adjusted_rand_score(below.predict(ROWS)["a"], truth) > 0.95
    with pytest.raises(StepError, match="no one label"):
        done.score(ROWS, GROUP)
    card, analyst, party = card_of(done.analyst), done.analyst, done.parties["b"]
    np.testing.assert_array_equal(card.shares, np.round(sizes / len(ROWS), 2))
    assert f"by cluster: 1 {100 * card.shares[0]:.0f} %;" in render_card(card)
    told = {"anchor_tag": analyst.uploads["a"].anchor_tag, "consensus": None, "n_rows": 200}
    returned = next(analyst.returns())
    assert check_card(replace(returned, card=card), done.agreement, **told) == card
    fewer = card.model_copy(update={"shares": (1.0,)})
    with pytest.raises(MessageError, match="shares"):
        check_card(replace(returned, card=fewer), done.agreement, **told)
    means = [ROWS[found["a"] == each].mean(axis=0) for each in (1, 2, 3)]
    if model == "gaussian_mixture":
        rows, oracle = pooled_by(done, n_init=3)
        order, aligned = np.argsort(-oracle.weights_), party.transform(rows)
        told = np.logaddexp.reduce(party.model.outputs(aligned), axis=1)
        np.testing.assert_allclose(told, oracle.score_samples(rows), rtol=0, atol=1e-8)
        likely = party.model.scores(aligned, method="predict_proba")
        np.testing.assert_allclose(likely, oracle.predict_proba(rows)[:, order], rtol=0, atol=1e-8)
        means = oracle.means_[order]
    centres = raw_centres(party.model, turn=party.transform(np.eye(WIDTH)), features=FEATURES)
    np.testing.assert_allclose(np.transpose([*centres.values()]), means, rtol=0, atol=1e-8)
    assert raw_centres(party.model, turn=np.eye(7, 6), features=FEATURES) == {}


def test_novelty_is_the_share_of_unseen_rows_that_are_as_unlikely():
    done = round_of("novelty")
    rows, oracle = pooled_by(done)
    assert done.parties["a"].model.widths[3] == GROUPS  # chosen, as nobody agreed on it
    # the more likely a row is under the pooled fit, the larger is its number
    order = np.argsort(oracle.score_samples(rows))
    assert np.all(np.diff(done.predict(rows)["a"][order]) >= 0)
    found = done.predict(people(4_000, seed=5)[0])
    np.testing.assert_array_equal(found["a"], found["c"])
    for share in (0.05, 0.1, 0.5):
        assert abs(np.mean(found["a"] <= share) - share) < 0.03
    np.testing.assert_allclose(done.predict(9 * np.eye(WIDTH))["b"], 1 / 50)  # 12 rows a level


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("clustering", {"n_clusters": 45}, r"of 45 clusters, .*fewer than 10.*\[CB401\]"),
        ("clustering", {"n_clusters": 1}, r"at least two.*\[CB303\]"),
        ("clustering", {}, r"n_clusters goes with task='clustering'.*\[CB107\]"),
        ("clustering", {"n_clusters": 3, "model": KMeans(3)}, r"no family.*\[CB107\]"),
        ("novelty", {"n_clusters": 3}, r"n_clusters goes with.*\[CB107\]"),
        ("novelty", {"model": "kmeans"}, r"no family for novelty.*\[CB107\]"),
    ],
)
def test_what_would_show_rows_or_cannot_be_fitted_is_refused(task, options, words):
    with pytest.raises(LocalError, match=words):
        round_of(task, **options)


@pytest.mark.parametrize("n_apart", [1, 11, 14])
def test_few_rows_apart_make_no_cluster_nor_few_beside_one_partys(n_apart):
    """Of 11 rows apart one party holds 9, of 14 it holds 12; then all."""
    rows = np.vstack([ROWS, 90 + np.random.default_rng(0).normal(size=(n_apart, WIDTH))])
    owners = np.arange(len(rows)) % 3
    owners[600:] = 0
    owners[-2:] = 1
    if n_apart == 1:
        with pytest.raises(RowCarryingError, match=r"holds training rows"):
            refuse_row_carrying(KMeans(4, random_state=0).fit(rows), rows)
    for model in MODELS:
        with pytest.raises(RowCarryingError, match=r"of 4 clusters, 1 \(4\).*\[CB401\]"):
            fit_clusters(rows, owners, model=model, names=(1, 2, 3, 4), fewest=10, seed=0)
    owners[600:] = 0  # a cluster of one party alone: it takes nothing away
    if n_apart > 12:
        fit_clusters(rows, owners, model="kmeans", names=(1, 2, 3, 4), fewest=10, seed=0)
    with pytest.raises(RowCarryingError, match="density and its levels take 24 rows"):
        fit_novelty(rows[:20], owners[:20], fewest=10, seed=0)


@pytest.mark.parametrize("model", [*MODELS, None])
def test_a_file_and_an_onnx_graph_give_what_the_model_gives(model):
    found, task, other = fit_novelty(ROWS, OWNERS, fewest=10, seed=0), "novelty", "classification"
    if model:
        found = fit_clusters(ROWS, OWNERS, model=model, names=(1, 2, 3), fewest=10, seed=0)
        task, other = "clustering", "regression"
    told = {"n_components": WIDTH, "n_classes": GROUPS if model else 0}
    read = decode_chain(encode_chain(found), task=task, **told)
    np.testing.assert_array_equal(read.outputs(ROWS), found.outputs(ROWS))
    with pytest.raises(ModelFileError, match="the agreement is for"):
        decode_chain(encode_chain(found), task=other, **told)
    data = raw_graph(FEATURES, found, map_in=np.eye(WIDTH), classes=(1, 2, 3))
    given = run(data, {each.name: ROWS[:, [at]] for at, each in enumerate(FEATURES)})
    agree(given, found, ROWS)
