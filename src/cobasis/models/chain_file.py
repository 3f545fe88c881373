"""A chain as the bytes of a model file and back; a file is read as if an enemy had written it.

A safetensors file whose metadata hold one strict JSON object. There is one way to write a chain:
a file is refused unless its header is, byte for byte, the one that this module writes for what
was read from it. So there is nothing in a file that is not looked at.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cobasis.errors import ModelFileError, OptionError
from cobasis.models import Task
from cobasis.models.chain import (
    Affine,
    Array,
    Chain,
    ChainFamily,
    Function,
    Head,
    Integers,
    Layer,
    Trees,
    ends_of,
    refuse,
)
from cobasis.models.families import FAMILIES
from cobasis.strict_json import json_object

MODEL_FORMAT = "cobasis/model/1"

LARGEST_FILE = 256 * 2**20
LARGEST_HEADER = 64 * 2**10
LARGEST_WIDTH = 65_536
LARGEST_DEPTH = 64
MOST_LAYERS = 64

MOST_WORK = 2**25
"""Multiplications for one row, a file of weights as large as the largest: 200 rows take less than
a second. What families write needs some thousandths of it; random features of 784 columns, 3 %."""

_STEP = 100
"""How many multiplications a step down a tree, or a cosine, takes the time of."""

_FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "mlp": ("Relu", "Tanh", "Sigmoid"),
    "rff": ("Relu", "Tanh", "Sigmoid", "Cos"),
}
_HEADS: dict[ChainFamily, tuple[Head, ...]] = {
    "linear": ("decision", "prediction"),
    "logistic": ("probabilities",),
    "mlp": ("probabilities", "prediction"),
    "rff": ("probabilities", "decision", "prediction"),
    "boosted_trees": ("probabilities", "prediction"),
}
"""The families of the format, and how each may end; nothing that stores rows is among them."""

_TYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_AFFINE = {"weights": "F64", "offset": "F64"}
_TREES = {
    "roots": "I32",
    "columns": "I32",
    "splits": "F64",
    "true_ids": "I32",
    "false_ids": "I32",
    "true_leaves": "U8",
    "false_leaves": "U8",
    "targets": "I32",
    "leaves": "F64",
}
_PREFIX, _ALIGNMENT, _METADATA, _MODEL = 8, 8, "__metadata__", "cobasis"


class _Tensor(NamedTuple):
    """A tensor's name, its type's word, and its shape."""

    name: str
    word: str
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * _TYPES[self.word].itemsize


def encode_chain(chain: Chain) -> bytes:
    """Write a chain; the same chain gives the same bytes."""
    try:
        check_chain(chain)
        parts = [_header(chain)]
        for tensor in _tensors(chain.layers):
            place, _, field = tensor.name.partition(".")
            values = getattr(chain.layers[int(place)], field)
            parts.append(np.ascontiguousarray(values, dtype=_TYPES[tensor.word]).tobytes())
        size = sum(map(len, parts))
        if size > LARGEST_FILE:
            refuse(f"it has {size} bytes, and {LARGEST_FILE} are accepted")
    except ModelFileError as error:
        raise OptionError(
            f"the model is more than the model format takes: every party would refuse the file. "
            f"Train a smaller one. The party's message: {error}"
        ) from error
    return b"".join(parts)


def decode_chain(data: bytes, *, n_components: int, task: Task, n_classes: int) -> Chain:
    """Read a model file for a round; whatever is not exactly such a file is refused."""
    if len(data) > LARGEST_FILE:
        refuse(f"it has {len(data)} bytes, and {LARGEST_FILE} are accepted")
    length = int.from_bytes(data[:_PREFIX], "little")
    start = _PREFIX + length
    if not 0 < length <= LARGEST_HEADER or start > len(data):
        refuse("it is truncated or damaged, or no file of the model format")
    header = _object(data[_PREFIX:start], "its header")
    told = _told(header, task)
    layers = _read_layers(data, told["layers"], header, start=start)
    chain = Chain(family=told["family"], layers=layers, head=told["head"])
    check_chain(chain)
    if data[:start] != _header(chain):
        refuse("its header is not written as the format says")
    outputs = n_classes if task == "classification" else 1
    if (chain.widths[0], chain.widths[-1]) != (n_components, outputs):
        refuse(
            f"it takes {chain.widths[0]} columns and gives {chain.widths[-1]}, where this round "
            f"has {n_components} and {outputs}"
        )
    return chain


def _object(text: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object in which no name stands twice."""
    try:
        return json_object(text)
    except ValueError as error:
        refuse(f"{what} is {error}")


