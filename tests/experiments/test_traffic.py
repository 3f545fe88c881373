"""Traffic is what the ODC paper's equations count, and gives its examples."""

from dataclasses import replace

import pytest
from experiments.studies.traffic import SECRET, exchange, seconds

HOSPITALS = exchange()
SEEDED = exchange(anchor=SECRET)


def test_an_exchange_has_the_bytes_and_seconds_that_the_equations_print():
    assert (HOSPITALS.upload, HOSPITALS.reply) == (800_000, 100_040_000)  # (10) and (11)
    anchors = [each.anchor for each in (replace(HOSPITALS, anchor_copies=1), HOSPITALS, SEEDED)]
    assert anchors == [3_136_000, 313_600_000, 0]  # (12) and (13)
    assert (HOSPITALS.whole, SEEDED.whole) == (10_397_600_000, 10_084_000_000)  # (19)
    assert HOSPITALS.federated() == 20_000_000_000  # (20)
    # on a line of 100 megabits
    assert seconds(HOSPITALS.whole, trips=3) == pytest.approx(831.958)
    assert seconds(HOSPITALS.federated(), trips=2) == pytest.approx(1600.1)


@pytest.mark.parametrize(
    ("share", "rounds"),
    [(1, 0.51988), (0.75, 0.69317), (0.5, 1.03976), (0.25, 2.07952), (0.1, 5.1988)],
)
def test_break_even_is_where_both_take_the_same(share, rounds):
    found = HOSPITALS.break_even(share)
    assert found == pytest.approx(rounds, abs=1e-5)
    assert found * HOSPITALS.federated(share) == pytest.approx(HOSPITALS.whole)
    assert SEEDED.break_even(0.1) == pytest.approx(5.042)  # whose anchor does not travel
