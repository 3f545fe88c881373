"""Whole tables in one file: what is read is what was written, or an error."""

import numpy as np
from safetensors import safe_open

from cobasis.disk.tensors import read_tables, write_tables

TABLES = {
    "wide": np.arange(12.0).reshape(3, 4)[:, ::2].T,
    "narrow": np.arange(6, dtype=np.float32).reshape(3, 2),
    "classes": np.array([2, 0, 1]),
}
METADATA = {"run": "abc", "state": '{"steps": 3}'}


def test_tables_come_back_in_their_order_and_dtypes_with_what_was_said_of_them(tmp_path):
    write_tables(tmp_path / "a", TABLES, metadata=METADATA)
    found, header = read_tables(tmp_path / "a")
    assert list(found) == list(TABLES)
    for name, table in TABLES.items():
        np.testing.assert_array_equal(found[name], table, strict=True)
    assert header.metadata == METADATA
    assert [each.name for each in tmp_path.iterdir()] == ["a"]

    with safe_open(tmp_path / "a", framework="numpy") as file:
        assert file.metadata() == METADATA
        for name, table in TABLES.items():
            np.testing.assert_array_equal(file.get_tensor(name), table, strict=True)
