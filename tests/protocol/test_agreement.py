"""The agreement: strict, frozen, free of contradictions, and its digest covers every field."""

import hashlib
import json
from datetime import UTC, datetime
from typing import get_args

import numpy as np
import pytest
from pydantic import ValidationError

import cobasis
from cobasis import Agreement, ConsortiumSecret, Holding, NumericFeature, Outcome, numeric_features
from cobasis.algorithms import AlignerName
from cobasis.errors import AgreementError, OptionError
from cobasis.features.contract import CategoryFeature
from cobasis.features.maps import Columns, Mixed, RandomFourier
from cobasis.protocol.agreement import missing_fields
from cobasis.protocol.enrolment import Approver, Record
from cobasis.protocol.sums_terms import SumsTerms
from cobasis.strict_json import canonical_json
from protocol.consortium import NAMES, NONE, RANDOMISED, WIDTH, agree, terms
from protocol.people import ANALYST, PEOPLE, REAL, identity

SECRET = ConsortiumSecret(bytes(32))
DIGEST = "ab" * 32
FILLED = NumericFeature(name="lactate", unit="mmol/l", low=0, missing="fill", fill=1)
WIDE = numeric_features(f"x{column}" for column in range(8193))
WARD = CategoryFeature(name="ward", values=("icu", "surgery"), unknown="other", missing="level")


def made(**changes):
    return agree(SECRET, **changes)


SUMMED = SumsTerms(
    maps=(RandomFourier(bandwidth=2.0), Columns()), most_rows=500, most_rows_in_all=2000
)
SUMS = {
    "release": "sums",
    "sums": SUMMED,
    "features": (NumericFeature(name="x0", low=0.0, high=9.0),),
    "n_components": 0,
    "n_anchor_rows": 0,
    "commitment": "",
    "minimum_parties": 3,
}
"""Changes of an agreement that make it one on sums."""


def of_sums(**changes):
    return SUMS | {"sums": SUMMED.model_copy(update=changes)}


