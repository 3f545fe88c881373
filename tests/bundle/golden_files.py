"""Makes the golden files of format version 1, once; they are committed, and never made anew.

Run ``make(folder)`` only for a new format version, into a folder of its own. Sealing draws fresh
keys each time, so the same content never gives the same file.
"""

import hashlib
import json
from dataclasses import replace

import numpy as np
import zstandard

from bundle.bundles import (
    AGE_KEYS,
    ENROLLED,
    LAB,
    NORTH,
    NOW,
    described,
    draft,
    opened,
    receipt,
    sealed,
    unsealed,
)
from cobasis import Agreement, ConsortiumSecret, numeric_features
from cobasis.bundle import messages
from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.manifest import Expected
from cobasis.bundle.uploads import write_upload
from cobasis.errors import CobasisError
from cobasis.models.sources import read_chain
from cobasis.models.trainer import train
from cobasis.protocol.messages import ConsensusSpan, Return, SpanProposal, Upload

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(12, 2)), np.arange(12) % 2
TAG = hashlib.sha256(b"golden anchor").digest()


def agreement(**changes):
    """The golden files' agreement; only its digest and precision stand in them."""
    secret = ConsortiumSecret(bytes(range(32)))
    return Agreement(
        round_id="golden-1",
        parties=("north", "south"),
        features=numeric_features(["age", "pulse", "weight"]),
        task="classification",
        classes=("no", "yes"),
        n_components=2,
        n_anchor_rows=4,
        model="logistic",
        commitment=secret.commitment("golden-1"),
        **changes,
    )


def make(folder):
    """Write every golden file, and what is to be found in it."""
    agreed = agreement()
    told = {"agreement_digest": agreed.digest(), "simulated": False}
    both = {**told, "anchor_tag": TAG}
    span = np.linalg.qr(ROWS[:4])[0]
    upload = Upload(party="north", rows=ROWS, labels=LABELS, anchor_image=ROWS[:4], **both)
    for precision, bound in (("fp64", None), ("fp32", None), ("fp16", None), ("int8", 4.0)):
        other = agreement(precision=precision, int8_range=bound)
        made = replace(upload, agreement_digest=other.digest())
        write_upload(made, folder / "u", precision=precision, int8_range=bound)
        enclosed = messages.enclose_upload(folder / "u", agreement=other)
        _write(folder / f"upload-{precision}.cb", *enclosed, by=NORTH, to=LAB)
    (folder / "u").unlink()
    proposal = SpanProposal(party="north", image=ROWS[:4], **both)
    enclosed = messages.enclose_proposal(proposal, agreement=agreed)
    _write(folder / "proposal.cb", *enclosed, by=NORTH, to=LAB)
    consensus = ConsensusSpan(rows=span, contributors=("north", "south"), **both)
    enclosed = messages.enclose_consensus(consensus, agreement=agreed, sender="lab")
    _write(folder / "consensus.cb", *enclosed, by=LAB, to=NORTH)
    trained = train(ROWS, LABELS, model="logistic", task="classification", seed=0)
    made = Return(
        party="north",
        change_of_basis=span[:2],
        model=read_chain(trained, task="classification", n_classes=2),
        evidence="cannot tell",
        trained_on=("north", "south"),
        target_carries=("south",),
        **told,
    )
    enclosed = messages.enclose_return(made, agreement=agreed, sender="lab", upload="a" * 64)
    _write(folder / "return.cb", *enclosed, by=LAB, to=NORTH)
    _write(folder / "receipt.cb", draft(), {"receipt.json": b"{}"}, by=NORTH, to=LAB)
    _write(folder / "secret.cb", draft("secret"), {"secret.bin": bytes(32)}, by=NORTH, to=LAB)
    _refused(folder)
    found = {path.name: decided(path, folder / "in") for path in sorted(folder.glob("*.cb"))}
    keys = {
        name: {"age_key": AGE_KEYS[name], "signing_seed": _seed(name)} for name in sorted(AGE_KEYS)
    }
    for name, content in (("expected.json", found), ("keys.json", keys)):
        (folder / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def _write(path, draft, parts, *, by, to):
    write_bundle(
        path,
        draft=draft,
        parts=parts,
        sign=by.sign,
        recipients=[to.public],
        created=NOW,
    )


def _refused(folder):
    """Write bundles with one fault each."""
    good = (folder / "receipt.cb").read_bytes()
    (folder / "bad-truncated.cb").write_bytes(good[:-1])
    (folder / "bad-flipped.cb").write_bytes(good[:-9] + bytes([good[-9] ^ 1]) + good[-8:])
    plain = unsealed(folder / "receipt.cb")
    sealed(folder / "bad-magic.cb", b"cobasis/bundle/9\n" + plain[17:])
    sealed(folder / "bad-signature.cb", plain.replace(b'"icu-2026"', b'"icu-2027"', 1))
    sealed(folder / "bad-trailing.cb", plain + b"\0")
    receipt(folder / "bad-clock.cb", created="2026-11-24T12:00:00Z")
    receipt(folder / "bad-simulated.cb", simulated=True)
    receipt(folder / "bad-sender.cb", sender="west")
    packer = zstandard.ZstdCompressor().compressobj()
    receipt(folder / "bad-size.cb", plain=b"{}", stored=packer.compress(b"{}") + packer.flush())
    entry = described({"receipt.json": (b"{}", b"")})["parts"][0]
    receipt(folder / "bad-name.cb", parts=[{**entry, "name": "../receipt.json", "stored_bytes": 1}])


def _seed(name):
    return hashlib.sha256(f"cobasis golden files, {name}".encode()).hexdigest()


def decided(path, into):
    """Open a golden file as its recipient, and return what there is to record."""
    by = NORTH if path.name in {"return.cb", "consensus.cb"} else LAB
    try:
        bundle = opened(path, into, by=by, signer=ENROLLED, expected=Expected(now=NOW))
    except CobasisError as error:
        return {"opened_by": by.public.name, "code": error.code}
    parts = {
        name: hashlib.sha256(part.read_bytes()).hexdigest() for name, part in bundle.parts.items()
    }
    bundle.discard()
    into.rmdir()
    return {
        "opened_by": by.public.name,
        "code": None,
        "digest": bundle.digest,
        "manifest": hashlib.sha256(bundle.manifest.encoded()).hexdigest(),
        "kind": bundle.manifest.kind,
        "parts": parts,
    }
