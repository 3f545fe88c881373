import os
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace

from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text
from cobasis.strict_json import canonical_json
from under_fault.vectors import Vector, bad_names, json_faults, wrong_fields


def bundle_vector(name, expect, **options):
    """A bundle with an honest upload in it, and one thing about it that is not.

    Options other than `change` that are functions are given the lab.
    """

    def make(lab, path):
        told = {
            key: value(lab) if callable(value) and key != "change" else value
            for key, value in options.items()
        }
        return lab.seal(path, **told)

    return Vector(name, expect, make)


def said(name, value, manifest):
    made = {**manifest, name: value(manifest.get(name)) if callable(value) else value}
    return {key: each for key, each in made.items() if each is not ...}


def stepped(step):
    return lambda number: number + step


NO_TEXT = (..., None, 7, {"a": 1})
FIELDS = {
    "CB802": {"sender": ["stranger", "south", "lab"]},
    "CB803": {
        "format": ["cobasis/bundle/2", "safetensors"],
        "kind": ["model", "proposal", "return", "secret", *NO_TEXT],
        "software": ["x" * 101, "x\ny", *NO_TEXT],
        "round_id": ["", "icu\a", *NO_TEXT],
        "agreement": ["A" * 64, "a" * 63, *NO_TEXT],
        "sender": ["../north", "north\0", ".north", "n\u043erth", *NO_TEXT],
        "recipients": [[], *NO_TEXT],
        "created": NO_TEXT,
        "parts": [[], ...],
        "audit": ["fine"],
        "dp": [[1]],
        "told": [{"rows": {"a": 1}}, {"../a": 1}, {f"w{n}": n for n in range(101)}],
        "pickle": ["x"],
    },
    "CB804": {
        "round_id": ["icu-2025"],
        "agreement": ["0" * 64],
        "anchor_tag": ["0" * 64, None],
        "recipients": [["west"]],
        "simulated": [True],
        "told": [{"n_rows": 1}, {"exchange": ["1"]}],
    },
}
SIZES = (0, -1, 2**31, 2**48, 2**63, 2**64, 1.5, "960", None, True)
PART = {
    "CB803": {
        "name": [*bad_names("upload.safetensors"), "upload.safetensors.part", "model.safetensors"],
        "n_bytes": SIZES,
        "sha256": ["0" * 64, "0" * 63, "", None, "G" * 64],
    }
}


def manifests():
    text = partial(canonical_json, ascii_only=False)
    for word, change in json_faults(b'"told":{'):
        yield bundle_vector(
            f"a manifest {word}", "CB803", change=lambda told, change=change: change(text(told))
        )
    for name, expect, field, value in wrong_fields(FIELDS):
        yield bundle_vector(name, expect, change=partial(said, field, value))
    for name, expect, field, value in wrong_fields(PART):
        change = partial(said, "parts", partial(_entry, field, value))
        yield bundle_vector(f"a part's {name}", expect, change=change)
    for field in ("rows_dtype", "image_dtype", "labels_dtype"):
        change = partial(said, "told", partial(said, field, "float16"))
        yield bundle_vector(f"told another {field}", "CB804", change=change)
    for step in (-1, 1):
        change = partial(said, "parts", partial(_entry, "n_bytes", stepped(step)))
        yield bundle_vector(f"{step:+d} byte in a part's n_bytes", "CB803", change=change)
        for field in ("n_rows", "n_components", "n_anchor_rows"):
            change = partial(said, "told", partial(said, field, stepped(step)))
            yield bundle_vector(f"told {field} {step:+d}", "CB804", change=change)


def _entry(field, value, parts):
    return [said(field, value, parts[0])]


def _parts(change):
    return {"change": partial(said, "parts", change)}


