"""What alignment does to noise: orthogonal fits leave it round, least squares do not."""

import numpy as np
import pytest

from cobasis import GOPP, ODC, Imakura, Kawakami, align, draw_anchor
from cobasis.linalg.rng import KeyStream, haar_columns

WIDTH, COMPONENTS, ROWS = 12, 4, 4000


def images(kind, n_rows):
    """Three parties that turn one common span, as under basis='haar', seen by an anchor."""
    anchor = draw_anchor(kind, key=b"a" * 32, n_rows=n_rows, n_features=WIDTH)
    stream = KeyStream(b"s" * 32, "span")
    span = haar_columns(stream, n_rows=WIDTH, n_columns=COMPONENTS)
    turns = [haar_columns(stream, n_rows=COMPONENTS, n_columns=COMPONENTS) for _ in "abc"]
    return {name: anchor.apply(span @ turn) for name, turn in zip("abc", turns, strict=True)}


def stretch(changes, name):
    """How much longer noise is along one aligned direction than along another."""
    values = np.linalg.svd(changes[name], compute_uv=False)
    return values[0] / values[-1]


def changes_of(method, kind, n_rows):
    return align(method(), images(kind, n_rows)).changes_of_basis


@pytest.mark.parametrize("kind", ["gaussian", "isometric"])
@pytest.mark.parametrize("method", [ODC, GOPP])
def test_an_orthogonal_fit_keeps_round_noise_round(method, kind):
    changes = changes_of(method, kind, WIDTH)
    noise = KeyStream(b"n" * 32, "noise").tailed_normal((ROWS, COMPONENTS))
    for name in "abc":
        assert stretch(changes, name) == pytest.approx(1, abs=1e-9)
        spread = np.linalg.eigvalsh(np.cov((noise @ changes[name]).T))
        before = np.linalg.eigvalsh(np.cov(noise.T))
        np.testing.assert_allclose(spread / spread.mean(), before / before.mean(), atol=1e-9)


@pytest.mark.parametrize("method", [Imakura, Kawakami])
def test_least_squares_colour_it_unless_the_anchor_is_isometric(method):
    noise = KeyStream(b"n" * 32, "noise").tailed_normal((ROWS, COMPONENTS))
    coloured, round_ = (changes_of(method, kind, WIDTH) for kind in ("gaussian", "isometric"))
    for name in "abc":
        spread = np.linalg.eigvalsh(np.cov((noise @ coloured[name]).T))
        assert spread[-1] / spread[0] > 3
        assert stretch(round_, name) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("method", [Imakura, Kawakami])
def test_with_many_anchor_rows_the_colour_fades(method):
    few, many = (stretch(changes_of(method, "gaussian", rows), "a") for rows in (WIDTH, 4000))
    assert few > 1.5
    assert 1.0 < many < 1.15
