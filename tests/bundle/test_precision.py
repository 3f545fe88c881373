"""An upload in the agreed precision: smaller, rounded once, never clipped, told in its header."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from bundle.payloads import craft, described, header, read_upload, write
from cobasis.bundle.payload import PayloadWriter, open_payload
from cobasis.bundle.uploads import (
    UploadFile,
    UploadFolder,
    check_precision,
    int8_scale,
    write_upload,
)
from cobasis.errors import CobasisError, DtypeError, FileFormatError, MessageError, OptionError
from cobasis.protocol.messages import UploadHeader

RANGE = {"fp64": None, "fp32": None, "fp16": None, "int8": 5.0}
STORED = {"fp64": "float64", "fp32": "float32", "fp16": "float16", "int8": "int8"}
ERROR = {"fp64": 0, "fp32": 2**-24, "fp16": 2**-11, "int8": 0}


def announced():
    """What is known of an upload before its first row is there."""
    return UploadHeader(
        party="north",
        agreement_digest=bytes(32),
        anchor_tag=bytes(32),
        simulated=False,
        n_rows=7,
        n_components=3,
        n_anchor_rows=5,
    )


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "north.safetensors"
    write(made)
    return made


def in_precision(path, *, to, **options):
    """An upload's file in another precision."""
    write_upload(read_upload(path), to, **options)
    return to


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
    rows = np.vstack(list(found.row_blocks(2)))
    assert rows.dtype == wide
    bound = int8_scale(5.0) * 0.5001 if name == "int8" else ERROR[name] * np.abs(whole.rows)
    assert np.all(np.abs(rows - whole.rows) <= bound)
    image = 2**-11 if name == "int8" else ERROR[name]
    assert np.all(np.abs(found.read_image() - whole.anchor_image) <= image * 4)
    np.testing.assert_array_equal(found.labels(), whole.labels)
    assert (found.party, found.agreement_digest, found.anchor_tag, found.simulated) == (
        whole.party,
        whole.agreement_digest,
        whole.anchor_tag,
        whole.simulated,
    )
    check_precision(found, precision=name, int8_range=RANGE[name])


def test_the_folder_of_uploads_reads_small_images_as_float32(path):
    in_precision(path, to=path, precision="fp16")
    folder = UploadFolder(path.parent)
    assert folder["north"].read_image().dtype == np.float32
    np.testing.assert_array_equal(
        folder["north"].read_image(), folder["north"].read_image(), strict=True
    )


def test_the_scale_is_the_agreements_and_stands_in_the_file(path):
    to = in_precision(path, to=path, precision="int8", int8_range=5.0)
    assert to == path
    assert described(path)[0]["__metadata__"]["int8_scale"] == repr(5.0 / 127)
    assert open_payload(path).int8_scale == 5.0 / 127
    assert np.abs(load_file(path)["rows"]).max() <= 127


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
    file = UploadFile(tmp_path / "to", precision=name, int8_range=RANGE[name])
    refused = pytest.raises(OptionError, match="'north' are not all within")
    with refused, file(announced()) as writer:
        writer.write_anchor_image(image)
        writer.write_rows(0, rows)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STORED)
def test_rows_that_were_read_back_are_put_in_order_without_rounding_them_again(tmp_path, name):
    rows = np.random.default_rng(0).normal(size=(7, 3))
    file = UploadFile(tmp_path / "to", precision=name, int8_range=RANGE[name])
    with file(announced()) as writer:
        writer.write_anchor_image(np.eye(5, 3))
        writer.write_rows(0, rows)
        once = writer.read_rows(0, 7)
        writer.write_rows(0, once[::-1].copy())
    assert once.dtype == STORED[name]
    np.testing.assert_array_equal(load_file(tmp_path / "to")["rows"], once[::-1])


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


def test_another_precision_or_scale_than_agreed_is_refused(path):
    stored = {"fp64": path}
    for name in ("fp32", "fp16", "int8"):
        to = path.with_name(name)
        stored[name] = in_precision(path, to=to, precision=name, int8_range=RANGE[name])
    for name, where in stored.items():
        for agreed in STORED:
            if agreed != name:
                with pytest.raises(MessageError, match="party 'north' sent"):
                    check_precision(open_payload(where), precision=agreed, int8_range=RANGE[agreed])
    with pytest.raises(MessageError, match="in steps of"):
        check_precision(open_payload(stored["int8"]), precision="int8", int8_range=4.0)


@pytest.mark.parametrize("scale", [None, "", "x", "nan", "inf", "0", "-1", "1e400"])
def test_int8_rows_without_a_right_scale_are_no_upload(path, scale):
    in_precision(path, to=path, precision="int8", int8_range=5.0)
    says, numbers = described(path)
    says["__metadata__"].pop("int8_scale")
    if scale is not None:
        says["__metadata__"]["int8_scale"] = scale
    craft(path, says, numbers)
    with pytest.raises(FileFormatError, match="int8_scale"):
        open_payload(path)


def test_floats_with_a_scale_and_an_int8_image_or_labels_are_no_upload(path):
    says, numbers = described(path)
    says["__metadata__"]["int8_scale"] = "0.5"
    craft(path, says, numbers)
    with pytest.raises(FileFormatError, match="int8_scale"):
        open_payload(path)
    del says["__metadata__"]["int8_scale"]
    for table, word in (("anchor_image", "I8"), ("labels", "F16"), ("labels", "I8")):
        changed = {**says, table: {**says[table], "dtype": word}}
        craft(path, changed, numbers)
        with pytest.raises(CobasisError):
            open_payload(path)


def test_the_writer_does_not_turn_floats_into_int8_by_itself(tmp_path):
    writer = PayloadWriter(
        tmp_path / "north.safetensors", header=header(dtype="int8", int8_scale=0.1)
    )
    with pytest.raises(DtypeError, match="are float64, announced was int8"), writer:
        writer.write_rows(0, np.zeros((7, 3)))
    assert list(tmp_path.iterdir()) == []
