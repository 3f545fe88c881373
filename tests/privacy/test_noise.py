"""The noise that a budget takes: its ball, its scale, its law; and labels told wrong at times."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cobasis import GOPP, ODC, Imakura, Kawakami, align, draw_anchor
from cobasis.errors import DtypeError, NotFiniteError, OptionError, ShapeError
from cobasis.linalg.rng import KeyStream, haar_columns
from cobasis.privacy.gaussian import delta_of, epsilon_of, noise_scale
from cobasis.privacy.mechanism import Calibration, calibrated, keep_probability, noised, randomised
from cobasis.privacy.sensitivity import clip_rows, sensitivity_of

NUMBERS = st.floats(-1e6, 1e6)
TABLES = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=NUMBERS)


def distances(rows, centre):
    """In more digits than the rows have, where the platform has them."""
    wide = np.asarray(rows, dtype=np.longdouble) - np.asarray(centre, dtype=np.longdouble)
    return np.sqrt((wide**2).sum(axis=1))


@given(rows=TABLES, centre=arrays(np.float64, 4, elements=NUMBERS), radius=st.floats(1e-3, 1e6))
def test_no_row_is_outside_the_ball_and_rows_well_inside_are_copied(rows, centre, radius):
    kept = rows.copy()
    found = clip_rows(rows, radius=radius, centre=centre)
    assert not np.shares_memory(found, rows)
    np.testing.assert_array_equal(rows, kept)
    assert (distances(found, centre) <= radius).all()
    assert distances(found, found[0]).max() <= sensitivity_of(radius=radius)
    inside = distances(rows, centre) < radius - 1e-11 * (radius + np.linalg.norm(centre))
    np.testing.assert_array_equal(found[inside], rows[inside])


def test_the_largest_and_smallest_numbers_are_clipped_too():
    rows = np.array([[1.7e308, 1.7e308], [-1.7e308, 0.0], [1e-320, 0.0], [0.0, 0.0]])
    found = clip_rows(rows, radius=1, centre=np.array([-1.0, 0.0]))
    assert (distances(found, [-1.0, 0.0]) <= 1).all()
    np.testing.assert_allclose(found[0] + [1, 0], [0.5**0.5, 0.5**0.5])
    np.testing.assert_allclose(found[1], [-2, 0])
    assert (distances(clip_rows(rows, radius=1e-3), 0) <= 1e-3).all()


NO_SIZE = (0, -1.0, np.nan, np.inf)
BAD = dict.fromkeys(("noise", "sensitivity", "radius"), NO_SIZE) | {
    "epsilon": NO_SIZE[1:],
    "delta": (*NO_SIZE, 1, 1.5),
    "adjacency": ["none"],
    "rows_per_person": (*NO_SIZE, 1.5, True),
    "n_classes": [1],
}
FINE = {
    clip_rows: {"rows": [[0.0, 1.0]], "radius": 1, "centre": None},
    sensitivity_of: {"radius": 1, "adjacency": "replace-one", "rows_per_person": 1},
    delta_of: dict.fromkeys(("epsilon", "noise", "sensitivity"), 0.5),
    noise_scale: dict.fromkeys(("epsilon", "delta", "sensitivity"), 0.5),
    epsilon_of: dict.fromkeys(("noise", "delta", "sensitivity"), 0.5),
    keep_probability: {"epsilon": 1.0, "n_classes": 2},
}
REFUSED = [
    (clip_rows, {"rows": [[0.0, np.nan]]}, NotFiniteError, "rows contains"),
    (clip_rows, {"centre": [0.0, np.inf]}, NotFiniteError, "centre contains"),
    (clip_rows, {"centre": 0.5}, ShapeError, "centre has 1 dimensions"),
    (clip_rows, {"centre": [0.0, 1.0, 2.0]}, ShapeError, "centre has 3 columns"),
    (clip_rows, {"centre": ["0", "1"]}, DtypeError, "numbers"),
    (clip_rows, {"radius": 1e-3, "centre": [1e10, 0.0]}, OptionError, "rounding of the centre"),
    (noise_scale, {"epsilon": 0}, OptionError, "epsilon"),
    (keep_probability, {"epsilon": 16.5}, OptionError, "epsilon"),
    *(
        (call, {name: each}, OptionError, name.removeprefix("n_"))
        for call, told in FINE.items()
        for name in told
        for each in BAD.get(name, ())
    ),
]


@pytest.mark.parametrize(("call", "bad", "error", "words"), REFUSED)
def test_what_no_guarantee_could_be_made_of_is_refused_by_its_name(call, bad, error, words):
    told = {**FINE[call], **bad}
    rows = [told.pop("rows")] if "rows" in told else []
    with pytest.raises(error, match=words):
        call(*rows, **told)


def test_a_replaced_record_moves_twice_the_radius_and_a_removed_one_once():
    assert sensitivity_of(radius=1.5, adjacency="add-remove") == 1.5
    assert sensitivity_of(radius=1.5, rows_per_person=4) == 6


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.01, 0.5, 2, 8, 64, 1000, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-10, 1e-6, 1e-3, 0.3, 0.5, 0.9, 0.999999])
def test_fifty_digits_find_no_noise_too_small_and_less_is_not_enough(epsilon, delta):
    """Theorem 8 of Balle and Wang (2018): exact to 1e-11 for what an agreement may have."""
    mp = pytest.importorskip("mpmath", reason="comes with dp-accounting").mp
    found = noise_scale(epsilon=epsilon, delta=delta, sensitivity=2)
    agreed = 0.01 <= epsilon <= 64 and 1e-10 <= delta <= 1e-3
    with mp.workdps(50):
        least = mp.mpf(found) * (1 - mp.mpf(1e-11 if agreed else 0.01))
        reached = []
        for noise in (mp.mpf(found), least):
            middle, half = epsilon * noise / 2, 1 / noise
            reached.append(mp.ncdf(half - middle) - mp.exp(epsilon) * mp.ncdf(-half - middle))
        assert reached[0] <= mp.mpf(delta) < reached[1]


@given(epsilon=st.floats(0.01, 64), delta=st.floats(1e-12, 0.1))
def test_the_epsilon_of_a_sigma_is_the_one_it_was_made_for(epsilon, delta):
    noise = noise_scale(epsilon=epsilon, delta=delta, sensitivity=3)
    assert epsilon_of(noise=noise, delta=delta, sensitivity=3) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "noise", "sensitivity", "expected"),
    [
        (0, 1, 1, 0.382924922548026),  # the distance of two normal laws, 2 Phi(1/2) - 1
        (8, (2 * np.log(1.25 / 1e-3)) ** 0.5 / 8, 1, 1.31e-3),  # the classical formula: too small
        (1, 1e300, 1e-300, 0),
        (1, 1e-300, 1e300, 1),
        (1, 1e-9, 1, 1),
    ],
)
def test_delta_is_known_in_special_cases_and_at_the_ends_of_the_scale(
    epsilon, noise, sensitivity, expected
):
    found = delta_of(epsilon=epsilon, noise=noise, sensitivity=sensitivity)
    assert found == pytest.approx(expected, rel=0.01)
    # noise that reaches delta alone has epsilon zero, and the least number the least noise
    assert epsilon_of(noise=10, delta=0.05, sensitivity=1) == 0
    assert epsilon_of(noise=10, delta=0.03, sensitivity=1) > 0
    assert noise_scale(epsilon=64, delta=0.5, sensitivity=5e-324) == 5e-324


def stream(label="test"):
    return KeyStream(b"n" * 32, label)


def test_three_million_numbers_follow_the_rounded_normal_law():
    step = 1 / 64
    edges = np.linspace(-4.5, 4.5, 289) + step / 2
    counts, shape, total = np.zeros(len(edges) - 1), (10**6, 1), 3 * 10**6
    one = Calibration(noise=1.0, grid=step, mu=1.0)
    for part in "abc":
        found = noised(np.zeros(shape), stream(part).tailed_normal(shape), calibration=one)
        counts += np.histogram(found, edges)[0]
    shares, inside = np.diff(stats.norm.cdf(edges)), counts.sum()
    assert stats.chisquare(counts, inside * shares / shares.sum()).pvalue > 1e-4
    assert stats.binomtest(int(inside), total, shares.sum()).pvalue > 1e-4


def test_the_tails_reach_where_the_plain_normal_ends(monkeypatch):
    """The lowest and the highest words that the stream can give."""
    lowest, highest = np.zeros(3, np.uint64), np.full(3, 2**64 - 1, np.uint64)
    one, found = stream(), []
    for words in (lowest, highest, np.array([1, 0, 0], np.uint64)):
        monkeypatch.setattr(one, "words", lambda _, words=words: words.copy())
        found.append(one.tailed_normal((1, 1)).item())
    assert found == pytest.approx([16.13, 0, -16.13], abs=0.01)
    assert abs(found[1]) < 1e-15
    monkeypatch.setattr(one, "words", lambda _: lowest[:1])
    assert abs(one.normal((1, 1)).item()) < 8.3


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
    labels, terms = np.full(200_000, n_classes - 1), {"epsilon": 1.5, "n_classes": n_classes}
    kept = keep_probability(**terms)
    expected = [*[(1 - kept) / (n_classes - 1)] * (n_classes - 1), kept]
    counts = np.bincount(randomised(labels, stream(), **terms), minlength=n_classes)
    assert stats.chisquare(counts, len(labels) * np.array(expected)).pvalue > 1e-4


def stretches(method, kind, *, n_rows):
    """How much longer noise is along one aligned direction than along another, for each of three
    parties that turn one common span, as under basis='haar'."""
    anchor = draw_anchor(kind, key=b"a" * 32, n_rows=n_rows, n_features=12)
    turning = KeyStream(b"s" * 32, "span")
    span = haar_columns(turning, n_rows=12, n_columns=4)
    turns = {name: haar_columns(turning, n_rows=4, n_columns=4) for name in "abc"}
    images = {name: anchor.apply(span @ turn) for name, turn in turns.items()}
    return [np.linalg.cond(each) for each in align(method(), images).changes_of_basis.values()]


def test_turns_keep_round_noise_round_and_least_squares_colour_it_under_few_other_anchor_rows():
    for method in (ODC, GOPP):
        np.testing.assert_allclose(stretches(method, "gaussian", n_rows=12), 1, atol=1e-9)
    for method in (Imakura, Kawakami):
        assert min(stretches(method, "gaussian", n_rows=12)) > 1.7
        assert max(stretches(method, "gaussian", n_rows=4000)) < 1.15
        np.testing.assert_allclose(stretches(method, "isometric", n_rows=12), 1, atol=1e-6)