CONTAINERS = {
    **{f"a part {n:,} times": _parts(lambda parts, n=n: parts * n) for n in (2, 9, 10**5)},
    "one part more": _parts(lambda parts: [*parts, {**parts[0], "name": "model.safetensors"}]),
    "bytes behind the last part": {"after": b"\0"},
    "a second container behind it": {"after": b"cobasis/bundle/1\n"},
    "another first line": {"magic": b"cobasis/bundle/2\n"},
    **{f"a manifest of {n:,} bytes": {"length": n} for n in (0, 2**20 + 1, 2**31, 2**32 - 1)},
    "a part of other bytes": {"stored": lambda lab: bytes(len(lab.bytes["fp64"]))},
    "a part of fewer bytes": {"stored": lambda lab: lab.bytes["fp64"][:-1]},
    "a part of more bytes": {"stored": lambda lab: lab.bytes["fp64"] + b"\1"},
    "a step less": {"stored": lambda lab: lab.bytes["fp64"][:-4096]},
    "a step more": {"stored": lambda lab: lab.bytes["fp64"] + bytes(4096)},
}


DATE = "2026-11-21"
MOMENTS = {
    "CB803": [
        *(f"{DATE}T12:00Z", f"{DATE}T24:00:00Z", f"{DATE}T12:00:00+02:00", f"{DATE}T12:00:00.5Z"),
        *("2026-02-30T12:00:00Z", "10000-01-01T00:00:00Z", "1763726400", ""),
    ],
    "CB806": ["2038-01-19T03:14:08Z", "2106-02-07T06:28:16Z", "9999-12-31T23:59:59Z"],
}


def _made(expect, *ahead):
    for hours in ahead:
        yield bundle_vector(
            f"made {hours} hours ahead",
            expect,
            created=lambda _, hours=hours: moment_text(datetime.now(UTC) + timedelta(hours=hours)),
        )


def in_time():
    """Clocks that are wrong by less than 48 hours, and uploads that took a while to come."""
    return _made("accepted", 47.9, 0, -48, -365 * 24)


def clocks():
    yield from _made("CB806", 48.1, 49, 366 * 24)
    for expect, moments in MOMENTS.items():
        for moment in moments:
            yield bundle_vector(f"made on {moment!r}", expect, created=moment)


def _who(name):
    return lambda lab: lab.identities.get(name) or Identity.new(name)


SIGNERS = {
    "a signature of zeros": {"by": lambda _: SimpleNamespace(sign=lambda _: bytes(64))},
    "a key that was replaced": {"by": lambda _: Identity.new("north")},
    **{f"signed by {name}": {"by": _who(name)} for name in ("south", "lab")},
    **{
        f"an upload of {name}'s own": {"by": _who(name), "sender": name}
        for name in ("stranger", "lab")
    },
}


def bundles():
    for expect, table in {"CB803": CONTAINERS, "CB802": SIGNERS}.items():
        for word, options in table.items():
            yield bundle_vector(word, expect, **options)


PASSPHRASE = b"age-encryption.org/v1\n-> scrypt %b 18\n%b\n--- %b\n%b" % (
    *(b"b" * 22, b"k" * 43, b"m" * 43),
    bytes(100),
)
SEALS = {
    "empty": lambda _: b"",
    "its header only": lambda d: d[: d.index(b"\n--- ") + 5],
    "cut in the middle": lambda d: d[: len(d) // 2],
    "cut by one byte": lambda d: d[:-1],
    "longer by a byte": lambda d: d + b"\0",
    "longer by itself": lambda d: d + d,
    "of another version": lambda d: d.replace(b"age-encryption.org/v1", b"age-encryption.org/v2"),
    "with a line feed of Windows": lambda d: d.replace(b"\n", b"\r\n", 1),
    "in armour": lambda d: b"-----BEGIN AGE ENCRYPTED FILE-----\n" + d,
    "with a passphrase": lambda _: PASSPHRASE,
}
PLACES = {
    "a pipe": os.mkfifo,
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/a"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


def seals():
    for name in ("south", "north", "nobody"):
        yield bundle_vector(f"sealed for {name}", "CB801", to=_who(name))
    for word, change in SEALS.items():
        yield Vector(f"a seal {word}", "CB801", partial(_changed, change))
    for word, place in PLACES.items():
        yield Vector(word, "CB601", lambda _, path, place=place: place(path))


def _changed(change, lab, path):
    lab.seal(path)
    path.write_bytes(change(path.read_bytes()))
