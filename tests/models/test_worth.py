"""What a model is worth: measures that libraries know too, intervals, and a verdict in pairs."""

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, mean_absolute_error, r2_score, roc_auc_score

from cobasis.models import worth
from cobasis.models.worth import compared, figures


def rows(n_rows, n_classes=2, *, seed=0, sure=1.0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_rows, n_classes)) * 1.5
    right = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = (right.cumsum(axis=1) < rng.uniform(size=(n_rows, 1))).sum(axis=1)
    likely = np.exp(sure * logits)
    return truth, likely / likely.sum(axis=1, keepdims=True)


def measured(truth, likely):
    return figures(truth, likely.argmax(axis=1), likely=likely, task="classification")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_measures_are_those_of_the_libraries(n_classes):
    truth, likely = rows(300, n_classes)
    likely[150:] = likely[:150]  # each twice, so that rows of two classes are alike
    found = measured(truth, likely)
    auc = {2: {}, 3: {"multi_class": "ovr"}}[n_classes]
    assert found["AUC"].value == pytest.approx(
        roc_auc_score(truth, likely[:, 1] if n_classes == 2 else likely, **auc)
    )
    told = likely[:, 1] if n_classes == 2 else likely
    assert found["Brier"].value == pytest.approx(brier_score_loss(truth, told))
    assert ("calibration slope" in found) == (n_classes == 2)
    y, guess = likely[:, 0], likely[:, 1] * 0.3
    numbers = figures(y, guess, likely=None, task="regression")
    assert numbers["R2"].value == pytest.approx(r2_score(y, guess))
    assert numbers["MAE"].value == pytest.approx(mean_absolute_error(y, guess))


def test_nineteen_of_twenty_intervals_hold_the_truth_and_calibration_is_seen(monkeypatch):
    monkeypatch.setattr(worth, "_DRAWS", 100)
    true, within = measured(*rows(20_000)), dict.fromkeys(measured(*rows(200)), 0)
    for seed in range(1, 25):
        for name, (_, low, high) in measured(*rows(80, seed=seed)).items():
            within[name] += low <= true[name].value <= high
    assert min(within.values()) >= 19
    slope = measured(*rows(2_000, sure=2.0))["calibration slope"]
    assert slope.high < 0.7
    assert slope.low < 0.5 < slope.high


@pytest.mark.parametrize("n_rows", [1, 2, 12])
def test_few_rows_or_one_class_leave_out_what_they_do_not_tell(n_rows):
    found = measured(np.ones(n_rows, dtype=int), np.full((n_rows, 2), 0.5))
    assert set(found) == {"accuracy", "Brier"}
    assert found["accuracy"].low < found["accuracy"].value or not found["accuracy"].value
    assert set(figures(np.ones(n_rows), np.zeros(n_rows), likely=None, task="regression")) == {
        "MAE"
    }


def test_a_rate_beyond_what_a_number_holds_has_no_deviance():
    truth = np.arange(3.0)
    for rate, measures in ((1.0, {"deviance", "MAE"}), (0.0, {"MAE"}), (np.inf, set())):
        with np.errstate(invalid="ignore"):
            told = figures(truth, np.array([rate, 1.0, 2.0]), likely=None, task="count")
        assert set(told) == measures


def test_a_verdict_needs_more_rows_that_only_one_has_right_than_chance_gives():
    truth = np.ones(63, dtype=int)
    none, some = np.zeros(63, dtype=int), np.r_[np.zeros(58, dtype=int), np.ones(5, dtype=int)]
    many = np.r_[np.zeros(57, dtype=int), np.ones(6, dtype=int)]
    told = {"task": "classification"}
    assert compared(some, none, truth=truth, **told) == "no difference"  # 5 to 0: chance 1 in 16
    assert compared(many, none, truth=truth, **told) == "better"
    assert compared(none, many, truth=truth, **told) == "worse"
    rng = np.random.default_rng(0)
    y = rng.normal(size=63)
    assert compared(y + 0.1, y + 0.9 * rng.normal(size=63), truth=y, task="regression") == "better"
    assert compared(y, y, truth=y, task="regression") == "no difference"
