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
