"""A folder of uploads: everybody's file once, of one round, read when it is asked for."""

import os
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from bundle.payloads import tables, write
from cobasis import ODC, align
from cobasis.bundle.payload import Payload
from cobasis.errors import (
    AnchorTagError,
    DiskError,
    DuplicatePartyError,
    FileChangedError,
    FileFormatError,
    MessageError,
    UnknownPartyError,
)
from cobasis.store.anchor_images import images_in_files
from cobasis.store.folder import UploadFolder

NAMES = ("east", "north", "south")


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(reversed(NAMES)):
        write(tmp_path / f"{seed}.safetensors", party=name, seed=seed)
    return tmp_path


def test_uploads_come_by_party_name_whatever_their_files_are_called(folder):
    uploads = UploadFolder(folder)
    assert list(uploads) == list(NAMES)
    assert len(uploads) == 3
    assert "north" in uploads
    assert "west" not in uploads
    assert isinstance(uploads["south"], Payload)
    np.testing.assert_array_equal(uploads["south"].row_block(0, 7), tables(0)[0])
    assert repr(uploads).endswith("of 3 parties>")


def test_half_written_and_hidden_files_and_others_are_left_alone(folder):
    for name in ("west.safetensors.part", ".west.safetensors", "README.txt"):
        (folder / name).write_bytes(b"half")
    assert list(UploadFolder(folder)) == list(NAMES)


def test_a_file_that_is_no_upload_is_refused_by_name(folder):
    save_file({"rows": np.eye(3)}, folder / "west.safetensors")
    with pytest.raises(FileFormatError, match=r"'west\.safetensors' .* format is 'not given'"):
        UploadFolder(folder)


def test_two_uploads_of_one_party_are_refused(folder):
    write(folder / "again.safetensors", party="north")
    with pytest.raises(DuplicatePartyError, match=r"1\.safetensors.*again\.safetensors.*'north'"):
        UploadFolder(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DiskError, match="No such file or directory"):
        UploadFolder(tmp_path / "nowhere")


def test_anchor_images_are_those_of_the_files_and_are_read_afresh(folder):
    images = UploadFolder(folder).anchor_images()
    assert list(images) == list(NAMES)
    for seed, name in enumerate(reversed(NAMES)):
        np.testing.assert_array_equal(images[name], tables(seed)[1])
    first = images["north"]
    first[:] = 0
    assert images["north"].any()
    with pytest.raises(KeyError):
        images["west"]


def test_parties_may_be_left_out(folder):
    uploads = UploadFolder(folder)
    assert list(uploads.anchor_images(excluded=["north"])) == ["east", "south"]
    assert list(uploads.anchor_images().without(["east"])) == ["north", "south"]


def test_leaving_out_somebody_unknown_is_refused_by_name(folder):
    uploads = UploadFolder(folder)
    for wrong in (["nroth"], "nroth"):
        with pytest.raises(UnknownPartyError, match="party 'nroth' is to be left out, and there"):
            uploads.anchor_images(excluded=wrong)


def test_uploads_of_two_anchors_are_not_aligned_unless_one_side_is_left_out(folder):
    write(folder / "w.safetensors", party="west", anchor_tag=bytes(32))
    uploads = UploadFolder(folder)
    with pytest.raises(AnchorTagError, match=r"2 different anchors: south, north, east \| west"):
        uploads.anchor_images()
    assert list(uploads.anchor_images(excluded=["west"])) == list(NAMES)


def test_uploads_of_two_agreements_are_not_aligned(folder):
    write(folder / "w.safetensors", party="west", agreement_digest=bytes(32))
    with pytest.raises(MessageError, match=r"more than one agreement: .* \| west"):
        UploadFolder(folder).anchor_images()


def test_many_parties_with_a_foreign_anchor_are_counted(tmp_path):
    for number in range(9):
        tag = bytes(32) if number else bytes(range(32))
        write(tmp_path / f"{number}.safetensors", party=f"p{number}", anchor_tag=tag)
    with pytest.raises(AnchorTagError, match=r"p0 \| p1, p2, p3, p4, p5 and 3 more\. Their"):
        UploadFolder(tmp_path).anchor_images()


def test_an_upload_that_is_replaced_after_the_folder_was_opened_is_refused(folder):
    uploads = UploadFolder(folder)
    images = uploads.anchor_images()
    write(folder / "1.safetensors", party="north", seed=9)
    with pytest.raises(FileChangedError, match="party 'north'"):
        images["north"]
    with pytest.raises(FileChangedError, match="party 'north'"):
        uploads["north"]
    assert uploads["south"].n_rows == 7


def test_a_party_whose_image_changes_between_two_passes_is_refused(folder):
    """The first pass makes the target, the second fits: neither takes another file for the same."""
    images = UploadFolder(folder).anchor_images()
    assert images["east"].shape == (5, 3)
    os.utime(folder / "2.safetensors", ns=(0, 1))
    with pytest.raises(FileChangedError, match="anchor image of party 'east'"):
        align(ODC(), images)


def test_images_on_disk_align_as_they_do_in_memory(folder):
    images = UploadFolder(folder).anchor_images()
    found, expected = align(ODC(), images), align(ODC(), {name: images[name] for name in images})
    for name in NAMES:
        change = found.fits[name].change_of_basis
        np.testing.assert_array_equal(change, expected.fits[name].change_of_basis)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_images_come_from_any_safetensors_files_too(tmp_path, dtype):
    table = tables()[1].astype(dtype)
    save_file({"A": table, "other": np.arange(3)}, tmp_path / "a.safetensors")
    images = images_in_files({"north": tmp_path / "a.safetensors"}, tensor="A")
    np.testing.assert_array_equal(images["north"], table, strict=True)
    assert images.states()["north"].startswith(f"{(tmp_path / 'a.safetensors').stat().st_size} ")


@pytest.mark.parametrize(
    ("tensor", "words"),
    [("B", "has no table 'B'"), ("numbers", "is int64"), ("line", r"of shape \(3,\)")],
)
def test_a_table_that_is_no_anchor_image_is_refused(tmp_path, tensor, words):
    stored = {"numbers": np.ones((2, 2), dtype=np.int64), "line": np.ones(3)}
    save_file(stored, tmp_path / "a.safetensors")
    with pytest.raises(FileFormatError, match=words):
        images_in_files({"north": tmp_path / "a.safetensors"}, tensor=tensor)


def test_an_open_folder_keeps_less_than_a_kilobyte_per_party(tmp_path):
    """Of 20,000 parties this leaves room for the alignment; the arrays stay on disk."""
    for number in range(200):
        write(tmp_path / f"{number}.safetensors", party=f"party-{number:05d}", labels=None)
    UploadFolder(tmp_path)  # what is made once, whatever the folder
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    uploads = UploadFolder(tmp_path)
    images = uploads.anchor_images()
    per_party = (tracemalloc.get_traced_memory()[0] - before) / len(images)
    tracemalloc.stop()
    assert per_party < 1000
