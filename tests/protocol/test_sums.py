"""A round of sums: the pooled model from messages that no one of them can be read alone."""

import re

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge

from cobasis import Columns, NumericFeature, RandomFourier, SumsTerms, numeric_features, simulate
from cobasis.errors import (
    AgreementError,
    CobasisError,
    DuplicatePartyError,
    LabelError,
    MessageError,
    OptionError,
    StepError,
    UnknownPartyError,
)
from cobasis.features.encoder import encode
from cobasis.features.maps import Mixed, turn_of
from cobasis.models.chain_file import decode_chain, encode_chain
from cobasis.protocol.agreement import Agreement
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.sums import SumsAnalyst
from cobasis.protocol.sums_party import SumsParty
from cobasis.protocol.totals import cut

NAMES = ("north", "south", "east")
TERMS = SumsTerms(
    maps=(RandomFourier(n_waves=20, bandwidth=3.0),), most_rows=60, most_rows_in_all=150
)


def dealt(table, labels, names=NAMES):
    return {
        name: (table[at :: len(names)], labels[at :: len(names)]) for at, name in enumerate(names)
    }


def some(n_rows=90):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(n_rows, 4))
    return table, (table.sum(axis=1) > 0).astype(int)


def agree(**changes):
    fields = {
        "round_id": "icu-2026",
        "parties": NAMES,
        "features": numeric_features("abcd"),
        "task": "classification",
        "classes": (0, 1),
        "model": "ridge",
        "minimum_parties": 3,
        "release": "sums",
        "sums": TERMS,
    }
    return Agreement(**{**fields, **changes})


def sides(agreement=None):
    """Three parties and an analyst."""
    agreed = agreement or agree()
    keys = {name: MaskKey() for name in NAMES}
    public = {name: key.public for name, key in keys.items()}
    made = {n: SumsParty(n, agreement=agreed, key=keys[n], keys=public) for n in NAMES}
    return made, SumsAnalyst(agreed)


def test_three_parties_get_the_ridge_of_the_pooled_cut_map_to_a_millionth():
    table, labels = load_breast_cancer(return_X_y=True)
    features = numeric_features(map(str, range(30)), centre=table.mean(0), scale=table.std(0))
    waves = RandomFourier(n_waves=100, bandwidth=8.0, seed=3)
    rng = np.random.default_rng(0)
    done = simulate(dealt(table, labels), rng=rng, release="sums", features=features, maps=[waves])
    encoded = encode(table, features, party="all")
    mapped = cut(turn_of(waves, features).apply(encoded), bits=20) / 2**20
    made = done.result.found[0]
    right = Ridge(alpha=made.penalty, solver="svd").fit(mapped, labels).predict(mapped)
    np.testing.assert_allclose(made.fitted.apply(mapped)[:, 1], right, atol=1e-6)
    # the model maps rows without cutting them, which moves its scores by little
    scores = done.result.model.scores(encoded, method="decision_function")
    np.testing.assert_allclose(scores, 2 * right - 1, atol=1e-4)
    assert len({*done.score(table, labels).values()}) == 1
    assert done.result.total.n_rows == len(table)
    assert re.search(
        r"2\.8\d for each of the [\d,]+ features of map 1 of 1: red", " ".join(str(done).split())
    )


def test_columns_give_the_pooled_regression_in_the_targets_own_units():
    table, target = load_diabetes(return_X_y=True)
    features = [
        NumericFeature(name=str(at), low=float(column.min()), high=float(column.max()))
        for at, column in enumerate(table.T)
    ]
    rows = dealt(table, target)
    done = simulate(
        rows,
        rng=np.random.default_rng(0),
        release="sums",
        task="regression",
        features=features,
        maps=[Columns()],
    )
    low, high = table.min(axis=0), table.max(axis=0)
    whole, span = (2 * table - low - high) / (high - low), np.ptp(target)
    right = Ridge(alpha=done.result.found[0].penalty, solver="svd").fit(whole, target)
    np.testing.assert_allclose(done.predict(table)["south"], right.predict(whole), atol=1e-5 * span)
    assert done.score(table, target)["north"] > 0.51
    assert done.result.model.family == "linear"


