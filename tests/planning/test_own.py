"""What ours does and holds is counted, and seconds follow from rates: no clock in these tests."""

from dataclasses import asdict
from typing import get_args

import pytest

from cobasis.algorithms import AlignerName
from cobasis.errors import OptionError
from cobasis.planning import own
from cobasis.planning.own import predict_alignment
from cobasis.planning.rates import Curve, Rates, calibrate
from cobasis.planning.work import Size

FLAT = Curve(sizes=(10, 1000), rates=(1e9, 1e9))
RATES = Rates(
    product=FLAT, factor=FLAT, triangle=FLAT, eigen=FLAT, outer=1e9, copied=1e9, step=1e-6
)


def size(a=1000, l=50, c=50):  # noqa: E741 -- the paper's letters
    return Size(n_anchor_rows=a, n_components=l, n_parties=c)


def test_odc_does_one_product_and_one_factor_a_party():
    found = own.work_of("odc", size())
    assert found.product == 2 * 1000 * 50**2 * 50
    assert found.factor == 18 * 50**3 * 50
    assert found.eigen == found.outer == found.triangle == 0


def test_the_least_squares_methods_pay_for_one_eigenproblem_of_the_smaller_side():
    assert own.work_of("imakura", size()).eigen_order == 1000
    assert own.work_of("imakura", size(c=4)).eigen_order == 200
    assert own.work_of("kawakami", size()).triangle == 2 * own.work_of("imakura", size()).triangle


@pytest.mark.parametrize(
    ("numbers", "order", "back"),
    [
        ({"c": 4}, 200, True),  # fewer columns than rows
        ({"c": 50}, 1000, False),  # more: the Gram matrix of the rows has the vectors
        ({"a": 6001, "l": 100, "c": 100}, 10_000, True),  # too many rows for that one
        ({"a": 6001, "l": 100, "c": 60}, 6000, True),
    ],
)
def test_the_gram_matrix_costs_its_order_times_all_numbers(numbers, order, back):
    of = size(**numbers)
    a, l, c = of.letters  # noqa: E741 -- the paper's letters
    found = own.work_of("imakura", of)
    assert (found.eigen_order, found.outer) == (order, order * a * c * l)
    fits = c * 2 * a * l**2
    assert found.product == fits + (2 * a * c * l * l if back else 0)


@pytest.mark.parametrize(
    ("components", "each"),
    [
        (50, 8 * 50**3),  # the turn, from few rows
        (200, 2 * 1000 * 200**2 + 2 * 200**3),  # few rows are not fewer: a product, and its square
    ],
)
@pytest.mark.parametrize("method", ["odc", "whitened"])
def test_parties_of_one_span_need_no_factor(method, components, each):
    def product(parties):
        return own.work_of(method, size(l=components, c=parties), one_span=True).product

    found = own.work_of(method, size(l=components), one_span=True)
    assert found.factor == 0
    assert product(51) - product(50) == each
    assert found.copied == own.work_of(method, size(l=components)).copied


def test_one_span_changes_nothing_for_the_least_squares_methods():
    for method in ("imakura", "kawakami"):
        assert own.work_of(method, size(), one_span=True) == own.work_of(method, size())


@pytest.mark.parametrize("method", own.METHODS)
def test_work_grows_with_every_number(method):
    def seconds(**numbers):
        return predict_alignment(size(**numbers), rates=RATES, method=method)

    assert seconds() < seconds(c=100) <= 2 * seconds()
    assert seconds() < seconds(a=2000)
    assert seconds() < seconds(l=100)


def test_a_prediction_is_work_over_rate():
    found = own.work_of("odc", size())
    expected = (found.product + found.factor + found.copied) / 1e9 + found.steps * 1e-6
    assert predict_alignment(size(), rates=RATES) == pytest.approx(expected)


def test_threads_share_what_parties_need_and_not_the_eigenproblem():
    alone = predict_alignment(size(), rates=RATES, method="imakura")
    two = predict_alignment(size(), rates=RATES, method="imakura", workers=2)
    assert alone / 2 < two < alone


def test_a_rate_between_two_sizes_is_between_their_rates():
    curve = Curve(sizes=(10, 1000), rates=(1e6, 1e8))
    assert curve.at(100) == pytest.approx(1e7)
    assert curve.at(1) == pytest.approx(1e6)
    assert curve.at(10**6) == pytest.approx(1e8)


def test_calibration_finds_a_rate_for_everything():
    found = asdict(calibrate(seconds=0.05))
    for name, value in found.items():
        rates = value["rates"] if isinstance(value, dict) else [value]
        assert all(0 < rate < 1e16 for rate in rates), name


def test_memory_does_not_grow_with_parties_when_the_sink_is_on_disk():
    few, many = (own.peak_bytes("odc", size(c=c), sink_on_disk=True) for c in (400, 100_000))
    assert few == many < 30e6
    kept = own.peak_bytes("odc", size(c=1000))
    assert kept - own.peak_bytes("odc", size(c=1000), sink_on_disk=True) == 1000 * 50**2 * 8


def test_more_threads_hold_more_batches():
    assert own.peak_bytes("odc", size(), workers=4) > own.peak_bytes("odc", size(), workers=1)


def test_every_method_but_the_one_that_iterates_is_counted():
    assert set(own.METHODS) == set(get_args(AlignerName)) - {"gopp"}
    with pytest.raises(OptionError, match=r"gopp.*imakura"):
        own.work_of("gopp", size())
