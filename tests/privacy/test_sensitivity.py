"""After clipping no row is outside the ball, and nothing else has changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cobasis.errors import DtypeError, NotFiniteError, OptionError, ShapeError
from cobasis.privacy.sensitivity import clip_rows, sensitivity_of

NUMBERS = st.floats(-1e6, 1e6)
TABLES = arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=NUMBERS)


def distances(rows, centre):
    """In more digits than the rows have, where the platform has them."""
    wide = np.asarray(rows, dtype=np.longdouble) - np.asarray(centre, dtype=np.longdouble)
    return np.sqrt((wide**2).sum(axis=1))


@given(rows=TABLES, centre=arrays(np.float64, 4, elements=NUMBERS), radius=st.floats(1e-3, 1e6))
def test_no_row_is_outside_the_ball_and_rows_well_inside_are_untouched(rows, centre, radius):
    found = clip_rows(rows, radius=radius, centre=centre)
    assert (distances(found, centre) <= radius).all()
    assert distances(found, found[0]).max() <= sensitivity_of(radius=radius)
    inside = distances(rows, centre) < radius - 1e-11 * (radius + np.linalg.norm(centre))
    np.testing.assert_array_equal(found[inside], rows[inside])


@given(rows=TABLES, radius=st.floats(1.0, 1e6))
def test_rows_outside_end_on_the_edge_in_their_own_direction(rows, radius):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    expected = rows * np.minimum(1, radius / np.where(norms > 0, norms, 1))
    np.testing.assert_allclose(clip_rows(rows, radius=radius), expected, rtol=1e-11, atol=1e-11)


def test_the_callers_rows_are_not_changed():
    rows = np.array([[3.0, 4.0]])
    assert clip_rows(rows, radius=1).round(6).tolist() == [[0.6, 0.8]]
    assert rows.tolist() == [[3.0, 4.0]]
    inside = clip_rows(rows, radius=9)
    inside[0, 0] = 7
    assert rows.tolist() == [[3.0, 4.0]]


def test_the_largest_and_smallest_numbers_are_clipped_too():
    rows = np.array([[1.7e308, 1.7e308], [-1.7e308, 0.0], [1e-320, 0.0], [0.0, 0.0]])
    found = clip_rows(rows, radius=1, centre=np.array([-1.0, 0.0]))
    assert (distances(found, [-1.0, 0.0]) <= 1).all()
    np.testing.assert_allclose(found[0] + [1, 0], [0.5**0.5, 0.5**0.5])
    np.testing.assert_allclose(found[1], [-2, 0])
    assert (distances(clip_rows(rows, radius=1e-3), 0) <= 1e-3).all()


REFUSED = [
    ({"rows": [[0.0, np.nan]]}, NotFiniteError, "rows contains"),
    ({"rows": [[0.0, -np.inf]]}, NotFiniteError, "rows contains"),
    ({"centre": [0.0, np.nan]}, NotFiniteError, "centre contains"),
    ({"centre": [0.0, np.inf]}, NotFiniteError, "centre contains"),
    ({"centre": [[0.0, 1.0]]}, ShapeError, "centre has shape"),
    ({"centre": 0.5}, ShapeError, r"centre has shape \(\); .* \(2,\)"),
    ({"centre": [0.0, 1.0, 2.0]}, ShapeError, "centre has 3 columns"),
    ({"centre": ["0", "1"]}, DtypeError, "numbers"),
    *(({"radius": each}, OptionError, "radius=") for each in (0, -1, np.nan, np.inf)),
    ({"radius": 1e-3, "centre": [1e10, 0.0]}, OptionError, "rounding of the centre"),
]


@pytest.mark.parametrize(("bad", "error", "words"), REFUSED)
def test_what_no_ball_could_hold_is_refused(bad, error, words):
    fine = {"rows": [[0.0, 1.0]], "radius": 1, "centre": None, **bad}
    with pytest.raises(error, match=words):
        clip_rows(fine.pop("rows"), **fine)


def test_a_replaced_record_moves_twice_the_radius_and_a_removed_one_once():
    assert sensitivity_of(radius=1.5) == sensitivity_of(radius=1.5, adjacency="replace-one") == 3
    assert sensitivity_of(radius=1.5, adjacency="add-remove") == 1.5
    assert sensitivity_of(radius=1.5, rows_per_person=4) == 6


def test_where_rows_shape_their_basis_one_record_moves_them_all():
    """The one that decides which of two directions leads: by r sqrt(n - 1)."""
    rows, releases = np.zeros((101, 2)), []
    rows[:50, 0] = rows[50:100, 1] = 1
    for axis in (0, 1):
        table = rows.copy()
        table[-1, axis] = 1
        releases.append(table @ np.abs(np.linalg.svd(table)[2][:1].T))
    assert np.linalg.norm(releases[0] - releases[1]) == pytest.approx(np.sqrt(100))


@pytest.mark.parametrize(
    "bad",
    [
        {"adjacency": "none"},
        *({"radius": each} for each in (0, -1, np.nan, np.inf)),
        *({"rows_per_person": each} for each in (0, -1, 1.5, True, np.nan, np.inf)),
    ],
)
def test_a_sensitivity_of_nothing_that_is_agreed_is_refused(bad):
    with pytest.raises(OptionError, match=next(iter(bad))):
        sensitivity_of(**{"radius": 1, **bad})
