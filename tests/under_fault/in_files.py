"""Vectors: an upload's safetensors file that is none, or lies about itself."""

import json

from under_fault.vectors import file_of, payload_vector


def _headers(name, expect, change):
    """A vector whose header is changed and whose numbers stay."""

    def payload(tables, _):
        header, numbers = tables.header()
        return file_of(change(header) or header, numbers)

    return payload_vector(name, expect, payload)


def _entry(table, word, value):
    def change(header):
        header[table][word] = value

    return change


LENGTHS = {
    "0": 0,
    "1": 1,
    "one byte short": -1,
    "one byte more": 1,
    "64 KiB and one": 2**16 + 1,
    "2^31": 2**31,
    "2^32": 2**32,
    "2^63 - 1": 2**63 - 1,
    "2^63": 2**63,
    "2^64 - 1": 2**64 - 1,
}


def lengths():
    """The eight bytes that say how long the header is."""
    for word, length in LENGTHS.items():

        def payload(tables, _, n=length, near="byte" in word):
            header, numbers = tables.header()
            size = len(json.dumps(header).encode())
            return file_of(header, numbers, length=size + n if near else n)

        yield payload_vector(f"a header of {word}", "CB602", payload)


TEXTS = {
    "no JSON": b"{",
    "a list": b"[]",
    "a number": b"1234567890",
    "null": b"null    ",
    "a string": b'"safetensors"',
    "empty": b"{}      ",
    "UTF-16": '{"rows":1}'.encode("utf-16"),
    "no UTF-8": b'{"\xff\xfe":1}',
    "deep brackets": b"[" * 30_000,
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "a number of many digits": b'{"rows":{"dtype":"F64","shape":[' + b"9" * 9_000 + b"]}}",
    "NaN": b'{"rows":NaN}',
    "metadata only": b'{"__metadata__":{"format":"x"}}',
    "Python": b"{'rows': 1}",
}


def _many(tables):
    """A hundred thousand empty tables, and as many as fit into what is read."""
    header, numbers = tables.header()
    for number in range(100_000):
        header[f"t{number}"] = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}
    return file_of(header, numbers)


def _some(tables):
    header, numbers = tables.header()
    end = len(numbers)
    for number in range(800):
        header[f"t{number}"] = {"dtype": "I8", "shape": [1], "data_offsets": [end, end + 1]}
        end += 1
    return file_of(header, numbers + bytes(800))


def texts():
    """A header that is no JSON object, holds too much, or a name twice."""
    for word, text in TEXTS.items():
        yield payload_vector(
            f"a header that is {word}", "CB602", lambda t, _, d=text: file_of(d, t.header()[1])
        )
    yield payload_vector("a hundred thousand tables", "CB602", lambda t, _: _many(t))
    yield payload_vector("eight hundred tables", "CB602", lambda t, _: _some(t))
    for table in ("rows", "labels", "__metadata__"):

        def twice(tables, _, name=table):
            header, numbers = tables.header()
            again = f", {json.dumps(name)}: {json.dumps(header[name])}}}"
            return file_of(json.dumps(header)[:-1].encode() + again.encode(), numbers)

        yield payload_vector(f"{table} twice", "CB602", twice)


NAMES = {
    "..": "../rows",
    "absolute": "/etc/passwd",
    "of a drive": "C:\\rows",
    "with NUL": "rows\0",
    "in Greek": "\u03c1\u03bf\u03c9\u03c2",
    "with a right-to-left mark": "\u202erows",
    "that only looks alike": "r\u043ews",
    "of ten thousand letters": "r" * 10_000,
    "with a line feed": "rows\n",
    "in capitals": "ROWS",
    "empty": "",
    "with a space": " rows",
}


def names():
    """Tables under other names; a table more, or one less."""
    for word, name in NAMES.items():

        def renamed(header, n=name):
            return {n if key == "rows" else key: entry for key, entry in header.items()}

        def more(header, n=name):
            end = max(e["data_offsets"][1] for k, e in header.items() if k != "__metadata__")
            return {**header, n: {"dtype": "F64", "shape": [1], "data_offsets": [end - 8, end]}}

        yield _headers(f"rows under a name {word}", "CB602", renamed)
        yield _headers(f"one table more, of a name {word}", "CB602", more)
    for table in ("rows", "anchor_image", "labels"):
        yield _headers(f"no {table} in the header", "CB602", lambda h, t=table: _less(h, t))


