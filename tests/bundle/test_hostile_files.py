"""A file may have been written by anybody: one clear error, and little memory.

What else a header may say of itself stands in ``tests/under_fault/in_files.py``.
"""

import os
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.payloads import craft, described, write
from cobasis.bundle.uploads import open_payload
from cobasis.errors import CobasisError, DiskError, FileChangedError, FileFormatError

STEADY = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "north.safetensors"
    write(made)
    return made


def test_a_truncated_file_is_refused_with_party_and_sizes(path):
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError, match=f"'north' .*truncated: {size - 1} bytes .*{size}"):
        open_payload(path)


@pytest.mark.parametrize("change", ["append", "truncate", "replace", "touch"])
def test_a_file_that_changes_after_it_was_opened_is_refused(path, change):
    payload = open_payload(path)
    whole = path.read_bytes()
    if change == "append":
        path.write_bytes(whole + b"\0" * 8)
    elif change == "truncate":
        path.write_bytes(whole[:-8])
    elif change == "replace":
        other = path.with_name("other")
        other.write_bytes(whole)
        other.replace(path)
    else:
        os.utime(path, ns=(0, 1))  # what a rewrite does, however coarse the disk's clock
    for read in (payload.read_image, payload.labels, lambda: payload.row_block(0, 1)):
        with pytest.raises(FileChangedError, match="party 'north' changed while it was in use"):
            read()


def test_what_is_gone_a_folder_and_a_pipe_are_no_files(path, tmp_path):
    payload = open_payload(path)
    path.unlink()
    with pytest.raises(DiskError, match="No such file"):
        payload.read_image()
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(DiskError, match="it is no file"):
            open_payload(other)


def test_a_header_that_claims_gigabytes_costs_no_memory(path):
    path.write_bytes((2**40).to_bytes(8, "little") + b"{" * 100)
    tracemalloc.start()
    with pytest.raises(FileFormatError, match=r"no header of 1,099,511,627,776 bytes"):
        open_payload(path)
    craft(path, b'{"a":' + b" " * 2**22)
    with pytest.raises(FileFormatError, match="no header of"):
        open_payload(path)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def test_a_sparse_file_with_a_huge_anchor_image_is_refused_unread(path):
    """Such a file takes no room on the sender's disk, and would take all of the reader's memory."""
    found, _ = described(path)
    n_anchor = 2**28
    image, rows = n_anchor * 3 * 8, 7 * 3 * 8
    del found["labels"]
    found["anchor_image"] |= {"shape": [n_anchor, 3], "data_offsets": [0, image]}
    found["rows"] |= {"data_offsets": [image, image + rows]}
    craft(path, found)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + image + rows)
    with pytest.raises(FileFormatError, match="an anchor image of 6,442,450,944 bytes"):
        open_payload(path)


@STEADY
@given(data=st.data())
def test_changed_bytes_end_in_an_error_of_ours_or_in_tables_of_the_same_shape(
    tmp_path_factory, data
):
    path = tmp_path_factory.mktemp("uploads") / "north.safetensors"
    write(path)
    good = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(good)
    try:
        found = open_payload(path)
        shapes = (found.read_image().shape, found.row_block(0, found.n_rows).shape)
    except CobasisError:
        return
    assert shapes == ((5, 3), (7, 3))
    assert np.result_type(found.dtype) == np.float64
