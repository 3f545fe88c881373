"""A small consortium for the tests: four parties, six features, made by hand, not by `simulate`."""

from dataclasses import dataclass

import numpy as np

from cobasis import (
    Agreement,
    Analyst,
    ConsortiumSecret,
    DPTerms,
    Party,
    PartyKey,
    numeric_features,
    simulate,
)

NAMES = ("north", "south", "east", "west")
WIDTH = 6
COMPONENTS = 3
ROUND = "icu-2026"
SEEDED = ConsortiumSecret(bytes(32), simulated=True)
NONE = {"task": "representation", "classes": (), "model": None}
"""Changes of an agreement that make it one without labels and model."""

RANDOMISED = {"labels": "randomised_response", "label_epsilon": 1}


def terms(**changes):
    usual = {"epsilon": 2.0, "radius": 1.0, "most_rows": 1000, "labels": "public"}
    return DPTerms(**{**usual, "lifetime_epsilon": 4.0, **changes})


def tables(seed=0, *, names=NAMES, n_rows=30, width=WIDTH):
    """Rows near one common three-dimensional span, and two classes, by party."""
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(COMPONENTS, width))
    made = {}
    for name in names:
        hidden = rng.normal(size=(n_rows, COMPONENTS)) * [3.0, 2.0, 1.5]
        rows = hidden @ mixing + 0.1 * rng.normal(size=(n_rows, width))
        made[name] = (rows, (hidden.sum(axis=1) > 0).astype(int))
    return made


def agree(secret, **changes):
    round_id = changes.get("round_id", ROUND)
    fields = {
        "round_id": round_id,
        "parties": NAMES,
        "features": numeric_features([f"x{column}" for column in range(WIDTH)]),
        "task": "classification",
        "classes": (0, 1),
        "n_components": COMPONENTS,
        "n_anchor_rows": 8,
        "model": "ridge",
        "commitment": secret.commitment(str(round_id)),
    }
    return Agreement(**{**fields, **changes})


def joined(secret, name="north", *, key=None, **changes):
    return Party(name, agreement=agree(secret, **changes), secret=secret, key=key)


@dataclass
class Consortium:
    rows: dict
    secret: ConsortiumSecret
    agreement: Agreement
    keys: dict
    parties: dict
    analyst: Analyst

    def uploads(self):
        return {name: party.prepare(*self.rows[name]) for name, party in self.parties.items()}

    def proposals(self):
        return {name: party.propose(self.rows[name][0]) for name, party in self.parties.items()}

    def agreed(self, proposals):
        span = self.analyst.consensus(proposals.values())
        for name, party in self.parties.items():
            self.analyst.receive(party.prepare(*self.rows[name], consensus=span))
        return span

    def received(self, *, without=()):
        for name, upload in self.uploads().items():
            if name not in without:
                self.analyst.receive(upload)
        return self.analyst


def consortium(seed=0, *, secret=None, keys=None, rows=None, **changes):
    """Make a consortium; with real secrets, unless they are given."""
    rows = tables(seed) if rows is None else rows
    secret = secret or ConsortiumSecret()
    keys = keys or {name: PartyKey() for name in rows}
    agreement = agree(secret, **changes)
    parties = {name: joined(secret, name, key=keys[name], **changes) for name in rows}
    return Consortium(rows, secret, agreement, keys, parties, Analyst(agreement))


def simulated(rows=None, **options):
    given = {"rng": np.random.default_rng(0), "n_components": COMPONENTS, "model": "ridge"}
    return simulate(tables() if rows is None else rows, **given | options)


def receiving(agreement, uploads):
    analyst = Analyst(agreement)
    for upload in uploads:
        analyst.receive(upload)
    return analyst


def trained(analyst):
    analyst.train()
    return {each.party: each for each in analyst.returns()}


def state(analyst):
    """What an analyst holds, for 'nothing half done'."""
    return dict(analyst.uploads), analyst._alignment, analyst._certificate
