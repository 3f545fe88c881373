"""The plan of an upload: what is settled before a row is projected, and what stays private."""

import copy
import pickle

import numpy as np
import pytest

from cobasis import Party
from cobasis.errors import SecretError, StepError
from cobasis.linalg.blocks import WholeTable
from protocol.consortium import COMPONENTS, consortium, tables


@pytest.fixture
def north():
    return consortium().parties["north"]


@pytest.fixture
def rows():
    return tables()["north"][0]


def test_the_plan_of_a_table_in_memory_gives_the_upload_of_prepare(north, rows):
    labels = tables()["north"][1]
    plan = north.plan(WholeTable(rows))
    upload = plan.upload(rows, labels=labels)
    expected = north.prepare(rows, labels)
    np.testing.assert_array_equal(upload.rows, expected.rows)
    np.testing.assert_array_equal(upload.labels, expected.labels)
    np.testing.assert_array_equal(upload.anchor_image, expected.anchor_image)
    assert plan.shape == (30, COMPONENTS)


def test_a_plan_is_the_partys_only_when_its_upload_is_whole(north, rows):
    plan = north.plan(WholeTable(rows))
    with pytest.raises(StepError, match="has not prepared its upload"):
        _ = north.basis
    north.keep(plan)
    assert north.basis is plan.basis


def test_a_plan_is_neither_shown_nor_copied(north, rows):
    plan = north.plan(WholeTable(rows))
    assert repr(plan) == "<Plan, hidden>"
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretError, match="does not travel"):
            carry(plan)


def test_directions_are_kept_in_memory_and_looked_up_there(north, rows):
    memory = {}
    plan = north.plan(WholeTable(rows), memory=memory)
    assert memory["directions"].shape == (6, COMPONENTS)
    other = north.plan(WholeTable(rows[::-1] * 0 + 7), memory=memory)  # rows are not looked at
    np.testing.assert_array_equal(other.anchor_image, plan.anchor_image)


@pytest.mark.parametrize("basis", ["haar"])
def test_a_shared_span_leaves_nothing_in_memory(basis, rows):
    memory = {}
    consortium(basis=basis).parties["north"].plan(WholeTable(rows), memory=memory)
    assert memory == {}


def test_blocks_are_proposed_like_rows(rows):
    group = consortium(basis="consensus")
    agreement, key = group.agreement, group.keys["north"]
    pair = [
        Party("north", agreement=agreement, secret=group.secret, key=key).propose(each)
        for each in (rows, WholeTable(rows))
    ]
    np.testing.assert_array_equal(pair[0].image, pair[1].image)
