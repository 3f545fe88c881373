"""An upload on disk: in the agreed precision, whole or not there, and read as it was written."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from bundle.payloads import DIGEST, TAG, craft, described, header, put, read_upload, tables, write
from cobasis import Analyst
from cobasis.bundle.folders import UploadFolder
from cobasis.bundle.uploads import (
    Payload,
    UploadFile,
    check_precision,
    open_payload,
)
from cobasis.errors import (
    CobasisError,
    DiskError,
    DtypeError,
    DuplicatePartyError,
    FileChangedError,
    FileFormatError,
    MessageError,
    OptionError,
    ShapeError,
    StepError,
)
from protocol.consortium import NAMES, consortium

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


def in_precision(path, *, to, **options):
    """An upload's file in another precision."""
    put(read_upload(path), to, **options)
    return to


@STEADY
@given(
    shape=st.tuples(sizes, sizes, sizes),
    dtype=st.sampled_from(["float64", "float32"]),
    labels=st.sampled_from([None, "int64", "float64"]),
    party=st.text(
        st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=50
    ),
    block=sizes,
    seed=st.integers(0, 99),
)
def test_what_is_written_in_parts_in_any_order_is_read_in_any_parts(  # noqa: PLR0917 -- hypothesis
    tmp_path_factory, shape, dtype, labels, party, block, seed
):
    n_rows, width, n_anchor = shape
    path = tmp_path_factory.mktemp("uploads") / "one.safetensors"
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, width)).astype(dtype)
    image = rng.normal(size=(n_anchor, width)).astype(dtype)
    values = None if labels is None else rng.integers(-9, 9, size=n_rows).astype(labels)
    made = header(party, n_rows=n_rows, n_components=width, n_anchor_rows=n_anchor, labels=labels)
    precision = {"float64": "fp64", "float32": "fp32"}[dtype]
    with UploadFile(path, precision=precision)(made) as writer:
        for start in rng.permutation(np.arange(0, n_rows, block)):
            writer.write_rows(int(start), rows[start : start + block])
        if values is not None:
            writer.write_labels(values)
        writer.write_anchor_image(image)

    found = open_payload(path)
    assert (found.party, found.agreement_digest, found.anchor_tag) == (party, DIGEST, TAG)
    assert (found.n_rows, found.n_components, found.image_shape[0]) == shape
    for at in range(0, n_rows, 2):
        stop = min(at + 2, n_rows)
        np.testing.assert_array_equal(found.row_block(at, stop), rows[at:stop], strict=True)
    np.testing.assert_array_equal(found.read_image(), image, strict=True)
    if values is None:
        assert found.labels() is None
        assert found.label_block(0, 1) is None
    else:
        np.testing.assert_array_equal(found.labels(), values, strict=True)
        np.testing.assert_array_equal(found.label_block(0, 1), values[:1], strict=True)


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
    np.testing.assert_array_equal(theirs.row_block(2, 5), stored["rows"][2:5], strict=True)
    np.testing.assert_array_equal(theirs.labels(), np.arange(7))
    np.testing.assert_array_equal(theirs.read_image(), image)


@pytest.mark.parametrize(
    ("labels", "steps", "error", "words"),
    [
        (None, ("image", "rows 0 2", "rows 5 7"), StepError, "3 of its rows were never written"),
        ("int64", ("rows 0 7",), StepError, "anchor_image and labels were never written"),
        (None, ("labels",), StepError, "was announced without labels"),
        (None, ("rows 0 7", "Ctrl-C"), KeyboardInterrupt, "^$"),
    ],
)
def test_an_upload_that_is_not_complete_becomes_no_file(tmp_path, labels, steps, error, words):
    rows, image, numbers = tables()

    def write_some():
        with upload_file(tmp_path)(header(labels=labels)) as writer:
            for step, *ends in map(str.split, steps):
                if step == "Ctrl-C":
                    raise KeyboardInterrupt
                if step == "rows":
                    writer.write_rows(int(ends[0]), rows[int(ends[0]) : int(ends[1])])
                elif step == "image":
                    writer.write_anchor_image(image)
                else:
                    writer.write_labels(numbers)

    with pytest.raises(error, match=words):
        write_some()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.ones((8, 3)), ShapeError, "rows 0 to 7, not 0 to 8"),
        (np.ones((2, 4)), ShapeError, r"shape \(2, 4\), announced was \(2, 3\)"),
        (np.ones((2, 3), dtype=complex), DtypeError, "are complex128, announced was float32"),
    ],
)
def test_rows_of_another_shape_or_type_are_refused(tmp_path, table, error, words):
    with pytest.raises(error, match=words), upload_file(tmp_path, "fp32")(header()) as writer:
        writer.write_rows(0, table)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("changes", [{"n_rows": 0}, {"party": "north\x1b[2J"}, {"party": ""}])
