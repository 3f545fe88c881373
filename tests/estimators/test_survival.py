"""The Cox face: labels as scikit-survival has them, hazard ratios as of all rows together."""

import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_lung
from lifelines.utils import concordance_index
from sklearn.base import clone

from cobasis.errors import LabelError
from cobasis.estimators import CollaborativeSurvival

COLUMNS = ["age", "sex", "ph.ecog"]


@pytest.fixture(scope="module")
def lung():
    found = load_lung().dropna(subset=COLUMNS).reset_index(drop=True)
    y = np.array(
        [(status == 1, time) for status, time in zip(found["status"], found["time"], strict=True)],
        dtype=[("cens", "?"), ("time", "<f8")],
    )
    parties = np.array(["north", "south", "east"])[np.arange(len(found)) % 3]
    X = pd.DataFrame(
        {"age": (found["age"] - 60) / 10, "sex": found["sex"] - 1, "ecog": found["ph.ecog"]}
    )
    return X, y, parties


def test_hazard_ratios_and_shares_are_those_of_lifelines_on_all_rows(lung):
    X, y, parties = lung
    when = np.sort(y["time"][y["cens"]])[[60, 120]]  # lifelines goes on in lines between events
    model = CollaborativeSurvival(horizons=when.tolist(), random_state=0).fit(X, y, parties=parties)
    whole = CoxPHFitter().fit(
        X.assign(time=y["time"], died=y["cens"]), "time", "died", fit_options={"precision": 1e-12}
    )
    found = {each.name: each for each in model.coefficients().lines}
    for name in X:
        assert found[name].estimate == pytest.approx(whole.params_[name], rel=1e-7)
        assert found[name].standard_error == pytest.approx(whole.standard_errors_[name], rel=1e-7)
    risk = model.predict(X, parties=parties)
    right = concordance_index(y["time"], -risk, y["cens"])
    assert model.score(X, y, parties=parties) == pytest.approx(right)
    shares = whole.predict_survival_function(X, times=when).to_numpy().T
    assert np.allclose(model.predict_survival(X, parties=parties), shares, atol=1e-6)


def test_it_is_cloned_and_takes_fields_in_either_order_and_no_other_labels(lung):
    X, y, parties = lung
    model = clone(CollaborativeSurvival(random_state=0, errors="robust"))
    swapped = np.empty(len(y), dtype=[("time", "<i8"), ("seen", "?")])
    swapped["time"], swapped["seen"] = y["time"], y["cens"]
    one = model.fit(X, y, parties=parties).predict(X, parties=parties)
    other = clone(model).fit(X, swapped, parties=parties).predict(X, parties=parties)
    assert np.array_equal(one, other)
    no_booleans = y.astype([("cens", "<i8"), ("time", "<f8")])
    for bad in (y["time"], no_booleans, y[["cens"]], None):
        with pytest.raises(LabelError, match="takes a structured array of two fields"):
            model.fit(X, bad, parties=parties)
    with pytest.raises(LabelError, match=rf"shape \({len(y) - 1},\) for {len(y)} rows"):
        model.fit(X, y[1:], parties=parties)
