"""Vectors: manifests, parts, frames, clocks, signatures and seals, each with one fault."""

import json
import os
from datetime import UTC, datetime, timedelta
from functools import partial

import zstandard

from bundle.bundles import undeclared
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text
from cobasis.strict_json import canonical_json
from under_fault.vectors import Vector

canonical = partial(canonical_json, ascii_only=False)


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

    return Vector(name=name, expect=expect, make=make)


def _said(name, value):
    """A field of the manifest replaced, changed, or taken away."""

    def change(manifest):
        made = {**manifest, name: value(manifest[name]) if callable(value) else value}
        return {key: each for key, each in made.items() if each is not ...}

    return change


FOREIGN = {
    "another round": ("CB804", "round_id", "icu-2025"),
    "another agreement": ("CB804", "agreement", "0" * 64),
    "another anchor": ("CB804", "anchor_tag", "0" * 64),
    "no anchor": ("CB804", "anchor_tag", None),
    "another recipient in the manifest": ("CB804", "recipients", ["west"]),
    "drawn from a seed": ("CB804", "simulated", True),
    "a later format": ("CB803", "format", "cobasis/bundle/2"),
    "another format": ("CB803", "format", "safetensors"),
    "an unknown kind": ("CB803", "kind", "model"),
    "a proposal by its kind": ("CB803", "kind", "proposal"),
    "a return by its kind": ("CB803", "kind", "return"),
    "a secret by its kind": ("CB803", "kind", "secret"),
    "somebody unknown": ("CB802", "sender", "stranger"),
    "another party by name only": ("CB802", "sender", "south"),
    "the analyst by name only": ("CB802", "sender", "lab"),
    "software without end": ("CB803", "software", "x" * 101),
    "software with a line feed": ("CB803", "software", "x\ny"),
    "a round that rings": ("CB803", "round_id", "icu\a"),
    "a round of no letters": ("CB803", "round_id", ""),
    "nobody to read it": ("CB803", "recipients", []),
    "a sender with a path": ("CB803", "sender", "../north"),
    "a sender with NUL": ("CB803", "sender", "north\0"),
    "a sender that is hidden": ("CB803", "sender", ".north"),
    "a sender of another alphabet": ("CB803", "sender", "n\u043erth"),
    "a digest in capitals": ("CB803", "agreement", "A" * 64),
    "a short digest": ("CB803", "agreement", "a" * 63),
    "no parts": ("CB803", "parts", []),
    "an audit that is a word": ("CB803", "audit", "fine"),
    "noise that is a list": ("CB803", "dp", [1]),
    "words that nobody asked for": ("CB804", "told", {"n_rows": 1}),
    "words of objects": ("CB803", "told", {"rows": {"a": 1}}),
    "a word under a path": ("CB803", "told", {"../a": 1}),
    "a hundred and one words": ("CB803", "told", {f"w{n}": n for n in range(101)}),
}


def manifests():
    """Fields that are another round's, missing, of another type, or too much."""
    for word, (expect, name, value) in FOREIGN.items():
        yield bundle_vector(word, expect, change=_said(name, value))
    for name in ("kind", "software", "round_id", "agreement", "sender", "recipients", "created"):
        for value in (..., None, 7, {"a": 1}):
            yield bundle_vector(f"{name} is {value}", "CB803", change=_said(name, value))
    yield bundle_vector("no parts in it", "CB803", change=_said("parts", ...))
    yield bundle_vector("one field more", "CB803", change=lambda m: {**m, "pickle": "x"})
    for name in ("n_rows", "n_components", "n_anchor_rows"):
        for step in (-1, 1):
            change = _said("told", partial(_stepped, name, step))
            yield bundle_vector(f"told {name} {step:+d}", "CB804", change=change)


def _stepped(name, step, told):
    return {**told, name: told[name] + step}


NAMES = {
    "..": "../upload.safetensors",
    "absolute": "/upload.safetensors",
    "of a drive": "C:\\upload.safetensors",
    "of a share": "\\\\host\\upload.safetensors",
    "with NUL": "upload.safetensors\0",
    "in capitals": "UPLOAD.SAFETENSORS",
    "in Cyrillic": "upl\u043ead.safetensors",
    "empty": "",
    "of dots": "..",
    "too long": "u" * 65,
    "of another kind": "model.safetensors",
    "of a half-written file": "upload.safetensors.part",
}
LENGTHS = {"0": 0, "2^20 + 1": 2**20 + 1, "2^31": 2**31, "2^32 - 1": 2**32 - 1}
SIZES = (0, -1, 2**31, 2**48, 2**63, 2**64, 1.5, "960", None, True)


def _part(name, value):
    """A field of the one part replaced."""
    return _said("parts", lambda parts: [{**parts[0], name: value}])


