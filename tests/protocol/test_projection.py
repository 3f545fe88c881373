"""A projection: what is settled before a row is projected, and what stays private."""

import copy
import pickle

import numpy as np
import pytest

from cobasis import Party
from cobasis.errors import DiskError, SecretError, StepError
from cobasis.linalg.arrays import WholeTable
from cobasis.protocol import projection
from cobasis.protocol.projection import InMemory, RowsInMemory
from protocol.consortium import COMPONENTS, consortium, tables


@pytest.fixture
def north():
    return consortium().parties["north"]


@pytest.fixture
def rows():
    return tables()["north"][0]


@pytest.fixture
def labels():
    return tables()["north"][1]


def test_rows_in_parts_written_to_a_sink_give_the_upload_of_prepare(north, rows, labels):
    sink, table = InMemory(), RowsInMemory(rows, labels)
    north.write(table, to=sink)
    upload, expected = sink.upload, north.prepare(rows, labels)
    np.testing.assert_array_equal(upload.rows, expected.rows)
    np.testing.assert_array_equal(upload.labels, expected.labels)
    np.testing.assert_array_equal(upload.anchor_image, expected.anchor_image)
    assert upload.rows.shape == (30, COMPONENTS)


@pytest.mark.parametrize("bin_bytes", [1, 8 * COMPONENTS * 7, 2**24])
def test_rows_stand_in_the_order_that_only_the_party_knows(
    north, rows, labels, bin_bytes, monkeypatch
):
    monkeypatch.setattr(projection, "BIN_BYTES", bin_bytes)
    made = north.project(RowsInMemory(rows, labels))
    upload = north.prepare(rows, labels)
    assert sorted(made.order) == list(range(30))
    assert (np.diff(made.order) < 0).sum() > 5
    np.testing.assert_array_equal(upload.rows, made.basis.project(rows)[made.order])
    np.testing.assert_array_equal(upload.labels, labels[made.order])


def test_a_basis_is_the_partys_only_when_its_upload_is_whole(north, rows, labels):
    class Full(InMemory):
        def write_labels(self, _):
            raise DiskError("the disk is full")

    with pytest.raises(DiskError):
        north.write(RowsInMemory(rows, labels), to=Full())
    with pytest.raises(StepError, match="has not prepared its upload"):
        _ = north.basis
    north.write(RowsInMemory(rows, labels), to=InMemory())
    assert north.basis.shape == (6, COMPONENTS)


def test_a_projection_is_neither_shown_nor_copied(north, rows, labels):
    made = north.project(RowsInMemory(rows, labels))
    assert repr(made) == "<Projection, hidden>"
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretError, match="does not travel"):
            carry(made)


def test_directions_are_kept_in_memory_and_looked_up_there(north, rows, labels):
    memory = {}
    plan = north.project(RowsInMemory(rows, labels), memory=memory)
    assert memory["directions"].shape == (6, COMPONENTS)
    other = north.project(
        RowsInMemory(rows * 0 + 7, labels), memory=memory
    )  # rows are not looked at
    np.testing.assert_array_equal(other.anchor_image, plan.anchor_image)


@pytest.mark.parametrize("basis", ["haar"])
def test_a_shared_span_leaves_nothing_in_memory(basis, rows, labels):
    memory = {}
    consortium(basis=basis).parties["north"].project(RowsInMemory(rows, labels), memory=memory)
    assert memory == {}


def test_blocks_are_proposed_like_rows(rows):
    group = consortium(basis="consensus")
    agreement, key = group.agreement, group.keys["north"]
    pair = [
        Party("north", agreement=agreement, secret=group.secret, key=key).propose(each)
        for each in (rows, WholeTable(rows))
    ]
    np.testing.assert_array_equal(pair[0].image, pair[1].image)