def _told(header: Mapping[str, Any], task: Task) -> dict[str, Any]:
    """Return what the file says of its model; its layers are not looked at yet."""
    match header.get(_METADATA):
        case {"cobasis": str(text), **others} if not others:
            told = _object(text.encode(errors="replace"), "what it says of its model")
        case _:
            refuse("its metadata are not those of a model that cobasis wrote")
    match told:
        case {"format": str(name)} if name != MODEL_FORMAT:
            refuse(f"it is of format {name[:40]!r}, not {MODEL_FORMAT!r}")
        case {
            "format": str(),
            "family": str(family),
            "task": str(given),
            "head": str(),
            "layers": list(layers),
            **more,
        } if not more:
            pass
        case _:
            refuse("what it says of its model are not format, family, task, head and layers")
    if any(family == name and row.carries_rows for name, row in FAMILIES.items()):
        refuse(f"its family {family!r} stores training rows, which every party could read")
    if family not in _HEADS:
        refuse(f"its family {family[:40]!r} is none of {', '.join(_HEADS)}")
    if given != task or task == "representation":
        refuse(f"it is for {given[:40]!r}, the agreement is for {task!r}")
    if len(layers) > MOST_LAYERS:
        refuse(f"it has {len(layers)} layers, and {MOST_LAYERS} are accepted")
    return told


def _read_layers(
    data: bytes, told: Sequence[object], header: Mapping[str, Any], *, start: int
) -> tuple[Layer, ...]:
    """Cut the numbers out of a file, in the order in which they have to stand."""
    described = []
    for place, layer in enumerate(told):
        fields = _TREES if isinstance(layer, dict) else _AFFINE if layer == "affine" else {}
        for field, word in fields.items():
            described.append(_described(f"{place}.{field}", word, header))
    if len(header) != 1 + len(described):
        refuse("it has numbers that no layer uses")
    numbers: dict[str, Array] = {}
    for tensor in _in_order(described):
        if start + tensor.n_bytes > len(data):
            refuse("it is truncated or damaged")
        found = np.frombuffer(
            data, dtype=_TYPES[tensor.word], count=math.prod(tensor.shape), offset=start
        ).reshape(tensor.shape)
        numbers[tensor.name] = found if tensor.word == "F64" else found.astype(np.int64)
        start += tensor.n_bytes
    if start != len(data):
        refuse("it goes on behind its last number")
    return tuple(_layer(place, layer, numbers) for place, layer in enumerate(told))


def _described(name: str, word: str, header: Mapping[str, Any]) -> _Tensor:
    """Return a tensor's description, if the header has one of this type."""
    match header.get(name):
        case {"dtype": str(given), "shape": list(shape)}:
            if given != word:
                refuse(f"its numbers {name!r} are not of type {word}")
            if 0 < len(shape) <= 2 and all(type(size) is int and size > 0 for size in shape):  # noqa: PLR2004
                return _Tensor(name, word, tuple(shape))
            refuse(f"its numbers {name!r} have a shape that no layer takes")
    return refuse(f"its numbers {name!r} are missing or not described")


def _layer(place: int, told: object, numbers: Mapping[str, Array]) -> Layer:
    """Return a layer of a kind that the format has; the chain's check looks at what is in it."""

    def own(fields: Mapping[str, str]) -> dict[str, Array]:
        return {field: numbers[f"{place}.{field}"] for field in fields}

    match told:
        case {"kind": "trees", "n_in": int(n_in), "n_out": int(n_out), **others} if not others:
            return Trees(n_in=int(n_in), n_out=int(n_out), **own(_TREES))
        case "affine":
            return Affine(**own(_AFFINE))
        case "Relu" | "Tanh" | "Sigmoid" | "Cos":
            return told
    return refuse(f"its layer {place} is none of the format")