def test_the_model_of_the_mixed_map_is_a_chain_that_predicts_as_its_features_do():
    table, labels = some()
    each = Mixed.from_public_rows(table, pieces=6, n_waves=20)
    features = numeric_features("abcd")
    done = simulate(dealt(table, labels), rng=np.random.default_rng(0), release="sums", maps=[each])
    outer = table * 1.5  # beyond the last knots as well
    right = done.result.found[0].fitted.apply(turn_of(each, features).apply(outer))[:, 1]
    scores = done.result.model.scores(outer, method="decision_function")
    np.testing.assert_allclose(scores, 2 * right - 1, atol=1e-8)
    told = encode_chain(done.result.model)
    again = decode_chain(told, n_components=4, task="classification", n_classes=2)
    np.testing.assert_array_equal(again.predict(outer), done.result.model.predict(outer))


def test_how_rows_are_dealt_changes_no_bit_of_the_model():
    table, labels = some()
    order = np.argsort(labels, kind="stable")
    maps = [RandomFourier(n_waves=20, bandwidth=2.0)]
    models = [
        simulate(rows, rng=np.random.default_rng(seed), release="sums", maps=maps).result.model
        for seed, rows in enumerate([dealt(table, labels), dealt(table[order], labels[order])])
    ]
    for one, two in zip(*(model.layers for model in models), strict=True):
        if not isinstance(one, str):
            assert np.array_equal(one.weights, two.weights)


def test_evidence_takes_the_map_that_fits():
    rng = np.random.default_rng(2)
    table = rng.uniform(-3, 3, size=(300, 2))
    features = [NumericFeature(name=name, low=-3.0, high=3.0) for name in "ab"]
    straight, curved = table @ [1.0, 2.0], np.sin(2 * table[:, 0]) * table[:, 1]
    maps = [Columns(), RandomFourier(n_waves=50, bandwidth=1.0)]
    chosen = [
        simulate(
            dealt(table, target + 0.1 * rng.normal(size=300)),
            rng=rng,
            release="sums",
            task="regression",
            features=features,
            maps=maps,
        ).result.chosen
        for target in (straight, curved)
    ]
    assert chosen == [0, 1]


def test_a_class_that_nobody_has_is_never_predicted():
    table, labels = some()
    parties, analyst = sides(agree(classes=(0, 1, 2)))
    for name, (own, told) in dealt(table, labels).items():
        analyst.receive(parties[name].prepare(own, told))
    model = analyst.run().model
    assert model.widths[-1] == 3
    assert {*model.predict(100 * table)} == {0, 1}
    parties, analyst = sides()
    for party in parties.values():
        analyst.receive(party.prepare(table[:20], np.ones(20, dtype=int)))
    with pytest.raises(StepError, match="of one class"):
        analyst.run()


def test_all_or_nothing_and_each_once():
    table, labels = some()
    parties, analyst = sides()
    messages = {n: parties[n].prepare(*own) for n, own in dealt(table, labels).items()}
    analyst.receive(messages["north"])
    analyst.receive(messages["south"])
    with pytest.raises(StepError, match="the sums of east are not in"):
        analyst.run()
    with pytest.raises(DuplicatePartyError):
        analyst.receive(messages["south"])
    with pytest.raises(StepError, match=r"would show what changed.*\[CB305\]"):
        parties["north"].prepare(table[:29], labels[:29])
    with pytest.raises(StepError, match="no model yet"):
        parties["north"].predict(table)
    analyst.receive(messages["east"])
    parties["north"].accept(analyst.run().model)
    assert np.mean(parties["north"].predict(table) == labels) > 0.9


