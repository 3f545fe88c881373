from functools import partial

import numpy as np
import pytest
from lifelines import CoxPHFitter
from lifelines.datasets import load_lung
from lifelines.utils import concordance_index
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cobasis import CategoryFeature, NumericFeature
from cobasis.errors import LabelError, OptionError
from cobasis.estimators import CollaborativeSurvival

FEATURES = (
    NumericFeature(name="age", centre=60.0, scale=10.0),
    CategoryFeature(name="sex", values=("female", "male")),
    NumericFeature(name="ph.ecog"),
)
COLUMNS = [each.name for each in FEATURES]
survival = partial(CollaborativeSurvival, features=FEATURES, random_state=0)


@pytest.fixture(scope="module")
def lung():
    found = load_lung().dropna(subset=COLUMNS).reset_index(drop=True)
    y = np.array(
        [(status == 1, time) for status, time in zip(found["status"], found["time"], strict=True)],
        dtype=[("cens", "?"), ("time", "<f8")],
    )
    parties = np.array(["north", "south", "east"])[np.arange(len(found)) % 3]
    return found[COLUMNS].assign(sex=found["sex"].map({1: "male", 2: "female"})), y, parties


def test_every_party_reads_the_ratios_and_shares_of_lifelines_on_all_rows(lung):
    X, y, parties = lung
    when = np.sort(y["time"][y["cens"]])[[60, 120]]  # lifelines goes on in lines between events
    model = survival(horizons=when.tolist()).fit(X, y, parties=parties)
    plain = X.assign(sex=1.0 * (X["sex"] == "male")).rename(columns={"sex": "sex=male"})
    whole = CoxPHFitter().fit(
        plain.assign(time=y["time"], died=y["cens"]),
        "time",
        "died",
        fit_options={"precision": 1e-13},
    )
    for party in model.round_.parties.values():
        found = {each.name: each for each in party.coefficients().lines}
        assert [*found] == [*plain]
        for name, each in found.items():
            assert each.estimate == pytest.approx(whole.params_[name], rel=1e-7)
            assert each.standard_error == pytest.approx(whole.standard_errors_[name], rel=1e-7)
    assert [each.name for each in model.coefficients().lines] == [*plain]
    risk = model.predict(X, parties=parties)
    right = concordance_index(y["time"], -risk, y["cens"])
    assert model.score(X, y, parties=parties) == pytest.approx(right)
    shares = whole.predict_survival_function(plain, times=when).to_numpy().T
    assert np.allclose(model.predict_survival(X, parties=parties), shares, atol=1e-6)


def test_it_takes_booleans_and_times_and_no_other_labels(lung):
    X, y, parties = lung
    model = clone(survival(errors="robust"))
    no_booleans = y.astype([("cens", "<i8"), ("time", "<f8")])
    for bad in (y["time"], no_booleans, y[["cens"]], None):
        with pytest.raises(LabelError, match="takes a structured array of two fields"):
            model.fit(X, bad, parties=parties)
    with pytest.raises(LabelError, match=rf"shape \({len(y) - 1},\) for {len(y)} rows"):
        model.fit(X, y[1:], parties=parties)


@pytest.mark.parametrize("options", [{"errors": "huber"}, {"horizons": [0.0]}, {"horizons": 365}])
def test_options_that_cannot_stand_are_refused_as_those_of_other_faces_are(lung, options):
    X, y, parties = lung
    with pytest.raises(OptionError, match=rf"{next(iter(options))}=.* cannot stand.*\[CB107\]$"):
        survival(**options).fit(X, y, parties=parties)


def test_labels_of_which_none_is_known_to_be_first_or_whose_times_are_none_have_no_score(lung):
    X, y, parties = lung
    with pytest.raises(NotFittedError):
        survival().coefficients()
    model, nobody = survival().fit(X, y, parties=parties), y.copy()
    nobody["cens"] = False
    with pytest.raises(LabelError, match="there is no C-index"):
        model.score(X, nobody, parties=parties)
    for time in (np.nan, np.inf, 0.0):
        wrong = y.copy()
        wrong["time"][0] = time
        with pytest.raises(LabelError, match=r"no finite number above 0.*\[CB104\]$"):
            model.score(X, wrong, parties=parties)
