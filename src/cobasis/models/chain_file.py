"""A chain as the bytes of a model file and back; a file is read as if an enemy had written it.

A safetensors file whose metadata hold one strict JSON object. There is one way to write a chain:
a file is refused unless its header is, byte for byte, the one that this module writes for what
was read from it. So there is nothing in a file that is not looked at.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cobasis.errors import ModelFileError, OptionError
from cobasis.linalg.arrays import Array
from cobasis.models import MODELLESS, ChainFamily, Task
from cobasis.models.chain import LEAF, Affine, Chain, Function, Head, Layer, Trees, ends_of, refuse
from cobasis.models.regressions import RegressionFit
from cobasis.strict_json import json_object
from cobasis.tensor_header import PREFIX, make_header, parse_header, places_in

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

_EITHER: tuple[Head, ...] = ("probabilities", "prediction")
_FORMS: dict[ChainFamily, tuple[tuple[Head, ...], tuple[Function, ...]]] = {
    "linear": ((*_EITHER, "decision"), ()),
    "logistic": (("probabilities",), ()),
    "mlp": (_EITHER, ("Relu", "Tanh", "Sigmoid")),
    "rff": ((*_EITHER, "decision"), ("Relu", "Tanh", "Sigmoid", "Cos")),
    "boosted_trees": (_EITHER, ()),
    "kmeans": (("probabilities",), ()),
    "gaussian_mixture": (_EITHER, ("Square", "LogSumExp")),
    "regression": (_EITHER, ()),
}
"""The families of the format, how each may end, and its functions; none of them stores rows."""

_ESTIMATED = "fit."
_TYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I32": np.dtype("<i4")}
_TENSORS: Mapping[object, Mapping[str, str]] = {
    Affine: {"weights": "F64", "offset": "F64"},
    Trees: {"columns": "I32", "numbers": "F64"},
}
_MODEL = "cobasis"


def encode_chain(chain: Chain) -> bytes:
    """Write a chain; the same chain gives the same bytes."""
    try:
        check_chain(chain)
        tensors = _tensors(chain)
        data = b"".join([_header(chain, tensors), *(each.tobytes() for each in tensors.values())])
        _refuse_large(data)
    except ModelFileError as error:
        raise OptionError(
            f"the model is more than the model format takes: every party would refuse the file. "
            f"Train a smaller one. The party's message: {error}"
        ) from error
    return data


def decode_chain(data: bytes, *, n_components: int, task: Task, n_classes: int) -> Chain:
    """Read a model file for a round; whatever is not exactly such a file is refused."""
    _refuse_large(data)
    length = int.from_bytes(data[:PREFIX], "little")
    start = PREFIX + length
    if not 0 < length <= LARGEST_HEADER or start > len(data):
        refuse("it is truncated or damaged, or no file of the model format")
    try:
        described, metadata = parse_header(data[PREFIX:start])
        places = places_in(described, begin=start, size=len(data), dtypes=_TYPES)
        told = json_object(metadata.get(_MODEL, "").encode(errors="replace"))
    except ValueError as error:
        refuse(f"it is no file of the model format: {error}")
    _check_words(told, task)
    tables = {
        name: np.frombuffer(data, at.dtype, math.prod(at.shape), at.offset).reshape(at.shape)
        for name, at in places.items()
    }
    layers = [_layer(place, each, tables) for place, each in enumerate(told["layers"])]
    chain = Chain(family=told["family"], layers=tuple(layers), head=told["head"])
    if "fit" in told:
        chain = replace(chain, fit=_fit(told["fit"], chain, tables))
    check_chain(chain)
    # All that was not looked at (other keys, an order, spaces, offsets that overlap) is written
    # again, and has to be the same. So there is one file for a model, and no room for more in it.
    if data[:start] != _header(chain, _tensors(chain)):
        refuse("it is not written as the format says")
    outputs = n_classes or 1
    if (chain.widths[0], chain.widths[-1]) != (n_components, outputs):
        refuse(
            f"it takes {chain.widths[0]} columns and gives {chain.widths[-1]}, where this round "
            f"has {n_components} and {outputs}"
        )
    return chain


def _refuse_large(data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        refuse(f"it has {len(data)} bytes, and {LARGEST_FILE} are accepted")


def _check_words(told: Mapping[str, Any], task: Task) -> None:
    match told:
        case {"format": str(name)} if name != MODEL_FORMAT:
            refuse(f"it is of format {name[:40]!r}, not {MODEL_FORMAT!r}")
        case {"family": str(family), "task": str(given), "head": str(), "layers": list()}:
            pass
        case _:
            refuse("what it says of its model are not format, family, task, head and layers")
    if family not in _FORMS:
        refuse(f"its family {family[:40]!r} is none of {', '.join(_FORMS)}")
    expected = "classification" if task in {"classification", "clustering"} else "regression"
    if given != expected or task in MODELLESS:
        refuse(f"it is for {given[:40]!r}, the agreement is for {task!r}")


def _layer(place: int, told: object, tables: Mapping[str, Array]) -> Layer:
    match told:
        case {"kind": "trees", "n_in": int(n_in), "n_out": int(n_out), "n_trees": int(n_trees)}:
            own = _numbers(f"{place}.", _TENSORS[Trees], tables)
            # int() makes 1 of true, which is then written again as 1, and refused
            return Trees(n_in=int(n_in), n_out=int(n_out), n_trees=int(n_trees), **own)
        case "affine":
            return Affine(**_numbers(f"{place}.", _TENSORS[Affine], tables))
        case "Relu" | "Tanh" | "Sigmoid" | "Cos" | "Square" | "LogSumExp":
            return told
    return refuse(f"its layer {place} is none of the format")


def _fit(told: object, chain: Chain, tables: Mapping[str, Array]) -> RegressionFit:
    last, names = chain.layers[-1], [each for each in tables if each.startswith(_ESTIMATED)]
    own = _numbers(_ESTIMATED, {each.removeprefix(_ESTIMATED): "F64" for each in names}, tables)
    if not isinstance(told, dict) or not isinstance(last, Affine):
        refuse("its fit is none")
    weights = last.weights[:, -1]
    if told.get("model") != "cox":
        weights = np.append(last.offset[-1], weights)
    try:
        return RegressionFit.of(told, weights=weights, tables=own)
    except ValueError as error:
        refuse(str(error))


def _numbers(prefix: str, words: Mapping[str, str], tables: Mapping[str, Array]) -> dict[str, Any]:
    found = {name: tables.get(prefix + name) for name in words}
    for name, table in found.items():
        if table is None or table.dtype != _TYPES[words[name]] or table.ndim not in {1, 2}:
            refuse(f"its numbers {prefix + name!r} are missing, or none that a layer takes")
    return found


def _header(chain: Chain, tensors: Mapping[str, Array]) -> bytes:
    layers = [
        {"kind": "trees", "n_in": each.n_in, "n_out": each.n_out, "n_trees": each.n_trees}
        if isinstance(each, Trees)
        else "affine"
        if isinstance(each, Affine)
        else each
        for each in chain.layers
    ]
    words = {name: getattr(chain, name) for name in ("family", "task", "head")}
    told: dict[str, Any] = {"format": MODEL_FORMAT, **words, "layers": layers}
    if chain.fit is not None:
        told["fit"] = chain.fit.told()
    text = json.dumps(told, separators=(",", ":"))
    described = [(name, each.dtype, each.shape) for name, each in tensors.items()]
    return make_header(described, metadata={_MODEL: text})[0]


def _tensors(chain: Chain) -> dict[str, Array]:
    found = {
        f"{place}.{name}": np.ascontiguousarray(getattr(layer, name), dtype=_TYPES[word])
        for place, layer in enumerate(chain.layers)
        for name, word in _TENSORS.get(type(layer), {}).items()
    }
    if chain.fit is not None:
        for name, table in chain.fit.tables().items():
            found[f"{_ESTIMATED}{name}"] = np.ascontiguousarray(table, dtype=_TYPES["F64"])
    # Wide types first, so that no number of theirs stands across two words of memory.
    return dict(sorted(found.items(), key=lambda item: -item[1].itemsize))


def check_chain(chain: Chain) -> None:
    if chain.head not in _FORMS[chain.family][0]:
        refuse(f"its head {chain.head[:40]!r} is none that a model of family {chain.family!r} has")
    if not 0 < len(chain.layers) <= MOST_LAYERS:
        refuse(f"it has {len(chain.layers)} layers, and 1 to {MOST_LAYERS} are accepted")
    if isinstance(chain.layers[0], str) or not isinstance(chain.layers[-1], Affine):
        refuse("its first layer is a function, or its last one no affine map")
    if (chain.fit is None) != (chain.family != "regression"):
        refuse(f"a model of family {chain.family!r} has a fit, or lacks one")
    width = work = 0
    for layer in chain.layers:
        work += _work_of(layer, chain.family, width)
        n_in, n_out = ends_of(layer, width)
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
        weights, offset = layer.weights, layer.offset
        if weights.ndim != 2 or offset.shape != weights.shape[1:]:  # noqa: PLR2004
            refuse(f"weights of shape {weights.shape} have an offset of {offset.shape}")
        _check_finite(weights, offset)
        return weights.size
    if isinstance(layer, Trees):
        if family not in {"boosted_trees", "gaussian_mixture"}:
            refuse(f"a model of family {family!r} has no trees")
        return _STEP * layer.n_trees * _check_trees(layer)
    if layer not in _FORMS[family][1]:
        refuse(f"a model of family {family!r} has no layer {layer!r}")
    return _STEP * width


def _check_finite(*numbers: Array) -> None:
    if not all(np.isfinite(each).all() for each in numbers):
        refuse("its numbers are not all finite")


def _check_trees(trees: Trees) -> int:
    """Refuse places that are no trees; return how many nodes the longest way down has."""
    is_node = trees.is_node
    if trees.columns.ndim != 1 or trees.numbers.shape != trees.columns.shape:
        refuse("its trees have places without a column or a number")
    if trees.columns.min() < LEAF or trees.columns.max() >= trees.n_in:
        refuse("its trees compare a column that does not exist")
    if trees.n_out < 1 or trees.n_trees < 1 or not is_node[: trees.n_trees].all():
        refuse("its trees have no sum to add to, or a root that is no node")
    _check_finite(trees.numbers)
    start, end, depth = 0, trees.n_trees, -1
    while start < end:
        if depth >= LARGEST_DEPTH:
            refuse(f"its trees are deeper than {LARGEST_DEPTH}")
        start, end = end, end + 2 * int(np.count_nonzero(is_node[start:end]))
        depth += 1
    if end != len(is_node):
        refuse(f"its trees have {len(is_node)} places where their nodes lead to {end}")
    return depth