def test_what_no_reader_would_take_is_refused_before_a_file_is_made(tmp_path, changes):
    with pytest.raises(ShapeError), upload_file(tmp_path)(header(**changes)):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STORED)
def test_rows_come_back_as_floats_within_the_precisions_rounding(path, name):
    whole = read_upload(path)
    to = in_precision(
        path, to=path.with_name("to.safetensors"), precision=name, int8_range=RANGE[name]
    )
    found, stored = open_payload(to), load_file(to)
    assert stored["rows"].dtype == STORED[name]
    assert stored["anchor_image"].dtype == ("float16" if name == "int8" else STORED[name])
    wide = np.float64 if name == "fp64" else np.float32
    assert (found.dtype, found.read_image().dtype) == (wide, wide)
    rows = np.vstack([found.row_block(at, at + 1) for at in range(7)])
    assert rows.dtype == wide
    bound = 5.0 / 127 * 0.5001 if name == "int8" else ERROR[name] * np.abs(whole.rows)
    assert np.all(np.abs(rows - whole.rows) <= bound)
    image = 2**-11 if name == "int8" else ERROR[name]
    assert np.all(np.abs(found.read_image() - whole.anchor_image) <= image * 4)
    np.testing.assert_array_equal(found.labels(), whole.labels)
    check_precision(found, precision=name, int8_range=RANGE[name])
    for agreed in set(STORED) - {name}:
        with pytest.raises(MessageError, match="party 'north' sent"):
            check_precision(found, precision=agreed, int8_range=RANGE[agreed])


def test_the_scale_is_the_agreements_and_stands_in_the_file(path):
    in_precision(path, to=path, precision="int8", int8_range=5.0)
    assert described(path)[0]["__metadata__"]["int8_scale"] == repr(5.0 / 127)
    assert open_payload(path).int8_scale == 5.0 / 127
    with pytest.raises(MessageError, match="in steps of"):
        check_precision(open_payload(path), precision="int8", int8_range=4.0)


def test_rows_at_the_range_itself_are_taken_and_beyond_it_refused_without_a_number(path):
    largest = float(np.abs(read_upload(path).rows).max())
    to = path.with_name("to")
    in_precision(path, to=to, precision="int8", int8_range=largest)
    assert np.abs(load_file(to)["rows"]).max() == 127
    to.unlink()
    beyond = np.nextafter(largest, 0)
    with pytest.raises(OptionError, match="party 'north' are not all within the agreed") as found:
        in_precision(path, to=to, precision="int8", int8_range=round(beyond, 1) - 0.1)
    assert f"{largest:.3f}" not in str(found.value)
    with pytest.raises(OptionError, match="not clipped"):
        in_precision(path, to=to, precision="int8", int8_range=float(beyond))
    assert [each.name for each in path.parent.iterdir()] == ["north.safetensors"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, value) for name in ("fp32", "fp16", "int8") for value in (np.nan, np.inf, 1e39)),
        ("fp16", 70_000.0),
        ("int8", 70_000.0),
    ],
)
@pytest.mark.parametrize("table", ["rows", "image"])
def test_what_a_precision_does_not_hold_is_refused(tmp_path, value, name, table):
    rows, image = np.zeros((7, 3)), np.eye(5, 3)
    (rows if table == "rows" else image)[2, 1] = value
    refused = pytest.raises(OptionError, match="'north' are not all within")
    with refused, upload_file(tmp_path, name)(header()) as writer:
        writer.write_anchor_image(image)
        writer.write_rows(0, rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STORED)
