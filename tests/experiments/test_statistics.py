import numpy as np
import pytest
from experiments.harness.models import svm
from experiments.harness.statistics import first_of_two, one_way, paired, summary
from experiments.harness.systems import Dealt, Shared, judged, told_apart
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.svm import SVC


def test_a_margin_is_half_of_students_interval_and_a_mean_has_two_digits_of_it():
    values = np.random.default_rng(0).normal(90, 1, size=8)
    low, high = stats.t.interval(0.95, 7, loc=values.mean(), scale=stats.sem(values))
    found = summary(values)
    assert (found.mean, found.margin) == pytest.approx(((high + low) / 2, (high - low) / 2))
    printed = {
        (95.0, 95.2, 95.4): "95.20 ± 0.50",
        (95.25,): "95.25 (1)",
        (96.1, 96.1, 96.1): "96.1",  # whose sum is rounded
        (1_000_000.0, 3_000_000.0): "2,000,000 ± 12,706,205",
    }
    assert {each: str(summary(each)) for each in printed} == printed


def test_the_paired_test_asks_whether_the_second_is_worse_and_always_has_an_answer():
    rng = np.random.default_rng(1)
    first = rng.normal(90, 1, size=12)
    second = first - 0.5 + rng.normal(0, 0.3, size=12)
    found = paired(first, second)
    assert found.p == pytest.approx(stats.ttest_rel(second, first, alternative="less").pvalue)
    assert (found.p < 0.01, paired(second, first).p > 0.99) == (True, True)
    assert found.effect == pytest.approx(np.mean(second - first) / np.std(second - first, ddof=1))
    assert paired([93.1, 80.2], [93.0, 80.1]).p == 0.0  # one difference, but for rounding
    assert np.isnan(paired([1.0], [0.5]).p)


def test_analyses_of_variance_are_what_scipy_and_paper_and_pencil_give():
    groups = [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]
    found = one_way(groups)
    assert found.f == pytest.approx(stats.f_oneway(*groups).statistic)
    between, within = 26, 6  # sums of squares: thrice 25/9 + 4/9 + 49/9, and thrice 2
    assert found.effect == pytest.approx(np.sqrt(between / within))
    # two factors of two levels, two repeats: means 2, 4 / 6, 12; grand mean 6
    cells = [[[1.0, 3.0], [3.0, 5.0]], [[5.0, 7.0], [11.0, 13.0]]]
    found = first_of_two(cells)
    # its sum of squares is 72; within cells 8 with 4 degrees of freedom, so 2 on average
    assert (found.f, found.effect) == pytest.approx((36, np.sqrt(72 / 8)))
    assert found.p == pytest.approx(stats.f.sf(36, 1, 4))
    assert first_of_two(np.swapaxes(cells, 0, 1).tolist()).f == pytest.approx(16)
    assert np.isnan(one_way([[1.0], [2.0]]).f)
    assert np.isnan(first_of_two([[[1.0], [2.0]], [[3.0], [4.0]]]).p)


def test_test_rows_that_agree_are_kept_once_and_counted_in_the_mean_over_parties():
    first, other = np.eye(3), np.ones((3, 3))
    found = told_apart([first, other, first * (1 + 1e-12), other, other])
    assert [count for _, count in found] == [2, 3]
    assert found[0][0] is first
    assert [count for _, count in told_apart([first, first * (1 + 1e-6)])] == [1, 1]
    rows, labels = np.eye(2), np.arange(2)
    tests = [(rows, 3), (rows[::-1], 1)]
    dealt = Dealt(parties={"a": (rows, labels)}, test_rows=rows, test_labels=labels, repeat=0)
    shared = Shared(rows=rows, labels=labels, tests=tests, dealt=dealt)
    assert judged(shared, make=svm)[""] == 75


def test_the_fast_machine_predicts_what_scikit_learn_does():
    """Of three classes and of two, also where test rows are far from all support vectors."""
    rng, (pixels, digits) = np.random.default_rng(0), load_digits(return_X_y=True)
    for classes in (3, 2):
        rows = pixels[digits < classes] / 16
        labels = np.array([f"class {label}" for label in digits[digits < classes]])
        train, test = np.array_split(rng.permutation(len(rows)), 2)
        ours = svm(0).fit(rows[train], labels[train])
        theirs = SVC(C=1.0, kernel="rbf", gamma="scale").fit(rows[train], labels[train])
        for seen in (rows[test], rng.normal(size=(200, 64)), 10 + rows[test]):
            assert np.array_equal(ours.predict(seen), theirs.predict(seen))
