"""The agreement: strict, frozen, free of contradictions, and its digest covers every field."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from cobasis import Agreement, ConsortiumSecret, NumericFeature, numeric_features
from cobasis.errors import AgreementError, OptionError
from cobasis.protocol.dp_terms import DPTerms
from protocol.consortium import NAMES, WIDTH, agree
from protocol.people import ANALYST, PEOPLE

SECRET = ConsortiumSecret(bytes(32))
DIGEST = "ab" * 32
TERMS = DPTerms(epsilon=2, radius=1, most_rows=1000, labels="public", lifetime_epsilon=2)
WIDE = numeric_features(f"x{column}" for column in range(8193))


def made(**changes):
    return agree(SECRET, **changes)


FORBIDDEN = {
    "consensus, gaussian": {"basis": "consensus", "anchor": "gaussian"},
    "consensus, uniform": {"basis": "consensus", "anchor": "uniform"},
    "consensus, public": {
        "basis": "consensus",
        "anchor": "public",
        "public_rows_sha256": DIGEST,
    },
    "consensus, two parties": {"basis": "consensus", "parties": NAMES[:2]},
    "consensus, one party": {"basis": "consensus", "parties": NAMES[:1]},
    "public basis without rows": {"basis": "public"},
    "public anchor without rows": {"anchor": "public"},
    "smote anchor without rows": {"anchor": "smote"},
    "consensus, smote": {"basis": "consensus", "anchor": "smote", "public_rows_sha256": DIGEST},
    "public rows for nothing": {"public_rows_sha256": DIGEST},
    "components above features": {"n_components": WIDTH + 1},
    "isometric, too few rows": {"n_anchor_rows": WIDTH - 1},
    "isometric, too many features": {"features": WIDE, "n_anchor_rows": 8193},
    "images of low rank": {"anchor": "gaussian", "n_anchor_rows": 2},
    "one party twice": {"parties": (*NAMES, "north")},
    "one feature twice": {"features": numeric_features(["x0"] * WIDTH)},
    "one class twice": {"classes": (0, 1, 0)},
    "no classes": {"classes": ()},
    "one class": {"classes": (1,)},
    "classes of a regression": {"task": "regression"},
    "classes of a representation": {"task": "representation", "model": None},
    "classification without a model": {"model": None},
    "regression without a model": {"task": "regression", "classes": (), "model": None},
    "representation with a model": {"task": "representation", "classes": ()},
}


@pytest.mark.parametrize("combination", FORBIDDEN)
def test_a_combination_that_the_table_forbids_is_no_agreement(combination):
    with pytest.raises(AgreementError, match=r"\[CB303\]$") as caught:
        made(**FORBIDDEN[combination])
    assert caught.value.exit_code == 2


def test_logistic_regression_is_no_family_for_a_regression():
    with pytest.raises(OptionError, match=r"'logistic' is no family for regression.*CB107"):
        made(task="regression", classes=(), model="logistic")


ALLOWED = {
    "consensus, three parties": {"basis": "consensus", "parties": NAMES[:3]},
    "haar, uniform": {"basis": "haar", "anchor": "uniform"},
    "public basis": {"basis": "public", "public_rows_sha256": DIGEST},
    "smote anchor": {"anchor": "smote", "public_rows_sha256": DIGEST},
    "lpp, gaussian": {"basis": "lpp", "anchor": "gaussian"},
    "gaussian, fewer rows than features": {"anchor": "gaussian", "n_anchor_rows": WIDTH - 1},
    "as many components as features": {"n_components": WIDTH},
    "one party": {"parties": ("only",)},
    "gaussian, 8193 features": {"features": WIDE, "anchor": "gaussian"},
    "isometric, 8192 features": {"features": WIDE[:-1], "n_anchor_rows": 8192},
    "regression": {"task": "regression", "classes": ()},
    "representation": {"task": "representation", "classes": (), "model": None},
    "classes of text": {"classes": ("ill", "healthy")},
}


@pytest.mark.parametrize("combination", ALLOWED)
def test_a_combination_beside_a_forbidden_one_is_an_agreement(combination):
    assert made(**ALLOWED[combination]).digest() != made().digest()


def test_every_contradiction_is_told_at_once():
    with pytest.raises(AgreementError, match=r"classes names 1 more than once; n_components=9 is"):
        made(n_components=9, classes=(0, 1, 1))


MISTYPED = {
    "round_id": [1, "", "x" * 101, None, b"icu"],
    "parties": [list(NAMES), (), "north", (1, 2), ("",)],
    "features": [
        (),
        ("x0",),
        list(made().features),
        ({"name": "x"}, {"name": "y", "colour": "red"}),
    ],
    "task": ["clustering", None],
    "classes": [(0, "1"), (0.0, 1.0), (True, False), [0, 1]],
    "n_components": ["3", 3.0, 0, -1, True, None, np.int64(3)],
    "anchor": ["orthogonal", None],
    "n_anchor_rows": ["8", 8.0, 0],
    "public_rows_sha256": ["", "AB" * 32, "ab" * 31, b"ab" * 32],
    "basis": ["ica", "", None],
    "aligner": ["procrustes", 1],
    "model": ["forest", 0],
    "commitment": ["", "0" * 63, "G" * 64, bytes(32), None],
    "scale_band": [1.0, float("inf"), float("nan"), "10"],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in MISTYPED.items() for value in values],
    ids=str,
)
def test_a_field_of_another_type_is_refused_and_named(field, value):
    with pytest.raises(AgreementError, match=rf"cannot stand: {field}.*\[CB303\]$") as caught:
        made(**{field: value})
    assert caught.value.__cause__ is None


REQUIRED = [
    "round_id",
    "parties",
    "features",
    "task",
    "n_components",
    "n_anchor_rows",
    "commitment",
]


@pytest.mark.parametrize("field", REQUIRED)
def test_a_missing_field_is_refused_and_named(field):
    fields = {name: getattr(made(), name) for name in type(made()).model_fields if name != field}
    with pytest.raises(AgreementError, match=rf"1 field\(s\).*{field}: Field required"):
        Agreement(**fields)


@pytest.mark.parametrize("extra", ["secret", "seed", "Round_id"])
def test_a_field_too_many_is_refused(extra):
    with pytest.raises(AgreementError, match=rf"{extra}: Extra inputs"):
        Agreement(**{**dict(made()), extra: "x"})


@pytest.mark.parametrize("field", list(Agreement.model_fields))
def test_no_field_can_be_changed_afterwards(field):
    agreement = made()
    before = agreement.digest()
    with pytest.raises(ValidationError, match="frozen"):
        setattr(agreement, field, getattr(agreement, field))
    assert agreement.digest() == before


CHANGED = {
    "round_id": {"round_id": "icu-2027", "commitment": made().commitment},
    "parties": {"parties": NAMES[::-1]},
    "features": {"features": numeric_features("abcdef")},
    "features.centre": {"features": numeric_features([f"x{i}" for i in range(6)], centre=1)},
    "features.scale": {"features": numeric_features([f"x{i}" for i in range(6)], scale=2)},
    "task": {"task": "regression", "classes": ()},
    "classes": {"classes": (1, 0)},
    "classes, as text": {"classes": ("0", "1")},
    "n_components": {"n_components": 2},
    "anchor": {"anchor": "gaussian"},
    "n_anchor_rows": {"n_anchor_rows": 9},
    "public_rows_sha256": {"basis": "public", "public_rows_sha256": DIGEST},
    "basis": {"basis": "pca"},
    "aligner": {"aligner": "gopp"},
    "model": {"model": "mlp"},
    "commitment": {"commitment": "1" * 64},
    "scale_band": {"scale_band": 9.0},
    "models": {"models": ("ridge", "mlp")},
    "label": {"label": "died"},
    "id": {"id": "patient"},
    "holdout": {"holdout": 0.2},
    "precision": {"precision": "fp32"},
    "int8_range": {"precision": "int8", "int8_range": 4.0},
    "minimum_parties": {"minimum_parties": 2},
    "deadline": {"deadline": "2026-12-31T23:59:59Z"},
    "purpose": {"purpose": "research"},
    "threat_model": {"threat_model": "semi-honest"},
    "retention_days": {"retention_days": 90},
    "enrolled": {"enrolled": PEOPLE},
    "analyst": {"analyst": ANALYST},
    "dp": {"basis": "haar", "dp": TERMS},
}


def test_the_table_of_changes_covers_every_field():
    assert {name.split(".")[0].split(",")[0] for name in CHANGED} == set(Agreement.model_fields)


@pytest.mark.parametrize("field", CHANGED)
def test_the_digest_changes_with_every_field(field):
    assert made(**CHANGED[field]).digest() != made().digest()
    assert made().digest() == made().digest()


def test_all_changed_digests_differ_from_each_other():
    assert len({made(**change).digest() for change in CHANGED.values()}) == len(CHANGED)


def test_another_process_computes_the_same_digest():
    script = (
        "import sys; from cobasis import Agreement; "
        "print(Agreement.model_validate_json(sys.stdin.read()).digest().hex())"
    )
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            input=made().model_dump_json(),
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == made().digest().hex()


@pytest.mark.parametrize("change", [{}, *CHANGED.values()], ids=["nothing", *CHANGED])
def test_json_reads_back_as_the_same_agreement(change):
    agreement = made(**change)
    again = Agreement.model_validate_json(agreement.model_dump_json())
    assert again == agreement
    assert again.digest() == agreement.digest()
    assert isinstance(again.features[0], NumericFeature)


@settings(max_examples=30)
@given(
    parties=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=5, unique=True),
    classes=st.lists(st.integers(), min_size=2, max_size=5, unique=True),
    centre=st.floats(allow_nan=False, allow_infinity=False),
    band=st.floats(min_value=1.5, max_value=1e6),
)
def test_any_agreement_survives_json(parties, classes, centre, band):
    features = (NumericFeature(name="x", centre=centre), *numeric_features("abcde"))
    agreement = made(
        parties=tuple(parties), classes=tuple(classes), features=features, scale_band=band
    )
    assert Agreement.model_validate_json(agreement.model_dump_json()) == agreement


BAD_JSON = {
    "no JSON": lambda text: text[:-1],
    "nothing": lambda _: "",
    "a list": lambda _: "[]",
    "an unknown word": lambda text: text.replace('"ridge"', '"forest"'),
    "a number as text": lambda text: text.replace('"n_components":3', '"n_components":"3"'),
    "a contradiction": lambda text: text.replace('"n_components":3', '"n_components":7'),
    "a field too many": lambda text: text[:-1] + ',"secret":"0"}',
    "a field too few": lambda text: text.replace('"task":"classification",', ""),
    "an infinite band": lambda text: text.replace('"scale_band":10.0', '"scale_band":Infinity'),
}


@pytest.mark.parametrize("kind", BAD_JSON)
def test_bad_json_is_an_agreement_error_too(kind):
    text = made().model_dump_json()
    bad = BAD_JSON[kind](text)
    assert bad != text
    with pytest.raises(AgreementError, match=r"\[CB303\]$"):
        Agreement.model_validate_json(bad)


def test_the_aligner_comes_from_the_fields():
    agreement = made(aligner="gopp")
    assert type(agreement.make_aligner()).__name__ == "GOPP"
    assert agreement.columns == tuple(f"x{i}" for i in range(WIDTH))


def test_what_an_agreement_keeps_for_speed_is_not_among_its_fields():
    agreement = made()
    assert agreement.names(agreement.parties[0])
    assert not agreement.names("nobody")
    assert agreement.digest() == made().digest()
    assert set(dict(agreement)) == set(Agreement.model_fields)
