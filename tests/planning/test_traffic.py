"""Equations (10) to (18) give the paper's example, and what was recomputed from it."""

from dataclasses import replace

import pytest

from cobasis.planning.traffic import (
    Exchange,
    anchor_bytes,
    break_even_rounds,
    federated_bytes,
    return_bytes,
    round_bytes,
    transfer_seconds,
    upload_bytes,
)

HOSPITALS = Exchange(
    n_parties=100,
    n_rows=1000,
    n_anchor_rows=1000,
    n_features=784,
    n_components=100,
    n_parameters=25_000_000,
    bits=32,
    anchor_copies=100,
)
SEEDED = replace(HOSPITALS, anchor_copies=0)


def test_one_party_sends_and_is_sent_what_equations_10_and_11_say():
    assert upload_bytes(HOSPITALS) == 800_000
    assert return_bytes(HOSPITALS) == 100_040_000


def test_anchor_copies_are_counted_as_in_equations_12_and_13():
    assert anchor_bytes(replace(HOSPITALS, anchor_copies=1)) == 3_136_000
    assert anchor_bytes(HOSPITALS) == 313_600_000
    assert anchor_bytes(SEEDED) == 0


def test_a_round_takes_what_equation_19_prints():
    assert round_bytes(HOSPITALS) == 10_397_600_000
    assert round_bytes(SEEDED) == 10_084_000_000


def test_a_federated_round_takes_what_equation_20_prints():
    assert federated_bytes(HOSPITALS, rounds=1) == 20_000_000_000


@pytest.mark.parametrize(
    ("share", "rounds"),
    [(1, 0.51988), (0.75, 0.69317), (0.5, 1.03976), (0.25, 2.07952), (0.1, 5.1988)],
)
def test_break_even_is_where_both_take_the_same(share, rounds):
    found = break_even_rounds(HOSPITALS, participation=share)
    assert found == pytest.approx(rounds, abs=1e-5)
    federated = federated_bytes(HOSPITALS, rounds=found, participation=share)
    assert federated == pytest.approx(round_bytes(HOSPITALS))


def test_break_even_with_an_anchor_that_does_not_travel():
    assert break_even_rounds(SEEDED, participation=0.1) == pytest.approx(5.042)


@pytest.mark.parametrize("bits", [8, 16, 64])
def test_bits_scale_bytes_and_leave_the_break_even_alone(bits):
    other = replace(HOSPITALS, bits=bits)
    assert round_bytes(other) == pytest.approx(round_bytes(HOSPITALS) * bits / 32)
    assert break_even_rounds(other) == pytest.approx(break_even_rounds(HOSPITALS))


def test_seconds_on_a_line_of_100_megabits():
    line = {"bits_per_second": 100e6, "delay": 0.05}
    assert transfer_seconds(round_bytes(HOSPITALS), trips=3, **line) == pytest.approx(831.958)
    federated = federated_bytes(HOSPITALS, rounds=1)
    assert transfer_seconds(federated, trips=2, **line) == pytest.approx(1600.1)
