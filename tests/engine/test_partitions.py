"""Aligned rows on disk: all of them, once, mixed, and never half."""

import json
import os

import numpy as np
import pytest

from cobasis.bundle.payload import open_payload
from cobasis.engine.partitioning import write_aligned
from cobasis.engine.partitions import MANIFEST, open_aligned
from cobasis.errors import (
    DiskError,
    FileChangedError,
    LabelError,
    NotFiniteError,
    OptionError,
    PartitionError,
    ShapeError,
    UnknownPartyError,
)
from engine.partitioned import aligned_rows, alignment_of, parties, rotation, write_upload

SIZES = [50, 7, 1, 30, 12]


def table(n_rows=100, width=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, width)), np.arange(n_rows) % 3


def everything(aligned):
    """All rows with their labels, in an order that does not depend on partitions."""
    read = [aligned.read(index) for index in range(len(aligned.partitions))]
    rows = np.concatenate([rows for rows, _ in read])
    order = np.argsort(rows[:, 0])
    return rows[order], np.concatenate([labels for _, labels in read])[order]


def written(tmp_path, **options):
    rows, labels = table()
    uploads, alignment = parties(tmp_path / "uploads", rows, labels, sizes=SIZES)
    options = {"to": tmp_path / "aligned", "partition_bytes": 4 * 8 * 20, **options}
    return uploads, alignment, options


def test_every_row_is_there_once_with_its_label_and_in_one_frame(tmp_path):
    rows, labels = table()
    uploads, alignment, options = written(tmp_path)
    aligned = write_aligned(uploads, alignment, **options)
    found, told = everything(aligned)
    order = np.argsort(rows[:, 0])
    np.testing.assert_allclose(found, rows[order], atol=1e-14)
    np.testing.assert_array_equal(told, labels[order])
    assert aligned.n_rows == 100
    assert dict(aligned.parties) == {f"p{place:02d}": size for place, size in enumerate(SIZES)}
    assert aligned.class_counts == {0: 34, 1: 33, 2: 33}
    assert aligned.simulated


@pytest.mark.parametrize("n_partitions", [1, 2, 3, 7])
def test_a_partition_holds_its_share_of_every_party(tmp_path, n_partitions):
    rows, _ = table(120)
    sizes = [60, 30, *[1] * 30]
    whose = np.repeat(np.arange(len(sizes)), sizes)
    uploads, alignment = parties(tmp_path / "uploads", rows, whose, sizes=sizes)
    n_bytes = rows.nbytes // n_partitions
    aligned = write_aligned(uploads, alignment, to=tmp_path / "aligned", partition_bytes=n_bytes)
    for index, part in enumerate(aligned.partitions):
        counts = np.bincount(aligned.read(index)[1], minlength=len(sizes))
        share = 120 / len(aligned.partitions)
        assert abs(part.n_rows - share) <= 1
        assert abs(counts[0] - share / 2) <= 1
        assert abs(counts[1] - share / 4) <= 1


def test_rows_of_different_parties_alternate_inside_a_partition(tmp_path):
    rows, _ = table()
    whose = np.repeat([0, 1], 50)
    uploads, alignment = parties(tmp_path / "uploads", rows, whose, sizes=[50, 50])
    aligned = write_aligned(uploads, alignment, to=tmp_path / "aligned")
    changes = np.count_nonzero(np.diff(aligned.read(0)[1]))
    assert 30 < changes < 70


@pytest.mark.parametrize(
    ("sent", "asked", "kept"),
    [
        ("float32", None, "float32"),
        ("float64", None, "float64"),
        ("float64", "float32", "float32"),
        ("float32", "float64", "float64"),
    ],
)
def test_numbers_are_as_wide_as_the_uploads_or_as_asked(tmp_path, sent, asked, kept):
    rows, labels = table()
    uploads, alignment = parties(tmp_path / "up", rows, labels, sizes=[60, 40], dtype=sent)
    aligned = write_aligned(uploads, alignment, to=tmp_path / "aligned", dtype=asked)
    assert aligned.dtype == kept
    assert aligned.read(0)[0].dtype == kept


