"""Aligned rows are a view: all of them, once, mixed, checked in each pass."""

import os
import time

import numpy as np
import pytest

from aligned import alignment_of, cut, parties, write_upload
from bundle.payloads import read_upload
from cobasis.bundle.payload import open_payload
from cobasis.errors import (
    FileChangedError,
    LabelError,
    NotFiniteError,
    OptionError,
    ShapeError,
    UnknownPartyError,
)
from cobasis.protocol.aligned import AlignedRows

SIZES = [50, 7, 1, 30, 12]


def table(n_rows=100, width=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, width)), np.arange(n_rows) % 3


def made(tmp_path, **options):
    rows, labels = table()
    uploads, alignment = parties(tmp_path / "uploads", rows, labels, sizes=SIZES, **options)
    return uploads, dict(alignment.changes_of_basis)


def everything(aligned):
    """All rows with their labels, in an order that does not depend on blocks."""
    read = [aligned.block(index) for index in range(aligned.n_blocks)]
    rows = np.concatenate([rows for rows, _ in read])
    order = np.argsort(rows[:, 0])
    return rows[order], np.concatenate([labels for _, labels in read])[order]


@pytest.mark.parametrize("n_blocks", [1, 5, 100])
@pytest.mark.parametrize("where", ["memory", "files"])
def test_every_row_is_there_once_with_its_label_and_in_one_frame(tmp_path, n_blocks, where):
    """Also where most parties have fewer rows than there are blocks."""
    rows, labels = table()
    uploads, changes = made(tmp_path)
    if where == "memory":
        uploads = {name: read_upload(each.path) for name, each in uploads.items()}
    aligned = cut(uploads, changes, n_blocks=n_blocks)
    assert (aligned.n_rows, aligned.n_columns, aligned.n_blocks) == (100, 4, n_blocks)
    found, told = everything(aligned)
    order = np.argsort(rows[:, 0])
    np.testing.assert_allclose(found, rows[order], atol=1e-14)
    np.testing.assert_array_equal(told, labels[order])


def test_a_single_block_has_the_parties_in_their_order(tmp_path):
    rows, labels = table()
    uploads, changes = made(tmp_path)
    found, told = AlignedRows(uploads, changes).block(0)
    np.testing.assert_allclose(found, rows, atol=1e-14)
    np.testing.assert_array_equal(told, labels)


@pytest.mark.parametrize("n_blocks", [2, 3, 7])
def test_a_block_holds_its_share_of_every_party(tmp_path, n_blocks):
    rows, _ = table(120)
    sizes = [60, 30, *[1] * 30]
    whose = np.repeat(np.arange(len(sizes)), sizes)
    uploads, alignment = parties(tmp_path / "uploads", rows, whose, sizes=sizes)
    aligned = cut(uploads, alignment.changes_of_basis, n_blocks=n_blocks)
    for index in range(n_blocks):
        _, told = aligned.block(index)
        counts = np.bincount(told, minlength=len(sizes))
        assert abs(len(told) - 120 / n_blocks) <= 1
        assert abs(counts[0] - 60 / n_blocks) <= 1
        assert abs(counts[1] - 30 / n_blocks) <= 1
        changes = np.count_nonzero(np.diff(told))
        assert changes > len(told) / 4  # shuffled: not party after party


