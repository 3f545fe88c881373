"""What real rounds add to the agreement: people, columns, precision, and what must be filled."""

from datetime import UTC, datetime

import polars as pl
import pytest

from cobasis import Agreement, ConsortiumSecret, NumericFeature, Party, numeric_features
from cobasis.errors import AgreementError
from cobasis.features.category import CategoryFeature
from cobasis.features.encoder import encode
from cobasis.protocol.agreement_fields import missing_fields
from protocol.consortium import NAMES, WIDTH, agree
from protocol.people import ANALYST, PEOPLE, identity

SECRET = ConsortiumSecret(bytes(32))
WARD = CategoryFeature(name="ward", values=("icu", "surgery"), unknown="other", missing="level")
REAL = {
    "purpose": "Mortality on the ward; the three hospitals only.",
    "threat_model": "semi-honest",
    "retention_days": 90,
    "label": "died",
    "enrolled": PEOPLE,
    "analyst": ANALYST,
}


def made(**changes):
    return agree(SECRET, **changes)


def test_an_agreement_of_a_real_round_lacks_nothing():
    assert missing_fields(made(**REAL)) == ()


@pytest.mark.parametrize("field", REAL)
def test_a_field_that_everybody_answers_for_is_missed_by_name(field):
    given = {name: value for name, value in REAL.items() if name != field}
    assert missing_fields(made(**given)) == (field,)


def test_a_representation_needs_no_label_and_no_model():
    fields = {name: value for name, value in REAL.items() if name != "label"}
    assert missing_fields(made(task="representation", classes=(), model=None, **fields)) == ()


def test_a_draft_misses_whatever_is_empty():
    assert missing_fields({"round_id": "icu", "task": "regression", "purpose": ""}) == (
        "parties",
        "features",
        "n_components",
        "n_anchor_rows",
        "commitment",
        "purpose",
        "threat_model",
        "retention_days",
        "enrolled",
        "analyst",
        "label",
        "model",
    )


CONTRADICTIONS = {
    "too many at least": ({"minimum_parties": 5}, "minimum_parties=5 is above the 4 parties"),
    "int8 without a range": ({"precision": "int8"}, "int8_range goes with precision='int8'"),
    "a range without int8": ({"int8_range": 4.0}, "int8_range goes with precision='int8'"),
    "another order": ({"enrolled": PEOPLE[::-1]}, "enrolled are west, east"),
    "one less": ({"enrolled": PEOPLE[:3]}, "enrolled are north, south, east, the parties"),
    "another name": (
        {"enrolled": (*PEOPLE[:3], identity("lyon"))},
        "enrolled are north, south, east, lyon, the parties",
    ),
    "one key twice": (
        {
            "enrolled": (
                *PEOPLE[:3],
                identity("west", signing_key=PEOPLE[0].signing_key),
            )
        },
        "north, west have one and the same signing_key",
    ),
    "the analyst's recipient": (
        {"enrolled": PEOPLE, "analyst": identity("lab", recipient=PEOPLE[1].recipient)},
        "south, lab have one and the same recipient",
    ),
    "the analyst is a party": (
        {"enrolled": PEOPLE, "analyst": identity("north")},
        "enrolled and analyst names north more than once",
    ),
    "no such family": (
        {"task": "regression", "classes": (), "models": ("ridge", "logistic")},
        "models names 'logistic', which is no family for regression",
    ),
    "rows in a family": ({"models": ("ridge", "svm")}, "models names 'svm', whose file is made"),
    "rows in the model": ({"model": "svm", "enrolled": PEOPLE}, "model='svm' carries rows"),
    "rows for an analyst": ({"model": "svm", "analyst": ANALYST}, "model='svm' carries rows"),
    "another model": ({"models": ("mlp", "rff")}, "model='ridge' is not among models"),
    "a family twice": ({"models": ("ridge", "ridge")}, "models names ridge more than once"),
    "models of nothing": (
        {"task": "representation", "classes": (), "model": None, "models": ("ridge",)},
        "no family for representation",
    ),
    "a label that is a feature": ({"label": "x1"}, "the label column 'x1' is also a feature"),
    "an id that is a feature": ({"id": "x1"}, "the id column 'x1' is also a feature"),
    "an id that is the label": ({"id": "y", "label": "y"}, "'y' is both label and id"),
    "a label for nothing": (
        {"task": "representation", "classes": (), "model": None, "label": "y"},
        "a representation has no label column",
    ),
    "a day without a time": ({"deadline": "2026-12-31"}, "'2026-12-31' is no time in UTC"),
    "another zone": ({"deadline": "2026-12-31T23:59:59+01:00"}, "is no time in UTC"),
    "no such day": ({"deadline": "2026-02-30T00:00:00Z"}, "is no time in UTC"),
    "few digits": ({"deadline": "2026-2-3T4:5:6Z"}, "is no time in UTC"),
    "components above the encoded": ({"n_components": 9, "n_anchor_rows": 9}, "above the 6"),
}