def parts():
    """Names, sizes and digests of parts; parts too many, twice, or not there."""
    for word, name in NAMES.items():
        yield bundle_vector(f"a part's name {word}", "CB803", change=_part("name", name))
    for word in ("n_bytes", "stored_bytes"):
        for step in (-1, 1):
            change = _said("parts", lambda p, w=word, s=step: [_stepped(w, s, p[0])])
            yield bundle_vector(f"{step:+d} byte in a part's {word}", "CB803", change=change)
        for value in SIZES:
            yield bundle_vector(f"a part's {word} {value}", "CB803", change=_part(word, value))
    for value in ("0" * 64, "0" * 63, "", None, "G" * 64):
        yield bundle_vector(f"a part's digest {value}", "CB803", change=_part("sha256", value))
    for count in (2, 9, 10**5):
        change = _said("parts", lambda p, n=count: p * n)
        yield bundle_vector(f"a part {count:,} times", "CB803", change=change)
    more = _said("parts", lambda p: [p[0], {**p[0], "name": "model.safetensors"}])
    yield bundle_vector("one part more", "CB803", change=more)
    yield bundle_vector("bytes behind the last part", "CB803", after=b"\0")
    yield bundle_vector("a second container behind it", "CB803", after=b"cobasis/bundle/1\n")
    yield bundle_vector("another first line", "CB803", magic=b"cobasis/bundle/2\n")
    for word, length in LENGTHS.items():
        yield bundle_vector(f"a manifest of {word} bytes", "CB803", length=length)


TEXTS = {
    "no JSON": lambda _: b"{",
    "a list": lambda m: json.dumps([m]).encode(),
    "UTF-16": lambda m: json.dumps(m).encode("utf-16"),
    "no UTF-8": lambda m: canonical({**m, "software": "x"}).replace(b'"x"', b'"\xff"'),
    "with a mark of byte order": lambda m: b"\xef\xbb\xbf" + canonical(m),
    "with NaN": lambda m: canonical(m).replace(b'"told":{', b'"told":{"a":NaN,'),
    "with Infinity": lambda m: canonical(m).replace(b'"told":{', b'"told":{"a":Infinity,'),
    "with a field twice": lambda m: canonical(m)[:-1] + b',"sender":"north"}',
    "with a comma too many": lambda m: canonical(m)[:-1] + b",}",
    "with a comment": lambda m: canonical(m) + b"// fine",
    "nested deeply": lambda m: canonical({**m, "audit": None}).replace(
        b'"audit":null', b'"audit":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"
    ),
    "with a number of many digits": lambda m: canonical(m).replace(
        b'"told":{', b'"told":{"a":' + b"9" * 5000 + b","
    ),
    "of a pickle": lambda _: b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x02os\x94.",
}


def _blocks(plain, head, *, window=0x58):
    """A frame that declares its size, and whose first block begins like this."""
    start = b"\x28\xb5\x2f\xfd" + bytes([0xC0, window]) + len(plain).to_bytes(8, "little")
    return start + head + bytes(2**18)


FRAMES = {
    "no frame": lambda _: b"x" * 100,
    "an undeclared size": undeclared,
    "two frames": lambda p: zstandard.compress(p[:100]) + zstandard.compress(p[100:]),
    "a skippable frame first": lambda p: b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.compress(p),
    "a cut frame": lambda p: zstandard.compress(p)[:-5],
    "a frame and a byte": lambda p: zstandard.compress(p) + b"\0",
    "gzip": lambda _: b"\x1f\x8b\x08" + bytes(100),
    "the plain bytes": lambda p: p,
    "a frame of other bytes": lambda p: zstandard.compress(bytes(len(p))),
    "a frame of fewer bytes": lambda p: zstandard.compress(p[:-1]),
    "a frame of more bytes": lambda p: zstandard.compress(p + b"\0"),
    "a skippable frame behind it": lambda p: (
        zstandard.compress(p) + b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    ),
    "a block of a reserved kind": lambda p: _blocks(p, b"\x07\0\0"),
    "a block above 128 KiB": lambda p: _blocks(p, ((2**17 + 1) << 3).to_bytes(3, "little")),
    "a window of two gigabytes": lambda p: _blocks(p, b"\1\0\0", window=0xA8),
}


def texts():
    """Manifests and frames that are none, or that two readers read in two ways."""
    for word, change in TEXTS.items():
        yield bundle_vector(f"a manifest {word}", "CB803", change=change)
    for word, pack in FRAMES.items():
        stored = partial(_packed, pack)
        yield bundle_vector(f"a part of {word}", "CB803", stored=stored)


def _packed(pack, lab):
    return pack(lab.bytes["fp64"])


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


