"""What stands inside the seal and is rightly signed may still be no bundle: one fault each."""

import json

import pytest
import zstandard

from bundle.bundles import craft, described, receipt, refused, undeclared, with_part
from cobasis.errors import BundleError

PLAIN = b'{"round":"icu-2026"}'
STORED = zstandard.compress(PLAIN)
RAW = described({"receipt.json": (PLAIN, STORED)})


def test_a_manifest_above_a_megabyte_is_refused_by_its_length(tmp_path):
    big = {**RAW, "audit": {"x": "y" * 2**20}}
    refused(craft(tmp_path / "a.cb", big, STORED), BundleError, r"manifest of 1,049,\d\d\d bytes")
    refused(craft(tmp_path / "b.cb", RAW, STORED, length=2**32 - 1), BundleError, "4,294,967,295")


@pytest.mark.parametrize("length", [1, 100, 2**20])
def test_a_manifest_of_another_length_is_refused(tmp_path, length):
    refused(craft(tmp_path / "a.cb", RAW, STORED, length=length), BundleError)


MANIFESTS = {
    "no JSON": b"{",
    "no UTF-8": b'{"a":"\xff"}',
    "a list": b"[]",
    "deep": b"[" * 500_000,
    "a name twice": json.dumps(RAW).replace('"kind"', '"kind": "upload", "kind"').encode(),
    "NaN": json.dumps({**RAW, "audit": {"x": float("nan")}}).encode(),
    "a huge number": json.dumps({**RAW, "told": {"n": 1}}).replace("1}", "9" * 5000 + "}").encode(),
    "another format": {**RAW, "format": "cobasis/bundle/2"},
    "an unknown field": {**RAW, "extra": 1},
    "a field of another type": {**RAW, "simulated": "false"},
    "an unknown kind": {**RAW, "kind": "pickle"},
    "another moment": {**RAW, "created": "2026-11-21 12:00"},
    "an impossible moment": {**RAW, "created": "2026-13-21T12:00:00Z"},
    "nobody as recipient": {**RAW, "recipients": []},
    "a sender with a slash": {**RAW, "sender": "../north"},
    "a round of control characters": {**RAW, "round_id": "\x1b[2J"},
    "told of an object": {**RAW, "told": {"a": {}}},
    "no part": {**RAW, "parts": []},
    "a part twice": {**RAW, "parts": RAW["parts"] * 2},
    "a part of another kind": {**RAW, "kind": "upload"},
    "a lacking field": {name: each for name, each in RAW.items() if name != "sender"},
}


@pytest.mark.parametrize("fault", MANIFESTS)
def test_the_manifest_cannot_stand(tmp_path, fault):
    refused(craft(tmp_path / "a.cb", MANIFESTS[fault], STORED), BundleError, "its manifest|parts")


@pytest.mark.parametrize(
    "name",
    [
        "../receipt.json",
        "/etc/passwd",
        "..",
        ".",
        "",
        "receipt.json\0",
        "a/b",
        "A",
        "x" * 65,
        "c:x",
    ],
)
def test_a_part_with_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    refused(with_part(tmp_path / "a.cb", name=name), BundleError)
    assert not (tmp_path / "receipt.json").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_bytes": 0}, "n_bytes"),
        ({"n_bytes": 19}, "does not declare 19 bytes"),
        ({"n_bytes": 21}, "does not declare 21 bytes"),
        ({"n_bytes": 2**21}, "are the most that are read"),
        ({"n_bytes": 2**63}, "n_bytes"),
        ({"n_bytes": True}, "n_bytes"),
        ({"sha256": "0" * 64}, "digest"),
        ({"sha256": "0" * 63}, "sha256"),
        ({"stored_bytes": len(STORED) - 1}, "bytes long inside"),
        ({"stored_bytes": len(STORED) + 1}, "bytes long inside"),
        ({"stored_bytes": 0}, "stored_bytes"),
    ],
)
def test_a_part_that_is_not_what_the_manifest_says_is_refused(tmp_path, changes, words):
    refused(with_part(tmp_path / "a.cb", **changes), BundleError, words)


FRAMES = {
    "no frame": b"x" * 30,
    "an empty frame header": STORED[:5],
    "a frame cut short": STORED[:-1],
    "a byte behind it": STORED + b"\0",
    "a second frame behind it": STORED + zstandard.compress(b"x"),
    "an empty frame behind it": STORED + zstandard.compress(b""),
    "a skippable frame behind it": STORED + b"\x50\x2a\x4d\x18\x04\0\0\0abcd",
    "a skippable frame before it": b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + STORED,
    "a frame without its size": undeclared(PLAIN),
    "a frame of other bytes": zstandard.compress(PLAIN[::-1]),
    "a frame of more bytes": zstandard.compress(PLAIN + b" "),
    "a block of a reserved kind": STORED[:6] + b"\x07" + STORED[7:],
    "a block that is too long": STORED[:6] + b"\xfd\xff\xff" + STORED[9:],
    "a window of two gigabytes": b"\x28\xb5\x2f\xfd\xc0\xa8"
    + (20).to_bytes(8, "little")
    + b"\1\0\0",
}


@pytest.mark.parametrize("fault", FRAMES)
def test_what_is_stored_is_not_the_part(tmp_path, fault):
    refused(receipt(tmp_path / "a.cb", stored=FRAMES[fault]), BundleError, r"receipt\.json")