def _header(chain: Chain) -> bytes:
    """Return length and header of a chain's file: the one way to write them."""
    layers = [
        {"kind": "trees", "n_in": layer.n_in, "n_out": layer.n_out}
        if isinstance(layer, Trees)
        else "affine"
        if isinstance(layer, Affine)
        else layer
        for layer in chain.layers
    ]
    told = {
        "format": MODEL_FORMAT,
        "family": chain.family,
        "task": chain.task,
        "head": chain.head,
        "layers": layers,
    }
    header: dict[str, Any] = {_METADATA: {_MODEL: json.dumps(told, separators=(",", ":"))}}
    end = 0
    for tensor in _tensors(chain.layers):
        begin, end = end, end + tensor.n_bytes
        header[tensor.name] = {
            "dtype": tensor.word,
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(_PREFIX, "little") + text


def _tensors(layers: Sequence[Layer]) -> list[_Tensor]:
    """Describe the numbers of all layers, in the order in which a file has them."""
    found = []
    for place, layer in enumerate(layers):
        fields = {} if isinstance(layer, str) else _TREES if isinstance(layer, Trees) else _AFFINE
        for field, word in fields.items():
            found.append(_Tensor(f"{place}.{field}", word, np.shape(getattr(layer, field))))
    return _in_order(found)


def _in_order(tensors: Sequence[_Tensor]) -> list[_Tensor]:
    """Put wide types first, so that no number of theirs stands across two words of memory."""
    return sorted(tensors, key=lambda tensor: -_TYPES[tensor.word].itemsize)


def check_chain(chain: Chain) -> None:
    """Refuse layers that do not fit each other, numbers that are none, and too much work."""
    if chain.head not in _HEADS[chain.family]:
        refuse(f"its head {chain.head[:40]!r} is none that a model of family {chain.family!r} has")
    if not 0 < len(chain.layers) <= MOST_LAYERS:
        refuse(f"it has {len(chain.layers)} layers, and 1 to {MOST_LAYERS} are accepted")
    if isinstance(chain.layers[0], str) or not isinstance(chain.layers[-1], Affine):
        refuse("its first layer is a function, or its last one no affine map")
    width = work = 0
    for layer in chain.layers:
        work += _work_of(layer, chain.family, width)
        n_in, n_out = ends_of(layer) or (width, width)
        if width not in {0, n_in}:
            refuse(f"a layer takes {n_in} columns where the one before it gives {width}")
        if max(n_in, n_out) > LARGEST_WIDTH:
            refuse(f"a layer has {max(n_in, n_out)} columns, and {LARGEST_WIDTH} are accepted")
        width = n_out
    if work > MOST_WORK:
        refuse(f"a row takes the work of {work} multiplications, and {MOST_WORK} are accepted")
    if chain.head == "prediction" and width != 1:
        refuse(f"its prediction has {width} columns, not one number")


def _work_of(layer: Layer, family: ChainFamily, width: int) -> int:
    """Check one layer; return how many multiplications take as long for a row."""
    if isinstance(layer, Affine):
        _check_affine(layer)
        return layer.weights.size
    if isinstance(layer, Trees):
        if family != "boosted_trees":
            refuse(f"a model of family {family!r} has no trees")
        return _STEP * len(layer.roots) * check_trees(layer)
    if layer not in _FUNCTIONS.get(family, ()):
        refuse(f"a model of family {family!r} has no layer {layer!r}")
    return _STEP * width


def _check_affine(layer: Affine) -> None:
    """Refuse weights that are not finite, or no matrix with an offset for each of its columns."""
    if layer.weights.ndim != 2 or layer.offset.shape != layer.weights.shape[1:]:  # noqa: PLR2004
        refuse(f"weights of shape {layer.weights.shape} have an offset of {layer.offset.shape}")
    _check_finite(layer.weights, layer.offset)


def _check_finite(*numbers: Array) -> None:
    if not all(np.isfinite(each).all() for each in numbers):
        refuse("its numbers are not all finite")


def check_trees(trees: Trees) -> int:
    """Refuse anything but trees, with one parent before each node and leaf; return their depth.

    A cycle would never end, and an index below zero would count from the end without a word.
    """
    n_nodes, n_leaves = len(trees.columns), len(trees.leaves)
    ids = np.stack([_same(each, n_nodes) for each in (trees.true_ids, trees.false_ids)], axis=1)
    flags = [_same(each, n_nodes) for each in (trees.true_leaves, trees.false_leaves)]
    is_leaf = np.stack(flags, axis=1)
    _check_finite(_same(trees.splits, n_nodes), _same(trees.leaves, n_leaves))
    _check_range(_same(trees.columns, n_nodes), trees.n_in, what="compare a column")
    _check_range(_same(trees.targets, n_leaves), trees.n_out, what="add to a sum")
    _check_range(is_leaf, 2, what="have a flag")
    inner, ends = ids[is_leaf == 0], ids[is_leaf == 1]
    _check_range(inner, n_nodes, what="have a node")
    _check_range(ends, n_leaves, what="have a leaf")
    _check_range(_same(trees.roots, len(trees.roots)), n_nodes, what="have a root")
    if (ids <= np.arange(n_nodes)[:, None])[is_leaf == 0].any():
        refuse("its trees have a node that comes before its parent: following it might never end")
    lone = (is_leaf == 1).all(axis=1) & (ids[:, 0] == ids[:, 1])  # a tree that is one leaf
    counted = np.bincount(ends, minlength=n_leaves)
    np.subtract.at(counted, ids[lone, 0], 1)
    nodes = np.bincount(np.concatenate([trees.roots, inner]), minlength=n_nodes)
    if (nodes != 1).any() or (counted != 1).any():
        refuse("its trees have a node or leaf with two parents, or with none")
    return _depth(trees.roots, ids, is_leaf)


def _depth(level: Integers, ids: Integers, is_leaf: Integers) -> int:
    """Return how many nodes the longest way down has."""
    for depth in range(LARGEST_DEPTH + 1):
        if not len(level):
            return depth
        level = ids[level][is_leaf[level] == 0]
    return refuse(f"its trees are deeper than {LARGEST_DEPTH}")


def _same(values: Array, size: int) -> Array:
    """Return a list of so many numbers, and at least one."""
    if values.shape != (size,) or not size:
        refuse("its trees name some nodes or leaves without all that these have")
    return values


def _check_range(ids: Array, size: int, *, what: str) -> None:
    """Refuse ids below zero or from `size` on."""
    if ids.size and (ids.min() < 0 or ids.max() >= size):
        refuse(f"its trees {what} that does not exist")