def test_a_folder_is_opened_again_as_it_was_written(tmp_path):
    uploads, alignment, options = written(tmp_path)
    aligned = write_aligned(uploads, alignment, **options)
    assert open_aligned(tmp_path / "aligned") == aligned


def test_the_folder_is_its_owners_only(tmp_path):
    uploads, alignment, options = written(tmp_path)
    write_aligned(uploads, alignment, **options)
    assert (tmp_path / "aligned").stat().st_mode & 0o077 == 0


def test_without_labels_rows_are_written_all_the_same(tmp_path):
    aligned = aligned_rows(tmp_path, table()[0], None)
    assert aligned.label_dtype is None
    assert aligned.read(0)[1] is None


def test_an_unfinished_folder_is_not_taken_for_whole_and_its_partitions_are_kept(tmp_path):
    uploads, alignment, options = written(tmp_path)

    def stop(step, done, total):  # noqa: ARG001
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_aligned(uploads, alignment, **options, report=stop)
    with pytest.raises(PartitionError, match=r"no manifest\.json"):
        open_aligned(tmp_path / "aligned")
    first = tmp_path / "aligned" / "part-00000.safetensors"
    before = first.stat().st_mtime_ns
    aligned = write_aligned(uploads, alignment, **options)
    assert first.stat().st_mtime_ns == before
    whole = write_aligned(uploads, alignment, **{**options, "to": tmp_path / "whole"})
    assert aligned.partitions == whole.partitions


def test_a_finished_folder_is_not_written_again(tmp_path):
    uploads, alignment, options = written(tmp_path)
    aligned = write_aligned(uploads, alignment, **options)
    reports = []
    again = write_aligned(uploads, alignment, **options, report=lambda *told: reports.append(told))
    assert again == aligned
    assert reports == []


@pytest.mark.parametrize("finished", [True, False])
def test_another_alignments_rows_are_neither_mixed_nor_overwritten(tmp_path, finished):
    uploads, alignment, options = written(tmp_path)
    write_aligned(uploads, alignment, **options)
    if not finished:
        (tmp_path / "aligned" / MANIFEST).unlink()
    other = alignment_of({name: rotation(4, 99) for name in uploads})
    with pytest.raises(PartitionError, match="of other uploads or of another alignment"):
        write_aligned(uploads, other, **options)


def damage(file, how):
    """Change a partition in some way."""
    data = file.read_bytes()
    if how == "truncated":
        file.write_bytes(data[:-10])
    elif how == "longer":
        file.write_bytes(data + b"0")
    elif how == "changed":
        file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif how == "missing":
        file.unlink()
    elif how == "no safetensors":
        file.write_bytes(b"0" * len(data))
    elif how == "other shape":
        (file.parent.parent / "other").mkdir()
        other = aligned_rows(file.parent.parent / "other", *table(100, 6))
        file.write_bytes((other.path / other.partitions[0].name).read_bytes())
    else:
        (file.parent.parent / "other").mkdir()
        other = aligned_rows(file.parent.parent / "other", *table(), dtype="float32")
        file.write_bytes((other.path / other.partitions[0].name).read_bytes())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("truncated", "truncated"),
        ("longer", "longer than it says"),
        ("changed", "SHA-256 differs"),
        ("missing", "cannot be read"),
        ("no safetensors", "no header"),
        ("other shape", r"\(34, 6\)"),
        ("other dtype", "float32"),
    ],
)
@pytest.mark.parametrize("was_read", [True, False])
def test_a_partition_that_is_not_what_was_written_is_refused(tmp_path, how, said, was_read):
    aligned = aligned_rows(tmp_path, *table())
    if was_read:
        aligned.read(1)
    damage(aligned.path / aligned.partitions[1].name, how)
    with pytest.raises(PartitionError, match=said):
        aligned.read(1)
    aligned.read(0)


