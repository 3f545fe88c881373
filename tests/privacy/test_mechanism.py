"""The noise itself: its law, its tails, its grid, what alignment does to it; and labels that are
told wrong at times."""

import math

import numpy as np
import pytest
from scipy import stats

from cobasis import GOPP, ODC, Imakura, Kawakami, align, draw_anchor
from cobasis.errors import OptionError
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.gaussian import delta_of
from cobasis.privacy.mechanism import (
    Calibration,
    calibrated,
    keep_probability,
    noised,
    randomised,
)


def stream(label="test"):
    return KeyStream(b"n" * 32, label)


def test_three_million_numbers_follow_the_rounded_normal_law():
    step = 1 / 64
    edges = np.linspace(-4.5, 4.5, 289) + step / 2
    counts = np.zeros(len(edges) - 1)
    total = 0
    one = Calibration(noise=1.0, grid=step, mu=1.0)
    for part in range(3):
        found = noised(
            np.zeros((10**6, 1)), stream(str(part)).tailed_normal((10**6, 1)), calibration=one
        )
        counts += np.histogram(found, edges)[0]
        total += len(found)
    expected = total * np.diff(stats.norm.cdf(edges))
    inside = counts.sum()
    p_value = stats.chisquare(counts, expected * inside / expected.sum()).pvalue
    assert p_value > 1e-4
    assert stats.binomtest(int(inside), total, expected.sum() / total).pvalue > 1e-4


def test_the_tails_reach_where_the_plain_normal_ends(monkeypatch):
    """The lowest and the highest words that the stream can give."""
    lowest, highest = np.zeros(3, np.uint64), np.full(3, 2**64 - 1, np.uint64)
    found = []
    for words in (lowest, highest, np.array([1, 0, 0], np.uint64)):
        one = stream()
        monkeypatch.setattr(one, "words", lambda _, words=words: words.copy())
        found.append(one.tailed_normal((1, 1)).item())
    assert found[0] == pytest.approx(16.13, abs=0.01)
    assert found[2] == pytest.approx(-16.13, abs=0.01)
    assert abs(found[1]) < 1e-15
    plain = stream()
    monkeypatch.setattr(plain, "words", lambda _: lowest[:1])
    assert abs(plain.normal((1, 1)).item()) < 8.3


@pytest.mark.parametrize("epsilon", [2.0, 8.0, 32.0, 64.0])
def test_what_ends_beyond_the_tails_is_nothing_beside_delta(epsilon):
    """Where one table's numbers end and the other's do not, the two could be told apart."""
    mu = calibrated(epsilon=epsilon, delta=1e-12, sensitivity=2).mu
    assert stats.norm.sf(16.1 - mu) < 1e-6 * 1e-12


def test_released_numbers_stand_on_the_grid_whatever_the_rows_last_bits():
    found = calibrated(epsilon=2, delta=1e-6, sensitivity=2)
    assert math.log2(found.grid).is_integer()
    values = np.random.default_rng(0).normal(size=(500, 4))
    released = noised(values, stream().tailed_normal((500, 4)), calibration=found)
    assert ((released / found.grid) % 1 == 0).all()
    other = noised(values + 1e-15, stream().tailed_normal((500, 4)), calibration=found)
    np.testing.assert_array_equal(released, other)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 8.0, 64.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_rounding_noise_to_the_grid_never_takes_from_it(epsilon, delta):
    found = calibrated(epsilon=epsilon, delta=delta, sensitivity=0.3)
    assert delta_of(epsilon=epsilon, noise=found.noise, sensitivity=0.3 * (1 + 1e-9)) <= delta
    less = found.noise * (1 - 2.0**-11)
    assert delta_of(epsilon=epsilon, noise=less, sensitivity=0.3) > delta


@pytest.mark.parametrize(("epsilon", "n_classes"), [(0.1, 2), (2.0, 10), (16.0, 3)])
def test_no_label_is_more_than_exp_epsilon_times_as_likely_as_another(epsilon, n_classes):
    kept = keep_probability(epsilon=epsilon, n_classes=n_classes)
    other = (1 - kept) / (n_classes - 1)
    assert kept / other <= math.exp(epsilon)
    assert kept / other > math.exp(epsilon) * (1 - 1e-6)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_labels_are_kept_as_often_as_they_should_and_moved_to_all_others_alike(n_classes):
    n_rows = 200_000
    labels = np.full(n_rows, n_classes - 1)
    found = randomised(labels, stream(), epsilon=1.5, n_classes=n_classes)
    kept = keep_probability(epsilon=1.5, n_classes=n_classes)
    expected = np.full(n_classes, (1 - kept) / (n_classes - 1))
    expected[-1] = kept
    counts = np.bincount(found, minlength=n_classes)
    assert len(counts) == n_classes
    assert stats.chisquare(counts, n_rows * expected).pvalue > 1e-4


@pytest.mark.parametrize(("epsilon", "n_classes"), [(0.0, 2), (16.5, 2), (1.0, 1)])
def test_labels_that_cannot_be_randomised_are_refused(epsilon, n_classes):
    with pytest.raises(OptionError, match="cannot be randomised"):
        randomised(np.zeros(3, np.int64), stream(), epsilon=epsilon, n_classes=n_classes)


@pytest.mark.parametrize(
    ("method", "kind", "n_rows", "least", "most"),
    [
        (ODC, "gaussian", 12, 1, 1 + 1e-9),
        (GOPP, "gaussian", 12, 1, 1 + 1e-9),
        *((each, "gaussian", 12, 1.7, np.inf) for each in (Imakura, Kawakami)),
        *((each, "gaussian", 4000, 1, 1.15) for each in (Imakura, Kawakami)),
        *((each, "isometric", 12, 1, 1 + 1e-6) for each in (Imakura, Kawakami)),
    ],
)
def test_an_orthogonal_fit_keeps_round_noise_round_and_least_squares_colour_it_with_few_anchor_rows(
    method, kind, n_rows, least, most
):
    """How much longer noise is along one aligned direction than along another, for each of three
    parties that turn one common span, as under basis='haar'."""
    anchor = draw_anchor(kind, key=b"a" * 32, n_rows=n_rows, n_features=12)
    turning = KeyStream(b"s" * 32, "span")
    span = haar_columns(turning, n_rows=12, n_columns=4)
    images = {
        name: anchor.apply(span @ haar_columns(turning, n_rows=4, n_columns=4)) for name in "abc"
    }
    changes = align(method(), images).changes_of_basis
    stretches = [np.linalg.cond(changes[name]) for name in "abc"]
    assert least <= min(stretches) <= max(stretches) <= most