def test_rows_that_were_read_back_are_put_in_order_without_rounding_them_again(tmp_path, name):
    rows = np.random.default_rng(0).normal(size=(7, 3))
    with upload_file(tmp_path, name)(header()) as writer:
        writer.write_anchor_image(np.eye(5, 3))
        writer.write_rows(0, rows)
        once = writer.read_rows(0, 7)
        writer.write_rows(0, once[::-1].copy())
    assert once.dtype == STORED[name]
    np.testing.assert_array_equal(load_file(tmp_path / "to.safetensors")["rows"], once[::-1])


@pytest.mark.parametrize("name", ["icu.csv", "icu.Parquet", "icu.pq"])
def test_an_upload_never_takes_a_tables_place(tmp_path, name):
    with pytest.raises(OptionError, match="the name of a table"):
        UploadFile(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "int8_range"),
    [("int8", None), ("fp16", 1.0), ("int8", 0.0), ("int8", -1.0), ("int8", np.inf)],
)
def test_the_range_goes_with_int8_and_is_a_number(path, name, int8_range):
    with pytest.raises(OptionError, match="int8_range"):
        in_precision(path, to=path, precision=name, int8_range=int8_range)


def test_floats_with_a_scale_and_an_int8_image_or_labels_are_no_upload(path):
    says, numbers = described(path)
    for table, word in (("anchor_image", "I8"), ("labels", "F16"), ("labels", "I8")):
        craft(path, {**says, table: {**says[table], "dtype": word}}, numbers)
        with pytest.raises(CobasisError):
            open_payload(path)


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(("south", "north", "east")):
        write(tmp_path / f"{seed}.safetensors", party=name, seed=seed)
    return tmp_path


def test_a_folders_uploads_come_by_party_name_and_are_read_when_they_are_asked_for(folder):
    for name in ("west.safetensors.part", ".west.safetensors", "README.txt"):
        (folder / name).write_bytes(b"half")
    uploads = UploadFolder(folder)
    assert list(uploads) == ["east", "north", "south"]
    assert len(uploads) == 3
    assert "west" not in uploads
    assert isinstance(uploads["south"], Payload)
    np.testing.assert_array_equal(uploads["south"].row_block(0, 7), tables(0)[0])
    first = uploads["north"].read_image()
    np.testing.assert_array_equal(first, tables(1)[1])
    first[:] = 0
    assert uploads["north"].read_image().any()
    write(folder / "1.safetensors", party="north", seed=9)
    for read in (uploads["north"].read_image, lambda: uploads["north"].row_block(0, 2)):
        with pytest.raises(FileChangedError, match="party 'north'"):
            read()


def test_what_is_no_folder_of_uploads_is_refused_by_name(folder):
    with pytest.raises(DiskError, match="No such file or directory"):
        UploadFolder(folder / "nowhere")
    write(folder / "again.safetensors", party="north")
    with pytest.raises(DuplicatePartyError, match=r"1\.safetensors.*again\.safetensors.*'north'"):
        UploadFolder(folder)
    save_file({"rows": np.eye(3)}, folder / "again.safetensors")
    with pytest.raises(FileFormatError, match=r"'again\.safetensors' .* format is 'not given'"):
        UploadFolder(folder)


def test_an_open_folder_keeps_less_than_a_kilobyte_per_party(tmp_path):
    """Of 20,000 parties this leaves room for the alignment; the arrays stay on disk."""
    for number in range(100):
        write(tmp_path / f"{number}.safetensors", party=f"party-{number:05d}", labels=None)
    UploadFolder(tmp_path)  # what is made once, whatever the folder
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    uploads = UploadFolder(tmp_path)
    per_party = (tracemalloc.get_traced_memory()[0] - before) / len(uploads)
    tracemalloc.stop()
    assert per_party < 1000


def test_an_analyst_that_reads_files_ends_with_the_same_alignment(tmp_path):
    made = consortium()
    uploads = made.uploads()
    in_memory = Analyst(made.agreement)
    for name in sorted(NAMES):
        put(uploads[name], tmp_path / f"{name}.safetensors")
        in_memory.receive(uploads[name])
    expected = in_memory.align()
    found = Analyst(made.agreement, uploads=UploadFolder(tmp_path)).align()
    for name in NAMES:
        np.testing.assert_array_equal(
            found.fits[name].change_of_basis, expected.fits[name].change_of_basis
        )
