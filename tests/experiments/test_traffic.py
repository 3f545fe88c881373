"""Traffic is what the ODC paper's equations count, and gives its examples."""

from dataclasses import replace

import pytest
from experiments.studies.traffic import SECRET, exchange, seconds

HOSPITALS = exchange()
SEEDED = exchange(anchor=SECRET)


def test_one_party_sends_and_is_sent_what_equations_10_and_11_say():
    assert HOSPITALS.upload == 800_000
    assert HOSPITALS.reply == 100_040_000


def test_anchor_copies_are_counted_as_in_equations_12_and_13():
    assert replace(HOSPITALS, anchor_copies=1).anchor == 3_136_000
    assert HOSPITALS.anchor == 313_600_000
    assert SEEDED.anchor == 0


def test_rounds_take_what_equations_19_and_20_print():
    assert HOSPITALS.whole == 10_397_600_000
    assert SEEDED.whole == 10_084_000_000
    assert HOSPITALS.federated() == 20_000_000_000


@pytest.mark.parametrize(
    ("share", "rounds"),
    [(1, 0.51988), (0.75, 0.69317), (0.5, 1.03976), (0.25, 2.07952), (0.1, 5.1988)],
)
def test_break_even_is_where_both_take_the_same(share, rounds):
    found = HOSPITALS.break_even(share)
    assert found == pytest.approx(rounds, abs=1e-5)
    assert found * HOSPITALS.federated(share) == pytest.approx(HOSPITALS.whole)


def test_break_even_with_an_anchor_that_does_not_travel():
    assert SEEDED.break_even(0.1) == pytest.approx(5.042)


@pytest.mark.parametrize("bits", [8, 16, 64])
def test_bits_scale_bytes_and_leave_the_break_even_alone(bits):
    other = replace(HOSPITALS, bits=bits)
    assert other.whole == pytest.approx(HOSPITALS.whole * bits / 32)
    assert other.break_even() == pytest.approx(HOSPITALS.break_even())


def test_seconds_on_a_line_of_100_megabits():
    assert seconds(HOSPITALS.whole, trips=3) == pytest.approx(831.958)
    assert seconds(HOSPITALS.federated(), trips=2) == pytest.approx(1600.1)
