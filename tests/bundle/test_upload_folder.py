"""A folder of uploads: everybody's file once, of one round, read when it is asked for."""

import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from bundle.payloads import tables, write
from cobasis.bundle.payload import Payload
from cobasis.bundle.uploads import UploadFolder
from cobasis.errors import DiskError, DuplicatePartyError, FileChangedError, FileFormatError

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


def test_images_are_those_of_the_files_and_are_read_afresh(folder):
    uploads = UploadFolder(folder)
    for seed, name in enumerate(reversed(NAMES)):
        np.testing.assert_array_equal(uploads[name].read_image(), tables(seed)[1])
    first = uploads["north"].read_image()
    first[:] = 0
    assert uploads["north"].read_image().any()
    with pytest.raises(KeyError):
        uploads["west"]


def test_an_upload_that_is_replaced_after_the_folder_was_opened_is_refused(folder):
    uploads = UploadFolder(folder)
    write(folder / "1.safetensors", party="north", seed=9)
    with pytest.raises(FileChangedError, match="party 'north'"):
        uploads["north"].read_image()
    with pytest.raises(FileChangedError, match="party 'north'"):
        uploads["north"].row_block(0, 2)
    assert uploads["south"].row_block(0, 7).shape == (7, 3)


def test_an_open_folder_keeps_less_than_a_kilobyte_per_party(tmp_path):
    """Of 20,000 parties this leaves room for the alignment; the arrays stay on disk."""
    for number in range(200):
        write(tmp_path / f"{number}.safetensors", party=f"party-{number:05d}", labels=None)
    UploadFolder(tmp_path)  # what is made once, whatever the folder
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    uploads = UploadFolder(tmp_path)
    per_party = (tracemalloc.get_traced_memory()[0] - before) / len(uploads)
    tracemalloc.stop()
    assert per_party < 1000