@pytest.mark.parametrize("kind", CONTRADICTIONS)
def test_a_contradiction_is_told_in_the_fields_own_words(kind):
    changes, match = CONTRADICTIONS[kind]
    with pytest.raises(AgreementError, match=match) as caught:
        made(**changes)
    assert str(caught.value).endswith("[CB303]")


MISTYPED = {
    "holdout": [-0.1, 0.6, "0.2"],
    "minimum_parties": [0, 1.5],
    "precision": ["fp8", None],
    "int8_range": [0.0, -1.0, float("inf")],
    "threat_model": ["malicious", None],
    "retention_days": [0, -1, 1.5, "30"],
    "models": [["ridge"], ("forest",)],
    "enrolled": [[PEOPLE[0]], ("north",)],
    "analyst": ["lab"],
    "deadline": [datetime(2026, 1, 1, tzinfo=UTC)],
    "label": [1, "x" * 201],
    "purpose": [None, "x" * 10_001],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in MISTYPED.items() for value in values],
    ids=lambda value: str(value)[:40],
)
def test_a_field_of_another_type_is_refused_and_named(field, value):
    with pytest.raises(AgreementError, match=rf"cannot stand: {field}.*\[CB303\]$"):
        made(**{field: value})


def test_beside_each_contradiction_stands_an_agreement():
    fine = [
        {"minimum_parties": 4},
        {"precision": "int8", "int8_range": 4.0},
        {"enrolled": PEOPLE},
        {"models": ("mlp", "ridge")},
        {"model": "svm"},
        {"label": "y", "id": "patient"},
        {"deadline": "2026-12-31T23:59:59Z"},
        {"holdout": 0.5},
    ]
    assert len({made(**changes).digest() for changes in fine}) == len(fine)


def test_the_deadline_is_a_time_and_the_families_are_listed():
    assert made().closes is None
    assert made(deadline="2026-12-31T23:59:59Z").closes == datetime(
        2026, 12, 31, 23, 59, 59, tzinfo=UTC
    )
    assert made().allowed_models == ("ridge",)
    assert made(models=("mlp", "ridge")).allowed_models == ("mlp", "ridge")


def test_m_counts_a_categorys_levels():
    features = (*numeric_features("abc"), WARD)
    agreement = made(features=features, n_components=7, n_anchor_rows=7)
    assert agreement.n_features == 3 + 4
    assert agreement.columns == ("a", "b", "c", "ward")
    with pytest.raises(AgreementError, match="needs n_anchor_rows >= 7"):
        made(features=features, n_anchor_rows=6)


def test_a_json_of_both_kinds_and_all_people_reads_back_as_the_same():
    filled = NumericFeature(name="lactate", unit="mmol/l", low=0, missing="fill", fill=1)
    agreement = made(features=(*numeric_features("abcde"), filled, WARD), n_anchor_rows=10, **REAL)
    again = Agreement.model_validate_json(agreement.model_dump_json())
    assert again == agreement
    assert again.digest() == agreement.digest()
    assert again.features[-1] == WARD
    assert again.analyst == ANALYST


@pytest.mark.parametrize("change", [{"unit": "kg"}, {"low": 0.0}, {"high": 9.0}])
def test_the_digest_covers_every_word_of_a_feature(change):
    plain = NumericFeature(name="x0")
    first = made(features=(plain, *numeric_features("abcde")))
    changed = made(features=(NumericFeature(name="x0", **change), *numeric_features("abcde")))
    assert first.digest() != changed.digest()


def patients(n_rows=40):
    """Rows that cannot be told from the order of their cells."""
    return pl.DataFrame(
        {
            "age": [40.0 + 3 * (row % 11) for row in range(n_rows)],
            "ward": [("icu", "surgery", "hall", None)[row % 4] for row in range(n_rows)],
            "pulse": [60.0 + row % 7 if row % 5 else None for row in range(n_rows)],
        }
    )


FEATURES = (
    NumericFeature(name="age", centre=60, scale=20),
    WARD,
    NumericFeature(name="pulse", centre=80, scale=15, missing="fill", fill=75),
)


def test_a_party_uploads_and_predicts_with_categories():
    agreement = made(features=FEATURES, n_anchor_rows=6, task="regression", classes=())
    party = Party("north", agreement=agreement, secret=SECRET)
    frame = patients()
    upload = party.prepare(frame, [float(row) for row in range(40)])
    assert upload.anchor_image.shape == (6, 3)
    encoded = encode(frame, FEATURES, party="north")
    assert party.basis.shape == (encoded.shape[1], 3)


def test_the_names_and_the_width_of_the_test_consortium_stay_as_they_were():
    assert made().n_features == WIDTH
    assert made(enrolled=PEOPLE).parties == NAMES
