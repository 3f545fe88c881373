"""What the checker lets through runs and gives numbers; what is no model is refused at once."""

import time
import tracemalloc

import numpy as np
import onnx
import pytest

from cobasis.errors import ModelFileError
from cobasis.models import graph_wire
from cobasis.models.checker import OPERATORS, check_graph
from cobasis.models.checker_steps import ROW_CARRYING_OPERATORS
from cobasis.models.graph_format import LARGEST_FILE
from cobasis.models.graph_model import GraphModel
from models.changed import refused
from models.graphs import KINDS, PRECISIONS, WIDTH, agreed, graph_of, rows_of


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("name", "task", "n_classes"), KINDS)
def test_every_file_that_we_write_passes(name, task, n_classes, precision):
    data = graph_of(name, task, n_classes, precision)
    found = check_graph(data, **agreed(task, n_classes))
    assert found.data is data
    assert (found.family, found.task) == ("linear" if name == "ridge" else name, task)
    assert (found.precision, found.n_components, found.n_classes) == (precision, WIDTH, n_classes)
    likely = name not in {"ridge", "rff"} and task == "classification"
    assert found.likely is likely
    widest = {"mlp": 256, "rff": 1000}.get(name, max(WIDTH, n_classes))
    assert found.widest == widest


def test_no_family_has_an_operator_that_works_on_stored_rows():
    assert not frozenset().union(*OPERATORS.values()) & ROW_CARRYING_OPERATORS


@pytest.mark.parametrize(
    ("round_", "told"),
    [
        ({"n_components": WIDTH + 1}, "inputs are"),
        ({"classes": (0, 1, 2)}, "outputs are"),
        ({"classes": (0,)}, "outputs are"),
        ({"task": "regression", "classes": ()}, "for 'classification', the agreement is for"),
        ({"task": "representation", "classes": ()}, "the agreement is for 'representation'"),
    ],
)
def test_a_good_file_of_another_round_is_refused(round_, told):
    refused(graph_of("mlp"), told, **round_)


def test_a_file_above_the_limit_is_refused_before_it_is_looked_at():
    refused(bytes(LARGEST_FILE + 1), f"has {LARGEST_FILE + 1} bytes, and {LARGEST_FILE}")
    data = graph_of("ridge")
    refused(data, "and 100 are accepted", largest=100)
    assert check_graph(data, **agreed(), largest=len(data)).data is data


def test_a_file_that_breaks_off_is_refused_wherever_it_does():
    for family in ("ridge", "boosted_trees"):
        data = graph_of(family)
        for end in [*range(0, len(data), max(1, len(data) // 400)), len(data) - 1]:
            with pytest.raises(ModelFileError):
                check_graph(data[:end], **agreed())


@pytest.mark.parametrize("tail", [b"\0", b"\x08", b"\x08\x09", b"more", b"\x3a\0"])
def test_a_file_that_goes_on_is_refused(tail):
    with pytest.raises(ModelFileError):
        check_graph(graph_of("ridge") + tail, **agreed())


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"\x80\x04\x95", b"{}", bytes(1000)])
def test_other_files_are_refused(data):
    with pytest.raises(ModelFileError):
        check_graph(data, **agreed())


def _message_kinds():
    """Every kind of message that a model file is made of."""
    found, left = {}, [onnx.ModelProto.DESCRIPTOR]
    while left:
        kind = left.pop()
        if kind.name in found or kind.name not in graph_wire.FIELDS:
            continue
        found[kind.name] = kind
        left += [each.message_type for each in kind.fields if each.message_type]
    return found


def test_the_list_of_fields_names_fields_of_onnx_and_leaves_out_more_than_half():
    kinds = _message_kinds()
    assert set(kinds) == set(graph_wire.FIELDS)
    listed = {name: graph_wire.FIELDS[name].replace("*", "").split() for name in kinds}
    assert all(each in kinds[name].fields_by_name for name in kinds for each in listed[name])
    n_fields = sum(len(kind.fields) for kind in kinds.values())
    assert sum(map(len, listed.values())) < n_fields / 2


@pytest.mark.parametrize("name", graph_wire.FIELDS)
def test_each_field_that_is_not_listed_is_refused_at_the_wire(name):
    kind = _message_kinds()[name]
    listed = graph_wire.FIELDS[name].replace("*", "").split()
    strange = [each for each in kind.fields if each.name not in listed]
    for field in strange:
        bad = _varint(field.number << 3 | 2) + b"\0"
        with pytest.raises(ModelFileError, match="it has "):
            graph_wire._walk(bad, (0, len(bad)), kind, graph_wire._Count())
    assert len(strange) == len(kind.fields) - len(listed)


def _varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (b"\x0a\0" * 8_000_000, "more than 2000 parts"),
        (_varint(8 << 3) + b"\1", "wire"),
    ],
    ids=["eight million empty steps", "a number for a list of parts"],
)
def test_a_graph_of_many_empty_parts_costs_neither_time_nor_memory(part, told):
    """Each empty step is two bytes in the file and a hundred in memory."""
    data = b"\x3a" + _varint(len(part)) + part
    tracemalloc.start()
    try:
        refused(data, told if told != "wire" else "no part of ONNX|damaged|twice")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_five_million_numbers_are_counted_in_time():
    model = onnx.ModelProto.FromString(graph_of("boosted_trees"))
    trees = next(node for node in model.graph.node if node.op_type == "TreeEnsemble")
    trees.attribute[0].ints.extend([1] * 5_000_001)
    refused(model.SerializeToString(), "5000000 single numbers")


def mutated(data, rng):
    """Bits flipped, bytes replaced, removed or put in, often near either end."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        near = min(len(changed), 600) if rng.random() < 0.5 else len(changed)
        at = int(rng.integers(near))
        at = len(changed) - 1 - at if rng.random() < 0.3 else at
        few = int(rng.integers(1, 9))
        kind = rng.integers(4)
        if kind == 0:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[at] = int(rng.integers(256))
        elif kind == 2:
            del changed[at : at + few]
        else:
            changed[at:at] = rng.bytes(few)
    return bytes(changed)


@pytest.mark.parametrize("name", ["ridge", "logistic", "mlp", "rff", "boosted_trees"])
def test_of_2000_mutated_files_each_is_refused_or_gives_finite_numbers(name):
    """400 of each family. The library's own errors, endless loops and NaN are what may not be."""
    rng, rows = np.random.default_rng(7), rows_of(20)
    counts = {"refused": 0, "ran": 0}
    for _ in range(400):
        data = mutated(graph_of(name), rng)
        begin = time.perf_counter()
        try:
            found = GraphModel(data=data, **agreed()).predict(rows)
            assert np.isfinite(found).all()
            assert set(found) <= {0, 1}
            counts["ran"] += 1
        except ModelFileError:
            counts["refused"] += 1
        assert time.perf_counter() - begin < 2
    assert counts["refused"] > 200
    assert counts["ran"] > 5
