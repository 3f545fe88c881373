"""The second exchange of sums: what a model is worth, and probabilities, from counts alone."""

import dataclasses

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, r2_score, roc_auc_score

from cobasis import RandomFourier, SumsTerms, numeric_features
from cobasis.errors import AgreementError, LabelError, MessageError
from cobasis.features.contract import Interaction
from cobasis.linalg.rng import KeyStream
from cobasis.models.chain import Affine, Chain
from cobasis.protocol import scores
from cobasis.protocol.exchanges import exchanges
from cobasis.protocol.projection import RowsInMemory
from cobasis.protocol.scores import N_BINS, TEMPERATURES, ScoreLayout, worth_of
from cobasis.protocol.sums_terms import score_layout
from protocol.summed import NAMES, agree, party, summing

MAPS = (RandomFourier(n_waves=2, bandwidth=1.0),)
TERMS = SumsTerms(maps=MAPS, scores=True, most_rows=900, most_rows_in_all=2000)
ABOUT = {"features": numeric_features(["x", "y"]), "model": "ridge", "holdout": 0.2}
OF_CLASSES = ABOUT | {"task": "classification", "classes": ("a", "b", "c"), "sums": TERMS}
CLASSES = agree(**OF_CLASSES)
NUMBERS = agree(
    **ABOUT, task="regression", sums=TERMS.model_copy(update={"target_range": (-40.0, 40.0)})
)
WEIGHTS = np.array([[0.4, -0.1, -0.3], [0.0, 0.5, -0.5]])
on_both = pytest.mark.parametrize("agreement", [CLASSES, NUMBERS], ids=["classes", "numbers"])


def model_of(agreement):
    head, columns = ("decision", 3) if agreement.classes else ("prediction", 1)
    affine = Affine(weights=WEIGHTS[:, :columns], offset=np.zeros(columns))
    return Chain(family="linear", layers=(affine,), head=head)


def held(name, agreement, *, n_rows=200):
    """Rows whose labels follow from a model three times as sure of itself."""
    rng = np.random.default_rng(NAMES.index(name))
    rows = rng.normal(size=(n_rows, 2))
    if not agreement.classes:
        return rows, 10 * rows @ WEIGHTS[:, 0] + rng.normal(size=n_rows)
    chances = softmax(3 * rows @ WEIGHTS, axis=1)
    return rows, np.array([rng.choice(3, p=each) for each in chances])


def everybody(agreement, **sizes):
    tables = {name: held(name, agreement, **sizes) for name in NAMES}
    return tables, *(np.concatenate(each) for each in zip(*tables.values(), strict=True))


def judged(agreement, tables):
    def scored(party, *table):
        return party.score(RowsInMemory(*table), model_of(agreement))

    return summing(agreement, tables, send=scored, exchange=exchanges(agreement)[1]).judge()


def test_a_score_of_classes_is_that_of_all_held_back_rows_and_gives_the_model_probabilities():
    tables, rows, labels = everybody(CLASSES)
    found, before = judged(CLASSES, tables), model_of(CLASSES)
    outputs = before.outputs(rows)
    assert found.n_rows == 600
    assert found.figures["accuracy"] == accuracy_score(labels, outputs.argmax(axis=1))
    losses = [log_loss(labels, softmax(each * outputs, axis=1)) for each in TEMPERATURES]
    assert found.temperature == TEMPERATURES[np.argmin(losses)]
    assert 2 < found.temperature < 4.5
    assert found.figures["log_loss"] == pytest.approx(min(losses), abs=1e-6)
    area = np.mean([roc_auc_score(labels == place, outputs[:, place]) for place in range(3)])
    assert found.figures["auc"] == pytest.approx(area, abs=0.01)  # ties within a bin
    after = found.calibrated(before)
    assert (before.likely, after.likely) == (False, True)
    np.testing.assert_array_equal(after.predict(rows), before.predict(rows))
    right = softmax(found.temperature * outputs, axis=1)
    np.testing.assert_allclose(after.scores(rows, method="predict_proba"), right, rtol=1e-12)


def test_a_score_of_numbers_is_that_of_all_held_back_rows():
    tables, rows, labels = everybody(NUMBERS)
    found, predicted = judged(NUMBERS, tables), model_of(NUMBERS).predict(rows)
    assert found.figures["r2"] == pytest.approx(r2_score(labels, predicted), abs=1e-6)
    assert found.figures["mae"] == pytest.approx(mean_absolute_error(labels, predicted), rel=1e-6)
    assert found.calibrated(model_of(NUMBERS)).head == "prediction"
    with pytest.raises(LabelError, match="outside the agreed range from -40 to 40"):
        party("north", NUMBERS).score(RowsInMemory(rows, labels + 99), model_of(NUMBERS))
    beyond = OF_NUMBERS.added(np.array([[99.0], [-99.0]]), np.array([40.0, -40.0]))
    assert worth_of(beyond, OF_NUMBERS).figures["mae"] == 0  # what lies beyond is at the end


