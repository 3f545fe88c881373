from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cobasis.errors import OptionError
from cobasis.estimators import CollaborativeClassifier

PREDICTS = {"fit", "predict", "score", "transform"}
ROUTED = partial(sklearn.config_context, enable_metadata_routing=True)


@pytest.fixture
def model():
    return CollaborativeClassifier(estimator="ridge", n_components=6, random_state=0)


def folds(data, n_splits=3):
    return list(StratifiedKFold(n_splits).split(data.X, data.parties))


def scored(estimator, data, score=cross_val_score, **options):
    told = {"params": {"parties": data.parties}, "cv": folds(data), **options}
    return score(estimator, data.X, data.y, **told)


def by_hand(estimator, X, y, parties):
    return accuracy_score(y, estimator.predict(X, parties=parties))


def test_what_cannot_pass_parties_fails_and_is_never_wrong(small, model):
    """Neither scikit-learn's own scorers nor its predictions hand `parties` to `predict`."""
    strict = {"error_score": "raise"}
    with pytest.raises(OptionError, match="parties is missing"):
        scored(model, small, **strict)  # routing is off
    with ROUTED():
        for passes_on in (model, make_pipeline(FunctionTransformer(), model)):
            assert scored(passes_on, small).mean() > 0.85
        for options in (
            {"scoring": "accuracy", **strict},
            {"scoring": make_scorer(accuracy_score).set_score_request(parties=True), **strict},
            {"score": cross_val_predict},
        ):
            with pytest.raises(OptionError, match=r"parties is missing.*scoring='accuracy' does"):
                scored(model, small, **options)
        with pytest.raises(TypeError, match="'parties'"):
            scored(model, small, scoring=by_hand, **strict)
        with pytest.warns(UserWarning, match=r"parties is missing"):
            assert np.isnan(scored(model, small, scoring="accuracy")).all()


def test_where_rows_carry_their_party_every_tool_works_without_routing(small, model):
    numbers = np.unique(small.parties, return_inverse=True)[1]
    bound, table = clone(model).set_params(party_column=0), np.c_[numbers, small.X]
    options = {"cv": folds(small), "error_score": "raise"}
    scores = cross_val_score(bound, table, small.y, **options)
    with ROUTED():
        np.testing.assert_allclose(scores, scored(model, small))
    found = cross_val_predict(bound, table, small.y, cv=folds(small))
    by_name = cross_validate(bound, table, small.y, scoring=["accuracy"], **options)
    assert by_name["test_accuracy"].mean() == pytest.approx(np.mean(found == small.y))
    assert np.mean(found == small.y) > 0.85
