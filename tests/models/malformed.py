"""Model files taken apart and put together by hand, with one thing changed, and what is said."""

import json
import time

import numpy as np
import pytest
import safetensors.numpy

from cobasis.errors import ModelFileError
from cobasis.models.chain_file import decode_chain
from models.chains import WIDTH, agreed, file_of

WORDS = {"<f8": "F64", "<i4": "I32", "<f4": "F32", "<i8": "I64"}


RNG = np.random.default_rng(0)


class Parts:
    """What a file says of its model, its numbers by name, and its header as it would be."""

    def __init__(self, data):
        with_header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        self.told = json.loads(with_header.pop("__metadata__")["cobasis"])
        read = safetensors.numpy.load(data)
        self.numbers = {name: read[name].copy() for name in with_header}
        self.in_header = self.in_text = lambda same: same

    def together(self):
        """The file; an independent writing of the format, then the changes to the header."""
        told = json.dumps(self.told, separators=(",", ":"))
        header, end = {"__metadata__": {"cobasis": told}}, 0
        for name, values in self.numbers.items():
            begin, end = end, end + values.nbytes
            header[name] = {
                "dtype": WORDS[values.dtype.str],
                "shape": list(values.shape),
                "data_offsets": [begin, end],
            }
        text = json.dumps(self.in_header(header), separators=(",", ":")).encode()
        text = self.in_text(text + b" " * (-len(text) % 8))
        body = b"".join(values.tobytes() for values in self.numbers.values())
        return len(text).to_bytes(8, "little") + text + body


def refused(data, words, **round_):
    begin = time.perf_counter()
    with pytest.raises(ModelFileError, match=words) as caught:
        decode_chain(data, **{**agreed(), **round_})
    assert time.perf_counter() - begin < 2
    assert str(caught.value).endswith("[CB402]")


def malformed(family, change):
    good = file_of(family)
    parts = Parts(good)
    change(parts)
    data = parts.together()
    assert data != good
    return data


def _told(**changes):
    return lambda parts: parts.told.update(changes)


def _layers(change):
    return lambda parts: change(parts.told["layers"])


def _trees(**changes):
    return lambda parts: parts.told["layers"][1].update(changes)


def _header(change):
    return lambda parts: setattr(parts, "in_header", change)


def _entry(name, **changes):
    return _header(lambda header: {**header, name: {**header[name], **changes}})


def _text(change):
    return lambda parts: setattr(parts, "in_text", change)


def _number(name, at, value):
    return lambda parts: parts.numbers[name].flat.__setitem__(at, value)


def _numbers(**tensors):
    return lambda parts: parts.numbers.update(tensors)


def wider(n_columns, between):
    def change(parts):
        last = f"{len(between) + 1}."
        parts.told["layers"] = ["affine", *between, "affine"]
        parts.numbers = {
            "0.weights": RNG.normal(size=(WIDTH, n_columns)),
            "0.offset": np.ones(n_columns),
            f"{last}weights": np.ones((n_columns, 2)),
            f"{last}offset": np.ones(2),
        }

    return change


def a_long_way(depth, n_trees=1):
    """Trees that go on to the second child, node after node."""

    def change(parts):
        level = np.repeat([[-1, 0]], n_trees, axis=0).ravel()
        columns = [np.zeros(n_trees), *[level] * (depth - 1), np.full(2 * n_trees, -1)]
        parts.numbers |= {"1.columns": np.concatenate(columns).astype("<i4")}
        parts.numbers["1.numbers"] = RNG.normal(size=len(parts.numbers["1.columns"]))
        parts.told["layers"][1]["n_trees"] = n_trees

    return change