def test_a_party_with_few_rows_or_few_of_a_class_sends_zeros_and_of_nobodys_there_is_no_score():
    tables, *_ = everybody(CLASSES)
    rows, labels = tables["south"]
    nothing = rows[:0], labels[:0]
    of_others = judged(CLASSES, tables | {"south": nothing})
    assert of_others.n_rows == 400
    rare = np.flatnonzero(labels == 0)[9:]
    for kept in (np.flatnonzero(labels)[:29], np.delete(np.arange(200), rare)):
        assert judged(CLASSES, tables | {"south": (rows[kept], labels[kept])}) == of_others
    found = judged(CLASSES, dict.fromkeys(NAMES, nothing))
    assert (found.n_rows, found.told()) == (0, {"rows": 0.0})
    assert not found.calibrated(model_of(CLASSES)).likely


def test_of_a_rare_class_no_area_is_told_and_of_two_classes_one_has_a_histogram():
    rng = np.random.default_rng(0)
    even, labels = rng.normal(size=5_000), (rng.random(5_000) < 0.01).astype(int)
    truth = (even + rng.normal(size=5_000) > 0).astype(int)
    near, tied = 0.02 * rng.normal(size=5_000) + 0.03 * labels - 0.98, 0 * even
    areas = []
    for truths, *outputs in (
        (truth, -even / 3, even / 3),
        (labels, -near, near),
        (np.arange(5_000) % 3, even / 3, -even / 3, tied),  # of the third class all scores tie
    ):
        layout = ScoreLayout(n_classes=len(outputs), most_rows=30_000)
        words = layout.added(np.column_stack(outputs), truths)
        areas.append(worth_of(words, layout).figures.get("auc"))
    assert areas == [pytest.approx(roc_auc_score(truth, even), abs=0.002), None, None]
    two = ScoreLayout(n_classes=2, most_rows=30_000)
    words = two.added(np.array([[0.0, 9.0]]), np.array([0]))
    assert len(words) == 4 + len(TEMPERATURES) + 2 * N_BINS
    assert words[4 : 4 + len(TEMPERATURES)].max() == 1 << two.bits  # a loss has a bound


@on_both
def test_importance_is_what_shuffling_costs_on_all_held_back_rows(agreement):
    terms = agreement.sums.model_copy(update={"importance": True})
    asked = agreement.model_copy(update={"sums": terms})
    tables, *_ = everybody(agreement, n_rows=800)
    tables |= {"south": held("south", agreement, n_rows=40)}
    few = {**tables, "east": held("east", agreement, n_rows=20)}  # who send zeros
    found, of_two = judged(asked, tables), judged(asked, few)
    assert judged(agreement, tables) == dataclasses.replace(found, importance=())
    rows, labels = (np.concatenate(each) for each in zip(*tables.values(), strict=True))

    def lost(outputs, truth):
        if agreement.classes:
            return np.mean(outputs.argmax(axis=1) != truth)
        return np.mean((outputs[:, 0] - truth) ** 2) / truth.var()

    rng, outputs = np.random.default_rng(0), model_of(agreement).outputs
    for place, (falls, error) in enumerate(found.importance):  # the mean of many shuffles
        mixed, losses = rows.copy(), []
        for _ in range(60):
            mixed[:, place] = rng.permutation(mixed[:, place])
            losses.append(lost(outputs(mixed), labels) - lost(outputs(rows), labels))
        assert abs(falls - np.mean(losses)) <= 4 * error < 0.1
    assert found.importance[0][0] > 0.05
    assert of_two.importance[0][1] > 1.2 * found.importance[0][1]
    assert len(found.importance) == 2


