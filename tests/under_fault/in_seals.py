"""Vectors: seals that do not open, signatures of the wrong person, clocks that are wrong."""

import os
from datetime import UTC, datetime, timedelta

from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text
from under_fault.in_bundles import bundle_vector
from under_fault.vectors import Vector

HOURS = {
    "49 hours ahead": timedelta(hours=49),
    "48 hours and a minute ahead": timedelta(hours=48, minutes=1),
    "a year ahead": timedelta(days=366),
}
MOMENTS = {
    "2038-01-19T03:14:08Z": "CB806",
    "2106-02-07T06:28:16Z": "CB806",
    "9999-12-31T23:59:59Z": "CB806",
    **dict.fromkeys(
        (
            "2026-02-30T12:00:00Z",
            "2026-11-21 12:00:00Z",
            "2026-11-21T12:00:00",
            "2026-11-21T12:00:00+00:00",
            "2026-11-21T14:00:00+02:00",
            "2026-11-21T12:00:00.5Z",
            "2026-11-21T12:00Z",
            "2026-11-21T24:00:00Z",
            "2026-12-31T23:59:60Z",
            "2026-W47-6T12:00:00Z",
            "10000-01-01T00:00:00Z",
            "0000-00-00T00:00:00Z",
            "1763726400",
            "now",
            "",
        ),
        "CB803",
    ),
}


def in_time():
    """Clocks that are wrong by less than 48 hours, and uploads that took a while to come."""
    for word, ahead in {
        "48 hours less a minute ahead": timedelta(hours=47, minutes=59),
        "now": timedelta(),
        "48 hours ago": timedelta(hours=-48),
        "a year ago": timedelta(days=-365),
    }.items():
        yield Vector(
            name=f"made {word}",
            expect="accepted",
            make=lambda lab, path, a=ahead: lab.seal(
                path, created=moment_text(datetime.now(UTC) + a)
            ),
        )


def clocks():
    """Moments in the future, and what is none."""
    for word, ahead in HOURS.items():
        yield Vector(
            name=f"made {word}",
            expect="CB806",
            make=lambda lab, path, a=ahead: lab.seal(
                path, created=moment_text(datetime.now(UTC) + a)
            ),
        )
    for moment, expect in MOMENTS.items():
        yield bundle_vector(f"made on {moment!r}", expect, created=moment)


def signatures():
    """Every byte of the signature with one bit changed; the right signature of the wrong person."""
    for byte in range(64):
        yield Vector(
            name=f"bit of byte {byte} of the signature", expect="CB802", make=_flipped(byte)
        )
    for word, data in {"zeros": bytes(64), "ones": b"\xff" * 64}.items():
        yield bundle_vector(f"a signature of {word}", "CB802", by=lambda _, d=data: _Fixed(d))
    yield bundle_vector("signed by another party", "CB802", by=lambda lab: lab.identities["south"])
    yield bundle_vector("signed by the analyst", "CB802", by=lambda lab: lab.identities["lab"])
    yield bundle_vector("a key that was replaced", "CB802", by=lambda _: Identity.new("north"))
    yield bundle_vector(
        "somebody who is not enrolled",
        "CB802",
        sender="stranger",
        by=lambda _: Identity.new("stranger"),
    )
    yield bundle_vector(
        "the analyst's own upload", "CB802", sender="lab", by=lambda lab: lab.identities["lab"]
    )
    yield Vector(name="a signature over another manifest", expect="CB802", make=_of_another)


class _Fixed:
    def __init__(self, data):
        self._data = data

    def sign(self, _):
        return self._data


def _flipped(byte):
    class Flipping:
        def __init__(self, identity):
            self._identity = identity

        def sign(self, message):
            data = bytearray(self._identity.sign(message))
            data[byte] ^= 1 << byte % 8
            return bytes(data)

    return lambda lab, path: lab.seal(path, by=Flipping(lab.identities["north"]))


def _of_another(lab, path):
    kept = []

    class Keeping:
        def sign(self, message):
            kept.append(lab.identities["north"].sign(message))
            return kept[0]

    keeping = Keeping()
    lab.seal(path, by=keeping)
    return lab.seal(path, by=keeping, round_id="icu-2026-b")


def seals():
    """Sealed for somebody else, cut, longer, changed, or no file at all."""
    for name in ("south", "north"):
        yield bundle_vector(f"sealed for {name}", "CB801", to=lambda lab, n=name: lab.identities[n])
    yield bundle_vector("sealed for nobody known", "CB801", to=lambda _: Identity.new("x"))
    for word, change in {
        "empty": lambda _: b"",
        "of one byte": lambda d: d[:1],
        "its first line only": lambda d: d[:22],
        "its header only": lambda d: d[: d.index(b"\n--- ") + 5],
        "cut in the middle": lambda d: d[: len(d) // 2],
        "cut by one byte": lambda d: d[:-1],
        "cut by sixteen bytes": lambda d: d[:-16],
        "longer by a byte": lambda d: d + b"\0",
        "longer by itself": lambda d: d + d,
        "of another version": lambda d: d.replace(
            b"age-encryption.org/v1", b"age-encryption.org/v2"
        ),
        "with a line feed of Windows": lambda d: d.replace(b"\n", b"\r\n", 1),
        "in armour": lambda d: b"-----BEGIN AGE ENCRYPTED FILE-----\n" + d,
        "with spaces before": lambda d: b"  " + d,
        "as text with its last bit lost": lambda d: bytes(b & 127 for b in d),
    }.items():
        yield Vector(name=f"a seal {word}", expect="CB801", make=_changed(change))
    yield Vector(name="sealed with a passphrase", expect="CB801", make=_with_passphrase)
    yield Vector(name="a pipe", expect="CB601", make=lambda _, path: os.mkfifo(path))
    yield Vector(
        name="a link to nowhere", expect="CB601", make=lambda _, path: path.symlink_to("/nowhere/a")
    )
    yield Vector(name="a link to itself", expect="CB601", make=lambda _, p: p.symlink_to(p.name))
    yield Vector(name="a device", expect="CB601", make=lambda _, p: p.symlink_to("/dev/zero"))


def _changed(change):
    def make(lab, path):
        lab.seal(path)
        path.write_bytes(change(path.read_bytes()))

    return make


def _with_passphrase(_, path):
    salt, key, mac = b"b" * 22, b"k" * 43, b"m" * 43
    start = b"age-encryption.org/v1\n-> scrypt " + salt + b" 18\n" + key + b"\n--- " + mac
    path.write_bytes(start + b"\n" + bytes(100))
