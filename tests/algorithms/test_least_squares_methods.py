from collections.abc import Mapping

import numpy as np
import pytest

from aligners import (
    EPS,
    GOLDEN,
    apart_but_for_a_rotation,
    invertible,
    make_toy,
    on_every_condition,
    with_values,
)
from cobasis import Imakura, Whitened, align
from cobasis.algorithms.kawakami import Kawakami, eigen_weights
from cobasis.algorithms.stacked import leading_directions
from cobasis.errors import DimensionError
from cobasis.linalg.arrays import Matrix


def published_kawakami(images: Mapping[str, Matrix]) -> dict[str, Matrix]:
    """Algorithm 3: G_i = R_i^-1 times block i of the leading right singular vectors."""
    factors = {party: np.linalg.qr(image) for party, image in images.items()}
    wide = np.hstack([factor for factor, _ in factors.values()])
    leading = np.linalg.svd(wide, full_matrices=False)[2].T[:, :4]
    blocks = np.split(leading, len(images))
    return {
        party: np.linalg.solve(triangle, block)
        for (party, (_, triangle)), block in zip(factors.items(), blocks, strict=True)
    }


@on_every_condition
def test_the_right_factor_is_a_common_factor(condition):
    toy, factor = make_toy(condition), invertible(8, 4, condition=50.0)
    plain = align(Imakura(scale="paper"), toy.images).changes_of_basis
    given = align(Imakura(factor=factor, scale="paper"), toy.images).changes_of_basis
    for party, change in plain.items():
        miss = np.linalg.norm(given[party] - change @ factor)
        assert miss < 100 * EPS * toy.condition * np.linalg.norm(change) * np.linalg.norm(factor)


@on_every_condition
def test_kawakami_as_target_and_fit_is_the_published_algorithm(condition):
    """Up to signs, and to a rotation where singular values tie."""
    toy = make_toy(condition)
    found = align(Kawakami(scale="paper"), toy.images).changes_of_basis
    expected = published_kawakami(toy.images)
    assert apart_but_for_a_rotation(found, expected) < toy.rounding()
    norms = sum(np.sum((toy.images[p] @ change) ** 2, axis=0) for p, change in found.items())
    np.testing.assert_allclose(norms, np.ones(4), rtol=0, atol=toy.rounding())  # the constraint


def test_weights_fall_from_one_to_one_over_e():
    values = np.sqrt(np.array([3.5, 3.0, 2.0, 1.5]))
    expected = np.exp([0.0, -0.25, -0.75, -1.0])
    np.testing.assert_allclose(eigen_weights(values, n_parties=4), expected, rtol=GOLDEN)
    assert eigen_weights(values[:1], n_parties=4).tolist() == [1.0]
    tied = np.full(3, 2.0) - np.array([0.0, 1e-10, 2e-10])
    assert eigen_weights(tied, n_parties=4).tolist() == [1.0, 1.0, 1.0]


def test_weights_multiply_the_columns_where_spans_differ():
    toy = make_toy("diffspan")
    plain, weighted = (
        align(Kawakami(weighting=each, scale="paper"), toy.images).changes_of_basis
        for each in ("none", "eigen")
    )
    wide = np.hstack([np.linalg.qr(image)[0] for image in toy.images.values()])
    weights = eigen_weights(np.linalg.svd(wide, compute_uv=False)[:4], n_parties=4)
    assert weights[-1] == pytest.approx(np.exp(-1))
    for party, change in plain.items():
        slack = toy.rounding() * np.abs(change).max()
        np.testing.assert_allclose(weighted[party], change * weights, rtol=0, atol=slack)


def test_a_target_beyond_the_rank_is_refused():
    images = {party: image * [1, 1, 1, 0] for party, image in make_toy("samespan").images.items()}
    same = dict.fromkeys(images, images["p0"])
    with pytest.raises(
        DimensionError, match=r"together have rank 3, .* no 4 directions.*\[CB106\]"
    ):
        align(Imakura(), same)


@pytest.mark.parametrize("method", [Whitened, Imakura, Kawakami])
def test_the_measured_gain_is_that_of_the_images(method):
    """Root mean square length of an image's columns: one, for orthonormal bases and anchors."""
    images = make_toy("diffspan_orth", anchor="isometric").images
    rows = align(method(scale="measured"), images).target.rows
    assert np.linalg.norm(rows) == pytest.approx(2.0)
    louder = align(method(scale="measured"), {party: 5 * each for party, each in images.items()})
    assert np.linalg.norm(louder.target.rows) == pytest.approx(10.0)


# ---------------------------------------------------------------- leading directions

SIZE = 5


def images_with(n_rows: int, n_parties: int, *, gap: float, spread: float = 10.0) -> dict:
    """Images side by side of values with ``s_l / s_(l+1) = gap``, and ``s_1 / s_l = spread``."""
    columns = n_parties * SIZE
    tail = np.geomspace(1.0, 0.1, min(n_rows, columns) - SIZE)
    values = np.concatenate([np.geomspace(spread * gap, gap, SIZE), tail])
    together = with_values(1, values, rows=n_rows, columns=columns)
    return {f"p{i}": each for i, each in enumerate(np.hsplit(together, n_parties))}


@pytest.mark.parametrize("spread", [10.0, 900.0, 1e6])
@pytest.mark.parametrize(("n_rows", "n_parties"), [(90, 8), (30, 40)], ids=["tall", "wide"])
def test_directions_and_values_are_the_dense_svds(n_rows, n_parties, spread):
    images = images_with(n_rows, n_parties, gap=1.05, spread=spread)
    left, values, _ = np.linalg.svd(np.hstack(list(images.values())), full_matrices=False)
    found, _ = leading_directions(images, size=min)
    apart = found.directions @ found.directions.T - left[:, :SIZE] @ left[:, :SIZE].T
    assert np.linalg.norm(apart, 2) <= 1e-8
    np.testing.assert_allclose(found.singular_values, values[:SIZE], rtol=1e-9)
    gram = found.directions.T @ found.directions
    np.testing.assert_allclose(gram, np.eye(SIZE), rtol=0, atol=1e-12)
