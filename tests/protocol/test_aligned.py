"""Aligned rows are a view: all of them, once, mixed, checked in each pass."""

import numpy as np
import pytest

from aligned import cut, parties, write_upload
from cobasis.errors import NotFiniteError
from cobasis.protocol.training import AlignedRows

SIZES = [50, 7, 1, 30, 12]


def table(n_rows=100, width=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, width)), np.arange(n_rows) % 3


def made(tmp_path, **options):
    rows, labels = table()
    uploads, alignment = parties(tmp_path / "uploads", rows, labels, sizes=SIZES, **options)
    return uploads, dict(alignment.changes_of_basis)


@pytest.mark.parametrize("n_blocks", [1, 5, 100])
def test_every_row_is_there_once_with_its_label_and_in_one_frame(tmp_path, n_blocks):
    """Also where most parties have fewer rows than there are blocks."""
    aligned = cut(*made(tmp_path), n_blocks=n_blocks)
    found = np.vstack([np.column_stack(aligned.block(index)) for index in range(n_blocks)])
    by_first = [each[each[:, 0].argsort()] for each in (found, np.column_stack(table()))]
    np.testing.assert_allclose(*by_first, atol=1e-14)


def test_a_block_holds_its_share_of_every_party(tmp_path):
    rows, _ = table(120)
    sizes, n_blocks = [60, 30, *[1] * 30], 7
    whose = np.repeat(np.arange(len(sizes)), sizes)
    uploads, alignment = parties(tmp_path / "uploads", rows, whose, sizes=sizes)
    aligned = cut(uploads, alignment.changes_of_basis, n_blocks=n_blocks)
    for index in range(n_blocks):
        _, told = aligned.block(index)
        shares = [len(told), *np.bincount(told)[:2]]
        assert np.abs(np.subtract(shares, np.array([120, 60, 30]) / n_blocks)).max() <= 1
        assert np.count_nonzero(np.diff(told)) > len(told) / 4  # not party after party


def test_a_sample_is_each_partys_first_rows_however_they_are_cut(tmp_path):
    uploads, changes = made(tmp_path)
    for wanted in (1, 10, 37, 99, 1000):
        one, many = (cut(uploads, changes, n_blocks=n).sample(wanted) for n in (1, 5))
        np.testing.assert_equal(one, many)
        n_rows = min(wanted, 100)  # more than there are is all of them, in order
        assert len(one.rows) == len(np.unique(one.rows[:, 0])) == n_rows
        first = table()[0][: n_rows // 2]
        np.testing.assert_allclose(one.rows[: len(first)], first, atol=1e-14)


def test_numbers_that_are_none_are_refused_with_the_partys_name(tmp_path):
    uploads, changes = made(tmp_path)
    rows, labels = table(30)
    rows[3, 1] = np.nan
    uploads["p03"] = write_upload(uploads["p03"].path, rows, labels)
    with pytest.raises(NotFiniteError, match="party 'p03' are not all finite"):
        AlignedRows(uploads, changes).block(0)