def test_a_block_is_the_same_each_time(tmp_path):
    aligned = cut(*made(tmp_path), n_blocks=5)
    for one, two in zip(aligned.block(3), aligned.block(3), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_are_wide_whatever_was_sent(tmp_path, dtype):
    assert cut(*made(tmp_path, dtype=dtype), n_blocks=2).block(0).rows.dtype == np.float64


@pytest.mark.parametrize("n_rows", [1, 10, 37, 99])
def test_a_sample_is_each_partys_first_rows_however_they_are_cut(tmp_path, n_rows):
    uploads, changes = made(tmp_path)
    one, many = (cut(uploads, changes, n_blocks=n).sample(n_rows) for n in (1, 5))
    for found, known in zip(one, many, strict=True):
        np.testing.assert_array_equal(found, known)
    assert len(one.rows) == len(np.unique(one.rows[:, 0])) == n_rows
    first = table()[0][: n_rows // 2]
    np.testing.assert_allclose(one.rows[: len(first)], first, atol=1e-14)


def test_a_sample_of_more_rows_than_there_are_is_all_of_them_in_order(tmp_path):
    found, _ = cut(*made(tmp_path), n_blocks=5).sample(1000)
    np.testing.assert_allclose(found, table()[0], atol=1e-14)


def test_a_part_for_another_process_knows_the_parties_of_its_blocks_alone(tmp_path):
    aligned = cut(*made(tmp_path), n_blocks=100)
    part = aligned.only([2])
    assert len(part._uploads) == len(part._changes) == 1
    for one, two in zip(part.block(2), aligned.block(2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_an_upload_that_is_replaced_between_two_passes_is_refused(tmp_path):
    uploads, changes = made(tmp_path)
    aligned = cut(uploads, changes, n_blocks=3)
    aligned.block(0)
    file = uploads["p00"].path
    rows, labels = table(50)
    file.unlink()
    replaced = write_upload(file, rows * 2, labels)
    os.utime(file, ns=(time.time_ns(),) * 2)
    with pytest.raises(FileChangedError, match="party 'p00' changed while"):
        aligned.block(1)
    uploads["p00"] = open_payload(replaced.path)
    aligned.block(1)  # a mapping may open it anew: it is what it was in size
    uploads["p00"] = write_upload(file, *table(49))
    with pytest.raises(FileChangedError, match="had 50 rows and has 49"):
        aligned.block(1)


def test_parties_that_are_not_in_both_are_refused_by_name(tmp_path):
    uploads, changes = made(tmp_path)
    fewer = {name: each for name, each in changes.items() if name != "p03"}
    with pytest.raises(UnknownPartyError, match="'p03' sent an upload that is not"):
        AlignedRows(uploads, fewer)
    fewer = {name: each for name, each in uploads.items() if name != "p02"}
    with pytest.raises(UnknownPartyError, match="'p02' is aligned, but"):
        AlignedRows(fewer, changes)
    with pytest.raises(UnknownPartyError, match="no uploads"):
        AlignedRows({}, {})


def test_labels_of_two_kinds_and_none_are_refused_by_name(tmp_path):
    uploads, changes = made(tmp_path)
    rows, labels = table(7)
    for told, said in ((labels.astype(float), "float64 labels and others int64"), (None, "no")):
        uploads["p01"] = write_upload(uploads["p01"].path, rows, told)
        with pytest.raises(LabelError, match=f"'p01' sent {said}"):
            AlignedRows(uploads, changes).block(0)


def test_numbers_that_are_none_are_refused_with_the_partys_name(tmp_path):
    uploads, changes = made(tmp_path)
    rows, labels = table(30)
    rows[3, 1] = np.nan
    uploads["p03"] = write_upload(uploads["p03"].path, rows, labels)
    with pytest.raises(NotFiniteError, match="party 'p03' are not all finite"):
        AlignedRows(uploads, changes).block(0)


def test_an_upload_of_another_width_is_refused_by_name(tmp_path):
    uploads, changes = made(tmp_path)
    uploads["p01"] = write_upload(uploads["p01"].path, *table(7, 5))
    with pytest.raises(ShapeError, match="'p01' sent rows of 5 components"):
        AlignedRows(uploads, changes).block(0)


def test_blocks_of_no_bytes_are_refused(tmp_path):
    with pytest.raises(OptionError, match="block_bytes=0 holds no row"):
        AlignedRows(*made(tmp_path), block_bytes=0)


def test_a_lazy_mapping_of_changes_will_do(tmp_path):
    uploads, changes = made(tmp_path)
    lazy = alignment_of(changes).changes_of_basis
    assert not isinstance(lazy, dict)
    np.testing.assert_array_equal(
        AlignedRows(uploads, lazy).block(0).rows, AlignedRows(uploads, changes).block(0).rows
    )
