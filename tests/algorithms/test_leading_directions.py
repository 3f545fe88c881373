"""The leading directions, through Gram matrices, against the dense solution."""

import numpy as np
import pytest

from aligners import haar, key_of
from cobasis.algorithms import images as reading
from cobasis.algorithms import stacked
from cobasis.algorithms.stacked import leading_directions, sketch
from cobasis.errors import DimensionError
from cobasis.linalg.rng import KeyStream

SIZE = 5


def images_with(values: np.ndarray, *, n_rows: int, n_parties: int, width: int = SIZE) -> dict:
    """Images whose side-by-side matrix has the given singular values, largest first."""
    stream = KeyStream(key_of(1), "tests/leading")
    left = np.linalg.qr(stream.normal((n_rows, len(values))))[0]
    right = np.linalg.qr(stream.normal((n_parties * width, len(values))))[0]
    together = left * values @ right.T
    return {f"p{i}": together[:, i * width : (i + 1) * width] for i in range(n_parties)}


def spectrum(gap: float, *, size: int, spread: float = 10.0) -> np.ndarray:
    """Values with ``s_l / s_(l+1) = gap``, and ``s_1 / s_l = spread``."""
    head = np.geomspace(spread * gap, gap, SIZE)
    return np.concatenate([head, np.geomspace(1.0, 0.1, size - SIZE)])


def projector(columns: np.ndarray) -> np.ndarray:
    orthonormal = np.linalg.qr(columns)[0]
    return orthonormal @ orthonormal.T


SHAPES = {"more rows than columns": (90, 8), "more columns than rows": (30, 40)}


@pytest.mark.parametrize("spread", [10.0, 900.0, 1e6])
@pytest.mark.parametrize(("n_rows", "n_parties"), SHAPES.values(), ids=SHAPES)
def test_directions_and_values_are_the_dense_svds(n_rows, n_parties, spread):
    size = min(n_rows, n_parties * SIZE)
    images = images_with(
        spectrum(1.05, size=size, spread=spread), n_rows=n_rows, n_parties=n_parties
    )
    left, values, _ = np.linalg.svd(np.hstack(list(images.values())), full_matrices=False)
    found = leading_directions(images, size=SIZE)
    apart = projector(found.directions) - left[:, :SIZE] @ left[:, :SIZE].T
    assert np.linalg.norm(apart, 2) <= 1e-8
    np.testing.assert_allclose(found.singular_values, values[:SIZE], rtol=1e-9)
    gram = found.directions.T @ found.directions
    np.testing.assert_allclose(gram, np.eye(SIZE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [0, -1, 6, 100])
@pytest.mark.parametrize(("n_rows", "n_parties"), SHAPES.values(), ids=SHAPES)
def test_more_directions_than_there_are_is_refused(n_rows, n_parties, size):
    base = KeyStream(key_of(3), "tests/leading").normal((n_rows, SIZE))
    images = {f"p{i}": base @ haar(i, SIZE) for i in range(n_parties)}
    with pytest.raises(DimensionError, match=rf"n_components={size} is not between 1 and .* 5"):
        leading_directions(images, size=size)


def test_what_is_too_large_for_a_gram_matrix_is_sketched(monkeypatch):
    """The limits are lowered; then the sketch stands in, and finds the same span."""
    images = images_with(spectrum(3.0, size=60), n_rows=60, n_parties=40)
    images["p0"] = 5 * images["p0"]  # whose batch must not count more often than others
    exact = leading_directions(images, size=SIZE)
    monkeypatch.setattr(stacked, "GRAM_ROWS", 10)
    monkeypatch.setattr(stacked, "HELD_BYTES", 10_000)
    monkeypatch.setattr(reading, "BATCH_BYTES", 3000)
    monkeypatch.setattr(reading, "LARGEST_BATCH", 3000)
    found = leading_directions(images, size=min)
    apart = projector(found.directions) - projector(exact.directions)
    assert np.linalg.norm(apart, 2) <= 1e-6
    np.testing.assert_allclose(found.singular_values, exact.singular_values, rtol=1e-9)
    assert found.gain == pytest.approx(exact.gain)


def test_a_sketch_shows_when_there_are_too_few_directions():
    base = KeyStream(key_of(3), "tests/leading").normal((60, SIZE))
    with pytest.raises(DimensionError, match="n_components=6 is not between 1 and the rank 5"):
        sketch(lambda: iter([base, base @ haar(1, SIZE)]), n_rows=60, size=6)
