import numpy as np
import pandas as pd
import pytest
from lifelines import CoxPHFitter, KaplanMeierFitter
from lifelines.utils import concordance_index

from cobasis.features.outcome import record_type
from cobasis.statistics.survival import survival_figures

N = 300


def patients(*, censored=True, **roles):
    """Records that hang on a risk, with ties; and that risk."""
    rng = np.random.default_rng(11)
    risk = np.round(rng.normal(size=N), 1)
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(1.5, N)
    truth = np.zeros(N, dtype=record_type({"event": "died", **roles}))
    truth["value"] = np.ceil(20 * (np.minimum(time, end) if censored else time)) / 20
    truth["event"] = (time <= end) if censored else 1.0
    return truth, np.exp(risk)


def order(truth, risk):
    return survival_figures(truth, risk=risk, shares=np.zeros((N, 0)), horizons=())["C-index"]


def test_the_order_is_that_of_lifelines_and_its_interval_holds_it():
    truth, risk = patients()
    found = order(truth, risk)
    right = concordance_index(truth["value"], -risk, truth["event"])
    assert found.value == pytest.approx(right, abs=1e-12)
    assert found.low < right < found.high
    assert order(truth, 1 / risk).value == pytest.approx(1 - right, abs=1e-12)


def test_who_came_late_is_compared_from_then_on_and_with_no_share_from_0():
    late, risk = patients(entry="since")
    time, event = late["value"], late["event"]
    entry = late["entry"] = np.floor(10 * time * np.random.default_rng(0).random(N)) / 10
    found = survival_figures(late, risk=risk, shares=np.full((N, 1), 0.5), horizons=(0.5,))
    first = (time[:, None] < time) | ((time[:, None] == time) & (event == 0))
    first &= (event[:, None] == 1) & (entry < time[:, None])
    right = (risk[:, None] > risk) + 0.5 * (risk[:, None] == risk)
    assert {*found} == {"C-index"}
    assert found["C-index"].value == pytest.approx(right[first].mean(), abs=1e-12)


def test_rows_of_two_strata_are_not_compared():
    truth, risk = patients(stratum="site")
    truth["stratum"] = site = np.arange(N) % 3
    table = pd.DataFrame(truth).assign(risk=np.log(risk))
    fit = CoxPHFitter().fit(table, "value", "event", strata="stratum")
    assert order(truth, risk * 9.0**site).value == pytest.approx(fit.concordance_index_, abs=1e-12)


@pytest.mark.parametrize("censored", [False, True])
def test_a_brier_score_is_a_mean_of_squares_in_which_rows_stand_for_those_lost_before(censored):
    truth, risk = patients(censored=censored)
    share, time = np.exp(-0.5 * risk), truth["value"]
    told = survival_figures(truth, risk=risk, shares=share[:, None], horizons=(0.5,))
    there, event = time > 0.5, truth["event"]
    lost = KaplanMeierFitter().fit(time + 1e-9 * (event == 0), 1 - event)  # events come first
    kept = np.where(there, lost.predict(0.5 + 1e-9), lost.predict(time))
    known = there | (event == 1)
    assert np.mean(known / kept) == pytest.approx(1)  # rows stand for all
    right = np.mean(known * (there - share) ** 2 / kept)
    assert told["Brier at 0.5"].value == pytest.approx(right, abs=1e-12)


def test_the_share_of_kaplan_and_meier_is_calibrated_and_another_is_not():
    truth, risk = patients()
    curve = KaplanMeierFitter().fit(truth["value"], truth["event"])
    share = np.full((N, 1), float(curve.predict(0.5)))
    told = survival_figures(truth, risk=risk, shares=share, horizons=(0.5,))["O/E at 0.5"]
    assert told.value == pytest.approx(1.0, abs=1e-12)
    half = survival_figures(truth, risk=risk, shares=1 - (1 - share) / 2, horizons=(0.5,))
    assert half["O/E at 0.5"].low > 1.0
    late = survival_figures(truth, risk=risk, shares=share, horizons=(1e3,))
    assert set(late) == {"C-index"}  # nobody was followed so long
