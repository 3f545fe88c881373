"""A round of sums: the pooled model from messages that no one of them can be read alone."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Ridge

from cobasis import (
    CategoryFeature,
    Columns,
    NumericFeature,
    RandomFourier,
    SumsTerms,
    numeric_features,
    simulate,
)
from cobasis.errors import (
    AgreementError,
    DuplicatePartyError,
    MessageError,
    OptionError,
    StepError,
    UnknownPartyError,
)
from cobasis.features.contract import Interaction
from cobasis.features.encoder import encode
from cobasis.features.maps import Mixed, turn_of
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.sums import SumsAnalyst
from cobasis.protocol.sums_party import SumsParty
from cobasis.protocol.sums_terms import layout_of
from cobasis.protocol.totals import checked, cut
from protocol.summed import DP, KEYS, NAMES, PUBLIC, agree, dealt, party
from protocol.summed import message as masked

TERMS = SumsTerms(
    maps=(RandomFourier(n_waves=20, bandwidth=3.0),), most_rows=60, most_rows_in_all=150
)
FIELDS = {
    "features": numeric_features("abcd"),
    "task": "classification",
    "classes": (0, 1),
    "model": "ridge",
    "sums": TERMS,
}


def some(n_rows=90):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(n_rows, 4))
    return table, (table.sum(axis=1) > 0).astype(int)


def played(rows, *, seed=0, **options):
    return simulate(rows, rng=np.random.default_rng(seed), **{"release": "sums"} | options)


def sides(keys=KEYS, **changes):
    agreed = agree(**FIELDS | changes)
    return {name: party(name, agreed, keys) for name in NAMES}, SumsAnalyst(agreed, keys=PUBLIC)


def test_three_parties_get_the_ridge_of_the_pooled_cut_map_to_a_millionth():
    table, labels = load_breast_cancer(return_X_y=True)
    features = numeric_features(map(str, range(30)), centre=table.mean(0), scale=table.std(0))
    waves = RandomFourier(n_waves=100, bandwidth=8.0, seed=3)
    done = played(dealt(table, labels), features=features, maps=[waves])
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
    assert "for each of the 200 features of map 1 of 1: red" in " ".join(str(done).split())


def test_columns_give_the_pooled_regression_in_the_targets_own_units():
    table, target = load_diabetes(return_X_y=True)
    low, high = table.min(axis=0), table.max(axis=0)
    ends = zip(low.tolist(), high.tolist(), strict=True)
    features = [NumericFeature(name=str(at), low=a, high=b) for at, (a, b) in enumerate(ends)]
    rows = dealt(table, target)
    done = played(rows, task="regression", features=features, maps=[Columns()])
    whole, span = (2 * table - low - high) / (high - low), np.ptp(target)
    right = Ridge(alpha=done.result.found[0].penalty, solver="svd").fit(whole, target)
    np.testing.assert_allclose(done.predict(table)["south"], right.predict(whole), atol=1e-5 * span)
    assert done.score(table, target)["north"] > 0.51
    assert done.result.model.family == "linear"


def test_the_model_of_the_mixed_map_is_a_chain_that_predicts_as_its_features_do():
    table, labels = some()
    each = Mixed.from_public_rows(table, pieces=6, n_waves=20)
    features = numeric_features("abcd")
    done = played(dealt(table, labels), maps=[each])
    outer = table * 1.5  # beyond the last knots as well
    right = done.result.found[0].fitted.apply(turn_of(each, features).apply(outer))[:, 1]
    scores = done.result.model.scores(outer, method="decision_function")
    np.testing.assert_allclose(scores, 2 * right - 1, atol=1e-8)


def test_maps_that_are_not_given_are_waves_of_half_once_and_twice_the_scale_of_all_rows():
    """That of scikit-learn's gamma='scale': half of all columns' variances, added up."""
    rows = dealt(*some())
    maps = played(rows).agreement.sums.maps
    scale = np.sqrt(some()[0].var(axis=0).sum() / 2)
    assert {each.kind for each in maps} == {"rff"}
    assert [each.bandwidth for each in maps] == pytest.approx([scale / 2, scale, 2 * scale])


def test_evidence_takes_the_map_that_fits():
    rng = np.random.default_rng(2)
    table = rng.uniform(-3, 3, size=(300, 2))
    features = [NumericFeature(name=name, low=-3.0, high=3.0) for name in "ab"]
    straight, curved = table @ [1.0, 2.0], np.sin(2 * table[:, 0]) * table[:, 1]
    maps = [Columns(), RandomFourier(n_waves=50, bandwidth=1.0)]
    for place, target in enumerate((straight, curved)):
        rows = dealt(table, target + 0.1 * rng.normal(size=300))
        done = played(rows, task="regression", features=features, maps=maps)
        assert done.result.chosen == place
        assert done.result.rows_per_feature == 300 / 100  # of the map that tells most


def test_a_class_that_nobody_has_is_never_predicted():
    table, labels = some()
    parties, analyst = sides(classes=(0, 1, 2))
    for name, (own, told) in dealt(table, labels).items():
        analyst.receive(parties[name].prepare(own, told))
    model = analyst.run().model
    assert model.widths[-1] == 3
    assert {*model.predict(100 * table)} == {0, 1}
    parties, analyst = sides()
    for each in parties.values():
        analyst.receive(each.prepare(table[:20], np.ones(20, dtype=int)))
    with pytest.raises(StepError, match="of one class"):
        analyst.run()


def test_all_or_nothing_and_each_once():
    table, labels = some()
    parties, analyst = sides()
    messages = {n: parties[n].prepare(*own) for n, own in dealt(table, labels).items()}
    words = messages["south"].words
    for wrong, told in (
        ({"exchange": 2, "roster": bytes(32)}, "another step or attempt"),  # and is no measure
        ({"attempt": 2}, "another step or attempt"),
        *(({"words": each}, "and this exchange has") for each in (words[1:], words.astype(float))),
    ):
        with pytest.raises(MessageError, match=told):
            analyst.receive(replace(messages["south"], **wrong))
    analyst.receive(messages["north"])
    two = dict(list(PUBLIC.items())[:2])
    with pytest.raises(MessageError, match="'east' was left out of attempt 1"):
        SumsAnalyst(analyst.agreement, keys=two).receive(messages["east"])
    analyst.receive(messages["south"])
    with pytest.raises(StepError, match="the sums of east are not in"):
        analyst.run()
    with pytest.raises(DuplicatePartyError):
        analyst.receive(messages["south"])
    with pytest.raises(StepError, match=r"would show what changed.*\[CB305\]"):
        parties["north"].prepare(table[:29], labels[:29])
    analyst.receive(messages["east"])
    parties["north"].accept(next(analyst.returns(analyst.run().model)))
    assert np.mean(parties["north"].predict(table) == labels) > 0.9


ROSTERS = {
    "nobody else": {"north": PUBLIC["north"]},
    "one less": {name: PUBLIC[name] for name in NAMES[:2]},
    "another order": dict(reversed(PUBLIC.items())),
    "a stranger": {**PUBLIC, "west": MaskKey().public},
    "one for two": {**PUBLIC, "east": PUBLIC["south"]},
}


@pytest.mark.parametrize("kind", ROSTERS)
def test_a_party_makes_no_sums_but_under_one_key_of_every_other_party(kind):
    """Under those of nobody else they would leave in the clear."""
    given = {"agreement": agree(**FIELDS), "key": KEYS["north"], "keys": ROSTERS[kind]}
    with pytest.raises(StepError, match=r"one key of each of north, south, east.*\[CB305\]"):
        SumsParty("north", **given)
    with pytest.raises(StepError, match="of 3 at least"):  # nor where some were left out
        SumsParty("north", **given, attempt=2)


def test_a_target_that_is_one_number_is_learned():
    rows = dealt(some()[0], np.full(90, 7.0))
    done = played(rows, task="regression", maps=list(TERMS.maps))
    np.testing.assert_allclose(done.predict(np.zeros((2, 4)))["north"], 7.0, atol=1e-5)


def test_more_or_fewer_rows_than_agreed_are_refused_before_they_are_summed():
    for terms, words in (({"most_rows": 29}, "takes 0 to 29"), ({"least_rows": 31}, "takes 31 to")):
        agreed = agree(**FIELDS | {"sums": TERMS.model_copy(update=terms)})
        with pytest.raises(AgreementError, match=words):
            party("north", agreed, KEYS).prepare(*some(30))


def test_a_round_of_rows_has_no_sums_and_a_stranger_no_part():
    with pytest.raises(UnknownPartyError):
        SumsParty("west", agreement=agree(**FIELDS), key=MaskKey(), keys={})
    rows = {"release": "rows", "sums": None, "n_components": 2, "n_anchor_rows": 4}
    with pytest.raises(StepError, match="has release='rows'"):
        SumsAnalyst(agree(**FIELDS | rows, commitment="1" * 64), keys=PUBLIC)


OPTIONS = {
    "a basis": ({"basis": "haar"}, "basis 'haar' is for rows"),
    "public rows": ({"public_rows": np.zeros((5, 4))}, "public_rows is for rows"),
    "a family": ({"model": "mlp"}, "model 'mlp' is for rows"),
    "a release that is none": ({"release": "both"}, "release 'both' does not exist"),
    "no maps": ({"maps": []}, "maps are not 1 to 8 of Columns"),
    "maps of rows": ({"release": "rows", "n_components": 2, "maps": [Columns()] * 2}, "not 1 to 1"),
    "rows without components": ({"release": "rows"}, "n_components=None is no"),
    "a bandwidth from rows": ({"dp": DP}, "the default one looks at rows"),
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_simulate_says_which_options_a_release_has_no_place_for(kind):
    changes, words = OPTIONS[kind]
    with pytest.raises(OptionError, match=words):
        played(dealt(*some()), **changes)


def test_masks_are_those_of_agreement_roster_and_layout_as_the_reference_page_says():
    agreed, rows = agree(**FIELDS), dealt(*some())["north"]
    given = {"agreement": agreed, "key": MaskKey(bytes([1]) * 32, simulated=True), "keys": PUBLIC}
    message, layout = SumsParty("north", **given).prepare(*rows), layout_of(agreed)
    assert message.simulated  # and no bundle is made of it
    roster = hashlib.sha256("".join(f"{x}={key};" for x, key in PUBLIC.items()).encode()).digest()
    salt = hashlib.sha256(agreed.digest() + roster + layout.digest()).digest()
    nothing = np.zeros(layout.n_words, dtype=np.int64)
    mask = masked("north", sums=nothing, salt=salt)
    assert checked(layout, (message.words - mask).view(np.int64), n_waves=[20]).n_rows == 30


def test_small_cells_are_those_of_words_and_classes_where_columns_themselves_are_summed():
    rng, maps = np.random.default_rng(0), (*TERMS.maps, Columns())
    table = pd.DataFrame({"a": rng.choice(["no", "yes"], 30), "b": rng.choice([*"uvwxyz"], 30)})
    labels, number = rng.integers(2, size=30), NumericFeature(name="n", low=0.0, high=1.0)
    words = (("a", ("no", "yes"), "no"), ("b", tuple("uvwxyz"), None))
    features = [CategoryFeature(name=x, values=each, base=base) for x, each, base in words]
    features += [number, Interaction(of=("a", "n"))]  # of which neither is of words alone
    hot = np.array([table["a"] == "no", table["a"] == "yes", labels, 1 - labels]).astype(int)
    hot = np.vstack([hot, [table["b"] == each for each in "uvwxyz"]])
    counts = np.triu(hot @ hot.T)
    for some_maps, small in ((maps, np.sum((counts > 0) & (counts < 5))), (TERMS.maps, None)):
        terms = TERMS.model_copy(update={"maps": some_maps})
        north = party("north", agree(**FIELDS | {"features": tuple(features), "sums": terms}))
        north.prepare(table.assign(n=0.99), labels)
        assert north.small_cells == small


@pytest.mark.parametrize("steps", [None, 8], ids=["maps", "steps"])
def test_small_cells_of_three_words_are_counted_where_products_of_two_are_summed(steps):
    """With products of two words the total holds three of them, and pairs of pairs."""
    words = [CategoryFeature(name=name, values=("no", "yes"), base="no") for name in "abc"]
    cells = np.array(np.meshgrid(*[["no", "yes"]] * 3)).reshape(3, 8).T
    maps = () if steps else (Columns(),)
    fitted = {"model": "logit" if steps else "ridge"}
    fitted["sums"] = SumsTerms(most_rows=99, most_rows_in_all=200, maps=maps, steps=steps)
    pairs = [Interaction(of=tuple(pair)) for pair in ("ab", "ac", "bc")]
    table = pd.DataFrame(cells.repeat([10] * 7 + [2], axis=0), columns=[*"abc"])
    for more, small in (([], 0), (pairs, 6)):
        one = party("north", agree(**FIELDS | fitted | {"features": (*words, *more)}))
        one.prepare(table, np.arange(len(table)) % 2)
        assert one.small_cells == small
