"""Vectors: numbers that are none, images without rank, wrong shapes, wrong types."""

import numpy as np

from under_fault.vectors import Tables, Vector, file_of, tables_vector

PLACES = {"first": 0, "middle": 0.5, "last": -1}
VALUES = {
    "fp64": {
        "nan": np.nan,
        "signalling nan": np.frombuffer(b"\1\0\0\0\0\0\xf4\x7f", "<f8")[0],
        "infinity": np.inf,
        "minus infinity": -np.inf,
        "1e308": 1e308,
        "-1e308": -1e308,
        "1e60": 1e60,
    },
    "fp32": {"nan": np.nan, "infinity": np.inf, "minus infinity": -np.inf},
    "fp16": {"nan": np.nan, "infinity": np.inf, "minus infinity": -np.inf},
}
LABELS = {"-1": -1, "one too many": 2, "7": 7, "2^62": 2**62, "-2^63": -(2**63)}


def put(value, place):
    """One number into a table."""

    def change(table):
        flat = table.reshape(-1)
        flat[int(place * flat.size) if place == PLACES["middle"] else place] = value
        return table

    return change


def numbers():
    """NaN, infinities and numbers too large, anywhere in any table."""
    for of, values in VALUES.items():
        for word, value in values.items():
            for where, place in PLACES.items():
                for table in ("rows", "anchor_image"):
                    if word == "1e60" and table == "anchor_image":
                        continue  # which is an image of bad condition: CB203 or CB204
                    yield tables_vector(
                        f"{word} {where} in {table}, {of}",
                        "CB306" if "1e308" not in word or table == "rows" else "CB203",
                        lambda t, n=table, v=value, p=place: t.changed(n, put(v, p)),
                        of=of,
                    )


def labels():
    """Labels out of range, and labels that are no numbers."""
    for of in ("fp64", "int8"):
        for word, value in LABELS.items():
            for where, place in PLACES.items():
                yield tables_vector(
                    f"label {word} {where}, {of}",
                    "CB306",
                    lambda t, v=value, p=place: t.changed("labels", put(v, p)),
                    of=of,
                )
    for word, value in VALUES["fp32"].items():
        for where, place in PLACES.items():
            yield tables_vector(
                f"label {word} {where}, regression",
                "CB306",
                lambda t, v=value, p=place: t.changed("labels", put(v, p)),
                of="regression",
            )


def odd():
    """Numbers that look like faults, and are none."""
    for word, value in {"-0": -0.0, "denormal": 5e-324, "1e-300": 1e-300, "1e40": 1e40}.items():
        for where, place in PLACES.items():
            yield tables_vector(
                f"{word} {where} in rows",
                "accepted",
                lambda t, v=value, p=place: t.changed("rows", put(v, p)),
            )
    for word, value in {"-0": -0.0, "denormal": 5e-324}.items():
        yield tables_vector(
            f"{word} in the image",
            "accepted",
            lambda t, v=value: t.changed("anchor_image", put(v, 0)),
        )


def columns(*order):
    return lambda image: np.ascontiguousarray(image[:, list(order)])


def condition(power):
    def change(image):
        left, values, right = np.linalg.svd(image, full_matrices=False)
        return left @ np.diag(np.geomspace(values[0], values[0] / 10.0**power, 3)) @ right

    return change


IMAGES = {
    "zero": ("CB203", lambda i: i * 0),
    "minus zero": ("CB203", lambda i: -np.abs(i * 0)),
    "all alike": ("CB203", lambda i: i * 0 + 0.25),
    "of rank one": ("CB203", lambda i: np.outer(i[:, 0], [1.0, 2.0, 3.0])),
    "one number only": ("CB203", lambda i: i * (i == i.max())),
    "two rows only": ("CB203", lambda i: i * (np.arange(len(i)) < 2)[:, None]),
    "columns 0 and 1 alike": ("CB203", columns(0, 0, 2)),
    "columns 1 and 2 alike": ("CB203", columns(0, 1, 1)),
    "columns 0 and 2 alike": ("CB203", columns(0, 1, 0)),
    "all columns alike": ("CB203", columns(1, 1, 1)),
    "first column zero": ("CB203", lambda i: i * [0, 1, 1]),
    "second column zero": ("CB203", lambda i: i * [1, 0, 1]),
    "last column zero": ("CB203", lambda i: i * [1, 1, 0]),
    "a column the sum of two": ("CB203", lambda i: i @ [[1, 0, 1], [0, 1, 1], [0, 0, 0]]),
    "a column twice another": ("CB203", lambda i: i @ [[1, 2, 0], [0, 0, 0], [0, 0, 1]]),
}