def _made(word, expect, hours):
    """A bundle that was made so many hours from now."""
    ahead = timedelta(hours=hours)
    return bundle_vector(
        f"made {word}", expect, created=lambda _: moment_text(datetime.now(UTC) + ahead)
    )


def in_time():
    """Clocks that are wrong by less than 48 hours, and uploads that took a while to come."""
    for hours in (47.9, 0, -48, -365 * 24):
        yield _made(f"{hours} hours ahead", "accepted", hours)


def clocks():
    """Moments in the future, and what is none."""
    for hours in (48.1, 49, 366 * 24):
        yield _made(f"{hours} hours ahead", "CB806", hours)
    for moment, expect in MOMENTS.items():
        yield bundle_vector(f"made on {moment!r}", expect, created=moment)


class Signer:
    """Signs as somebody does, and changes the signature, or gives the first one again."""

    def __init__(self, sign, change=bytes, *, once=False):
        self._sign, self._change, self._once, self._first = sign, change, once, None

    def sign(self, message):
        if self._first is None or not self._once:
            self._first = bytes(self._change(bytearray(self._sign(message))))
        return self._first


def _flipped(byte, data):
    data[byte] ^= 1 << byte % 8
    return data


SIGNERS = {
    "a signature of zeros": lambda _: Signer(lambda _: bytes(64)),
    "a signature of ones": lambda _: Signer(lambda _: b"\xff" * 64),
    "signed by another party": lambda lab: lab.identities["south"],
    "signed by the analyst": lambda lab: lab.identities["lab"],
    "a key that was replaced": lambda _: Identity.new("north"),
    **{
        f"bit of byte {byte} of the signature": lambda lab, n=byte: Signer(
            lab.identities["north"].sign, partial(_flipped, n)
        )
        for byte in range(64)
    },
}


STRANGERS = {
    "stranger": lambda _: Identity.new("stranger"),
    "lab": lambda lab: lab.identities["lab"],
}


def signatures():
    """Every byte of the signature with one bit changed; the right signature of the wrong person."""
    for word, by in SIGNERS.items():
        yield bundle_vector(word, "CB802", by=by)
    for name, by in {
        "stranger": lambda _: Identity.new("stranger"),
        "lab": SIGNERS["signed by the analyst"],
    }.items():
        yield bundle_vector(f"an upload of {name}'s own", "CB802", sender=name, by=by)
    yield Vector(name="a signature over another manifest", expect="CB802", make=_of_another)


def _of_another(lab, path):
    by = Signer(lab.identities["north"].sign, once=True)
    lab.seal(path, by=by)
    return lab.seal(path, by=by, round_id="icu-2026-b")


PASSPHRASE = b"age-encryption.org/v1\n-> scrypt %b 18\n%b\n--- %b\n%b" % (
    *(b"b" * 22, b"k" * 43, b"m" * 43),
    bytes(100),
)
SEALS = {
    "empty": lambda _: b"",
    "of one byte": lambda d: d[:1],
    "its first line only": lambda d: d[:22],
    "its header only": lambda d: d[: d.index(b"\n--- ") + 5],
    "cut in the middle": lambda d: d[: len(d) // 2],
    "cut by one byte": lambda d: d[:-1],
    "cut by sixteen bytes": lambda d: d[:-16],
    "longer by a byte": lambda d: d + b"\0",
    "longer by itself": lambda d: d + d,
    "of another version": lambda d: d.replace(b"age-encryption.org/v1", b"age-encryption.org/v2"),
    "with a line feed of Windows": lambda d: d.replace(b"\n", b"\r\n", 1),
    "in armour": lambda d: b"-----BEGIN AGE ENCRYPTED FILE-----\n" + d,
    "with spaces before": lambda d: b"  " + d,
    "as text with its last bit lost": lambda d: bytes(b & 127 for b in d),
    "with a passphrase": lambda _: PASSPHRASE,
}
PLACES = {
    "a pipe": os.mkfifo,
    "a link to nowhere": lambda path: path.symlink_to("/nowhere/a"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


def seals():
    """Sealed for somebody else, cut, longer, changed, or no file at all."""
    for name in ("south", "north"):
        yield bundle_vector(f"sealed for {name}", "CB801", to=lambda lab, n=name: lab.identities[n])
    yield bundle_vector("sealed for nobody known", "CB801", to=lambda _: Identity.new("x"))
    for word, change in SEALS.items():
        yield Vector(name=f"a seal {word}", expect="CB801", make=partial(_changed, change))
    for word, place in PLACES.items():
        yield Vector(name=word, expect="CB601", make=lambda _, path, p=place: p(path))


def _changed(change, lab, path):
    lab.seal(path)
    path.write_bytes(change(path.read_bytes()))
