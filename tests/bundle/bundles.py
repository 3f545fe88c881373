"""Bundles and transcripts: rightly made ones, and bundles that no writer of ours would make."""

import hashlib
import io
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from unittest.mock import patch

import pyrage
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from cobasis.bundle.envelope import open_bundle, write_bundle
from cobasis.bundle.manifest import Expected, signed_message
from cobasis.bundle.transcript import START, Transcript, following
from cobasis.keys.identity import Identity
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.news import News
from cobasis.protocol.signatures import Receipt, sign_receipt
from cobasis.strict_json import canonical_json

AGE_KEYS = {
    "north": "AGE-SECRET-KEY-1YQWS5S93ZPCCLUDWWDV2R9EGFWKGCQLETZMGW6K4F50Q2D707CKQJFF80W",
    "south": "AGE-SECRET-KEY-1HF2H7SA7UP6Z8U002N2TV8LEAWP0U6WRVXTQC0M40WQJCU8NTY7QVN0QJZ",
    "lab": "AGE-SECRET-KEY-1HFZXWXZCLN4UMYY3SYYM0DMA69MF3MZTZPC0R8Q6CDEW9SXZC5CQ7AMRQN",
}
AGREEMENT, TAG = bytes(range(32)).hex(), bytes(range(32, 64)).hex()
CREATED = "2026-11-21T12:00:00Z"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MAGIC = b"cobasis/bundle/1\n"


def identity(name):
    """An identity whose keys everybody can read here: for tests and golden files only."""
    secret = hashlib.sha256(f"cobasis golden files, {name}".encode()).digest()
    return Identity(
        name,
        signing=Ed25519PrivateKey.from_private_bytes(secret),
        age=pyrage.x25519.Identity.from_str(AGE_KEYS[name]),
        role="analyst" if name == "lab" else "party",
    )


NORTH, SOUTH, LAB = (identity(name) for name in AGE_KEYS)
ENROLLED = {each.public.name: each.public for each in (NORTH, SOUTH, LAB)}
RECEIPT = {
    "round_id": "icu-2026",
    "agreement": "a" * 64,
    "party": "north",
    "analyst": "lab",
    "exchange": 1,
    "file": "b" * 64,
    "time": "2026-11-21T15:00:00Z",
    "transcript": "c" * 64,
}
NEWS = {name: RECEIPT[name] for name in ("round_id", "agreement", "analyst", "time")}
NEWS["agreed"] = ("north", "lab")
AGREED = SimpleNamespace(
    digest=lambda: bytes.fromhex("a" * 64), analyst=LAB.public, round_id="icu-2026"
)
"""As much of an agreement as its news need."""


def draft(kind="receipt", **changes):
    fields = {
        "kind": kind,
        "round_id": "icu-2026",
        "agreement": AGREEMENT,
        "sender": "north",
        "anchor_tag": TAG,
        "told": {"n_rows": 3, "evidence": "none", "share": 0.5, "kept": True, "names": ["a"]},
    }
    return {**fields, **changes}


def write(path, *, parts=None, recipients=(LAB,), by=NORTH, **changes):
    return write_bundle(
        path,
        draft=draft(**changes),
        parts={"receipt.json": b'{"round":"icu-2026"}'} if parts is None else parts,
        sign=by.sign,
        recipients=[each.public for each in recipients],
    )


def opened(path, into, *, by=LAB, signer=ENROLLED, **options):
    return open_bundle(path, unseal=by.unseal, signer=signer, into=into, **options)


def described(parts, /, **changes):
    fields = {
        **draft(told={}),
        "format": "cobasis/bundle/1",
        "software": "another 1.0",
        "recipients": ["lab"],
        "simulated": False,
        "created": CREATED,
        "parts": [
            {"name": name, "n_bytes": len(plain), "sha256": hashlib.sha256(plain).hexdigest()}
            for name, plain in parts.items()
        ],
        "audit": None,
        "dp": None,
    }
    return {**fields, **changes}


def described_in(agreement, parts, /, **changes):
    own = {"round_id": agreement.round_id, "agreement": agreement.digest().hex()}
    return described(parts, **own | {"created": moment_text(datetime.now(UTC))} | changes)


def craft(path, manifest, stored=b"", *, by=NORTH, to=LAB, length=None, after=b"", magic=MAGIC):
    """Seal any container, rightly signed: the sender is the enemy."""
    text = manifest if isinstance(manifest, bytes) else canonical_json(manifest, ascii_only=False)
    size = len(text) if length is None else length
    signature = by.sign(signed_message(text))
    plain = magic + size.to_bytes(4, "little") + text + signature + stored
    plain += bytes(-len(plain) % 4096) + after
    return sealed(path, plain, to=to)


def sealed(path, plain, *, to=LAB):
    recipient = pyrage.x25519.Recipient.from_str(to.public.recipient)
    path.write_bytes(pyrage.encrypt(plain, [recipient]))
    return path


def unsealed(path, *, by=LAB):
    target = io.BytesIO()
    with path.open("rb") as source:
        by.unseal(source, target)
    return target.getvalue()


def receipt(path, plain=b'{"round":"icu-2026"}', stored=None, **changes):
    options = {name: changes.pop(name) for name in ("after", "by", "to") if name in changes}
    manifest = described({"receipt.json": plain}, **changes)
    return craft(path, manifest, plain if stored is None else stored, **options)


def refused(path, error, words=None, **options):
    into = path.parent / "in"
    with pytest.raises(error, match=words) as found:
        opened(path, into, **{"expected": Expected(now=NOW), **options})
    assert list(into.glob("*")) == []
    assert not list(path.parent.glob("**/*.part"))
    assert type(found.value) is error
    return str(found.value)


def transcript(path, n_lines=5):
    start = datetime(2026, 11, 21, 15, tzinfo=UTC)
    times = (start + timedelta(seconds=number) for number in count(1))
    made = Transcript(path)
    with patch("cobasis.bundle.transcript.now", times.__next__):
        for number in range(n_lines):
            made.append("received", {"party": f"party-{number}", "n_rows": number})


def signed_receipt(by=LAB, **changes):
    return sign_receipt(Receipt(**{**RECEIPT, **changes}), by.sign)


def news_text(*receipts, **changes):
    return News(**{**NEWS, **changes}, receipts=receipts).text(LAB.sign)


def lines_in_memory(n_lines):
    lines, last = [], START
    for number in range(n_lines):
        last = following(last, "received", told={"n_rows": number}, time="2026-11-21T15:00:00Z")
        lines.append(last.line)
    return lines
