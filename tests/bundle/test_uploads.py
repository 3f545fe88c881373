import os
import tracemalloc
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from bundle.payloads import (
    DIGEST,
    TAG,
    announced,
    described,
    file_of,
    put,
    read_upload,
    tables,
    write,
)
from cobasis.bundle.folders import UploadFolder
from cobasis.bundle.uploads import UploadFile, check_precision, open_payload
from cobasis.errors import (
    DiskError,
    DuplicatePartyError,
    FileChangedError,
    FileFormatError,
    MessageError,
    OptionError,
)
from cobasis.protocol.refusals import check_upload
from protocol.consortium import SEEDED, agree

STEADY = settings(max_examples=25, deadline=None, derandomize=True, database=None)
RANGE = {"fp64": None, "fp32": None, "fp16": None, "int8": 5.0}
STORED = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "int8": "int8"}
ERROR = {"fp64": 0, "fp32": 2**-24, "fp16": 2**-11, "int8": 0}
TOLD = {
    "format": "cobasis/upload/1",
    "party": "north",
    "agreement_digest": DIGEST.hex(),
    "anchor_tag": TAG.hex(),
    "simulated": "false",
}
sizes = st.integers(1, 9)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "north.safetensors"
    write(made)
    return made


def upload_file(folder, name="fp64"):
    return UploadFile(folder / "to.safetensors", precision=name, int8_range=RANGE[name])


