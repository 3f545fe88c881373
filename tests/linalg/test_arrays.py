import numpy as np
import pytest

from cobasis.errors import DtypeError, NotFiniteError, ShapeError
from cobasis.linalg.arrays import as_matrix, numerical_rank

GOOD = np.arange(6.0).reshape(3, 2)
FOREIGN = ">" if np.dtype("<f8").isnative else "<"

REFUSED = {
    "complex": (GOOD + 0j, DtypeError, "Complex data not supported"),
    "object": (GOOD.astype(object), DtypeError, "dtype object"),
    "text": (GOOD.astype(str), DtypeError, "something else than numbers"),
    "foreign": (GOOD.astype(f"{FOREIGN}f8"), DtypeError, "byte order of another machine"),
    "long doubles": (GOOD.astype(np.longdouble), DtypeError, "wider than float64"),
    "large": (np.full((3, 2), 2**53 + 1), DtypeError, r"above 2\*\*53"),
    "very negative": (np.full((3, 2), -(2**53) - 1), DtypeError, r"above 2\*\*53"),
    "unsigned": (np.full((3, 2), 2**64 - 1, dtype=np.uint64), DtypeError, r"above 2\*\*53"),
    "NaN": (np.where(GOOD == 2, np.nan, GOOD), NotFiniteError, "contains NaN or inf"),
    "infinity": (np.where(GOOD == 2, -np.inf, GOOD), NotFiniteError, "contains NaN or inf"),
    # NumPy would take the numbers under the mask for data
    "masked": (np.ma.masked_less(GOOD, 2), NotFiniteError, "contains masked entries"),
    "a number": (3.0, ShapeError, "0 dimensions"),
    "a vector": ([1.0, 2.0], ShapeError, "1 dimensions"),
    "a cube": (np.zeros((2, 2, 2)), ShapeError, "3 dimensions"),
    "no rows": (np.zeros((0, 2)), ShapeError, r"0 sample\(s\)"),
    "no columns": (np.zeros((3, 0)), ShapeError, r"0 feature\(s\)"),
    "ragged": ([[1.0, 2.0], [3.0]], ShapeError, "not of one length"),
    "transposed": (GOOD.T, ShapeError, r"3 columns .* expected 2\. It looks transposed"),
    "wide": (np.ones((3, 5)), ShapeError, r"5 columns .* expected 2\. Rows are records"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_of_numbers_of_its_width_is_refused(case):
    values, error, reason = REFUSED[case]
    with pytest.raises(error, match=rf"rows of 'north'.*{reason}.*{error.code}"):
        as_matrix(values, name="rows of 'north'", columns=2)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "?", "i1", "u1", "i2", "i4", "u4", "i8", "u8"])
def test_every_type_that_float64_holds_is_taken(dtype):
    values = (GOOD > 1).astype(dtype)
    taken = as_matrix(values, name="north", columns=2)
    assert taken.dtype == np.float64
    np.testing.assert_array_equal(taken, values)
    largest = np.array([[2**53, -(2**53)]])
    assert as_matrix(largest, name="north").astype(np.int64).tolist() == largest.tolist()


def test_a_float64_table_is_neither_copied_nor_changed_and_an_idle_mask_is_none():
    assert np.shares_memory(as_matrix(GOOD, name="north"), GOOD)
    np.testing.assert_array_equal(as_matrix(np.ma.array(GOOD), name="north"), GOOD)
    np.testing.assert_array_equal(GOOD, np.arange(6.0).reshape(3, 2))


def test_numerical_rank_does_not_depend_on_units():
    values = np.array([1.0, 1e-3, 1e-14])
    for unit in (1e-200, 1.0, 1e200):
        assert numerical_rank(values * unit, (10, 3)) == 3
        assert numerical_rank(values * unit, (1000, 3)) == 2
    assert numerical_rank(np.zeros(2), (5, 2)) == 0
