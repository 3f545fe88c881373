"""Vectors: numbers that are none, images without rank, wrong shapes, wrong types."""

from functools import partial
from itertools import product

import numpy as np

from under_fault.vectors import Tables, Vector, file_of, tables_vector

ENDS = {"first": 0, "middle": 0.5, "last": -1}
NO_NUMBERS = {"nan": np.nan, "infinity": np.inf, "minus infinity": -np.inf}
VALUES = {
    "fp64": {
        **NO_NUMBERS,
        "signalling nan": np.frombuffer(b"\1\0\0\0\0\0\xf4\x7f", "<f8")[0],
        "1e308": 1e308,
        "-1e308": -1e308,
        "1e60": 1e60,
    },
    "fp32": NO_NUMBERS,
    "fp16": NO_NUMBERS,
}
LABELS = {"-1": -1, "one too many": 2, "7": 7, "2^62": 2**62, "-2^63": -(2**63)}


def within(name, change):
    """A change of one of an upload's tables."""
    return lambda tables: tables.changed(name, change)


def put(name, value, place):
    """One number into a table."""

    def change(table):
        flat = table.reshape(-1)
        flat[int(place * flat.size) if place == ENDS["middle"] else place] = value
        return table

    return within(name, change)


def numbers():
    """NaN, infinities and numbers too large, anywhere in any table."""
    for of, values in VALUES.items():
        for word, where, table in product(values, ENDS, ("rows", "anchor_image")):
            if word == "1e60" and table == "anchor_image":
                continue  # which is an image of bad condition: CB203 or CB204
            expect = "CB306" if "1e308" not in word or table == "rows" else "CB203"
            change = put(table, values[word], ENDS[where])
            yield tables_vector(f"{word} {where} in {table}, {of}", expect, change, of=of)


def labels():
    """Labels out of range, and labels that are no numbers."""
    for of, values in {"fp64": LABELS, "int8": LABELS, "regression": NO_NUMBERS}.items():
        for word, where in product(values, ENDS):
            change = put("labels", values[word], ENDS[where])
            yield tables_vector(f"label {word} {where}, {of}", "CB306", change, of=of)


def odd():
    """Numbers that look like faults, and are none."""
    small = {"-0": -0.0, "denormal": 5e-324}
    for word, value in {**small, "1e-300": 1e-300, "1e40": 1e40}.items():
        for where, place in ENDS.items():
            yield tables_vector(f"{word} {where} in rows", "accepted", put("rows", value, place))
    for word, value in small.items():
        yield tables_vector(f"{word} in the image", "accepted", put("anchor_image", value, 0))


def columns(*order):
    return lambda image: np.ascontiguousarray(image[:, list(order)])


def condition(power):
    def change(image):
        left, values, right = np.linalg.svd(image, full_matrices=False)
        return left @ np.diag(np.geomspace(values[0], values[0] / 10.0**power, 3)) @ right

    return change


SINGULAR = {
    "zero": lambda i: i * 0,
    "minus zero": lambda i: -np.abs(i * 0),
    "all alike": lambda i: i * 0 + 0.25,
    "of rank one": lambda i: np.outer(i[:, 0], [1.0, 2.0, 3.0]),
    "one number only": lambda i: i * (i == i.max()),
    "two rows only": lambda i: i * (np.arange(len(i)) < 2)[:, None],
    "columns 0 and 1 alike": columns(0, 0, 2),
    "columns 1 and 2 alike": columns(0, 1, 1),
    "columns 0 and 2 alike": columns(0, 1, 0),
    "all columns alike": columns(1, 1, 1),
    "first column zero": lambda i: i * [0, 1, 1],
    "second column zero": lambda i: i * [1, 0, 1],
    "last column zero": lambda i: i * [1, 1, 0],
    "a column the sum of two": lambda i: i @ [[1, 0, 1], [0, 1, 1], [0, 0, 0]],
    "a column twice another": lambda i: i @ [[1, 2, 0], [0, 0, 0], [0, 0, 1]],
}


def images():
    """Zero, rank-deficient and ill-conditioned images, in every precision that can say so."""
    for of, word in product(("fp64", "fp32", "fp16", "int8", "regression"), SINGULAR):
        if of in {"fp64", "regression"} or "sum" not in word:  # rounded, the sum is none
            change = within("anchor_image", partial(_as_before, SINGULAR[word]))
            yield tables_vector(f"image {word}, {of}", "CB203", change, of=of)
    for power, expect in {11: "CB204", 12: "CB204", 13: "CB204", 16: "CB203", 18: "CB203"}.items():
        change = within("anchor_image", condition(power))
        yield tables_vector(f"image of condition 1e{power}", expect, change)


def _as_before(change, image):
    return change(image.astype(float)).astype(image.dtype)


