"""Vectors: an upload's file that lies about itself, or is of another kind."""

import io
import json
import pickle
import zipfile
from functools import partial

import numpy as np

from bundle.bundles import sealed
from under_fault.vectors import Vector, file_of, header_vector, payload_vector

LENGTHS = {
    "0": 0,
    "1": 1,
    "64 KiB and one": 2**16 + 1,
    "2^31": 2**31,
    "2^32": 2**32,
    "2^63 - 1": 2**63 - 1,
    "2^63": 2**63,
    "2^64 - 1": 2**64 - 1,
}
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


def texts():
    """A header of another length, that is no JSON object, holds too much, or a name twice."""
    for word, n in LENGTHS.items():
        yield payload_vector(f"a header of {word}", "CB602", partial(_long, n))
    for word, n in {"one byte short": -1, "one byte more": 1}.items():
        yield payload_vector(f"a header of {word}", "CB602", partial(_longer, n))
    for word, text in TEXTS.items():
        yield payload_vector(f"a header that is {word}", "CB602", partial(_begun, text))
    for count in (100_000, 800):
        yield payload_vector(f"{count:,} more tables", "CB602", partial(_many, count))
    for name in ("rows", "labels", "__metadata__"):
        yield payload_vector(f"{name} twice", "CB602", partial(_twice, name))


def _long(length, tables, _):
    return file_of(*tables.header(), length=length)


def _longer(step, tables, _):
    header, numbers = tables.header()
    return file_of(header, numbers, length=len(json.dumps(header).encode()) + step)


def _begun(text, tables, _):
    return file_of(text, tables.header()[1])


def _many(count, tables, _):
    """So many tables of one byte; of a hundred thousand the header is longer than what is read."""
    header, numbers = tables.header()
    for at in range(len(numbers), len(numbers) + count):
        header[f"t{at}"] = {"dtype": "I8", "shape": [1], "data_offsets": [at, at + 1]}
    return file_of(header, numbers + bytes(count))


def _twice(name, tables, _):
    header, numbers = tables.header()
    again = f", {json.dumps(name)}: {json.dumps(header[name])}}}"
    return file_of(json.dumps(header)[:-1].encode() + again.encode(), numbers)


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
        yield header_vector(f"rows under a name {word}", "CB602", partial(_renamed, "rows", name))
        yield header_vector(f"one table more, of a name {word}", "CB602", partial(_more, name))
    for table in ("rows", "anchor_image", "labels"):
        yield header_vector(f"no {table} in the header", "CB602", partial(_less, table))


def _renamed(old, new, header):
    header[new] = header.pop(old)


def _more(name, header):
    end = max(each["data_offsets"][1] for key, each in header.items() if key != "__metadata__")
    header[name] = {"dtype": "F64", "shape": [1], "data_offsets": [end - 8, end]}