@STEADY
@given(
    shape=st.tuples(sizes, sizes, sizes),
    labels=st.sampled_from([None, "int64", "float64"]),
    party=st.text(
        st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=50
    ),
    block=sizes,
)
def test_what_is_written_in_parts_in_any_order_is_read_in_any_parts(
    tmp_path_factory, shape, labels, party, block
):
    (n_rows, width, n_anchor), rng = shape, np.random.default_rng(0)
    path = tmp_path_factory.mktemp("uploads") / "one.safetensors"
    rows, image = rng.normal(size=(n_rows, width)), rng.normal(size=(n_anchor, width))
    values = None if labels is None else rng.integers(-9, 9, size=n_rows).astype(labels)
    starts = rng.permutation(np.arange(0, n_rows, block)).tolist()
    parts = [slice(at, min(at + block, n_rows)) for at in starts]
    with UploadFile(path)(announced(party, image=image, n_rows=n_rows, labels=labels)) as to:
        for part in parts:
            to["rows"][part] = rows[part]
        if values is not None:
            to["labels"][0:n_rows] = values
    found = open_payload(path)
    assert (found.party, found.agreement_digest, found.anchor_tag) == (party, DIGEST, TAG)
    assert (*found.rows.shape, found.anchor_image.shape[0]) == shape
    np.testing.assert_array_equal(found.anchor_image[:], image, strict=True)
    assert (found.labels is None) == (values is None)
    for part in (*parts, slice(n_rows // 2, n_rows)):
        np.testing.assert_array_equal(found.rows[part], rows[part], strict=True)
        if values is not None:
            np.testing.assert_array_equal(found.labels[part], values[part], strict=True)


def test_the_safetensors_library_reads_what_we_write_and_we_what_it_writes(path):
    """The library orders tables by type and name; the order is no part of the format."""
    rows, image, labels = write(path)
    found = load_file(path)
    assert sorted(found) == ["anchor_image", "labels", "rows"]
    np.testing.assert_array_equal(found["rows"], rows)
    np.testing.assert_array_equal(found["anchor_image"], image)
    np.testing.assert_array_equal(found["labels"], labels)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == TOLD
    stored = {"rows": rows.astype("float32"), "labels": np.arange(7), "anchor_image": image}
    save_file(stored, path, metadata={**TOLD, "simulated": "true"})
    theirs = open_payload(path)
    assert theirs.simulated
    np.testing.assert_array_equal(theirs.rows[2:5], stored["rows"][2:5], strict=True)
    np.testing.assert_array_equal(theirs.labels[:], np.arange(7))
    np.testing.assert_array_equal(theirs.anchor_image[:], image)


@pytest.mark.parametrize("name", STORED)
def test_rows_come_back_as_floats_within_the_precisions_rounding_which_is_done_once(path, name):
    whole, to = read_upload(path), path.with_name("to.safetensors")
    with upload_file(path.parent, name)(whole) as tables:
        tables["labels"][0:7] = whole.labels
        tables["rows"][0:7] = whole.rows[::-1]
        once = tables["rows"][0:7]  # as a party puts rows into another order
        tables["rows"][0:7] = once[::-1].copy()
    found, stored = open_payload(to), load_file(to)
    np.testing.assert_array_equal(stored["rows"], once[::-1])
    assert stored["rows"].dtype == once.dtype == STORED[name]
    assert stored["anchor_image"].dtype == ("float16" if name == "int8" else STORED[name])
    wide = np.float64 if name == "fp64" else np.float32
    assert (found.rows[0:1].dtype, found.anchor_image[:].dtype) == (wide, wide)
    rows = np.vstack([found.rows[at : at + 1] for at in range(7)])
    assert rows.dtype == wide
    bound = 5.0 / 127 * 0.5001 if name == "int8" else ERROR[name] * np.abs(whole.rows)
    assert np.all(np.abs(rows - whole.rows) <= bound)
    image = 2**-11 if name == "int8" else ERROR[name]
    assert np.all(np.abs(found.anchor_image[:] - whole.anchor_image) <= image * 4)
    np.testing.assert_array_equal(found.labels[:], whole.labels)
    check_precision(found, precision=name, int8_range=RANGE[name])
    for agreed in set(STORED) - {name}:
        with pytest.raises(MessageError, match="party 'north' sent"):
            check_precision(found, precision=agreed, int8_range=RANGE[agreed])
    if name == "int8":
        assert described(to)[0]["__metadata__"]["int8_scale"] == repr(5.0 / 127)
        with pytest.raises(MessageError, match="in steps of"):
            check_precision(found, precision="int8", int8_range=4.0)


def test_rows_at_the_range_itself_are_taken_and_beyond_it_refused_without_a_number(path):
    whole, to = read_upload(path), path.with_name("to")
    largest = float(np.abs(whole.rows).max())
    put(whole, to, precision="int8", int8_range=largest)
    assert np.abs(load_file(to)["rows"]).max() == 127
    for less in (float(np.nextafter(largest, 0)), largest / 2):
        with pytest.raises(OptionError, match=r"'north' are not all within the.*not clipped") as it:
            put(whole, to, precision="int8", int8_range=less)
    assert f"{largest:.3f}" not in str(it.value)


UNHELD = [*product(("fp32", "fp16", "int8"), (np.nan, np.inf, 1e39)), ("fp16", 7e4), ("int8", 7e4)]


@pytest.mark.parametrize(("name", "value"), UNHELD)
@pytest.mark.parametrize("table", ["rows", "image"])
def test_what_a_precision_does_not_hold_is_refused(tmp_path, value, name, table):
    rows, image = np.zeros((7, 3)), np.eye(5, 3)
    (rows if table == "rows" else image)[2, 1] = value
    refused = pytest.raises(OptionError, match="'north' are not all within")
    with refused, upload_file(tmp_path, name)(announced(image=image)) as to:
        to["rows"][0:7] = rows
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_claims_gigabytes_costs_no_memory(path):
    """One that is sparse takes no room on its sender's disk, and would take all of the reader's."""
    (found, _), agreement = described(path), agree(SEEDED)
    tracemalloc.start()
    for text, length in ((b"{" * 100, 2**40), (b'{"a":' + b" " * 2**22, 2**22 + 5)):
        path.write_bytes(file_of(text, length=length))
        with pytest.raises(FileFormatError, match=f"no header of {length:,} bytes"):
            open_payload(path)
    image, end = 2**28 * 3 * 8, 2**28 * 3 * 8 + 7 * 3 * 8
    del found["labels"]
    found["anchor_image"] |= {"shape": [2**28, 3], "data_offsets": [0, image]}
    found["rows"] |= {"data_offsets": [image, end]}
    path.write_bytes(file_of(found))
    os.truncate(path, path.stat().st_size + end)
    with pytest.raises(MessageError, match=r"an anchor image of shape \(268435456, 3\)"):
        check_upload(replace(open_payload(path), agreement_digest=agreement.digest()), agreement)
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


def test_a_folders_uploads_come_by_party_name_when_they_are_asked_for_and_others_are_refused(
    tmp_path,
):
    folder = tmp_path
    for seed, name in enumerate(("south", "north", "east")):
        write(folder / f"{seed}.safetensors", party=name, seed=seed)
    for name in ("west.safetensors.part", ".west.safetensors", "README.txt"):
        (folder / name).write_bytes(b"half")
    uploads = UploadFolder(folder)
    assert list(uploads) == ["east", "north", "south"]
    np.testing.assert_array_equal(uploads["south"].rows[0:7], tables(0)[0])
    np.testing.assert_array_equal(uploads["north"].anchor_image[:], tables(1)[1])
    write(folder / "1.safetensors", party="north", seed=9)  # behind the folder's back
    with pytest.raises(FileChangedError, match="party 'north'"):
        uploads["north"].anchor_image[:]
    with pytest.raises(DiskError, match="No such file or directory"):
        UploadFolder(folder / "nowhere")
    write(folder / "again.safetensors", party="north")
    with pytest.raises(DuplicatePartyError, match=r"1\.safetensors.*again\.safetensors.*'north'"):
        UploadFolder(folder)
    save_file({"rows": np.eye(3)}, folder / "again.safetensors")
    with pytest.raises(FileFormatError, match=r"'again\.safetensors' .* format: it is missing"):
        UploadFolder(folder)


def test_an_open_folder_keeps_less_than_two_kilobytes_per_party(tmp_path):
    """Of 20,000 parties this leaves room for the alignment; the arrays stay on disk."""
    for number in range(100):
        write(tmp_path / f"{number}.safetensors", party=f"party-{number:05d}", labels=None)
    UploadFolder(tmp_path)  # what is made once, whatever the folder
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    uploads = UploadFolder(tmp_path)
    per_party = (tracemalloc.get_traced_memory()[0] - before) / len(uploads)
    tracemalloc.stop()
    assert per_party < 2000
