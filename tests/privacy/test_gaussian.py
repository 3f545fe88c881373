"""The noise is the least that is enough, never less, whatever the numbers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobasis.errors import OptionError
from cobasis.privacy.gaussian import delta_of, epsilon_of, noise_scale

EPSILONS = st.floats(1e-4, 1e3)
DELTAS = st.floats(1e-30, 0.9)
SENSITIVITIES = st.floats(1e-6, 1e6)
BUDGETS = np.geomspace(0.01, 64, 9)
SMALL = np.geomspace(1e-10, 1e-3, 8)


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_sigma_is_that_of_dp_accounting(epsilon):
    oracle = pytest.importorskip("dp_accounting", reason="the oracle is in the test group")
    for delta in SMALL:
        expected = oracle.get_sigma_gaussian(epsilon, delta)
        found = noise_scale(epsilon=epsilon, delta=delta, sensitivity=1)
        assert found == pytest.approx(expected, rel=1e-6)


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


@given(epsilon=EPSILONS, delta=DELTAS, sensitivity=SENSITIVITIES)
def test_at_the_sigma_found_delta_is_kept_and_a_little_less_noise_breaks_it(
    epsilon, delta, sensitivity
):
    found = noise_scale(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert delta_of(epsilon=epsilon, noise=found, sensitivity=sensitivity) <= delta
    less = found * (1 - 1e-6)
    assert delta_of(epsilon=epsilon, noise=less, sensitivity=sensitivity) > delta


@given(epsilon=EPSILONS, delta=DELTAS, sensitivity=SENSITIVITIES)
def test_sigma_grows_in_proportion_to_the_sensitivity(epsilon, delta, sensitivity):
    one = noise_scale(epsilon=epsilon, delta=delta, sensitivity=1)
    found = noise_scale(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert found == pytest.approx(one * sensitivity, rel=1e-7)


@given(epsilon=st.floats(0.01, 64), delta=st.floats(1e-12, 0.1))
def test_the_epsilon_of_a_sigma_is_the_one_it_was_made_for(epsilon, delta):
    noise = noise_scale(epsilon=epsilon, delta=delta, sensitivity=3)
    assert epsilon_of(noise=noise, delta=delta, sensitivity=3) == pytest.approx(epsilon, rel=1e-6)


def falls(values):
    return all(after < before for before, after in pairwise(values))


def test_more_budget_takes_less_noise_and_more_noise_leaves_less_delta():
    def sigma(epsilon, delta):
        return noise_scale(epsilon=epsilon, delta=delta, sensitivity=1)

    assert falls([sigma(epsilon, 1e-6) for epsilon in BUDGETS])
    assert falls([sigma(1, delta) for delta in [*SMALL, 0.01, 0.3, 0.5, 0.9]])
    for epsilon in (0.0, 0.5, 8.0):
        assert falls([delta_of(epsilon=epsilon, noise=s, sensitivity=1) for s in (0.3, 1, 3)])
    for noise in (0.5, 1, 4):
        assert falls([delta_of(epsilon=e, noise=noise, sensitivity=1) for e in (0, 0.5, 1, 2)])


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


def test_noise_that_reaches_delta_without_epsilon_has_epsilon_zero():
    assert epsilon_of(noise=10, delta=0.05, sensitivity=1) == 0
    assert epsilon_of(noise=10, delta=0.03, sensitivity=1) > 0


def test_the_smallest_sensitivity_that_there_is_gets_the_smallest_noise():
    assert noise_scale(epsilon=64, delta=0.5, sensitivity=5e-324) == 5e-324


NO_NUMBERS = [float("nan"), float("inf"), -1.0]
REFUSED = [
    (delta_of, {"epsilon": NO_NUMBERS, "noise": [0, *NO_NUMBERS], "sensitivity": [0, *NO_NUMBERS]}),
    (
        noise_scale,
        {"epsilon": [0, *NO_NUMBERS], "delta": [0, 1, 1.5, *NO_NUMBERS], "sensitivity": [0, -1.0]},
    ),
    (epsilon_of, {"noise": [0, *NO_NUMBERS], "delta": [0, 1, 1.5, *NO_NUMBERS]}),
]


@pytest.mark.parametrize(("call", "bad"), REFUSED)
def test_a_number_out_of_its_range_is_refused_by_its_name(call, bad):
    fine = {"sensitivity": 1.0} | dict.fromkeys(bad, 0.5)
    for name, values in bad.items():
        for value in values:
            with pytest.raises(OptionError, match=f"^{name}={value} is no .* finite and "):
                call(**{**fine, name: value})
