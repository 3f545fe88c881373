"""The agreement's ``[dp]`` section: whole and possible, or refused before anybody signs."""

import json

import pytest
from pydantic import ValidationError

from cobasis import Agreement, ConsortiumSecret, DPTerms, numeric_features
from cobasis.errors import AgreementError
from protocol.consortium import NONE, WIDTH, agree

SECRET = ConsortiumSecret(bytes(32))
RANDOMISED = {"labels": "randomised_response", "label_epsilon": 1}
PUBLIC = {"public_rows_sha256": "ab" * 32}


def terms(**changes):
    usual = {"epsilon": 2.0, "radius": 1.0, "most_rows": 1000, "labels": "public"}
    return DPTerms(**{**usual, "lifetime_epsilon": 4.0, **changes})


def made(dp=None, **changes):
    return agree(SECRET, **{"basis": "haar", "dp": dp or terms(), **changes})


def test_without_the_section_the_digest_is_what_it_was_before_there_was_one():
    sizes = {"n_components": 2, "n_anchor_rows": 3, "features": numeric_features("abc")}
    bare = agree(SECRET, parties=("north", "south"), commitment="0" * 64, **sizes)
    before = "0b66c04ea9321b04aaee2c4815d9a11fb7ec4fa4afa4aa2384f061d1c16cc894"
    assert bare.digest().hex() == before


REFUSED = {
    "a basis of the rows": ({"basis": "svd"}, "rows shape that basis.*are haar, public"),
    "a smote anchor": ({"anchor": "smote", **PUBLIC}, r"\[dp\] with anchor='smote'"),
    "helpers": ({"dp": terms(colluders=1)}, "dp.colluders is of sums"),
    "a uniform anchor": ({"anchor": "uniform"}, r"\[dp\] with anchor='uniform'"),
    "delta for fewer rows": ({"dp": terms(most_rows=100_001)}, r"is above 1/\(10 most_rows\)"),
    "fewer rows than a party needs": ({"dp": terms(), "fewest_rows": 1001}, "fewest_rows=1001 is"),
    "a centre of another width": ({"dp": terms(centre=(0.0,))}, "1 numbers for 6 encoded features"),
    "a radius lost in its centre": ({"dp": terms(centre=(1e8,) * WIDTH)}, "radius=1 is lost in"),
    "a short lifetime": ({"dp": terms(lifetime_epsilon=1.9)}, "epsilon=1.9 is below the 2 of one"),
    "and no labels": ({"dp": terms(**RANDOMISED, lifetime_epsilon=2.9)}, "is below the 3 of one"),
    "labels unsaid": ({"dp": terms(labels=None)}, "dp.labels says 'public' or"),
    "labels of a representation": (NONE, "dp.labels says 'public' or"),
    "numbers randomised": (
        {"task": "regression", "classes": (), "dp": terms(**RANDOMISED)},
        "a regression's can only be 'public'",
    ),
    "randomised, how much": ({"dp": terms(labels="randomised_response")}, "dp.label_epsilon goes"),
    "public, and randomised": ({"dp": terms(label_epsilon=1)}, "dp.label_epsilon goes with"),
    "steps too few for the noise": (
        {"precision": "int8", "int8_range": 75.0, "dp": terms(centre=(3.0,) * WIDTH)},
        r"precision='int8' holds numbers up to 75, and rows with the noise of \[dp\] may reach 80",
    ),
    "halves too small": ({"precision": "fp16", "dp": terms(radius=1000)}, "numbers up to 65504"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_guarantee_that_cannot_hold_is_refused_with_its_reason(what):
    changes, reason = REFUSED[what]
    with pytest.raises(AgreementError, match=rf"{reason}.*\[CB303\]$"):
        made(**changes)


ALLOWED = {
    "delta for exactly so many": {"dp": terms(most_rows=100_000)},
    "a lifetime of once": {"dp": terms(lifetime_epsilon=2.0)},
    "no labels": NONE | {"dp": terms(labels=None)},
    "steps enough": {"precision": "int8", "int8_range": 75.0},
}


def test_what_stands_beside_is_an_agreement():
    for changes in ALLOWED.values():
        found = made(**changes)
        assert Agreement.model_validate_json(found.model_dump_json()) == found


def test_every_term_is_in_what_is_signed_and_one_out_of_range_is_refused():
    none, endless = float("nan"), float("inf")
    wrong = {"epsilon": [0.0, 65.0, none], "lifetime_epsilon": [endless], "delta": [1e-13, 1.0]}
    wrong |= {"radius": [0.0, endless], "centre": [(none,)], "rows_per_person": [0], "seed": [1]}
    wrong |= {"label_epsilon": [0.0, 16.5], "most_rows": [0], "labels": ["secret"]}
    for field, values in wrong.items():
        for value in values:
            with pytest.raises(ValidationError, match=field):
                terms(**{field: value})
    signed = json.loads(made().model_dump_json())["dp"]  # colluders are of sums
    assert {*signed} == {*DPTerms.model_fields} - {"colluders"}


def test_what_the_manifest_says_is_json_with_the_unit_and_the_labels_price():
    found = made(dp=terms(centre=(0.25,) * WIDTH)).dp.record(basis="haar")
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
        (other, "D = 1.73205"),
        (other, "labels by randomised response, epsilon 0.5 more"),
    ):
        assert words in said