REFUSED = {
    "too many rows": (AgreementError, "has 61 rows, and the agreement takes 0 to 60", 61, None),
    "a class that is not agreed": (LabelError, "none of the 2 agreed classes", 20, 7),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_party_sends_no_sums_of_rows_that_were_not_agreed(kind):
    error, words, n_rows, label = REFUSED[kind]
    table, labels = some()
    labels[0] = labels[0] if label is None else label
    parties, _ = sides()
    with pytest.raises(error, match=words):
        parties["north"].prepare(table[:n_rows], labels[:n_rows])


def test_a_target_outside_its_range_and_too_few_rows_are_refused():
    terms = TERMS.model_copy(update={"target_range": (0.0, 1.0), "least_rows": 10})
    parties, _ = sides(agree(task="regression", classes=(), sums=terms))
    table, _ = some()
    with pytest.raises(LabelError, match=r"1 label\(s\) outside the agreed range from 0 to 1"):
        parties["north"].prepare(table[:20], np.linspace(0, 1.01, 20))
    with pytest.raises(AgreementError, match="has 9 rows, and the agreement takes 10 to 60"):
        parties["north"].prepare(table[:9], np.zeros(9))


def test_a_party_with_another_map_voids_the_total_or_has_another_agreement():
    table, labels = some()
    rows = dealt(table, labels)
    parties, analyst = sides()
    other = TERMS.model_copy(update={"maps": (RandomFourier(n_waves=20, bandwidth=3.0, seed=1),)})
    strangers, _ = sides(agree(sums=other))
    with pytest.raises(MessageError, match="belongs to another agreement"):
        analyst.receive(strangers["north"].prepare(*rows["north"]))
    small = TERMS.model_copy(update={"maps": (RandomFourier(n_waves=2, bandwidth=3.0),)})
    strangers, _ = sides(agree(sums=small))
    message = strangers["north"].prepare(*rows["north"])
    vars(message)["agreement_digest"] = analyst.agreement.digest()
    with pytest.raises(MessageError, match="are 28 numbers, and this exchange has 946"):
        analyst.receive(message)
    made, _ = sides()  # other keys, so nothing cancels
    messages = {n: p.prepare(*rows[n]) for n, p in {**parties, "east": made["east"]}.items()}
    analyst.receive(messages["north"])
    with pytest.raises(MessageError, match=r"'east' are masked for other participants"):
        analyst.receive(messages["east"])
    for message in (messages["south"], messages["east"]):
        vars(message)["roster"] = messages["north"].roster
        analyst.receive(message)
    with pytest.raises(MessageError, match="add up to what no rows have"):
        analyst.run()


ROSTERS = {
    "nobody else": lambda keys: {"north": keys["north"]},
    "one less": lambda keys: {name: keys[name] for name in ("north", "south")},
    "another order": lambda keys: dict(reversed(keys.items())),
    "a stranger": lambda keys: {**keys, "west": MaskKey().public},
    "one for two": lambda keys: {**keys, "east": keys["south"]},
}


@pytest.mark.parametrize("kind", ROSTERS)
def test_a_party_makes_no_sums_but_under_one_key_of_every_other_party(kind):
    """Under those of nobody else they would leave in the clear."""
    made = {name: MaskKey() for name in NAMES}
    keys = ROSTERS[kind]({name: key.public for name, key in made.items()})
    with pytest.raises(StepError, match=r"one key of each of north, south, east.*\[CB305\]"):
        SumsParty("north", agreement=agree(), key=made["north"], keys=keys)


LABELS = {
    "none": (None, "are missing"),
    "words": (np.array(["a", "b", "c"] * 10), "need to be finite real numbers"),
    "not finite": (np.full(30, np.nan), "need to be finite real numbers"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_no_numbers_are_refused_in_the_words_of_labels(kind):
    labels, words = LABELS[kind]
    rows = dealt(*some())
    rows["south"] = rows["south"][0], labels
    with pytest.raises(LabelError, match=words):
        simulate(rows, rng=np.random.default_rng(0), release="sums", task="regression")


def test_a_target_that_is_one_number_is_learned():
    rows = dealt(some()[0], np.full(90, 7.0))
    done = simulate(rows, rng=np.random.default_rng(0), release="sums", task="regression")
    np.testing.assert_allclose(done.predict(np.zeros((2, 4)))["north"], 7.0, atol=1e-5)


def test_a_round_of_rows_has_no_sums_and_a_stranger_no_part():
    with pytest.raises(UnknownPartyError):
        SumsParty("west", agreement=agree(), key=MaskKey(), keys={})
    rows = agree(release="rows", sums=None, n_components=2, n_anchor_rows=4, commitment="1" * 64)
    with pytest.raises(StepError, match="has release='rows'"):
        SumsAnalyst(rows)


OPTIONS = {
    "a basis": ({"basis": "haar"}, "basis='haar' is for rows"),
    "components": ({"n_components": 2}, "n_components=2 is for rows"),
    "public rows": ({"public_rows": np.zeros((5, 4))}, "public_rows is for rows"),
    "a family": ({"model": "mlp"}, "model='mlp' is for rows"),
    "a release that is none": ({"release": "both"}, "release='both' does not exist"),
    "no maps": ({"maps": []}, "maps are not 1 to 8 of Columns"),
    "maps by name": ({"maps": ["rff"]}, "maps are not 1 to 8 of Columns"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_simulate_says_which_options_sums_have_no_place_for(kind):
    changes, words = OPTIONS[kind]
    with pytest.raises(CobasisError, match=words):
        simulate(dealt(*some()), rng=np.random.default_rng(0), **{"release": "sums", **changes})


def test_rows_take_no_maps_and_need_components():
    for options in ({"n_components": 2, "maps": [Columns()]}, {}):
        with pytest.raises(OptionError, match=r"maps go with|n_components=None is no"):
            simulate(dealt(*some()), rng=np.random.default_rng(0), **options)