@on_both
def test_an_error_of_importance_is_how_far_it_spreads_over_rows_drawn_anew(agreement, monkeypatch):
    monkeypatch.setattr(scores, "TEMPERATURES", TEMPERATURES[:1])  # no loss matters here
    layout, model = dataclasses.replace(score_layout(agreement), n_shuffled=1), model_of(agreement)
    found = []
    for at in range(400):
        rng, stream = np.random.default_rng(at), KeyStream(at.to_bytes(32, "big"), "x")
        rows = rng.normal(size=(200, 2))
        labels = 4 * rows @ WEIGHTS[:, 0]  # of numbers the column is all that tells
        if agreement.classes:
            likely = softmax(3 * rows @ WEIGHTS, axis=1).cumsum(axis=1)
            labels = (likely < rng.random((200, 1))).sum(axis=1)
        told = {"groups": np.arange(2), "stream": stream}
        shuffled = layout.shuffled(model.outputs, rows, labels=labels, **told)
        words = np.concatenate([layout.added(model.outputs(rows), labels), shuffled])
        # R2 takes the variance of the labels as known, so that it is taken out again
        unit = 1 if agreement.classes else labels.var()
        found.append(unit * np.array(worth_of(words, layout).importance[0]))
    falls, errors = np.array(found).T
    # over 1,600 draws it is 1.14 of classes and 1.05 of numbers; a spread of 400 is known to 3.5 %
    assert 0.92 < errors.mean() / falls.std() < 1.27


def test_a_shuffle_takes_all_of_a_words_columns_together():
    layout = dataclasses.replace(score_layout(NUMBERS), n_shuffled=1)
    rows = np.eye(2)[np.arange(50) % 2]  # two levels: apart they would be rows that nobody has

    def outputs(some):
        assert (some.sum(axis=1) == 1).all()
        return some[:, :1]

    told = {"groups": np.zeros(2, dtype=np.int64), "stream": KeyStream(bytes(32), "x")}
    assert layout.shuffled(outputs, rows, labels=rows[:, 0], **told)[1] > 0


OF_THREE = ScoreLayout(n_classes=3, most_rows=2000, n_shuffled=2)
OF_NUMBERS = ScoreLayout(n_classes=0, between=(-40.0, 40.0), most_rows=2000)
NO_ROWS_HAVE = {
    "more right than rows": (CLASSES, 1, 10**6),
    "a class of more than its rows": (CLASSES, 2, 1),
    "a loss below zero": (CLASSES, 5, -(2**62)),
    "a class for another": (CLASSES, [2, 3], [1, -1]),
    "a bin of nobody": (CLASSES, 5 + len(TEMPERATURES) + np.arange(2), [-(10**6), 10**6]),
    "a row in two bins": (CLASSES, 5 + len(TEMPERATURES) + 2 * N_BINS, 1),
}
for at in range(5):
    NO_ROWS_HAVE[f"word {at} of shuffles"] = (CLASSES, OF_THREE.n_words_of_scores + at, 1 << 60)
    NO_ROWS_HAVE[f"word {at} of errors"] = (NUMBERS, at, 1 << 60)
    NO_ROWS_HAVE[f"word {at} of errors below"] = (NUMBERS, at, -1 << 60)


@pytest.mark.parametrize("kind", NO_ROWS_HAVE)
def test_a_total_of_scores_that_no_rows_have_is_void(kind):
    agreement, place, change = NO_ROWS_HAVE[kind]
    layout, outputs = OF_THREE if agreement.classes else OF_NUMBERS, model_of(agreement).outputs
    rows, labels = held("north", agreement)
    words = layout.added(outputs(rows), labels)
    if layout.n_shuffled:
        told = {"groups": np.arange(2), "stream": KeyStream(bytes(32), "x")}
        shuffled = layout.shuffled(outputs, rows, labels=labels, **told)
        words = np.concatenate([words, shuffled])
    assert worth_of(words, layout).n_rows == 200
    changed = words.copy()
    changed[place] += change
    for some, most_rows in ((changed, 2000), (words, 199)):
        with pytest.raises(MessageError, match="what no rows have"):
            worth_of(some, dataclasses.replace(layout, most_rows=most_rows))


IMPORTANCE = TERMS.model_copy(update={"importance": True})
ALONE = IMPORTANCE.model_copy(update={"scores": False})
REFUSED = {
    "no rows held back": ({"holdout": 0.0}, "scores take holdout above 0"),
    "a table": ({"task": "table", "classes": ()}, "scores take holdout above 0"),
    "importance alone": ({"sums": ALONE}, "importance goes with scores"),
    "an interaction": (
        {"sums": IMPORTANCE, "features": (*ABOUT["features"], Interaction(of=("x", "y")))},
        "interactions would not follow",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_scores_that_cannot_be_made_are_refused_in_the_agreement(kind):
    changes, words = REFUSED[kind]
    with pytest.raises(AgreementError, match=words):
        agree(**OF_CLASSES | changes)
