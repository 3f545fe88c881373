from functools import partial
from itertools import product

import numpy as np

from bundle.payloads import file_of
from under_fault.vectors import Vector, tables_vector

TABLES = ("rows", "anchor_image", "labels")
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


def put(name, value, place):
    def change(table):
        flat = table.reshape(-1)
        flat[int(place * flat.size) if place == ENDS["middle"] else place] = value
        return table

    return within(name, change)


def within(name, change):
    return lambda tables: tables.changed(**{name: change(np.array(tables[name]))})


def numbers():
    for of, values in VALUES.items():
        for word, where, table in product(values, ENDS, ("rows", "anchor_image")):
            if word == "1e60" and table == "anchor_image":
                continue  # which is an image of bad condition: CB203 or CB204
            expect = "CB306" if "1e308" not in word or table == "rows" else "CB203"
            change = put(table, values[word], ENDS[where])
            yield tables_vector(f"{word} {where} in {table}, {of}", expect, change, of=of)
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


def condition(power, image):
    left, values, right = np.linalg.svd(image, full_matrices=False)
    return left @ np.diag(np.geomspace(values[0], values[0] / 10.0**power, 3)) @ right


SINGULAR = {
    "zero": lambda i: i * 0,
    "all alike": lambda i: i * 0 + 0.25,
    "of rank one": lambda i: np.outer(i[:, 0], [1.0, 2.0, 3.0]),
    "two columns alike": lambda i: i[:, [0, 1, 0]],
    "one column zero": lambda i: i * [1, 1, 0],
    "a column the sum of two": lambda i: i @ [[1, 0, 1], [0, 1, 1], [0, 0, 0]],
}


def images():
    for of, word in product(("fp64", "fp32", "fp16", "int8", "regression"), SINGULAR):
        if of in {"fp64", "regression"} or "sum" not in word:  # rounded, the sum is none
            change = lambda i, made=SINGULAR[word]: made(i.astype(float)).astype(i.dtype)  # noqa: E731
            change = within("anchor_image", change)
            yield tables_vector(f"image {word}, {of}", "CB203", change, of=of)
    for power, expect in {11: "CB204", 13: "CB204", 16: "CB203", 18: "CB203"}.items():
        change = within("anchor_image", partial(condition, power))
        yield tables_vector(f"image of condition 1e{power}", expect, change)


ROWS = {
    "a row more": lambda t: np.concatenate([t, t[:1]]),
    "a row less": lambda t: t[:-1],
    "one row": lambda t: t[:1],
}
RESHAPED = {
    **ROWS,
    "no row": lambda t: t[:0],
    "a dimension before": lambda t: t[None],
    "a dimension behind": lambda t: t[..., None],
    "the first row alone": lambda t: t[0],
    "one dimension": lambda t: t.reshape(-1),
    "columns for rows": lambda t: np.ascontiguousarray(t.T),
    "a column less": lambda t: t[:, :-1],
    "a column more": lambda t: np.hstack([t, t[:, :1]]),
    "no column": lambda t: t[:, :0],
}
FLAT = list(RESHAPED)[:7]  # what means something to labels, too
BOTH = {
    "two components in both": lambda t: t[:, :2],
    "four components in both": lambda t: np.hstack([t, t[:, :1] + t[:, 1:2] ** 2]),
    "one component in both": lambda t: t[:, :1],
}
TOGETHER = {
    "rows and labels of nobody": ("CB602", "fp64", lambda t: _both(t, "labels", lambda a: a[:0])),
    "rows and image change places": (
        "CB602",
        "fp64",
        lambda t: t.changed(rows=t["anchor_image"], anchor_image=t["rows"]),
    ),
    **{
        f"labels left out, {of}": ("CB306", of, lambda t: t.changed(labels=None))
        for of in ("fp64", "regression")
    },
    "labels where none are agreed on": (
        "CB306",
        "representation",
        lambda t: t.changed(labels=np.arange(len(t["rows"]))),
    ),
}


def _both(tables, other, change):
    return tables.changed(rows=change(tables["rows"]), **{other: change(tables[other])})


def shapes():
    for of in ("fp64", "fp32", "int8"):
        for table, (word, change) in product(TABLES, RESHAPED.items()):
            if table != "labels" or word in FLAT:
                expect = "CB306" if table == "anchor_image" and word in ROWS else "CB602"
                yield tables_vector(
                    f"{table} of {word}, {of}", expect, within(table, change), of=of
                )
        for word, change in BOTH.items():
            both = partial(_both, other="anchor_image", change=change)
            yield tables_vector(f"{word}, {of}", "CB306", both, of=of)
    for word, (expect, of, change) in TOGETHER.items():
        yield tables_vector(word, expect, change, of=of)


WIDTHS = {
    **dict.fromkeys(("F16", "BF16", "I16", "U16", ">f2", "float16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL", "bool", "S1", "V1"), 1),
    **dict.fromkeys(("F32", "I32", "U32", ">f4", "float32"), 4),
    **dict.fromkeys(("F64", "I64", "U64", ">f8", "F64BE", "<f8", "float64", "f64", "C64"), 8),
    **dict.fromkeys(("object", "O", "|O", "string", "str", "datetime64[ns]", "", "F64\0"), 8),
    **dict.fromkeys(("C128", "complex128", "F128"), 16),
}
FITTING = {("rows", "F64"), ("anchor_image", "F64"), ("labels", "I64")}
READABLE = {*product(("rows", "anchor_image"), ("F32", "F16")), ("labels", "F64")}


def types():
    for table, word in product(TABLES, WIDTHS):
        if (table, word) not in FITTING:
            expect = "CB306" if (table, word) in READABLE else "CB602"
            yield Vector(f"{table} of {word!r}", expect, partial(_of_type, table, word))


def _of_type(table, word, lab, path):
    """An upload that says one table is of another type, with as many bytes as it needs."""
    tables = lab.tables["fp64"]
    array = tables[table]
    data = np.frombuffer((array.tobytes() * 2)[: array.size * WIDTHS[word]], dtype=np.uint8)
    header, numbers = tables.changed(**{table: data}).header()
    header[table] |= {"dtype": word, "shape": list(array.shape)}
    told = {"rows": "rows_dtype", "anchor_image": "image_dtype", "labels": "labels_dtype"}
    names = {"F32": "float32", "F16": "float16", "F64": "float64"}
    says = {**tables.told(), told[table]: names.get(word, "float64")}
    return lab.seal(path, file_of(header, numbers), told=says)
