from pathlib import Path

import numpy as np

from cobasis import ConsortiumSecret, SecretBasis, numeric_features
from cobasis.keys.identity import Identity
from cobasis.protocol.messages import ConsensusSpan
from cobasis.vault.datasets import Asked, Forced
from cobasis.vault.vault import Accepted, Vault
from protocol import consortium

NORTH, SOUTH = map(Identity.new, ("north", "south"))
SECRET = ConsortiumSecret(b"s" * 32)
FEATURES, COMPONENTS = 5, 2
NOW = "2026-11-21T15:00:00Z"
DIGEST = "d" * 64
WHY = Forced(reason="the first one went to the wrong address", by=("A. Curator", "B. Officer"))


def open_vault(folder, *, party="north", key=NORTH):
    return Vault(Path(folder), party=party, seal=key.seal_for_self, unseal=key.unseal_own)


def agree(round_id="icu-2026", **changes):
    fields = {
        "round_id": round_id,
        "parties": ("north", "south", "east"),
        "features": numeric_features("abcde"),
        "task": "regression",
        "classes": (),
        "n_components": COMPONENTS,
        "n_anchor_rows": FEATURES,
    }
    return consortium.agree(SECRET, **fields | changes)


def table(n_rows=30, *, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, FEATURES))


def made_basis(seed=0, *, shape=(FEATURES, COMPONENTS)):
    columns = np.linalg.qr(np.random.default_rng(seed).normal(size=shape))[0]
    return SecretBasis(columns, party="north")


def choose(vault, rows, *, n_components=COMPONENTS, n_features=FEATURES, ids=(), **asked):
    asked = {"message": "upload", **asked} | ({"people": vault.people(ids)} if ids else {})
    marks = vault.fingerprints(row.tobytes() for row in rows)
    return vault.choose_span(Asked(rows=marks, shape=(n_features, n_components), **asked))


def upload(vault, rows, *, agreement=None, seed=0, digest=DIGEST, release="", **asked):
    agreement = agreement or agree()
    choice = choose(vault, rows, n_components=agreement.n_components, **asked)
    made = made_basis(seed, shape=(FEATURES, agreement.n_components))
    basis = made if choice.dataset is None else choice.dataset.basis
    number = vault.begin_upload(choice, basis, agreement=agreement, time=NOW, release=release)
    if digest:
        vault.finish_upload(number, digest)
    return number


def propose(vault, rows, *, agreement=None, **asked):
    choice = choose(vault, rows, message="proposal", **asked)
    return vault.begin_upload(choice, None, agreement=agreement or agree(), time=NOW)


def consensus(**changes):
    fields = {
        "agreement_digest": agree().digest(),
        "anchor_tag": b"t" * 32,
        "rows": table(FEATURES, seed=7)[:, :COMPONENTS],
        "contributors": ("north", "east"),
        "simulated": False,
    }
    return ConsensusSpan(**{**fields, **changes})


def returned(**changes):
    fields = {
        "change_of_basis": made_basis(3, shape=(COMPONENTS, COMPONENTS))._columns,
        "model": b"a model's bytes",
        "evidence": "cannot tell",
        "trained_on": ("north", "south"),
        "target_carries": ("south",),
        "upload": "a" * 64,
        "bundle": "b" * 64,
        "time": NOW,
    }
    return Accepted(**{**fields, **changes})
