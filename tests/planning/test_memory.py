"""The paper's leading terms are there, and the images rule, as its big-O notation says."""

import pytest

from cobasis.planning import memory
from cobasis.planning.work import Size

SIZES = [(1000, 50, 50), (20000, 50, 50), (1000, 50, 1000), (1000, 950, 50)]


@pytest.mark.parametrize(("a", "l", "c"), SIZES)
def test_every_method_holds_all_images_and_all_changes_of_basis(a, l, c):  # noqa: E741
    size = Size(n_anchor_rows=a, n_components=l, n_parties=c)
    for count in (memory.imakura, memory.kawakami, memory.odc):
        assert count(size) >= a * c * l + c * l**2
        assert count(size) <= 4 * a * c * l


def test_odc_is_equation_83_and_four_small_matrices():
    size = Size(n_anchor_rows=1000, n_components=100, n_parties=50)
    assert memory.odc(size) == 1000 * 50 * 100 + 50 * 100**2 + 4 * 100**2


def test_the_decompositions_workspace_is_the_smaller_sides_square():
    size = Size(n_anchor_rows=1000, n_components=50, n_parties=1000)
    assert memory.imakura(size) == 50_000_000 + 50_000 + 2_500_000
    assert memory.kawakami(size) == 50_000_000 + 5_000_000
