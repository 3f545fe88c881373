"""Vectors: manifests, lists of parts and frames that are not as they should be."""

import json
from functools import partial

import zstandard

from bundle.bundles import undeclared
from cobasis.strict_json import canonical_json
from under_fault.vectors import Vector

canonical = partial(canonical_json, ascii_only=False)


def bundle_vector(name, expect, **options):
    """A bundle with an honest upload in it, and one thing about it that is not."""
    return Vector(
        name=name, expect=expect, make=lambda lab, path: lab.seal(path, **_called(lab, options))
    )


def _called(lab, options):
    """Options that need the lab are given as functions of it."""
    return {
        name: value(lab) if callable(value) and name != "change" else value
        for name, value in options.items()
    }


def _field(name, value):
    return lambda manifest: {**manifest, name: value}


def _less(name):
    return lambda manifest: {key: value for key, value in manifest.items() if key != name}


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
        yield bundle_vector(word, expect, change=_field(name, value))
    for name in ("kind", "software", "round_id", "agreement", "sender", "recipients", "created"):
        yield bundle_vector(f"no {name}", "CB803", change=_less(name))
        for value in (None, 7, {"a": 1}):
            yield bundle_vector(f"{name} is {value}", "CB803", change=_field(name, value))
    yield bundle_vector("no parts in it", "CB803", change=_less("parts"))
    yield bundle_vector("one field more", "CB803", change=_field("pickle", "x"))
    for name in ("n_rows", "n_components", "n_anchor_rows"):
        for step in (-1, 1):
            yield bundle_vector(
                f"told {name} {step:+d}", "CB804", change=lambda m, n=name, s=step: _told(m, n, s)
            )


def _told(manifest, name, step):
    return {**manifest, "told": {**manifest["told"], name: manifest["told"][name] + step}}


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


def _part(**changes):
    def change(manifest):
        return {**manifest, "parts": [{**manifest["parts"][0], **changes}]}

    return change


def parts():
    """Names, sizes and digests of parts; parts too many, twice, or not there."""
    for word, name in NAMES.items():
        yield bundle_vector(f"a part's name {word}", "CB803", change=_part(name=name))
    for word in ("n_bytes", "stored_bytes"):
        for step in (-1, 1):
            yield bundle_vector(
                f"{step:+d} byte in a part's {word}",
                "CB803",
                change=lambda m, w=word, s=step: _part(**{w: m["parts"][0][w] + s})(m),
            )
        for value in (0, -1, 2**31, 2**48, 2**63, 2**64, 1.5, "960", None, True):
            yield bundle_vector(f"a part's {word} {value}", "CB803", change=_part(**{word: value}))
    for value in ("0" * 64, "0" * 63, "", None, "G" * 64):
        yield bundle_vector(f"a part's digest {value}", "CB803", change=_part(sha256=value))
    yield bundle_vector("a part twice", "CB803", change=lambda m: _parts(m, 2))
    yield bundle_vector("nine parts", "CB803", change=lambda m: _parts(m, 9))
    yield bundle_vector("a hundred thousand parts", "CB803", change=lambda m: _parts(m, 10**5))
    yield bundle_vector("one part more", "CB803", change=_and_model)
    yield bundle_vector("bytes behind the last part", "CB803", after=b"\0")
    yield bundle_vector("a second container behind it", "CB803", after=b"cobasis/bundle/1\n")
    yield bundle_vector("another first line", "CB803", magic=b"cobasis/bundle/2\n")
    for word, length in {
        "0": 0,
        "2^20 + 1": 2**20 + 1,
        "2^31": 2**31,
        "2^32 - 1": 2**32 - 1,
    }.items():
        yield bundle_vector(f"a manifest of {word} bytes", "CB803", length=length)


def _parts(manifest, count):
    return {**manifest, "parts": manifest["parts"] * count}


def _and_model(manifest):
    return {
        **manifest,
        "parts": [manifest["parts"][0], {**manifest["parts"][0], "name": "model.safetensors"}],
    }


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


def texts():
    """Manifests that are no JSON object, or one that two readers read in two ways."""
    for word, change in TEXTS.items():
        yield bundle_vector(f"a manifest {word}", "CB803", change=change)


def _blocks(plain, head, *, window=0x58):
    """A frame that declares its size, and whose first block begins like this."""
    start = b"\x28\xb5\x2f\xfd" + bytes([0xC0, window]) + len(plain).to_bytes(8, "little")
    return start + head + bytes(2**18)


def frames():
    """Zstd frames that are cut, none, several, undeclared, or need more than is given."""
    for word, pack in {
        "no frame": lambda _: b"x" * 100,
        "an undeclared size": undeclared,
        "two frames": lambda p: zstandard.compress(p[:100]) + zstandard.compress(p[100:]),
        "a skippable frame first": lambda p: (
            b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + zstandard.compress(p)
        ),
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
    }.items():
        yield bundle_vector(
            f"a part of {word}", "CB803", stored=lambda lab, f=pack: f(lab.bytes["fp64"])
        )
