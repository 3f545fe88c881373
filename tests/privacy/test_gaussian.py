"""The noise is the least that is enough, never less, whatever the numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cobasis.errors import OptionError
from cobasis.privacy.gaussian import delta_of, epsilon_of, noise_scale


@pytest.mark.parametrize("epsilon", np.geomspace(0.01, 64, 9))
def test_sigma_is_that_of_dp_accounting_in_proportion_to_the_sensitivity(epsilon):
    oracle = pytest.importorskip("dp_accounting", reason="the oracle is in the test group")
    for delta in np.geomspace(1e-10, 1e-3, 8):
        expected = oracle.get_sigma_gaussian(epsilon, delta)
        for sensitivity in (1e-6, 1, 1e6):
            found = noise_scale(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
            assert found == pytest.approx(expected * sensitivity, rel=1e-6)


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


def test_noise_that_reaches_delta_alone_has_epsilon_zero_and_the_least_number_the_least_noise():
    assert epsilon_of(noise=10, delta=0.05, sensitivity=1) == 0
    assert epsilon_of(noise=10, delta=0.03, sensitivity=1) > 0
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
