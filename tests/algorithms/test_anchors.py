from typing import get_args

import numpy as np
import pytest

from aligners import GOLDEN, haar, make_anchor
from cobasis.algorithms import AnchorKind
from cobasis.algorithms.anchors import (
    FROM_PUBLIC_ROWS,
    NEIGHBOURS,
    anchor_gain,
    draw_anchor,
    nearest,
)
from cobasis.errors import (
    AnchorError,
    NotFiniteError,
    OptionError,
    PrivacyWarning,
    SecretError,
    ShapeError,
)

KEY = bytes(range(32))
GOLDEN_ROWS = {
    "isometric": [
        [0.670422997104527, -0.36298579722385244],
        [-0.17247036926399195, 0.4222857833472433],
    ],
    "gaussian": [
        [-0.7127905544980659, 1.7492474029726042],
        [-0.27521030726157153, 0.054591533645709955],
    ],
    "uniform": [
        [0.771927521354506, 0.5751031047189891],
        [0.42962394632587897, 0.47912705066457095],
    ],
}
on_every_drawn = pytest.mark.parametrize("kind", list(GOLDEN_ROWS))


@on_every_drawn
def test_an_anchor_is_golden_and_another_with_another_key_or_shape(kind):
    anchor = make_anchor(kind, n_rows=4, n_features=3, number=int.from_bytes(KEY, "big"))
    found = anchor.apply(np.eye(3))
    np.testing.assert_allclose(found[:2, :2], GOLDEN_ROWS[kind], rtol=0, atol=GOLDEN)
    for rows, number in ((4, 2), (5, 1)):
        other = make_anchor(kind, n_rows=rows, n_features=3, number=number).apply(np.eye(3))
        assert not np.isclose(other[:4], found).any()


@pytest.mark.parametrize("kind", get_args(AnchorKind))
def test_the_gain_is_what_the_anchor_makes_of_a_unit_vector(kind):
    gain = anchor_gain(kind, 400)
    if kind in FROM_PUBLIC_ROWS:
        assert gain is None
        return
    image = make_anchor(kind, n_rows=400, n_features=40).apply(haar(1, 40))
    centred = image - image.mean(axis=0)
    sizes = np.linalg.norm(centred if kind == "uniform" else image, axis=0)
    assert np.sqrt(np.mean(sizes**2)) == pytest.approx(gain, rel=0.05)


@pytest.mark.parametrize(
    ("kind", "reason"), [("uniform", "read"), ("public", "colluder"), ("smote", "law")]
)
def test_anchors_that_leak_are_warned_about(kind, reason):
    rows = np.eye(4 if kind == "public" else 30)[:, :3] if kind in FROM_PUBLIC_ROWS else None
    with pytest.warns(PrivacyWarning, match=rf"anchor='{kind}'.*{reason}.*\[CB501\]") as caught:
        draw_anchor(kind, key=KEY, n_rows=4, n_features=3, public_rows=rows)
    assert len(caught) == 1
    assert caught[0].filename == __file__


REFUSED = [
    ("isometric", {"n_rows": 2}, AnchorError, r"not 2 for 3.*n_anchor_rows=3.*\[CB201\]"),
    ("orthogonal", {}, OptionError, r"anchor 'orthogonal' does not exist.*\[CB107\]"),
    ("gaussian", {"key": 42}, SecretError, r"a seed that the analyst can guess.*\[CB301\]"),
    ("gaussian", {"public_rows": np.ones((4, 3))}, AnchorError, "'gaussian' takes no public rows"),
    ("public", {}, AnchorError, r"'public' needs public rows.*\[CB201\]"),
    ("smote", {}, AnchorError, r"'smote' needs public rows.*\[CB201\]"),
    ("public", {"public_rows": np.ones((5, 3))}, AnchorError, "has 5 rows, the agreement says 4"),
    ("public", {"public_rows": np.ones((3, 4))}, ShapeError, "public_rows has 4 columns"),
    ("public", {"public_rows": np.full((4, 3), np.nan)}, NotFiniteError, "public_rows contains"),
    ("smote", {"public_rows": np.ones((30, 2))}, ShapeError, "public_rows has 2 columns"),
    ("smote", {"public_rows": np.ones((25, 3))}, AnchorError, "more than 25 public rows, not 25"),
]


@pytest.mark.parametrize(("kind", "options", "error", "match"), REFUSED)
@pytest.mark.filterwarnings("ignore::cobasis.errors.PrivacyWarning")
def test_what_is_no_anchor_is_refused(kind, options, error, match):
    """A seed is no secret."""
    with pytest.raises(error, match=match):
        draw_anchor(kind, **{"key": KEY, "n_rows": 4, "n_features": 3, **options})


def test_public_rows_are_the_anchor_and_are_copied():
    rows = np.arange(12.0).reshape(4, 3)
    anchor = make_anchor("public", n_rows=4, n_features=3, public_rows=rows)
    rows[:] = 0
    np.testing.assert_array_equal(anchor.apply(np.eye(3)), np.arange(12.0).reshape(4, 3))


# ---------------------------------------------------------------- smote

POOL = np.random.default_rng(0).normal(size=(40, 6)) * [1, 5, 0.1, 1, 1, 1]


GOLDEN_FIRST = [[4.717525367737014, 9.435050735474029], [1.2278046613945282, 2.4556093227890563]]


def test_neighbours_are_those_of_the_standardised_rows_however_a_machine_adds():
    """Nearest first; the features in another order are other sums, and the same distances."""
    rng, places = np.random.default_rng(2), np.arange(40)
    pool = rng.normal(size=(60, 300)) * rng.uniform(0.01, 100, size=300)
    turned = pool[:, rng.permutation(300)]
    np.testing.assert_array_equal(nearest(pool, places), nearest(turned, places))
    standard = (POOL - POOL.mean(axis=0)) / POOL.std(axis=0)
    apart = np.linalg.norm(standard[:, None] - standard, axis=2)
    np.fill_diagonal(apart, np.inf)
    expected = np.argsort(apart, axis=1)[:, :NEIGHBOURS]
    np.testing.assert_array_equal(nearest(POOL, places), expected)


def test_rows_that_are_equally_near_come_in_the_order_of_their_places():
    """Fingerprints tie often; rounding must not decide, or parties had different anchors."""
    rng = np.random.default_rng(1)
    pool = np.repeat((rng.random((10, 30)) < 0.4).astype(float), 4, axis=0)
    pool[:, 0] = 7.0  # a column that does not vary tells nobody apart
    near = nearest(pool, np.arange(40))
    for place, found in enumerate(near):
        copies = [other for other in range(place // 4 * 4, place // 4 * 4 + 4) if other != place]
        assert found[:3].tolist() == copies
        assert all(found[k] + 1 == found[k + 1] for k in range(3, 25) if (k - 3) % 4 < 3 and k < 24)


def test_a_smote_anchor_is_golden():
    """Small whole numbers, so that the pool is the same everywhere."""
    pool = np.array([[(7 * row * (column + 1)) % 31 for column in range(6)] for row in range(31)])
    shape = {"n_rows": 4, "n_features": 6, "public_rows": pool.astype(float)}
    found, other = (make_anchor("smote", number=number, **shape).rows for number in (1, 2))
    np.testing.assert_allclose(found[:2, :2], GOLDEN_FIRST, atol=GOLDEN)
    assert not np.isclose(other, found).any()