def _less(name, header):
    del header[name]


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
LYING_SHAPES = {
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
            change = partial(_entry, table, "data_offsets", place)
            yield header_vector(f"offsets of {table} {word}", "CB602", change)
        for word, shape in LYING_SHAPES.items():
            change = partial(_entry, table, "shape", shape)
            yield header_vector(f"{table} of shapes {word}", "CB602", change)
    for first, second in (("rows", "anchor_image"), ("anchor_image", "rows"), ("labels", "rows")):
        change = partial(_overlapping, first, second)
        yield header_vector(f"{first} on the {second}", "CB602", change)
    for table in ("rows", "anchor_image", "labels"):
        for word in ("dtype", "shape", "data_offsets"):
            change = partial(_entry, table, word, ...)
            yield header_vector(f"{table} without {word}", "CB602", change)
        yield header_vector(f"{table} is a list", "CB602", partial(_listed, table))


def _entry(table, word, value, header):
    if value is ...:
        del header[table][word]
    else:
        header[table][word] = value


def _listed(table, header):
    header[table] = [1]


def _overlapping(first, second, header):
    start, stop = header[first]["data_offsets"]
    other = header[second]["data_offsets"][0]
    header[first]["data_offsets"] = [other, other + stop - start]


SAYS = {
    "party": {"south": "CB804", "": "CB602", "no\rth": "CB602", "n" * 101: "CB602"},
    "agreement_digest": {"0" * 64: "CB804", "A" * 64: "CB602", "12": "CB602", "": "CB602"},
    "anchor_tag": {"0" * 64: "CB804", "g" * 64: "CB602", "": "CB602"},
    "simulated": {"true": "CB804", "True": "CB602", "": "CB602", "1": "CB602"},
    "format": {"cobasis-upload/2": "CB602", "pt": "CB602", "": "CB602"},
}
SCALES = ("0", "-1", "nan", "inf", "1e400", "one", "", "0.1")


def says():
    """What the file says of itself, against what was signed."""
    for word, values in SAYS.items():
        for value, expect in {**values, 7: "CB602", ...: "CB602"}.items():
            change = partial(_entry, "__metadata__", word, value)
            yield header_vector(f"{word} is {str(value)[:20]!r}", expect, change)
    for scale in SCALES:
        change = partial(_entry, "__metadata__", "int8_scale", scale)
        expect = "CB306" if scale == "0.1" else "CB602"
        yield header_vector(f"an int8 scale of {scale!r}", expect, change, of="int8")
        yield header_vector(f"floats in steps of {scale!r}", "CB602", change)


class Evil:
    """What an unpickler would run."""

    def __reduce__(self):
        return (print, ("a pickle was run",))


def _npy(array, **options):
    target = io.BytesIO()
    np.save(target, array, **options)
    return target.getvalue()


def _zip(**members):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


OTHERS = {
    "a pickle": pickle.dumps(Evil()),
    "an old pickle": pickle.dumps(Evil(), protocol=0),
    "a pickle of today": pickle.dumps({"rows": [1.0]}, protocol=5),
    "a joblib file": b"\x80\x04\x95" + b"joblib.numpy_pickle\nNumpyArrayWrapper" + bytes(90),
    "a zlib stream": b"\x78\x9c" + bytes(200),
    "npy": _npy(np.zeros((40, 3))),
    "npy of objects": _npy(np.array([Evil()], dtype=object), allow_pickle=True),
    "npz": _zip(**{"rows.npy": _npy(np.zeros((40, 3)))}),
    "a zip with ..": _zip(**{"../../rows": b"x"}),
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(200),
    "Parquet": b"PAR1" + bytes(200) + b"PAR1",
    "CSV": b"age,pulse\n" + b"61,80\n" * 40,
    "JSON": json.dumps({"rows": [[1.0] * 3] * 40}).encode(),
    "XML": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]>',
    "an executable": b"\x7fELF\x02\x01\x01" + bytes(200),
    "a script": b"#!/bin/sh\nrm -rf ~\n" * 10,
    "zeros": bytes(5_000),
    "ones": b"\xff" * 5_000,
    "one byte": b"\0",
    "a bundle": b"cobasis/bundle/1\n" + bytes(200),
}
SPOILT = {
    "half of it": lambda data: data[: len(data) // 2],
    "twice": lambda data: data + data,
    "zip behind it": lambda data: data + _zip(rows=b"x"),
    "zip before it": lambda data: _zip(rows=b"x") + data,
    "the file backwards": lambda data: data[::-1],
    **{f"{n} bytes cut": lambda data, n=n: data[:-n] for n in (1, 7, 8, 100, 960)},
    **{f"{n} bytes more": lambda data, n=n: data + bytes(n) for n in (1, 7, 8, 100, 960)},
}


def others():
    """Files of other kinds: where the upload's should be, sealed without a container, unsealed."""
    for word, data in OTHERS.items():
        yield payload_vector(f"an upload that is {word}", "CB602", lambda _, __, d=data: d)
        yield Vector(name=f"{word} unsealed", expect="CB801", make=partial(_as_it_is, data))
        if word != "a bundle":
            yield Vector(name=f"{word} in a seal", expect="CB803", make=partial(_sealed, data))
    for word, change in SPOILT.items():
        yield payload_vector(word, "CB602", lambda _, whole, c=change: c(whole))


def _as_it_is(data, _, path):
    path.write_bytes(data)


def _sealed(data, lab, path):
    sealed(path, data, to=lab.identities["lab"])
