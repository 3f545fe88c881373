"""What is written is what is read, by us and by every other reader of the format."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from bundle.payloads import DIGEST, TAG, header, read_upload, tables, write
from cobasis.bundle.payload import PayloadWriter, open_payload
from cobasis.bundle.uploads import write_upload
from cobasis.errors import DtypeError, OptionError, ShapeError, StepError

STEADY = settings(max_examples=25, deadline=None, derandomize=True, database=None)
sizes = st.integers(1, 9)


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
    starts = rng.permutation(np.arange(0, n_rows, block))
    made = header(
        party, n_rows=n_rows, n_components=width, n_anchor_rows=n_anchor, dtype=dtype, labels=labels
    )
    with PayloadWriter(path, header=made) as writer:
        for start in starts:
            writer.write_rows(int(start), rows[start : start + block])
        if values is not None:
            writer.write_labels(values)
        writer.write_anchor_image(image)

    found = open_payload(path)
    assert (found.party, found.agreement_digest, found.anchor_tag) == (party, DIGEST, TAG)
    assert (found.n_rows, found.n_components, found.n_anchor_rows) == shape
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.vstack(list(found.row_blocks(2))), rows, strict=True)
    np.testing.assert_array_equal(found.read_image(), image, strict=True)
    if values is None:
        assert found.labels() is None
        assert found.label_block(0, 1) is None
    else:
        np.testing.assert_array_equal(found.labels(), values, strict=True)
        np.testing.assert_array_equal(found.label_block(0, 1), values[:1], strict=True)


def test_the_safetensors_library_reads_what_we_write(tmp_path):
    path = tmp_path / "north.safetensors"
    rows, image, labels = write(path)
    found = load_file(path)
    assert sorted(found) == ["anchor_image", "labels", "rows"]
    np.testing.assert_array_equal(found["rows"], rows)
    np.testing.assert_array_equal(found["anchor_image"], image)
    np.testing.assert_array_equal(found["labels"], labels)
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {
            "format": "cobasis/upload/1",
            "party": "north",
            "agreement_digest": DIGEST.hex(),
            "anchor_tag": TAG.hex(),
            "simulated": "false",
        }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_we_read_what_the_safetensors_library_writes(tmp_path, dtype):
    """The library orders tables by type and name; the order is no part of the format."""
    path = tmp_path / "north.safetensors"
    rows, image, _ = tables()
    stored = {"rows": rows.astype(dtype), "labels": np.arange(7), "anchor_image": image}
    told = {
        "format": "cobasis/upload/1",
        "party": "north",
        "agreement_digest": DIGEST.hex(),
        "anchor_tag": TAG.hex(),
        "simulated": "true",
    }
    save_file(stored, path, metadata=told)
    found = open_payload(path)
    assert found.simulated
    np.testing.assert_array_equal(found.row_block(2, 5), stored["rows"][2:5], strict=True)
    np.testing.assert_array_equal(found.labels(), np.arange(7))
    np.testing.assert_array_equal(found.read_image(), image)


def test_an_upload_goes_to_a_file_and_back(tmp_path):
    write(tmp_path / "first.safetensors", labels="int64")
    upload = read_upload(tmp_path / "first.safetensors")
    write_upload(upload, tmp_path / "second.safetensors")
    first, second = (tmp_path / f"{name}.safetensors" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    assert upload.labels.dtype == np.int64
    assert upload.rows.shape == (7, 3)


def test_rows_that_were_written_are_read_back_and_put_into_another_order(tmp_path):
    rows, image, _ = tables()
    path = tmp_path / "north.safetensors"
    with PayloadWriter(path, header=header()) as writer:
        writer.write_anchor_image(image)
        writer.write_rows(0, rows)
        writer.write_rows(2, writer.read_rows(2, 6)[::-1])
    expected = np.vstack([rows[:2], rows[2:6][::-1], rows[6:]])
    np.testing.assert_array_equal(open_payload(path).row_block(0, 7), expected)


def test_an_upload_with_rows_missing_becomes_no_file(tmp_path):
    rows, image, _ = tables()
    writer = PayloadWriter(tmp_path / "north.safetensors", header=header())
    writer.write_anchor_image(image)
    writer.write_rows(0, rows[:2])
    with pytest.raises(StepError, match="3 of its rows were never written"), writer:
        writer.write_rows(5, rows[5:])
    assert list(tmp_path.iterdir()) == []


def test_an_upload_without_its_labels_or_image_becomes_no_file(tmp_path):
    writer = PayloadWriter(tmp_path / "north.safetensors", header=header(labels="int64"))
    with pytest.raises(StepError, match="anchor_image and labels were never written"), writer:
        writer.write_rows(0, tables()[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (np.ones((8, 3)), ShapeError, "rows 0 to 7, not 0 to 8"),
        (np.ones((2, 4)), ShapeError, r"shape \(2, 4\), announced was \(2, 3\)"),
        (np.ones((2, 3), dtype=complex), DtypeError, "are complex128, announced was float32"),
        (np.full((2, 3), 1e300), DtypeError, "above float32's range"),
    ],
)
def test_rows_that_the_file_cannot_hold_are_refused(tmp_path, table, error, words):
    writer = PayloadWriter(tmp_path / "north.safetensors", header=header(dtype="float32"))
    with pytest.raises(error, match=words), writer:
        writer.write_rows(0, table)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"dtype": "int16"}, OptionError),
        ({"dtype": "int8"}, OptionError),
        ({"int8_scale": 0.5}, OptionError),
        ({"labels": "float32"}, OptionError),
        ({"n_rows": 0}, ShapeError),
        ({"party": "north\x1b[2J"}, ShapeError),
        ({"party": ""}, ShapeError),
    ],
)
def test_a_header_that_no_reader_would_take_is_refused_before_a_file_is_made(
    tmp_path, changes, error
):
    with pytest.raises(error):
        PayloadWriter(tmp_path / "north.safetensors", header=header(**changes))
    assert list(tmp_path.iterdir()) == []
