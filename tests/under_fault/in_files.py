import io
import pickle
import zipfile
from functools import partial
from itertools import permutations

import numpy as np

from bundle.bundles import sealed
from bundle.payloads import file_of, json_of
from under_fault.vectors import (
    Vector,
    bad_names,
    header_vector,
    json_faults,
    payload_vector,
    wrong_fields,
)

BEGINNINGS = {
    "that is padded": b"null    ",
    "of no table": b"{}      ",
    "of metadata only": b'{"__metadata__":{"format":"x"}}',
    "of deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
}
LENGTHS = {
    **{f"of {n:,} bytes": lambda _, n=n: n for n in (0, 1, 2**16 + 1, 2**31, 2**63, 2**64 - 1)},
    **{f"{step:+d} byte": lambda text, step=step: len(text) + step for step in (-1, 1)},
}


def texts():
    texts = dict(json_faults()) | {word: lambda _, t=t: t for word, t in BEGINNINGS.items()}
    for word in (*texts, *LENGTHS):
        payload = partial(_begun, texts.get(word, bytes), LENGTHS.get(word, len))
        yield payload_vector(f"a header {word}", "CB602", payload)
    for count in (100_000, 800):
        yield payload_vector(f"{count:,} more tables", "CB602", partial(_many, count))


def _begun(change, length, tables, _):
    header, numbers = tables.header()
    text = change(json_of(header))
    return file_of(text, numbers, length=length(text))


def _many(count, tables, _):
    """So many tables of one byte; of a hundred thousand the header is longer than what is read."""
    header, numbers = tables.header()
    for at in range(len(numbers), len(numbers) + count):
        header[f"t{at}"] = {"dtype": "I8", "shape": [1], "data_offsets": [at, at + 1]}
    return file_of(header, numbers + bytes(count))


PLACES = {
    "beyond the end": [0, 10**9],
    "far beyond the end": [2**62, 2**62 + 960],
    "backwards": [960, 0],
    "negative": [-8, 952],
    "fractions": [0.0, 960.0],
    "one number": [0],
    "three": [0, 480, 960],
    "none": None,
    "yes and no": [False, True],
}
LYING_SHAPES = {
    "that overflow to the right size": [2**61 + 40, 3],
    "that are negative": [-40, -3],
    "that are fractions": [40.0, 3.0],
    "that are true": [True, True],
    "of a hundred dimensions": [40, 3] + [1] * 98,
    "that are a number": 120,
    "of no dimension": [],
}


def places():
    """Tables under other names, at other places or of other shapes; one more, or one less."""
    for table in ("rows", "anchor_image", "labels"):
        entry = partial(partial, _entry, table)
        changes = {
            f"called {x[:99]!r}": lambda header, t=table, x=x: header.update({x: header.pop(t)})
            for x in bad_names(table)
        }
        changes |= {f"at offsets {word}": entry("data_offsets", x) for word, x in PLACES.items()}
        changes |= {f"of shapes {word}": entry("shape", x) for word, x in LYING_SHAPES.items()}
        changes |= {f"without {word}": entry(word, ...) for word in ("dtype", "shape")}
        changes["as a list"] = lambda header, t=table: header.update({t: [1]})
        changes["left out"] = lambda header, t=table: header.pop(t)
        changes["twice"] = lambda header, t=table: header.update({"another": header[t]})
        for word, change in changes.items():
            yield header_vector(f"{table} {word}", "CB602", change)
    for first, second in permutations(("rows", "anchor_image", "labels"), 2):
        change = partial(_overlapping, first, second)
        yield header_vector(f"{first} on the {second}", "CB602", change)


def _entry(table, word, value, header):
    if value is ...:
        del header[table][word]
    else:
        header[table][word] = value


def _overlapping(first, second, header):
    start, stop = header[first]["data_offsets"]
    other = header[second]["data_offsets"][0]
    header[first]["data_offsets"] = [other, other + stop - start]


SAYS = {
    "CB602": {
        "party": ["", "no\rth", "n" * 101, 7, ...],
        "agreement_digest": ["A" * 64, "12", "", 7, ...],
        "anchor_tag": ["g" * 64, "", 7, ...],
        "simulated": ["True", "", "1", 7, ...],
        "format": ["cobasis-upload/2", "pt", "", 7, ...],
        "int8_scale": ["0", "1e-3"],
    },
    "CB804": {
        "party": ["south"],
        "agreement_digest": ["0" * 64],
        "anchor_tag": ["0" * 64],
        "simulated": ["true"],
    },
}
SCALES = {"CB306": {"int8_scale": ["0.1"]}}
SCALES["CB602"] = {"int8_scale": ["0", "-1", "nan", "inf", "1e400", "one", ""]}


def says():
    for of, table in {"fp64": SAYS, "int8": SCALES}.items():
        for name, expect, field, value in wrong_fields(table):
            change = partial(_entry, "__metadata__", field, value)
            yield header_vector(f"{name}, {of}", expect, change, of=of)


class Evil:
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
    "npy of objects": _npy(np.array([Evil()], dtype=object), allow_pickle=True),
    "npz": _zip(**{"rows.npy": _npy(np.zeros((40, 3)))}),
    "a zip with ..": _zip(**{"../../rows": b"x"}),
    "CSV": b"age,pulse\n" + b"61,80\n" * 40,
    "an executable": b"\x7fELF\x02\x01\x01" + bytes(200),
    "zeros": bytes(5_000),
    "ones": b"\xff" * 5_000,
    "one byte": b"\0",
    "a bundle": b"cobasis/bundle/1\n" + bytes(200),
}
SPOILT = {
    "half of it": lambda data: data[: len(data) // 2],
    "twice": lambda data: data + data,
    "zip behind it": lambda data: data + _zip(rows=b"x"),
    **{f"{n} bytes cut": lambda data, n=n: data[:-n] for n in (1, 7, 8, 960)},
    **{f"{n} bytes more": lambda data, n=n: data + bytes(n) for n in (1, 7, 8, 960)},
}


def others():
    for word, data in OTHERS.items():
        yield payload_vector(f"an upload that is {word}", "CB602", lambda _, __, d=data: d)
        yield Vector(f"{word} unsealed", "CB801", lambda _, path, d=data: path.write_bytes(d))
        if word != "a bundle":
            yield Vector(f"{word} in a seal", "CB803", partial(_sealed, data))
    for word, change in SPOILT.items():
        yield payload_vector(word, "CB602", lambda _, whole, c=change: c(whole))


def _sealed(data, lab, path):
    sealed(path, data, to=lab.identities["lab"])
