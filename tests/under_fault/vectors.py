"""What a bad-input vector is, the rounds it is tried on, and uploads made by hand."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from analyst_side.rounds import NAMES, real_round
from bundle import bundles
from bundle.payloads import file_of
from cobasis import ConsortiumSecret
from cobasis.analyst_side.receive import receive
from cobasis.disk.tensors import DTYPES
from cobasis.errors import CobasisError
from keys.quick import keys_of

ROUNDS = {
    "fp64": {},
    "fp32": {"precision": "fp32"},
    "fp16": {"precision": "fp16"},
    "int8": {"precision": "int8", "int8_range": 40.0},
    "regression": {"task": "regression", "classes": (), "models": ("ridge",)},
    "representation": {"task": "representation", "model": None, "label": ""},
}
ROUNDS["representation"] |= {"models": (), "classes": ()}
WORD_OF = {kind: word for word, kind in DTYPES.items()}


class Vector(NamedTuple):
    """A file with one fault: `make(lab, path)` writes it, and `expect` is the error's code."""

    name: str
    expect: str
    make: Callable
    of: str = "fp64"  # the round, or the door


def outcome_of(call):
    try:
        call()
    except CobasisError as error:
        return error.code
    return "accepted"


def wrong_fields(table):
    """What to call it, the code, the field and its value, of a table of them in this order."""
    for expect, fields in table.items():
        for field, values in fields.items():
            for value in values:
                yield f"{field} is {str(value)[:70]!r}", expect, field, value


def bad_names(good):
    alike = good.translate({ord("o"): "\u043e", ord("e"): "\u0435"})  # of Cyrillic letters
    yield from ("", "..", f"../{good}", f"/{good}", f"C:\\{good}", f"\\\\host\\{good}", alike)
    yield from (f"{good}\0", f"{good}\n", f" {good}", f"\u202e{good}", good.upper(), good * 1000)


NO_JSON = {
    "of nothing": lambda _: b"",
    "of a list": lambda text: b"[%b]" % text,
    "of UTF-16": lambda text: text.decode().encode("utf-16"),
    "of no UTF-8": lambda text: text.replace(b'":', b'\xff":', 1),
    "of brackets": lambda _: b"[" * 30_000,
    "of a pickle": lambda _: b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x02os\x94.",
    "cut": lambda text: text[:-20],
    "with a mark of byte order": lambda text: b"\xef\xbb\xbf" + text,
    "with every field twice": lambda text: b"%b,%b" % (text.rstrip()[:-1], text[1:]),
    "with a comma too many": lambda text: text.rstrip()[:-1] + b",}",
}
NO_VALUES = {
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "an infinite number": b"1e999",
    "many digits": b"9" * 5000,
    "deep brackets": b"[" * 5000 + b"]" * 5000,
}


def json_faults(inside=b"{"):
    """Changes of a JSON object's text that leave none; a value goes in behind `inside`."""
    yield from NO_JSON.items()
    for word, value in NO_VALUES.items():
        new = inside + b'"a":%b,' % value
        yield f"with {word} in it", lambda text, new=new: text.replace(inside, new, 1)


class Tables(dict):
    """An upload's tables as arrays, by name, and what its file says of itself."""

    def __init__(self, arrays, *, metadata):
        super().__init__(arrays)
        self.metadata = metadata

    def changed(self, **new):
        kept = {name: each for name, each in {**self, **new}.items() if each is not None}
        return Tables(kept, metadata=self.metadata)

    def header(self):
        told, end, numbers = {"__metadata__": dict(self.metadata)}, 0, b""
        for name, table in self.items():
            data = np.ascontiguousarray(table).tobytes()
            word = WORD_OF.get(table.dtype, str(table.dtype))
            start, end = end, end + len(data)
            shape = list(table.shape)
            told[name] = {"dtype": word, "shape": shape, "data_offsets": [start, end]}
            numbers += data
        return told, numbers

    def told(self):
        labels = self.get("labels")
        return {
            "n_rows": len(self["rows"]),
            "n_components": self["rows"].shape[-1],
            "n_anchor_rows": len(self["anchor_image"]),
            "rows_dtype": self["rows"].dtype.name,
            "image_dtype": self["anchor_image"].dtype.name,
            "labels_dtype": "none" if labels is None else labels.dtype.name,
        }


class Lab:
    """An analyst of rounds of every precision and task, and parties that may send anything."""

    def __init__(self, folder):
        self.identities, self.secret = keys_of(NAMES), ConsortiumSecret()
        self.rounds, self.tables, self.bytes = {}, {}, {}
        for kind, changes in ROUNDS.items():
            place = folder / kind
            place.mkdir()
            made = real_round(place, identities=self.identities, secret=self.secret, **changes)
            made.inbox.mkdir()
            rows, labels = made.rows["north"]
            given = None if kind == "representation" else labels
            given = labels.astype(float) if kind == "regression" else given
            made.rows["north"] = rows, given
            payload = made.payload("north")
            self.rounds[kind], self.tables[kind] = made, _read(payload)
            self.bytes[kind] = payload.read_bytes()
        self.before = self.kept()

    def seal(self, path, payload=None, *, of="fp64", by=None, to=None, change=None, **options):
        """Seal a payload, with a manifest that may be changed; both are signed as they are."""
        payload = self.bytes[of] if payload is None else payload
        stored, agreement = options.pop("stored", payload), self.rounds[of].agreement
        kept = {name: options.pop(name) for name in ("after", "length", "magic") if name in options}
        tag, told = self.secret.anchor_tag(agreement).hex(), self.tables[of].told()
        fields = {"kind": "upload", "anchor_tag": tag, "told": told, **options}
        manifest = bundles.described_in(agreement, {"upload.safetensors": payload}, **fields)
        keys = {"by": by or self.identities["north"], "to": to or self.identities["lab"]}
        return bundles.craft(path, change(manifest) if change else manifest, stored, **keys, **kept)

    def decided(self, path, of):
        found = receive(self.rounds[of].session(), [path.parent])
        return found[0].code or found[0].verdict

    def kept(self):
        folders = [made.work.path for made in self.rounds.values()]
        files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
        left = [path for path in files if path.name not in {"transcript.jsonl", "lock"}]
        logs = [path for path in files if path.name == "transcript.jsonl"]
        return left, [log for log in logs if len(log.read_text().splitlines()) > 1]


def _read(path):
    with safe_open(path, framework="numpy") as file:
        return Tables(load_file(path), metadata=file.metadata())


def tables_vector(name, expect, change, *, of="fp64"):
    def make(lab, path):
        made = change(lab.tables[of])
        return lab.seal(path, file_of(*made.header()), of=of, told=made.told())

    return Vector(name, expect, make, of)


def payload_vector(name, expect, payload, *, of="fp64"):
    def make(lab, path):
        return lab.seal(path, payload(lab.tables[of], lab.bytes[of]), of=of)

    return Vector(name, expect, make, of)


def header_vector(name, expect, change, *, of="fp64"):
    def payload(tables, _):
        header, numbers = tables.header()
        change(header)
        return file_of(header, numbers)

    return payload_vector(name, expect, payload, of=of)
