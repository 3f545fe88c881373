"""Model files taken apart and put together by hand, with one thing changed, and what is said."""

import json
import time

import numpy as np
import pytest
import safetensors.numpy

from cobasis.errors import ModelFileError, RemoteError
from cobasis.models.chain_file import decode_chain
from models.chains import WIDTH, agreed, file_of

DTYPES = {"F64": "<f8", "I32": "<i4", "U8": "u1"}
WORDS = {np.dtype(kind): word for word, kind in DTYPES.items()} | {
    np.dtype("<f4"): "F32",
    np.dtype("<i8"): "I64",
    np.dtype("i1"): "I8",
}


class Parts:
    """What a file says of its model, its numbers by name, and its header as it would be."""

    def __init__(self, data):
        with_header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        self.told = json.loads(with_header.pop("__metadata__")["cobasis"])
        read = safetensors.numpy.load(data)
        self.numbers = {name: read[name].copy() for name in with_header}
        self.in_header, self.in_text, self.in_told = (lambda same: same,) * 3

    def together(self):
        """The file; an independent writing of the format, then the changes to the header."""
        told = self.in_told(json.dumps(self.told, separators=(",", ":")))
        header, end = {"__metadata__": {"cobasis": told}}, 0
        for name, values in self.numbers.items():
            begin, end = end, end + values.nbytes
            header[name] = {
                "dtype": WORDS[values.dtype],
                "shape": list(values.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(self.in_header(header), separators=(",", ":")).encode()
        text = self.in_text(text + b" " * (-len(text) % 8))
        body = b"".join(values.tobytes() for values in self.numbers.values())
        return len(text).to_bytes(8, "little") + text + body


MALFORMED = {}
"""By name: a change to the parts of a file of a family, and the words of its refusal."""


def malformed(name):
    """The bytes of a malformed file."""
    change, _, family = MALFORMED[name]
    good = file_of(family)
    parts = Parts(good)
    change(parts)
    data = parts.together()
    assert data != good
    return data


def refused(data, words, **round_):
    """Assert the refusal, its code, its words and its time."""
    begin = time.perf_counter()
    with pytest.raises(ModelFileError, match=words) as caught:
        decode_chain(data, **{**agreed(), **round_})
    assert time.perf_counter() - begin < 2
    assert str(caught.value).endswith("[CB402]")
    assert isinstance(caught.value, RemoteError)
    assert caught.value.exit_code == 3


def _add(family, entries):
    for name, (words, change) in entries.items():
        assert name not in MALFORMED
        MALFORMED[name] = (change, words, family)


def _told(**changes):
    return lambda parts: parts.told.update(changes)


def _layer(told):
    """Another second layer."""
    return lambda parts: parts.told["layers"].__setitem__(1, told)


def _layers(change):
    return lambda parts: change(parts.told["layers"])


def _entry(name, **changes):
    """One tensor's description in the header."""

    def change(parts):
        parts.in_header = lambda header: {**header, name: {**header[name], **changes}}

    return change


def _header(change):
    return lambda parts: setattr(parts, "in_header", change)


def _text(change):
    return lambda parts: setattr(parts, "in_text", change)


def _told_text(old, new):
    def change(parts):
        parts.in_told = lambda text: text.replace(old, new, 1)

    return change


def _put(**numbers):
    """Other tensors; ``_2_weights`` is called ``2.weights``."""
    made = {name[1:].replace("_", ".", 1): values for name, values in numbers.items()}
    return lambda parts: parts.numbers.update(made)


def _number(name, at, value):
    """One number of a tensor."""

    def change(parts):
        parts.numbers[name].flat[at] = value

    return change


def _numbers(name, make):
    """All numbers of a tensor."""
    return lambda parts: parts.numbers.update({name: make(parts.numbers[name])})


RNG = np.random.default_rng(0)
NOT_AS_WRITTEN = "header is not written as the format says"
NO_MODEL = "are not format, family, task, head and layers"
NO_SHAPE = "have a shape that no layer takes"

_add(
    "mlp",
    {
        "a later format": ("of format 'cobasis/model/2'", _told(format="cobasis/model/2")),
        "a format that is a number": (NO_MODEL, _told(format=1)),
        "no format": (NO_MODEL, lambda parts: parts.told.pop("format")),
        "a key that is not known": (NO_MODEL, _told(rows=[])),
        "a key twice": ("every name once", _told_text('"head"', '"family":"mlp","head"')),
        "a list for a model": ("is no JSON object", _told_text("{", "[{")),
        "a family that stores rows": ("'svm' stores training rows", _told(family="svm")),
        "a family that nobody knows": ("none of linear, logistic", _told(family="gp" * 60)),
        "another task": ("is for 'regression'", _told(task="regression")),
        "a head of another family": ("'decision' is none that", _told(head="decision")),
        "a head that nobody knows": ("'top' is none that", _told(head="top")),
        "a head that is a list": (NO_MODEL, _told(head=["probabilities"])),
        "layers that are a word": (NO_MODEL, _told(layers="affine")),
        "a layer that is a number": ("layer 1 is none of the format", _layer(7)),
        "a layer of 500 brackets": ("layer 1 is none", _layer(json.loads("[" * 500 + "]" * 500))),
        "a layer of another kind": ("layer 1 is none of the format", _layer("Gather")),
        "a layer of another family": ("has no layer 'Cos'", _layer("Cos")),
        "trees in a network": (
            "missing or not described",
            _layer({"kind": "trees", "n_in": 256, "n_out": 256}),
        ),
        "a function at the end": (
            "last one no affine map",
            _layers(lambda each: each.append("Relu")),
        ),
        "a function in front": (
            "missing or not described",
            _layers(lambda each: each.insert(0, "Relu")),
        ),
        "no layers": ("no layer uses", _told(layers=[])),
        "65 layers": ("65 layers, and 64", _layers(lambda each: each.extend(["Relu"] * 62))),
        "spaces in what it says": (NOT_AS_WRITTEN, _told_text(":", ": ")),
        "no metadata": ("metadata are not those", _header(lambda h: h | {"__metadata__": {}})),
        "more metadata": (
            "metadata are not those",
            _header(lambda h: h | {"__metadata__": {**h["__metadata__"], "more": ""}}),
        ),
        "half a character": ("none of linear", _told(family="\ud800")),
        "a header that is a list": ("its header is no JSON object", _header(lambda h: [h])),
        "a header in another order": (NOT_AS_WRITTEN, _header(lambda h: dict(reversed(h.items())))),
        "a header with more spaces": (NOT_AS_WRITTEN, _text(lambda text: text + b" " * 8)),
        "a header of UTF-16": ("every name once", _text(lambda t: t.decode().encode("utf-16"))),
        "a header with a tensor twice": (
            "every name once",
            _text(lambda text: text.replace(b'"0.offset"', b'"0.weights"')),
        ),
        "a header of brackets": ("every name once", _text(lambda _: b"[" * 60_000)),
        "a header beyond measure": (
            "truncated or damaged",
            _text(lambda text: text + b" " * 2**16),
        ),
        "a number of 5,000 digits": (
            "every name once",
            _text(lambda text: text.replace(b"256", b"9" * 5000, 1)),
        ),
        "offsets that overlap": (NOT_AS_WRITTEN, _entry("0.offset", data_offsets=[0, 2048])),
        "offsets below zero": (NOT_AS_WRITTEN, _entry("0.offset", data_offsets=[-2048, 0])),
        "offsets beyond the file": (
            NOT_AS_WRITTEN,
            _entry("2.offset", data_offsets=[2**60, 2**61]),
        ),
        "no offsets": (
            NOT_AS_WRITTEN,
            _header(lambda h: h | {"0.offset": {"dtype": "F64", "shape": [256]}}),
        ),
        "a description with more in it": (NOT_AS_WRITTEN, _entry("0.offset", scale=2)),
        "a description that is a list": (
            "not described",
            _header(lambda header: header | {"0.offset": []}),
        ),
        "a shape of negative size": (NO_SHAPE, _entry("0.weights", shape=[-WIDTH, 256])),
        "a shape without a size": (NO_SHAPE, _entry("0.weights", shape=[0, 256])),
        "a shape of fractions": (NO_SHAPE, _entry("0.weights", shape=[float(WIDTH), 256])),
        "a shape of a truth": (NO_SHAPE, _entry("0.offset", shape=[True, 256])),
        "a shape of no dimension": (NO_SHAPE, _entry("0.offset", shape=[])),
        "a shape beyond measure": ("truncated", _entry("0.weights", shape=[10**30, 10**30])),
        "a shape turned round": ("have an offset of", _entry("0.weights", shape=[256, WIDTH])),
        "numbers of another type": ("not of type F64", _entry("0.weights", dtype="BF16")),
        "numbers in float32": ("not of type F64", _numbers("0.weights", np.float32)),
        "numbers of three dimensions": (NO_SHAPE, _numbers("0.weights", lambda w: w[None])),
        "numbers that nobody uses": ("that no layer uses", _put(_9_weights=np.ones((2, 2)))),
        "numbers that are missing": ("missing", lambda parts: parts.numbers.pop("2.offset")),
        "weights that are not finite": ("not all finite", _number("0.weights", 7, np.nan)),
        "an infinite offset": ("not all finite", _number("2.offset", 0, -np.inf)),
        "fewer weights than columns": (
            "takes 256 columns where the one before it gives 255",
            lambda parts: parts.numbers.update(
                {each: parts.numbers[each][..., :-1].copy() for each in ("0.weights", "0.offset")}
            ),
        ),
        "an offset of one number": ("have an offset of", _numbers("0.offset", lambda b: b[:1])),
        "an offset that is a table": ("have an offset of", _numbers("0.offset", lambda b: b[None])),
        "weights that are a list": (
            "have an offset of",
            _numbers("2.weights", lambda w: w[:, 0].copy()),
        ),
        "weights wider than the limit": (
            "65537 columns, and 65536",
            _put(
                _0_weights=RNG.normal(size=(WIDTH, 65_537)),
                _0_offset=np.ones(65_537),
                _2_weights=np.ones((65_537, 2)),
            ),
        ),
        "more work than a row may take": (
            "a row takes the work of",
            lambda parts: (
                parts.told["layers"].__setitem__(slice(1, 2), ["Tanh"] * 50),
                parts.numbers.clear(),
                parts.numbers.update(
                    {
                        "0.weights": np.ones((WIDTH, 10_000)),
                        "0.offset": np.ones(10_000),
                        "51.weights": np.ones((10_000, 2)),
                        "51.offset": np.ones(2),
                    }
                ),
            ),
        ),
    },
)


def _spot(parts, flag):
    """A node's number whose true side is a node (0) or a leaf (1); the last of them."""
    return int(np.flatnonzero(parts.numbers["1.true_leaves"] == flag)[-1])


def _side(flag, to):
    """Lead the true side of the root to another node or leaf."""

    def change(parts):
        parts.numbers["1.true_leaves"][0] = flag
        parts.numbers["1.true_ids"][0] = to

    return change


def _both_sides_to_one_node(parts):
    at, numbers = _spot(parts, 0), parts.numbers
    numbers["1.false_ids"][at], numbers["1.false_leaves"][at] = numbers["1.true_ids"][at], 0


def _one_leaf_for_two(parts):
    leaves = np.flatnonzero(parts.numbers["1.true_leaves"])
    parts.numbers["1.true_ids"][leaves[0]] = parts.numbers["1.true_ids"][leaves[1]]


def a_long_way(depth):
    """One tree that goes on to the false side, node after node."""

    def change(parts):
        follow = np.arange(depth, dtype=np.int32)
        ends = (follow == depth - 1).astype(np.uint8)
        parts.numbers |= {
            "1.splits": np.zeros(depth),
            "1.leaves": np.ones(depth + 1),
            "1.roots": follow[:1].copy(),
            "1.columns": follow * 0,
            "1.true_ids": follow,
            "1.false_ids": follow + 1,
            "1.targets": np.zeros(depth + 1, dtype=np.int32),
            "1.true_leaves": np.ones(depth, dtype=np.uint8),
            "1.false_leaves": ends,
        }

    return change


def _many_trees(parts):
    """6,000 trees of depth 64 in one file of 20 MB."""
    a_long_way(64)(parts)
    n_trees, one = 6_000, dict(parts.numbers)
    starts = np.repeat(np.arange(n_trees, dtype=np.int32), 64)
    for name, values in one.items():
        if name.startswith("1.") and name != "1.roots":
            parts.numbers[name] = np.tile(values, n_trees)
    parts.numbers["1.roots"] = np.arange(n_trees, dtype=np.int32) * 64
    parts.numbers["1.true_ids"] += starts * 65
    parts.numbers["1.false_ids"] += starts * (64 + parts.numbers["1.false_leaves"])


def _kind(**changes):
    return lambda parts: parts.told["layers"][1].update(changes)


TWO_PARENTS = "two parents, or with none"
_add(
    "boosted_trees",
    {
        "children before parents": ("comes before its parent", _side(0, 0)),
        "a node that does not exist": ("have a node that", _side(0, 10**6)),
        "a node below zero": ("have a node that", _side(0, -1)),
        "a leaf that does not exist": ("have a leaf that", _side(1, 10**6)),
        "a leaf below zero": ("have a leaf that", _side(1, -1)),
        "a flag of two": ("have a flag that", _side(2, 1)),
        "a child with two parents": (TWO_PARENTS, _both_sides_to_one_node),
        "a leaf with two parents": (TWO_PARENTS, _one_leaf_for_two),
        "a root twice": (TWO_PARENTS, _number("1.roots", 1, 0)),
        "a root that is left out": (TWO_PARENTS, _numbers("1.roots", lambda r: r[:-1])),
        "a root once more": (TWO_PARENTS, _numbers("1.roots", lambda r: np.append(r, r[:1]))),
        "a root that does not exist": ("have a root that", _number("1.roots", 0, 10**6)),
        "a root below zero": ("have a root that", _number("1.roots", 0, -1)),
        "roots in a table": ("without all that", _numbers("1.roots", lambda r: r[None])),
        "a column that does not exist": ("compare a column that", _number("1.columns", 0, WIDTH)),
        "a column below zero": ("compare a column that", _number("1.columns", 0, -1)),
        "a sum that does not exist": ("add to a sum that", _number("1.targets", 0, 1)),
        "a sum below zero": ("add to a sum that", _number("1.targets", 0, -1)),
        "a list that is too short": ("without all that", _numbers("1.columns", lambda c: c[:-1])),
        "a leaf without a sum": ("without all that", _numbers("1.targets", lambda t: t[:-1])),
        "splits that are no numbers": ("not all finite", _number("1.splits", 0, np.nan)),
        "leaves that are not finite": ("not all finite", _number("1.leaves", 0, np.inf)),
        "ids of 64 bits": ("not of type I32", _numbers("1.true_ids", np.int64)),
        "flags with a sign": ("not of type U8", _numbers("1.true_leaves", np.int8)),
        "trees of depth 65": ("deeper than 64", a_long_way(65)),
        "trees of depth 100,000": ("deeper than 64", a_long_way(100_000)),
        "more steps than a row may take": ("a row takes the work of", _many_trees),
        "trees of another kind": ("is none of the format", _kind(kind="forest")),
        "trees that take the largest leaf": ("is none of the format", _kind(takes="largest")),
        "trees without a number of sums": (
            "is none of the format",
            lambda parts: parts.told["layers"][1].pop("n_out"),
        ),
        "trees of a fraction of columns": ("is none of the format", _kind(n_in=float(WIDTH))),
        "trees of a true number of sums": (NOT_AS_WRITTEN, _kind(n_out=True)),
        "trees for other rows": ("takes 6 columns where", _kind(n_in=WIDTH + 1)),
        "trees of an endless number of sums": (
            "takes 1 columns|100000 columns",
            _kind(n_out=100_000),
        ),
    },
)
_add(
    "ridge",
    {
        "one more class than agreed": (
            "gives 3, where this round has 5 and 2",
            _put(_0_weights=np.ones((WIDTH, 3)), _0_offset=np.ones(3)),
        ),
        "a column more than agreed": (
            "takes 6 columns and gives 2",
            _numbers("0.weights", lambda w: np.vstack([w, w[:1]])),
        ),
        "likelihoods of a ridge": ("'probabilities' is none that", _told(head="probabilities")),
        "a function in a ridge": (
            "has no layer 'Relu'",
            lambda parts: (
                parts.told["layers"].extend(["Relu", "affine"]),
                parts.numbers.update({"2.weights": np.eye(2), "2.offset": np.ones(2)}),
            ),
        ),
    },
)