def _less(header, name):
    return {key: entry for key, entry in header.items() if key != name}


PLACES = {
    "beyond the end": [0, 10**9],
    "far beyond the end": [2**62, 2**62 + 960],
    "backwards": [960, 0],
    "negative": [-8, 952],
    "empty": [0, 0],
    "fractions": [0.0, 960.0],
    "words": ["0", "960"],
    "one number": [0],
    "three": [0, 480, 960],
    "none": None,
    "yes and no": [False, True],
    "2^64": [2**64, 2**64 + 960],
}
SHAPES = {
    "that overflow 64 bits": [2**32, 2**32],
    "that overflow to the right size": [2**61 + 40, 3],
    "of 2^63 rows": [2**63, 3],
    "of 10^18 and no columns": [10**18, 0],
    "that are negative": [-40, -3],
    "that are fractions": [40.0, 3.0],
    "that are words": ["40", "3"],
    "that are true": [True, True],
    "of a hundred dimensions": [40, 3] + [1] * 98,
    "that are none": None,
    "that are a number": 120,
    "of no dimension": [],
    "of nested lists": [[40, 3]],
}


def places():
    """Offsets that overlap, leave holes or the file; shapes whose product is another."""
    for table in ("rows", "anchor_image"):
        for word, place in PLACES.items():
            change = _entry(table, "data_offsets", place)
            yield _headers(f"offsets of {table} {word}", "CB602", change)
        for word, shape in SHAPES.items():
            yield _headers(f"{table} of shapes {word}", "CB602", _entry(table, "shape", shape))
    for word, (first, second) in {
        "rows on the image": ("rows", "anchor_image"),
        "image on the rows": ("anchor_image", "rows"),
        "labels on the rows": ("labels", "rows"),
    }.items():

        def overlap(header, a=first, b=second):
            start, stop = header[a]["data_offsets"]
            other = header[b]["data_offsets"][0]
            header[a]["data_offsets"] = [other, other + stop - start]

        yield _headers(word, "CB602", overlap)
    for table in ("rows", "anchor_image", "labels"):
        for word in ("dtype", "shape", "data_offsets"):
            yield _headers(
                f"{table} without {word}", "CB602", lambda h, t=table, w=word: h[t].pop(w) and None
            )
        yield _headers(f"{table} is a list", "CB602", lambda h, t=table: {**h, t: [1]})


SAYS = {
    "party": {"south": "CB804", "": "CB602", "no\rth": "CB602", "n" * 101: "CB602"},
    "agreement_digest": {"0" * 64: "CB804", "A" * 64: "CB602", "12": "CB602", "": "CB602"},
    "anchor_tag": {"0" * 64: "CB804", "g" * 64: "CB602", "": "CB602"},
    "simulated": {"true": "CB804", "True": "CB602", "": "CB602", "1": "CB602"},
    "format": {"cobasis-upload/2": "CB602", "pt": "CB602", "": "CB602"},
    "int8_scale": {"0.5": "CB602", "nan": "CB602", "": "CB602"},
}


def says():
    """What the file says of itself, against what was signed."""
    for word, values in SAYS.items():
        for value, expect in values.items():
            yield _headers(
                f"{word} is {value[:20]!r}",
                expect,
                lambda h, w=word, v=value: h["__metadata__"].update({w: v}),
            )
        if word != "int8_scale":
            yield _headers(
                f"{word} is not told", "CB602", lambda h, w=word: h["__metadata__"].pop(w) and None
            )
            yield _headers(
                f"{word} is a number",
                "CB602",
                lambda h, w=word: h["__metadata__"].update({w: 1}),
            )
    for scale in ("0", "-1", "nan", "inf", "1e400", "one", "", "0.1"):

        def scaled(tables, _, s=scale):
            header, numbers = tables.header()
            header["__metadata__"] = {**header["__metadata__"], "int8_scale": s}
            return file_of(header, numbers)

        expect = "CB306" if scale == "0.1" else "CB602"
        yield payload_vector(f"an int8 scale of {scale!r}", expect, scaled, of="int8")
