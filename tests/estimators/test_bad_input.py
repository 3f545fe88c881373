import re

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler

from cobasis import numeric_features
from cobasis.errors import (
    AgreementError,
    FeatureError,
    LabelError,
    OptionError,
    ShapeError,
    UnknownPartyError,
)
from cobasis.estimators import (
    CollaborativeClassifier,
    CollaborativeRegressor,
    CollaborativeTransformer,
)
from features.frames import Frame

NAMES = ["a", "b", "c", "d", "e", "f"]


def test_other_columns_than_in_fit_are_refused(small, fitted):
    model = CollaborativeTransformer().fit(Frame(small.X, NAMES), parties=small.parties)
    model.transform(Frame(small.X, NAMES), parties=small.parties)
    for columns, reason in (
        (NAMES[::-1], "column 1 is 'f', agreed is 'a'"),
        ([1, *NAMES[1:]], "6 columns, of which 5 with"),
        ([*NAMES[:5], "e"], "several columns of one name"),
    ):
        with pytest.raises(FeatureError, match=rf"{reason}.*\[CB105\]"):
            model.transform(pd.DataFrame(small.X, columns=columns), parties=small.parties)
    with pytest.raises(ShapeError, match=r"5 features, but .* is expecting 6"):
        fitted.predict(small.X[:, :5], parties=small.parties)


LABELS = {
    "none": (lambda _: None, "requires y to be passed"),
    "too few": (lambda y: y[:-1], r"shape \(89,\) for 90 rows"),
    "a column": (lambda y: y[:, None], r"shape \(90, 1\) .*y.ravel\(\)"),
    "masked": (lambda y: np.ma.masked_equal(y, 1), "masked"),
    "missing": (lambda y: np.where(y > 0, np.nan, 1.0), "dtype float64"),
    "numbers": (lambda y: y + 0.5, "Unknown label type: continuous"),
    "text and integers": (lambda y: np.array(["x", *y.tolist()[1:]], dtype=object), "one type"),
    "one class": (np.zeros_like, "one class"),
}


@pytest.mark.parametrize(("spoil", "reason"), LABELS.values(), ids=LABELS)
def test_bad_labels_are_refused(small, spoil, reason):
    with pytest.raises(LabelError, match=rf"{reason}.*\[CB104\]"):
        CollaborativeClassifier().fit(small.X, spoil(small.y), parties=small.parties)
    with pytest.raises(LabelError, match=r"finite real numbers.*\[CB104\]"):
        CollaborativeRegressor().fit(small.X, small.y.astype(str), parties=small.parties)


def first(label):
    return lambda p: [label, *p[1:].tolist()]


NOBODY = "missing or empty party labels, or lists: 1 of 90"
PARTIES = {
    "none": (lambda _: None, OptionError, r"parties is missing"),
    "one name": (lambda _: "north", ShapeError, r"np.full\(len\(X\), 'north'\)"),
    "a column": (lambda p: p[:, None], ShapeError, r"shape \(90, 1\)"),
    "a missing label": (first(None), OptionError, NOBODY),
    "no number": (first(np.nan), OptionError, NOBODY),
    "a masked one": (lambda p: np.ma.masked_equal(p, "east"), OptionError, "lists: 30 of 90"),
    "a list": (first(["x"]), OptionError, NOBODY),
}


@pytest.mark.parametrize("case", PARTIES)
def test_every_row_needs_the_name_of_its_party(small, fitted, case):
    """Never is a missing name taken for one party."""
    spoil, error, reason = PARTIES[case]
    unfitted = CollaborativeClassifier(estimator="ridge")
    for call in (unfitted.fit, unfitted.fit_transform, fitted.score):
        with pytest.raises(error, match=rf"{reason}.*\[{error.code}\]"):
            call(small.X, small.y, parties=spoil(small.parties))
    for call in (fitted.predict, fitted.transform):
        with pytest.raises(error, match=rf"{reason}.*\[{error.code}\]"):
            call(small.X, parties=spoil(small.parties))


def test_a_party_that_was_not_in_fit_is_named_with_those_that_were_also_if_written_alike(small):
    numbers = np.arange(90) % 2
    found = CollaborativeClassifier(estimator="ridge").fit(small.X, small.y, parties=numbers)
    told = r"not in fit: '0', '1' \(2 in all\)\..*Known: 0, 1\..*\[CB304\]"
    with pytest.raises(UnknownPartyError, match=told):
        found.predict(small.X, parties=numbers.astype(str))


OPTIONS = {
    "too many components": ({"n_components": 7}, AgreementError, "n_components=7"),
    "fewer features": ({"features": numeric_features(NAMES[:5])}, ShapeError, "6 columns"),
    "no such column": ({"party_column": 6}, FeatureError, "party_column=6 is no column"),
    "parties twice": ({"party_column": 0}, OptionError, "party_column=0 as well"),
    "random state": ({"random_state": "x"}, OptionError, "random_state='x'"),
    "no model": ({"estimator": StandardScaler()}, OptionError, "no estimator for classification"),
    "regressor": (
        {"estimator": LinearRegression()},
        OptionError,
        "no estimator for classification",
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_refused_by_fit_and_not_before_in_no_words_of_agreements(small, case):
    options, error, reason = OPTIONS[case]
    model = CollaborativeClassifier(**options)
    wanted = options.get("party_column", 0) == 0
    with pytest.raises(error, match=rf"(?s)(?:{reason}).*\[CB\d+\]") as caught:
        model.fit(small.X, small.y, parties=small.parties if wanted else None)
    assert not re.search("agree|sign|party side|command", str(caught.value))
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_fit_that_fails_leaves_the_one_before_it(small):
    model = CollaborativeClassifier(estimator="ridge", n_components=4, random_state=0)
    model.fit(small.X, small.y, parties=small.parties)
    before = model.predict(small.X, parties=small.parties)
    with pytest.raises(LabelError):
        model.fit(small.X[:, :5], np.zeros(90, dtype=int), parties=small.parties)
    np.testing.assert_array_equal(model.predict(small.X, parties=small.parties), before)
