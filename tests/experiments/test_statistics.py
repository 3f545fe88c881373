"""Means, intervals and the papers' tests are those of scipy and of paper and pencil."""

import numpy as np
import pytest
from experiments.harness.statistics import first_of_two, one_way, paired, summary
from scipy import stats


def test_a_margin_is_half_of_students_interval():
    values = np.random.default_rng(0).normal(90, 1, size=8)
    low, high = stats.t.interval(0.95, 7, loc=values.mean(), scale=stats.sem(values))
    found = summary(values)
    assert found.margin == pytest.approx((high - low) / 2)
    assert found.mean == pytest.approx((high + low) / 2)


def test_a_mean_is_printed_to_two_digits_of_its_margin():
    assert str(summary([95.0, 95.2, 95.4])) == "95.20 ± 0.50"
    assert str(summary([95.25])) == "95.25 (1)"
    assert str(summary([3.0, 3.0])) == "3"
    assert str(summary([96.1] * 3)) == "96.1"  # whose sum is rounded
    assert str(summary([1_000_000.0, 3_000_000.0])) == "2,000,000 ± 12,706,205"


def test_the_paired_test_is_scipys_and_asks_whether_the_second_is_worse():
    rng = np.random.default_rng(1)
    first = rng.normal(90, 1, size=12)
    second = first - 0.5 + rng.normal(0, 0.3, size=12)
    found = paired(first, second)
    assert found.p == pytest.approx(stats.ttest_rel(second, first, alternative="less").pvalue)
    assert found.p < 0.01
    assert paired(second, first).p > 0.99
    assert found.effect == pytest.approx(np.mean(second - first) / np.std(second - first, ddof=1))


def test_pairs_that_do_not_differ_at_all_and_single_ones_have_an_answer():
    assert paired([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert paired([93.1, 80.2], [93.0, 80.1]).p == 0.0  # one difference, but for rounding
    same = paired([93.1, 80.2], [np.nextafter(each, 0) for each in (93.1, 80.2)])
    assert (same.difference, same.p, same.effect) == (0.0, 1.0, 0.0)
    worse = paired([1.0, 2.0], [0.0, 1.0])
    assert (worse.p, worse.effect) == (0.0, -np.inf)
    assert np.isnan(paired([1.0], [0.5]).p)


def test_one_way_anova_is_scipys_and_its_effect_is_cohens_f_by_hand():
    groups = [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [5.0, 6.0, 7.0]]
    found = one_way(groups)
    assert found.f == pytest.approx(stats.f_oneway(*groups).statistic)
    between, within = 26, 6  # sums of squares: thrice 25/9 + 4/9 + 49/9, and thrice 2
    assert found.effect == pytest.approx(np.sqrt(between / within))


def test_first_of_two_anova_is_what_paper_and_pencil_give():
    # two factors of two levels, two repeats: means 2, 4 / 6, 12; grand mean 6
    cells = [[[1.0, 3.0], [3.0, 5.0]], [[5.0, 7.0], [11.0, 13.0]]]
    found = first_of_two(cells)
    # its sum of squares is 72; within cells 8 with 4 degrees of freedom, so 2 on average
    assert found.f == pytest.approx(36)
    assert found.p == pytest.approx(stats.f.sf(36, 1, 4))
    assert found.effect == pytest.approx(np.sqrt(72 / 8))
    assert first_of_two(np.swapaxes(cells, 0, 1).tolist()).f == pytest.approx(16)
    assert np.isnan(one_way([[1.0], [2.0]]).f)
    assert np.isnan(first_of_two([[[1.0], [2.0]], [[3.0], [4.0]]]).p)
