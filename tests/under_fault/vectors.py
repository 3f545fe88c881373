"""What a bad-input vector is, the rounds it is tried on, and uploads made by hand.

Every vector is a file with one fault, made by code, and the code of the error it has to end in.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import zstandard

from analyst_side.rounds import NAMES, real_round
from bundle import bundles
from bundle.payloads import described
from cobasis import ConsortiumSecret
from cobasis.analyst_side.receive import receive
from cobasis.errors import CobasisError
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text

ROUNDS = {
    "fp64": {},
    "fp32": {"precision": "fp32"},
    "fp16": {"precision": "fp16"},
    "int8": {"precision": "int8", "int8_range": 40.0},
    "regression": {"task": "regression", "classes": (), "models": ("ridge",)},
    "representation": {
        "task": "representation",
        "model": None,
        "models": (),
        "classes": (),
        "label": "",
    },
}
WORDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I8": "i1"}
WORD_OF = {np.dtype(kind): word for word, kind in WORDS.items()}


@dataclass(frozen=True, kw_only=True)
class Vector:
    """A file with one fault.

    `make(lab, path)` writes it, and `expect` is the code of the error; `of` names the round.
    """

    name: str
    expect: str
    make: Callable
    of: str = "fp64"


def outcome_of(call):
    """The code that a call ends in, or that it took what it was given."""
    try:
        call()
    except CobasisError as error:
        return error.code
    return "accepted"


class Tables(dict):
    """An upload's tables as arrays, by name, and what its file says of itself."""

    def __init__(self, arrays, *, metadata):
        super().__init__(arrays)
        self.metadata = metadata

    def changed(self, name, change):
        """The same but for one table."""
        return Tables({**self, name: change(np.array(self[name]))}, metadata=self.metadata)

    def header(self):
        """The header's object, and the numbers behind it."""
        told, end, numbers = {"__metadata__": dict(self.metadata)}, 0, b""
        for name, table in self.items():
            data = np.ascontiguousarray(table).tobytes()
            word = WORD_OF.get(table.dtype, str(table.dtype))
            start, end = end, end + len(data)
            told[name] = {
                "dtype": word,
                "shape": list(table.shape),
                "data_offsets": [start, end],
            }
            numbers += data
        return told, numbers

    def told(self):
        """What an honest manifest tells of them."""
        labels = self.get("labels")
        return {
            "n_rows": len(self["rows"]),
            "n_components": self["rows"].shape[-1],
            "n_anchor_rows": len(self["anchor_image"]),
            "rows_dtype": self["rows"].dtype.name,
            "image_dtype": self["anchor_image"].dtype.name,
            "labels_dtype": "none" if labels is None else labels.dtype.name,
        }


def file_of(header, numbers=b"", *, length=None):
    """A safetensors file with any header: an object, or bytes as they are."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return size.to_bytes(8, "little") + text + numbers


class Lab:
    """An analyst of rounds of every precision and task, and parties that may send anything."""

    def __init__(self, folder):
        self.identities = {name: Identity.new(name) for name in NAMES}
        self.identities["lab"] = Identity.new("lab", role="analyst")
        self.secret = ConsortiumSecret()
        self.rounds, self.tables, self.bytes = {}, {}, {}
        for kind, changes in ROUNDS.items():
            place = folder / kind
            place.mkdir()
            made = real_round(place, identities=self.identities, secret=self.secret, **changes)
            made.inbox.mkdir()
            rows, labels = made.rows["north"]
            given = None if kind == "representation" else labels
            given = labels.astype(float) if kind == "regression" else given
            payload = made.payload("north", rows=(rows, given))
            self.rounds[kind], self.tables[kind] = made, _read(payload)
            self.bytes[kind] = payload.read_bytes()

    def manifest(self, kind, payload, stored, **changes):
        """What an honest sender says, but for the changes."""
        made = self.rounds[kind]
        fields = {
            "kind": "upload",
            "round_id": made.agreement.round_id,
            "agreement": made.agreement.digest().hex(),
            "anchor_tag": self.secret.anchor_tag(made.agreement).hex(),
            "created": moment_text(datetime.now(UTC)),
            "told": self.tables[kind].told(),
        }
        part = {"upload.safetensors": (payload, stored)}
        return bundles.described(part, **{**fields, **changes})

    def seal(self, path, payload=None, *, of="fp64", by=None, to=None, change=None, **options):
        """Seal a payload, with a manifest that may be changed; both are signed as they are."""
        payload = self.bytes[of] if payload is None else payload
        stored = options.pop("stored", None) or zstandard.compress(payload)
        kept = {name: options.pop(name) for name in ("after", "length", "magic") if name in options}
        manifest = self.manifest(of, payload, stored, **options)
        if change is not None:
            manifest = change(manifest)
        return bundles.craft(
            path,
            manifest,
            stored,
            by=by or self.identities["north"],
            to=to or self.identities["lab"],
            **kept,
        )

    def received(self, path, *, of="fp64"):
        """What `receive` says of the one file in a folder: its code, or its verdict."""
        found = receive(self.rounds[of].session(), [path.parent]).files
        return found[0].code or found[0].verdict

    def left(self):
        """Whatever stands in a work folder that should be empty."""
        return [
            str(path)
            for made in self.rounds.values()
            if made.work.path.exists()
            for path in made.work.path.rglob("*")
            if path.is_file() and path.name not in {"transcript.jsonl", "lock"}
        ]

    def lines(self):
        """How many lines all transcripts have: one for each folder that was opened."""
        logs = [made.work.transcript for made in self.rounds.values()]
        return {len(log.read_text().splitlines()) for log in logs if log.exists()}


def _read(path):
    header, numbers = described(path)
    metadata = header.pop("__metadata__")
    arrays = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        flat = np.frombuffer(numbers[start:stop], dtype=WORDS[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    return Tables(arrays, metadata=metadata)


def tables_vector(name, expect, change, *, of="fp64"):
    """An upload whose tables are changed; header and manifest tell them as they are."""

    def make(lab: Lab, path: Path):
        made = change(lab.tables[of])
        return lab.seal(path, file_of(*made.header()), of=of, told=made.told())

    return Vector(name=name, expect=expect, make=make, of=of)


def payload_vector(name, expect, payload, *, of="fp64"):
    """An upload whose file is any bytes; the manifest tells of the honest one."""

    def make(lab: Lab, path: Path):
        return lab.seal(path, payload(lab.tables[of], lab.bytes[of]), of=of)

    return Vector(name=name, expect=expect, make=make, of=of)


def header_vector(name, expect, change, *, of="fp64"):
    """An upload whose header's object is changed, and whose numbers stay."""

    def payload(tables, _):
        header, numbers = tables.header()
        change(header)
        return file_of(header, numbers)

    return payload_vector(name, expect, payload, of=of)
