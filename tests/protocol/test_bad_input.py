import re

import numpy as np
import polars as pl
import pytest

from cobasis.errors import (
    CobasisError,
    DimensionError,
    DtypeError,
    FeatureError,
    LabelError,
    NotFiniteError,
    ShapeError,
)
from protocol.consortium import COMPONENTS, WIDTH, consortium, simulated, tables


def with_entry(value):
    def spoil(X):
        X = X.copy()
        X[3, 2] = value
        return X

    return spoil


ROWS = {
    "NaN": (with_entry(np.nan), NotFiniteError),
    "infinity": (with_entry(np.inf), NotFiniteError),
    "beyond squares": (with_entry(1e200), NotFiniteError),
    "masked": (lambda X: np.ma.masked_greater(X, 2.0), NotFiniteError),
    "one column too few": (lambda X: X[:, 1:], ShapeError),
    "one column too many": (lambda X: np.hstack([X, X[:, :1]]), ShapeError),
    "one-dimensional": (lambda X: X[:, 0], ShapeError),
    "ragged": (lambda X: [list(X[0]), list(X[1][:-1])], ShapeError),
    "without rows": (lambda X: X[:0], ShapeError),
    "objects": (lambda X: X.astype(object), DtypeError),
    "text": (lambda X: X.astype(str), DtypeError),
    "None": (lambda _: None, CobasisError),
    "fewer rows than components": (lambda X: X[: COMPONENTS - 1], DimensionError),
    "rank below components": (lambda X: np.outer(X[:, 0], X[0]), DimensionError),
    "all zero": (lambda X: 0 * X, DimensionError),
}


def labels_for(rows, y):
    shape = np.shape(rows) if rows is not None and not isinstance(rows, list) else (2,)
    return y[: shape[0]] if shape and shape[0] <= len(y) else y


def south(**changes):
    return consortium(**changes).parties["south"]


CANARY = 7311.246


def refused(party, rows, labels, error):
    """What is said of rows or labels that are refused; it shows no number of theirs."""
    with pytest.raises(error, match=r"\[CB\d{3}\]$") as caught:
        party.prepare(rows, labels)
    whole = f"{caught.value} {caught.value.args} {caught.value.__cause__}"
    assert not re.search("7311|246", whole)
    assert "party 'south'" in whole
    assert caught.value.exit_code == 2
    assert party._basis is None


@pytest.mark.parametrize("kind", ROWS)
def test_bad_rows_stop_a_party_before_it_has_anything_to_send_and_are_not_shown(kind):
    spoil, error = ROWS[kind]
    X, y = tables()["south"]
    for rows in (spoil(X), spoil(np.full((30, WIDTH), CANARY))):
        refused(south(), rows, labels_for(rows, y), error)


TEXT, NUMBERS = {"classes": ("a", "b")}, {"task": "regression", "classes": ()}
LABELS = {  # what is agreed, and what labels become
    "too many": ({}, lambda y: np.append(y, 0)),
    "two columns": ({}, lambda y: np.stack([y, y], axis=1)),
    "none": ({}, lambda _: None),
    "numbers": ({}, lambda y: y + CANARY),
    "text": ({}, lambda y: (y + CANARY).astype(str)),
    "objects": ({}, lambda y: y.astype(object)),
    "a class not agreed": ({}, lambda y: y + 7311),
    "NaN": ({}, lambda y: np.where(y == 1, np.nan, 0.0)),
    "numbers for text": (TEXT, lambda y: y),
    "nothing for text": (TEXT, lambda y: [None] * len(y)),
    "text and numbers": (TEXT, lambda _: np.array(["a", 1] * 15, object)),
    "text for numbers": (NUMBERS, lambda y: y.astype(str)),
    "truths": (NUMBERS, lambda y: y > 0),
    "numbers that are none": (NUMBERS, lambda y: y * np.nan),
    "objects for numbers": (NUMBERS, lambda y: y.astype(object)),
    "another machine's": (NUMBERS, lambda y: y.astype(">f8")),
    "beyond float64": (NUMBERS, lambda y: y + (2**60 + 1)),
    "masked": (NUMBERS, lambda y: np.ma.masked_greater(y, 0)),
    "ragged": (NUMBERS, lambda _: [[1.0], [1.0, 2.0]] * 15),
}


@pytest.mark.parametrize("kind", LABELS)
def test_bad_labels_stop_a_party_and_a_simulation_and_are_not_shown(kind):
    (agreed, spoil), (X, y) = LABELS[kind], tables()["south"]
    bad = spoil(y)
    refused(south(**agreed), X, bad, LabelError)
    if not agreed and kind != "a class not agreed":  # all classes that occur are agreed there
        with pytest.raises(LabelError, match=r"\[CB104\]$"):
            simulated({**tables(), "south": (X, bad)})


def test_labels_that_are_text_may_be_objects():
    upload = south(**TEXT).prepare(tables()["south"][0], np.array(["b"] * 30, dtype=object))
    assert set(upload.labels) == {1}


def test_prediction_checks_names_and_values_like_preparation_does():
    party, (X, _) = simulated(tables()).parties["south"], tables()["south"]
    for spoil, error in ROWS.values():
        if error in {NotFiniteError, ShapeError, DtypeError}:
            with pytest.raises(error, match="party 'south'"):
                party.predict(spoil(X))
    with pytest.raises(FeatureError):
        party.transform(pl.DataFrame(X, schema=list("abcdef")))