WAVES = RandomFourier(n_waves=4, bandwidth=2.0)
LABS = (ANALYST, *(identity(name, role="analyst") for name in ("hills", "plain")))
NOVELTY = {"task": "novelty", "model": "gaussian_mixture"}
SMOTE = {"anchor": "smote", "public_rows_sha256": DIGEST}
CONTRADICTIONS = {
    "consensus, gaussian": ({"basis": "consensus", "anchor": "gaussian"}, "isometric"),
    "groups of two": ({"groups": LABS[:2]}, "to name 3 different"),
    "groups of others": ({"groups": LABS[1:] * 2, "analyst": ANALYST}, "this agreement's own"),
    "groups of clusters": ({"groups": LABS, **NONE}, "go with release='rows' and model="),
    "consensus, two parties": ({"basis": "consensus", "parties": NAMES[:2]}, "at least 3 parties"),
    "public basis without rows": ({"basis": "public"}, "public_rows_sha256 goes with"),
    "public rows for nothing": ({"public_rows_sha256": DIGEST}, "public_rows_sha256 goes with"),
    "components above features": ({"n_components": WIDTH + 1}, "is above the 6 features"),
    "isometric, too few rows": ({"n_anchor_rows": WIDTH - 1}, "needs n_anchor_rows >= 6"),
    "isometric, too many": ({"features": WIDE, "n_anchor_rows": 8193}, "8193 features are above"),
    "low rank": ({"anchor": "gaussian", "n_anchor_rows": 2}, "is below n_components"),
    "a name that files cannot have": ({"round_id": "icu\x85"}, "round_id and what no file may"),
    "one party twice": ({"parties": (*NAMES, "north")}, "case, names north more than once"),
    "one class": ({"classes": (1,)}, "at least two classes"),
    "classes of a representation": (NONE | {"classes": (0, 1)}, "others none"),
    "a representation's model": (NONE | {"model": "ridge"}, "and these have none"),
    "no model": ({"model": None}, "every task but representation and table names a model"),
    "too many at least": ({"minimum_parties": 5}, "minimum_parties=5 is above the 4 parties"),
    "int8 without a range": ({"precision": "int8"}, "int8_range goes with precision='int8'"),
    "one less": ({"enrolled": PEOPLE[:3]}, "enrolled are north, south, east, the parties"),
    "one key twice": (
        {"enrolled": (*PEOPLE[:3], identity("west", signing_key=PEOPLE[0].signing_key))},
        "north, west have one and the same signing_key",
    ),
    "the analyst is a party": (
        {"enrolled": PEOPLE, "analyst": identity("north")},
        "north, north have one and the same name",
    ),
    "the analyst's key for a party's": (  # which would open a consortium secret
        {"enrolled": (*PEOPLE[:3], identity("west", role="analyst"))},
        "the key of party 'west' was made for role 'analyst'",
    ),
    "rows in a family": ({"models": ("ridge", "svm")}, "models names 'svm', whose file is made"),
    "rows in the model": ({"model": "svm", "enrolled": PEOPLE}, "model='svm' carries rows"),
    "rows for an analyst": ({"model": "svm", "analyst": ANALYST}, "model='svm' carries rows"),
    "another model": ({"models": ("mlp", "rff")}, "model='ridge' is not among models"),
    "a label that is a feature": ({"label": "x1"}, "the label column 'x1' is also a feature"),
    "an id that is the label": ({"id": "y", "label": "y"}, "'y' is both label and id"),
    "clusters without names": (NONE | {"task": "clustering", "model": "kmeans"}, "at least two"),
    "novelty of sums": (NOVELTY | {"release": "sums"}, "goes with release='rows'"),
    "a label of nothing": (NONE | {"label": "y"}, "task='representation' has no label column"),
    "no terms": (SUMS | {"sums": None}, r"release='sums' goes with a \[sums\] table"),
    "a basis": (SUMS | {"basis": "haar", "n_components": 3}, "leave out n_components, basis"),
    "a secret": (SUMS | {"commitment": "1" * 64}, "projects no rows: leave out commitment"),
    "terms of another release": ({"sums": SUMS["sums"]}, r"has no \[sums\] table"),
    "two parties": (SUMS | {"minimum_parties": 2}, "3 or more: a total of two tells"),
    "another family": (SUMS | {"model": "mlp"}, "sums train model='ridge' alone"),
    "numbers, no range": (SUMS | {"task": "regression", "classes": ()}, "target_range goes with"),
    "a column without a range": (SUMS | {"features": numeric_features("a")}, "'a' has no range"),
    "one value": (SUMS | {"features": (NumericFeature(name="a", low=1, high=1),)}, "'a' has no"),
    "a range of classes": (of_sums(target_range=(0.0, 1.0)), "target_range goes with a regression"),
    "steps of ridge": (of_sums(steps=3, most_exposure=2.0), "steps goes .*most_exposure goes"),
    "a range backwards": (of_sums(target_range=(1.0, 0.0)), "does not go from low to high"),
    "more needed than there are": (SUMS | {"minimum_parties": 5}, "5 is above the 4 parties"),
    "least above most": (of_sums(least_rows=501), "most_rows_in_all does not hold"),
    "a map of other columns": ({"map": Mixed(knots=((0.0, 1.0),))}, "has knots of 1 columns"),
    "components above the map's": ({"map": WAVES, "n_components": 9}, "9 is above the 8 features"),
    "a map, too few rows": ({"map": WAVES, "n_anchor_rows": 7}, "needs n_anchor_rows >= 8, not 7"),
    "a map and odds": ({"map": WAVES, "model": "logit"}, "coefficients are of single columns, and"),
    "a map of some columns": (
        {"map": WAVES, "id": "y", "holdings": (Holding(party="north", columns=("x0", "x1")),)},
        r"\[\[holdings\]\] are of single columns, and the map 'rff'",
    ),
}
NOISE = {  # what cannot stand beside a guarantee, and why
    "a basis of the rows": ({"basis": "svd"}, "rows shape that basis.*are haar, public"),
    "a smote anchor": (SMOTE, r"\[dp\] with anchor='smote'"),
    "a uniform anchor": ({"anchor": "uniform"}, r"\[dp\] with anchor='uniform'"),
    "helpers": ({"dp": terms(colluders=1)}, "dp.colluders is of sums"),
    "delta for fewer rows": ({"dp": terms(most_rows=100_001)}, r"is above 1/\(10 most_rows\)"),
    "fewer rows than a party needs": ({"fewest_rows": 1001}, "fewest_rows=1001 is"),
    "a centre of another width": ({"dp": terms(centre=(0.0,))}, "1 numbers for 6 encoded features"),
    "a radius lost in its centre": ({"dp": terms(centre=(1e8,) * WIDTH)}, "radius=1 is lost in"),
    "a short lifetime": ({"dp": terms(lifetime_epsilon=1.9)}, "epsilon=1.9 is below the 2 of one"),
    "and no labels": ({"dp": terms(**RANDOMISED, lifetime_epsilon=2.9)}, "is below the 3 of one"),
    "labels unsaid": ({"dp": terms(labels=None)}, "dp.labels says 'public' or"),
    "labels of a representation": (NONE, "dp.labels says 'public' or"),
    "public, and randomised": ({"dp": terms(label_epsilon=1)}, "dp.label_epsilon goes with"),
    "numbers randomised": (
        {"task": "regression", "classes": (), "dp": terms(**RANDOMISED)},
        "a regression's can only be 'public'",
    ),
    "randomised, how much": ({"dp": terms(labels="randomised_response")}, "dp.label_epsilon goes"),
    "steps too few for the noise": (
        {"precision": "int8", "int8_range": 75.0, "dp": terms(centre=(3.0,) * WIDTH)},
        r"precision='int8' holds numbers up to 75, and rows with the noise of \[dp\] may reach 80",
    ),
    "halves too small": ({"precision": "fp16", "dp": terms(radius=1000)}, "numbers up to 65504"),
}
CONTRADICTIONS |= {
    f"noise and {what}": ({"basis": "haar", "dp": terms()} | changes, words)
    for what, (changes, words) in NOISE.items()
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_contradiction_is_told_in_the_fields_own_words(kind):
    changes, words = CONTRADICTIONS[kind]
    with pytest.raises(AgreementError, match=rf"{words}.*\[CB303\]$") as caught:
        made(**changes)
    assert caught.value.exit_code == 2


def test_every_contradiction_is_told_at_once():
    with pytest.raises(AgreementError, match=r"classes names 1 more than once; n_components=9 is"):
        made(n_components=9, classes=(0, 1, 1))
    with pytest.raises(OptionError, match=r"'logistic' is no family for regression.*CB107"):
        made(task="regression", classes=(), model="logistic")


BLOCK = tuple(
    Holding(party=name, columns=columns, block="ward", n_components=size, labels=size == 2)
    for name, columns, size in (("north", ("x0", "x1"), 2), ("south", ("x2", "x3"), 1))
)
OFFICER = Approver(party="north", **identity("officer", role="approver").model_dump())
COUNTS = {"task": "count", "classes": (), "model": "poisson", "basis": "haar"}
ALLOWED = {
    "consensus, three parties": {"basis": "consensus", "parties": NAMES[:3]},
    "haar, uniform": {"basis": "haar", "anchor": "uniform"},
    "lpp, gaussian": {"basis": "lpp", "anchor": "gaussian"},
    "gaussian, fewer rows than features": {"anchor": "gaussian", "n_anchor_rows": WIDTH - 1},
    "one party": {"parties": ("only",)},
    "gaussian, 8193 features": {"features": WIDE, "anchor": "gaussian"},
    "isometric, 8192 features": {"features": WIDE[:-1], "n_anchor_rows": 8192},
    "representation": NONE,
    "noise, delta for exactly so many": {"basis": "haar", "dp": terms(most_rows=100_000)},
    "noise, once in a lifetime": {"basis": "haar", "dp": terms(lifetime_epsilon=2.0)},
    "noise, steps enough": {
        "basis": "haar",
        "dp": terms(),
        "precision": "int8",
        "int8_range": 75.0,
    },
    "noise, no labels": NONE | {"basis": "haar", "dp": terms(labels=None)},
    "everything": {"features": (*numeric_features("abcde"), FILLED, WARD), "n_anchor_rows": 10}
    | REAL,
    "sums": SUMS,
    "holdings": {"holdings": BLOCK, "id": "patient"},
    "a map": {"map": WAVES, "n_anchor_rows": 8, "n_components": 7},
    "groups": {"groups": LABS},
    "outcome": COUNTS | {"n_components": WIDTH, "outcome": Outcome(exposure="years")},
    "noise": {"basis": "haar", "dp": terms()},
    "record": {"record": Record(contacts="lab")},
    "approvers": {"enrolled": PEOPLE, "approvers": (OFFICER,)},
    "public rows": SMOTE | {"server": "https://lab.example:8443"},
    "a range": {"precision": "int8", "int8_range": 4.0, "fewest_rows": 20},
}


def test_the_digest_is_of_json_that_has_every_field_and_reads_back_as_the_same():
    """What stands beside a contradiction is an agreement, too."""
    fields, digests = set(), set()
    for changes in ALLOWED.values():
        agreement = made(**changes)
        told = json.loads(agreement.model_dump_json())
        assert agreement.digest() == hashlib.sha256(canonical_json(told)).digest()
        again = Agreement.model_validate_json(agreement.model_dump_json())
        assert again == agreement
        assert again.digest() == agreement.digest()
        fields |= {*told, *(f"feature's {name}" for name in told["features"][0])}
        digests.add(agreement.digest())
    of_features = ("name", "unit", "centre", "scale", "low", "high", "missing", "fill")
    assert fields >= {*Agreement.model_fields, *(f"feature's {name}" for name in of_features)}
    assert len(digests) == len(ALLOWED)
    assert made(map=Columns()).digest() == made().digest()


MISTYPED = {
    "n_components": ["3", 3.0, -1, True, None, np.int64(3)],
    "holdout": [-0.1, 0.6],
    "server": ["http://lab.example", "https://lab.example/dc", "https://lab.example?x=1"],
    "deadline": ["2026-12-31T23:59:59+01:00", "2026-02-30T00:00:00Z", "2026-2-3T4:5:6Z"],
}


@pytest.mark.parametrize("field", Agreement.model_fields)
def test_a_field_of_another_type_is_refused_and_named(field):
    for value in (datetime(2026, 1, 1, tzinfo=UTC), *MISTYPED.get(field, ())):
        with pytest.raises(AgreementError, match=rf"cannot stand: {field}.*\[CB303\]$") as caught:
            made(**{field: value})
        assert caught.value.__cause__ is None
        assert "Value error" not in str(caught.value)  # no word of pydantic's


def test_fields_too_few_or_too_many_are_refused_and_named():
    with pytest.raises(AgreementError, match=r"4 field\(s\).*round_id: it is missing; parties"):
        Agreement()
    with pytest.raises(AgreementError, match="seed: nothing here has this name"):
        made(seed=1)


def test_bad_json_is_an_agreement_error_too():
    text = made().model_dump_json()
    size = '"n_components":3'
    contradicting, of_text = (text.replace(size, f'"n_components":{x}') for x in ("7", '"3"'))
    for bad in (text[:-1], "", "[]", contradicting, of_text, text[:-1] + ',"secret":"0"}'):
        with pytest.raises(AgreementError, match=r"\[CB303\]$"):
            Agreement.model_validate_json(bad)


def test_a_draft_misses_whatever_is_empty_that_everybody_answers_for():
    assert missing_fields(made(**REAL)) == ()
    for field in REAL:
        given = {name: value for name, value in REAL.items() if name != field}
        assert missing_fields(made(**given)) == (field,)
    nothing = {name: value for name, value in REAL.items() if name != "label"} | NONE
    assert missing_fields(made(**nothing)) == ()  # a representation needs none, and no model
    found = missing_fields({"round_id": "icu", "task": "regression", "purpose": ""})
    assert " ".join(found) == (
        "parties features n_components n_anchor_rows commitment id purpose threat_model "
        "retention_days enrolled analyst label model"
    )


@pytest.mark.parametrize(("anchor", "gain"), [("smote", "measured"), ("gaussian", np.sqrt(8))])
def test_every_aligners_name_is_one_method_with_the_anchors_gain(anchor, gain):
    rows = {"public_rows_sha256": DIGEST} if anchor == "smote" else {}
    wanted = {
        "odc": cobasis.ODC(),
        "gopp": cobasis.GOPP(),
        "whitened": cobasis.Whitened(scale=gain),
        "imakura": cobasis.Imakura(scale=gain),
        "kawakami": cobasis.Kawakami(scale=gain),
    }
    assert set(wanted) == set(get_args(AlignerName))
    for name, aligner in wanted.items():
        assert made(aligner=name, anchor=anchor, **rows).make_aligner() == aligner


def test_width_counts_a_categorys_levels():
    features = (*numeric_features("abc"), WARD)
    agreement = made(features=features, n_components=7, n_anchor_rows=7)
    assert agreement.n_features == 3 + 4
    assert agreement.columns == ("a", "b", "c", "ward")


def test_without_a_guarantee_the_digest_is_what_it_was_before_there_was_one():
    sizes = {"n_components": 2, "n_anchor_rows": 3, "features": numeric_features("abc")}
    bare = made(parties=("north", "south"), commitment="0" * 64, **sizes)
    before = "0b66c04ea9321b04aaee2c4815d9a11fb7ec4fa4afa4aa2384f061d1c16cc894"
    assert bare.digest().hex() == before


def test_a_term_of_the_guarantee_out_of_range_is_refused():
    none, endless = float("nan"), float("inf")
    wrong = {"epsilon": [0.0, 65.0, none], "lifetime_epsilon": [endless], "delta": [1e-13, 1.0]}
    wrong |= {"radius": [0.0, endless], "centre": [(none,)], "label_epsilon": [0.0, 16.5]}
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(ValidationError, match=field):
                terms(**{field: value})


def test_what_the_manifest_says_is_json_with_the_unit_and_the_labels_price():
    found = made(basis="haar", dp=terms(centre=(0.25,) * WIDTH)).dp.record(basis="haar")
    assert json.loads(json.dumps(found)) == found
    assert (found["terms"]["epsilon"], found["terms"]["centre"]) == (2.0, "as agreed")
    assert found["sensitivity"] == 2.0  # twice the radius, not the papers' once
    assert found["noise"] == pytest.approx(4.461, abs=2e-3)  # notes: r = 1, replace-one, 1e-6
    weaker = {"adjacency": "add-remove", "rows_per_person": 3, "label_epsilon": 0.5}
    other = terms(**RANDOMISED | weaker).statement(basis="public")
    for said, words in (
        (found["statement"], "epsilon 2, delta 1e-06, features only, one person (row) replaced by"),
        (found["statement"], "D = 2, radius 1 about the agreed centre, basis haar, labels public"),
        (other, "features and labels, one person (3 rows) replaced by the centre"),
        (other, "D = 1.73205, radius 1 about the origin, basis public"),
        (other, "(ChaCha20, "),
        (other, "labels by randomised response, epsilon 0.5 more"),
    ):
        assert words in said