def images():
    """Zero, rank-deficient and ill-conditioned images, in every precision that can say so."""
    for of in ("fp64", "fp32", "fp16", "int8", "regression"):
        for word, (expect, change) in IMAGES.items():
            if of not in {"fp64", "regression"} and "sum" in word:
                continue  # rounded to fewer digits the sum is none
            yield tables_vector(
                f"image {word}, {of}",
                expect,
                lambda t, c=change: t.changed(
                    "anchor_image", lambda i: c(i.astype(float)).astype(i.dtype)
                ),
                of=of,
            )
    for power, expect in {11: "CB204", 12: "CB204", 13: "CB204", 16: "CB203", 18: "CB203"}.items():
        yield tables_vector(
            f"image of condition 1e{power}",
            expect,
            lambda t, p=power: t.changed("anchor_image", condition(p)),
        )


def _rows(change):
    """Change the tables of rows and labels in the same way."""
    return lambda t: t.changed("rows", change).changed("labels", change)


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
            yield tables_vector(
                f"{word}, {of}", expect, lambda t, n=table, c=change: t.changed(n, c), of=of
            )
        for word, change in BOTH.items():
            yield tables_vector(
                f"{word}, {of}",
                "CB306",
                lambda t, c=change: t.changed("rows", c).changed("anchor_image", c),
                of=of,
            )
    yield tables_vector("rows and labels of nobody", "CB602", _rows(lambda t: t[:0]))
    yield tables_vector("labels left out", "CB306", lambda t: _without(t, "labels"))
    yield tables_vector("labels left out, regression", "CB306", _unlabelled, of="regression")
    yield tables_vector(
        "labels where none are agreed on",
        "CB306",
        lambda t: Tables({**t, "labels": np.arange(len(t["rows"]))}, metadata=t.metadata),
        of="representation",
    )
    yield tables_vector("rows and image change places", "CB602", _swapped)


def _without(tables, name):
    return Tables({n: t for n, t in tables.items() if n != name}, metadata=tables.metadata)


def _unlabelled(tables):
    return _without(tables, "labels")


def _swapped(tables):
    image, rows = tables["rows"], tables["anchor_image"]
    return Tables({**tables, "anchor_image": image, "rows": rows}, metadata=tables.metadata)


WIDTHS = {
    **dict.fromkeys(("F16", "BF16", "I16", "U16", ">f2", "float16"), 2),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL", "bool", "S1", "V1"), 1),
    **dict.fromkeys(("F32", "I32", "U32", ">f4", "float32"), 4),
    **dict.fromkeys(("F64", "I64", "U64", ">f8", "F64BE", "<f8", "float64", "f64", "C64"), 8),
    **dict.fromkeys(("object", "O", "|O", "string", "str", "datetime64[ns]", "", "F64\0"), 8),
    **dict.fromkeys(("C128", "complex128", "F128"), 16),
}
FITTING = {("rows", "F64"), ("anchor_image", "F64"), ("labels", "I64")}
READABLE = {
    **dict.fromkeys((("rows", "F32"), ("rows", "F16"), ("labels", "F64")), "CB306"),
    **dict.fromkeys((("anchor_image", "F32"), ("anchor_image", "F16")), "CB306"),
}


def _of_type(table, word, n_bytes):
    """An upload that says one table is of another type, with as many bytes as it needs."""

    def make(lab, path):
        tables = lab.tables["fp64"]
        header, _ = tables.header()
        end, numbers = 0, b""
        for name in tables:
            entry = header[name]
            data = tables[name].tobytes()
            if name == table:
                entry["dtype"] = word
                data = (data * 2)[: tables[name].size * n_bytes]
            entry["data_offsets"] = [end, end + len(data)]
            end, numbers = end + len(data), numbers + data
        told = {"rows": "rows_dtype", "anchor_image": "image_dtype", "labels": "labels_dtype"}
        names = {"F32": "float32", "F16": "float16", "F64": "float64"}
        told = {**tables.told(), told[table]: names.get(word, "float64")}
        return lab.seal(path, file_of(header, numbers), told=told)

    return make


def types():
    """Every type that a header can name, and some that it cannot."""
    for table in ("rows", "anchor_image", "labels"):
        for word, n_bytes in WIDTHS.items():
            if (table, word) not in FITTING:
                yield Vector(
                    name=f"{table} of {word!r}",
                    expect=READABLE.get((table, word), "CB602"),
                    make=_of_type(table, word, n_bytes),
                )