SHAPES = {
    "one anchor row more": ("CB306", "anchor_image", lambda t: np.vstack([t, t[:1]])),
    "one anchor row less": ("CB306", "anchor_image", lambda t: t[:-1]),
    "twice the anchor rows": ("CB306", "anchor_image", lambda t: np.vstack([t, t])),
    "one anchor row only": ("CB306", "anchor_image", lambda t: t[:1]),
    "fewer anchor rows than columns": ("CB306", "anchor_image", lambda t: t[:2]),
    "no anchor row": ("CB602", "anchor_image", lambda t: t[:0]),
    "an image transposed": ("CB602", "anchor_image", lambda t: np.ascontiguousarray(t.T)),
    "an image with a column less": ("CB602", "anchor_image", lambda t: t[:, :-1]),
    "an image with a column more": ("CB602", "anchor_image", lambda t: np.hstack([t, t[:, :1]])),
    "an image without columns": ("CB602", "anchor_image", lambda t: t[:, :0]),
    "an image of one dimension": ("CB602", "anchor_image", lambda t: t.ravel()),
    "an image of three": ("CB602", "anchor_image", lambda t: t[:, :, None]),
    "rows transposed": ("CB602", "rows", lambda t: np.ascontiguousarray(t.T)),
    "rows with a column less": ("CB602", "rows", lambda t: t[:, :-1]),
    "rows with a column more": ("CB602", "rows", lambda t: np.hstack([t, t[:, :1]])),
    "rows of one dimension": ("CB602", "rows", lambda t: t.ravel()),
    "rows of three dimensions": ("CB602", "rows", lambda t: t[None]),
    "one row less than labels": ("CB602", "rows", lambda t: t[:-1]),
    "one row more than labels": ("CB602", "rows", lambda t: np.vstack([t, t[:1]])),
    "no rows": ("CB602", "rows", lambda t: t[:0]),
    "one label less": ("CB602", "labels", lambda t: t[:-1]),
    "one label more": ("CB602", "labels", lambda t: np.append(t, t[:1])),
    "no labels": ("CB602", "labels", lambda t: t[:0]),
    "one label": ("CB602", "labels", lambda t: t[:1]),
    "labels of two dimensions": ("CB602", "labels", lambda t: t[:, None]),
    "labels of one row": ("CB602", "labels", lambda t: t[None]),
    "a label of no dimension": ("CB602", "labels", lambda t: t[0].reshape(())),
}
BOTH = {
    "two components in both": lambda t: t[:, :2],
    "four components in both": lambda t: np.hstack([t, t[:, :1] + t[:, 1:2] ** 2]),
    "one component in both": lambda t: t[:, :1],
}


def shapes():
    """Wrong a, l and n; transposed, square, of no or too many dimensions."""
    for of in ("fp64", "fp32", "int8"):
        for word, (expect, table, change) in SHAPES.items():
            yield tables_vector(f"{word}, {of}", expect, within(table, change), of=of)
        for word, change in BOTH.items():
            both = partial(_both, "rows", "anchor_image", change)
            yield tables_vector(f"{word}, {of}", "CB306", both, of=of)
    nobody = partial(_both, "rows", "labels", lambda t: t[:0])
    yield tables_vector("rows and labels of nobody", "CB602", nobody)
    bare = partial(_replaced, labels=None)
    yield tables_vector("labels left out", "CB306", bare)
    yield tables_vector("labels left out, regression", "CB306", bare, of="regression")
    told = partial(_replaced, labels=lambda t: np.arange(len(t["rows"])))
    yield tables_vector("labels where none are agreed on", "CB306", told, of="representation")
    turned = partial(_replaced, rows=lambda t: t["anchor_image"], anchor_image=lambda t: t["rows"])
    yield tables_vector("rows and image change places", "CB602", turned)


def _both(first, second, change, tables):
    return tables.changed(first, change).changed(second, change)


def _replaced(tables, **new):
    """Some tables made of all of them, or left out."""
    made = {**tables, **{name: make(tables) for name, make in new.items() if make}}
    left = {name: table for name, table in made.items() if new.get(name, True)}
    return Tables(left, metadata=tables.metadata)


WIDTHS = {
    **dict.fromkeys(("F16", "BF16", "I16", "U16", ">f2", "float16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL", "bool", "S1", "V1"), 1),
    **dict.fromkeys(("F32", "I32", "U32", ">f4", "float32"), 4),
    **dict.fromkeys(("F64", "I64", "U64", ">f8", "F64BE", "<f8", "float64", "f64", "C64"), 8),
    **dict.fromkeys(("object", "O", "|O", "string", "str", "datetime64[ns]", "", "F64\0"), 8),
    **dict.fromkeys(("C128", "complex128", "F128"), 16),
}
FITTING = {("rows", "F64"), ("anchor_image", "F64"), ("labels", "I64")}
READABLE = {("rows", "F32"), ("rows", "F16"), ("labels", "F64")}
READABLE |= {("anchor_image", "F32"), ("anchor_image", "F16")}


def types():
    """Every type that a header can name, and some that it cannot."""
    for table, word in product(("rows", "anchor_image", "labels"), WIDTHS):
        if (table, word) not in FITTING:
            expect = "CB306" if (table, word) in READABLE else "CB602"
            make = partial(_of_type, table, word)
            yield Vector(name=f"{table} of {word!r}", expect=expect, make=make)


def _of_type(table, word, lab, path):
    """An upload that says one table is of another type, with as many bytes as it needs."""
    tables = lab.tables["fp64"]
    header, _ = tables.header()
    end, numbers = 0, b""
    for name, array in tables.items():
        entry, data = header[name], array.tobytes()
        if name == table:
            entry["dtype"], data = word, (data * 2)[: array.size * WIDTHS[word]]
        entry["data_offsets"] = [end, end + len(data)]
        end, numbers = end + len(data), numbers + data
    told = {"rows": "rows_dtype", "anchor_image": "image_dtype", "labels": "labels_dtype"}
    names = {"F32": "float32", "F16": "float16", "F64": "float64"}
    says = {**tables.told(), told[table]: names.get(word, "float64")}
    return lab.seal(path, file_of(header, numbers), told=says)