def test_a_damaged_partition_is_written_again_when_it_is_deleted_with_the_manifest(tmp_path):
    uploads, alignment, options = written(tmp_path)
    aligned = write_aligned(uploads, alignment, **options)
    damaged = aligned.path / aligned.partitions[2].name
    for file in (damaged, aligned.path / MANIFEST):
        file.unlink()
    other = (aligned.path / aligned.partitions[1].name).stat().st_mtime_ns
    assert write_aligned(uploads, alignment, **options) == aligned
    assert (aligned.path / aligned.partitions[1].name).stat().st_mtime_ns == other


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "cobasis/aligned/9"}'])
def test_a_manifest_that_is_none_is_refused(tmp_path, content):
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(PartitionError, match="no manifest of aligned rows"):
        open_aligned(tmp_path)


def test_the_manifest_names_parties_and_counts_and_no_place_on_the_disk(tmp_path):
    aligned = aligned_rows(tmp_path, *table())
    content = json.loads((aligned.path / MANIFEST).read_text())
    assert content["parties"] == {"p00": 25, "p01": 25, "p02": 25, "p03": 25}
    assert str(tmp_path) not in json.dumps(content)


def test_a_disk_that_is_full_leaves_no_half_partition(tmp_path, monkeypatch):
    uploads, alignment, options = written(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(DiskError, match="No space left"):
            write_aligned(uploads, alignment, **options)
    assert list((tmp_path / "aligned").iterdir()) == []
    assert write_aligned(uploads, alignment, **options).n_rows == 100


def test_an_upload_that_is_replaced_meanwhile_is_refused(tmp_path):
    uploads, alignment, options = written(tmp_path)
    rows, labels = table(50)

    def replace(step, done, total):  # noqa: ARG001
        if done == 1:
            file = uploads["p00"].path
            file.unlink()
            uploads["p00"] = write_upload(file, rows * 2, labels)

    with pytest.raises(FileChangedError, match="the upload of party 'p00' changed while"):
        write_aligned(uploads, alignment, **options, report=replace)


def test_parties_that_are_not_in_both_are_refused_by_name(tmp_path):
    uploads, alignment, options = written(tmp_path)
    with pytest.raises(UnknownPartyError, match="'p03' sent an upload that is not"):
        write_aligned(uploads, alignment.remove("p03"), **options)
    fewer = {name: each for name, each in uploads.items() if name != "p02"}
    with pytest.raises(UnknownPartyError, match="'p02' is aligned, but"):
        write_aligned(fewer, alignment, **options)
    with pytest.raises(UnknownPartyError, match="no uploads"):
        write_aligned({}, alignment_of({"p": np.eye(4)}).remove("p"), **options)


def test_labels_of_two_kinds_are_refused_by_name(tmp_path):
    uploads, alignment, options = written(tmp_path)
    rows, labels = table(7)
    for told, said in ((labels.astype(float), "float64 labels"), (None, "no labels")):
        uploads["p01"] = write_upload(uploads["p01"].path, rows, told)
        with pytest.raises(LabelError, match=f"'p01' sent {said} and party 'p00' int64"):
            write_aligned(uploads, alignment, **options)


def test_numbers_that_are_none_are_refused_with_the_partys_name(tmp_path):
    uploads, alignment, options = written(tmp_path)
    rows, labels = table(30)
    rows[3, 1] = np.nan
    uploads["p03"] = write_upload(uploads["p03"].path, rows, labels)
    with pytest.raises(NotFiniteError, match="party 'p03' are not all finite"):
        write_aligned(uploads, alignment, **options)


def test_an_upload_of_another_width_is_refused_by_name(tmp_path):
    uploads, alignment, options = written(tmp_path)
    file = uploads["p01"].path
    write_upload(file, *table(7, 5))
    uploads["p01"] = open_payload(file)
    with pytest.raises(ShapeError, match="'p01' sent rows of 5 components"):
        write_aligned(uploads, alignment, **options)


def test_a_dtype_that_is_not_known_is_refused(tmp_path):
    uploads, alignment, options = written(tmp_path)
    with pytest.raises(OptionError, match="dtype='float16'"):
        write_aligned(uploads, alignment, **options, dtype="float16")
