"""The paper's counts add up to its totals, and say what the method notes say they say."""

import pytest

from cobasis.planning import work
from cobasis.planning.work import Size


def size(a, l, c):  # noqa: E741 -- the paper's letters
    return Size(n_anchor_rows=a, n_components=l, n_parties=c)


SIZES = [(1000, 50, 50), (1000, 950, 50), (20000, 50, 50), (1000, 50, 1000), (3000, 200, 4)]


@pytest.mark.parametrize(("a", "l", "c"), SIZES)
def test_totals_are_equations_39_57_and_80(a, l, c):  # noqa: E741
    p, q = min(a, c * l), max(a, c * l)
    concatenated = 4 * q * p**2 + 8 * p**3
    found = size(a, l, c)
    eq_39 = concatenated + (6 * c + 2) * a * l**2 + 8 * c * l**3
    eq_57 = concatenated + c * (2 * a * l**2 + 2 / 3 * l**3)
    assert work.imakura(found) == pytest.approx(eq_39)
    assert work.kawakami(found) == pytest.approx(eq_57)
    assert work.odc(found) == pytest.approx(2 * c * a * l**2 + 16 * c * l**3)


@pytest.mark.parametrize(
    ("sizes", "imakura", "kawakami"),
    [
        ((1000, 50, 50), 53.7, 52.2),
        ((20000, 50, 50), 125, 124),
        ((1000, 50, 1000), 32, 30),
        ((3000, 200, 4), 10.3, 8.7),
    ],
)
def test_odc_takes_less_by_these_factors(sizes, imakura, kawakami):
    found = size(*sizes)
    assert work.imakura(found) / work.odc(found) == pytest.approx(imakura, rel=0.02)
    assert work.kawakami(found) / work.odc(found) == pytest.approx(kawakami, rel=0.02)


def test_at_the_sweeps_largest_components_the_papers_own_count_favours_kawakami():
    found = size(1000, 950, 50)
    assert work.kawakami(found) / work.odc(found) == pytest.approx(0.41, abs=0.01)


def test_a_decomposition_costs_the_same_lying_down():
    assert work.svd(rows=30, columns=7) == work.svd(rows=7, columns=30) == 4 * 30 * 49 + 8 * 343
