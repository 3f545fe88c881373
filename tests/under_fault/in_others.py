"""Vectors: files of other kinds where an upload should be, in its place or in the bundle's."""

import io
import json
import pickle
import zipfile

import numpy as np

from bundle.bundles import sealed
from under_fault.vectors import Vector, payload_vector


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
    "a pickle": lambda: pickle.dumps(Evil()),
    "an old pickle": lambda: pickle.dumps(Evil(), protocol=0),
    "a pickle of today": lambda: pickle.dumps({"rows": [1.0]}, protocol=5),
    "a joblib file": lambda: (
        b"\x80\x04\x95" + b"joblib.numpy_pickle\nNumpyArrayWrapper" + bytes(90)
    ),
    "a zlib stream": lambda: b"\x78\x9c" + bytes(200),
    "npy": lambda: _npy(np.zeros((40, 3))),
    "npy of objects": lambda: _npy(np.array([Evil()], dtype=object), allow_pickle=True),
    "npz": lambda: _zip(**{"rows.npy": _npy(np.zeros((40, 3)))}),
    "a zip with ..": lambda: _zip(**{"../../rows": b"x"}),
    "HDF5": lambda: b"\x89HDF\r\n\x1a\n" + bytes(200),
    "Parquet": lambda: b"PAR1" + bytes(200) + b"PAR1",
    "CSV": lambda: b"age,pulse\n" + b"61,80\n" * 40,
    "JSON": lambda: json.dumps({"rows": [[1.0] * 3] * 40}).encode(),
    "XML": lambda: b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "/etc/passwd">]>',
    "an executable": lambda: b"\x7fELF\x02\x01\x01" + bytes(200),
    "a script": lambda: b"#!/bin/sh\nrm -rf ~\n" * 10,
    "zeros": lambda: bytes(5_000),
    "ones": lambda: b"\xff" * 5_000,
    "one byte": lambda: b"\0",
    "a bundle": lambda: b"cobasis/bundle/1\n" + bytes(200),
}


def others():
    """Files of other kinds, where the upload's should be."""
    for word, data in OTHERS.items():
        yield payload_vector(f"an upload that is {word}", "CB602", lambda _, __, d=data: d())
    for count in (1, 7, 8, 100, 960):
        yield payload_vector(f"{count} bytes cut", "CB602", lambda _, b, n=count: b[:-n])
        yield payload_vector(f"{count} bytes more", "CB602", lambda _, b, n=count: b + bytes(n))
    yield payload_vector("half of it", "CB602", lambda _, b: b[: len(b) // 2])
    yield payload_vector("twice", "CB602", lambda _, b: b + b)
    yield payload_vector("zip behind it", "CB602", lambda _, b: b + _zip(rows=b"x"))
    yield payload_vector("zip before it", "CB602", lambda _, b: _zip(rows=b"x") + b)
    yield payload_vector("the file backwards", "CB602", lambda _, b: b[::-1])


def sent_as_they_are():
    """The same, without any seal, and sealed without a container."""
    for word, data in OTHERS.items():
        yield Vector(
            name=f"{word} without a seal",
            expect="CB801",
            make=lambda _, path, d=data: path.write_bytes(d()),
        )
    for word in sorted(set(OTHERS) - {"a bundle"}):
        yield Vector(name=f"{word} in a seal", expect="CB803", make=_sealed_only(OTHERS[word]))


def _sealed_only(data):
    def make(lab, path):
        return sealed(path, data(), to=lab.identities["lab"])

    return make