NOT_AS_WRITTEN = "it is not written as the format says"
NO_PLACE = "is described wrongly or is not of float64, int32"
NO_ROOT = "no sum to add to, or a root that is no node"
ONCE = "every name once"
_MLP = {
    "a later format": ("of format 'cobasis/model/2'", _told(format="cobasis/model/2")),
    "a key that is not known": (NOT_AS_WRITTEN, _told(rows=[])),
    "a key twice": (ONCE, _text(lambda text: text.replace(b'{\\"f', b'{\\"head\\":0,\\"f', 1))),
    "a family that nobody knows": ("none of linear, logistic", _told(family="gp" * 60)),
    "a regression without a fit": ("has a fit, or lacks one", _told(family="regression")),
    "another task": ("is for 'regression'", _told(task="regression")),
    "a head of another family": ("'decision' is none that", _told(head="decision")),
    "layers that are a word": ("are not format, family, task", _told(layers="affine")),
    "a layer that is a number": ("layer 1 is none", _layers(lambda each: each.insert(1, 7))),
    "a layer of another family": ("has no layer 'Cos'", wider(2, ["Cos"])),
    "a function at the end": ("last one no affine map", _layers(lambda each: each.append("Relu"))),
    "no layers": ("has 0 layers", _told(layers=[])),
    "65 layers": ("65 layers, and 1 to 64", _layers(lambda each: each.extend(["Relu"] * 62))),
    "no metadata": ("no JSON object", _header(lambda h: h | {"__metadata__": {}})),
    "a header in another order": (NOT_AS_WRITTEN, _header(lambda h: dict(reversed(h.items())))),
    "a header of UTF-16": (ONCE, _text(lambda text: text.decode().encode("utf-16"))),
    "a tensor twice": (ONCE, _text(lambda text: text.replace(b'"0.offset"', b'"0.weights"'))),
    "a header beyond measure": ("truncated or damaged", _text(lambda text: text + b" " * 2**16)),
    "offsets that overlap": ("overlap or leave holes", _entry("0.offset", data_offsets=[0, 2048])),
    "a shape of a truth": (NO_PLACE, _entry("0.offset", shape=[True, 256])),
    "a shape turned round": ("have an offset of", _entry("0.weights", shape=[256, WIDTH])),
    "numbers that nobody uses": (NOT_AS_WRITTEN, _numbers(**{"9.weights": np.ones((2, 2))})),
    "numbers that are missing": (
        "are missing, or none",
        lambda parts: parts.numbers.pop("2.offset"),
    ),
    "weights that are not finite": ("not all finite", _number("0.weights", 7, np.nan)),
    "fewer weights than columns": (
        "takes 256 columns where the one before it gives 255",
        _numbers(**{"0.weights": np.ones((WIDTH, 255)), "0.offset": np.ones(255)}),
    ),
    "weights wider than the limit": ("65537 columns, and 65536", wider(65_537, ["Relu"])),
    "more work than a row may take": ("a row takes the work of", wider(10_000, ["Tanh"] * 50)),
}
_BOOSTED_TREES = {
    "a column that does not exist": ("compare a column that", _number("1.columns", 0, WIDTH)),
    "a leaf for a root": (NO_ROOT, _number("1.columns", 1, -1)),
    "a leaf for a node": (r"their nodes lead to \d+", _number("1.columns", 6, -1)),
    "trees of another family": ("has no trees", _told(family="mlp")),
    "no trees": (NO_ROOT, _trees(n_trees=0)),
    "trees of depth 65": ("deeper than 64", a_long_way(65)),
    "more steps than a row may take": ("a row takes the work of", a_long_way(64, n_trees=6_000)),
    "trees of a true number of sums": (NOT_AS_WRITTEN, _trees(n_out=True)),
    "trees of many sums": ("100000 columns, and 65536", _trees(n_out=100_000)),
}
MALFORMED = {
    name: (family, change, words)
    for family, cases in {"mlp": _MLP, "boosted_trees": _BOOSTED_TREES}.items()
    for name, (words, change) in cases.items()
}
"""By name: the family of a file, a change to its parts, and the words of its refusal."""
