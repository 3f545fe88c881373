"""Rows are known again by keyed bytes: in any order and block size, and by nobody else."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobasis.errors import SecretError
from cobasis.linalg import arrays
from cobasis.linalg.arrays import WholeTable
from cobasis.vault.fingerprints import Changes, compare, fingerprints
from vault.vaults import table

KEY = bytes(range(32))
ROWS = st.lists(st.integers(0, 6), max_size=30)


def of(rows, key=KEY):
    return fingerprints(WholeTable(np.asarray(rows, dtype=float)), key)


def test_a_fingerprint_is_the_beginning_of_an_hmac_over_the_rows_bytes():
    rows = table(3)
    expected = [
        int.from_bytes(hmac.new(KEY, row.tobytes(), hashlib.sha256).digest()[:8], "little")
        for row in rows
    ]
    assert of(rows).tolist() == expected
    assert of(rows).dtype == np.uint64


def test_each_row_has_its_own_whatever_stands_around_it(monkeypatch):
    rows = table(600)
    whole = of(rows)
    np.testing.assert_array_equal(of(rows[::-1]), whole[::-1])
    np.testing.assert_array_equal(of(np.asfortranarray(rows)), whole)
    monkeypatch.setattr(arrays, "PART_CELLS", 1)
    np.testing.assert_array_equal(of(rows), whole)


def test_another_key_gives_other_fingerprints():
    assert not np.intersect1d(of(table()), of(table(), key=bytes(32))).size


def test_a_cell_that_changes_in_its_last_bit_makes_another_row():
    changed = table()
    changed[3, 2] = np.nextafter(changed[3, 2], np.inf)
    assert compare(of(table()), of(changed)) == Changes(same=29, added=1, gone=1)


def test_minus_zero_is_zero():
    np.testing.assert_array_equal(of([[0.0, -0.0]]), of([[-0.0, 0.0]]))


def test_a_key_that_is_no_key_is_refused():
    with pytest.raises(SecretError, match=r"the key of row fingerprints is 4 bytes.*\[CB301\]$"):
        of(table(), key=b"1234")


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(before=ROWS, after=ROWS)
def test_rows_are_counted_as_often_as_they_occur(before, after):
    one, two = (np.sort(np.array(rows, dtype=np.uint64)) for rows in (before, after))
    same = sum(min(before.count(each), after.count(each)) for each in set(before))
    expected = Changes(same=same, added=len(after) - same, gone=len(before) - same)
    assert compare(one, two) == expected


@pytest.mark.parametrize(
    ("added", "gone", "few"),
    [
        *((0, 0, False), (1, 0, True), (10, 0, True), (11, 0, False), (0, 1, True)),
        *((0, 10, True), (0, 11, False), (11, 11, False), (1, 500, True), (500, 10, True)),
    ],
)
def test_one_to_ten_rows_that_came_or_went_are_few(added, gone, few):
    assert Changes(same=100, added=added, gone=gone).few is few
