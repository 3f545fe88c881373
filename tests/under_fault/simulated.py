"""One analyst and five parties in one process, with a clock of their own, and all that can happen.

Every party has its own number of rows, a power of three, and its own label: so the rows of a
training say by themselves who is in it never, once or twice.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from unittest import mock

import numpy as np

from analyst_side.rounds import PAST, real_round
from cobasis import ConsortiumSecret, Party, numeric_features
from cobasis.analyst_side import forget, plan
from cobasis.bundle import manifest, transcript
from cobasis.keys.identity import Identity
from cobasis.protocol import analyst
from keys.quick import keys_of

NAMES = ("east", "north", "south", "west", "young")
SIZES = {name: 3 ** (number + 1) for number, name in enumerate(NAMES)}
LABELS = {name: 1000.0 + number for number, name in enumerate(NAMES)}
START = datetime(2026, 3, 29, 0, tzinfo=UTC)  # an hour before clocks change in Europe
FUTURE = timedelta(hours=100)
VARIANTS = ("good", "second", "future", "forged", "foreign", "spoilt", "partial")
REAL_TRAINING = analyst.train
MINIMUM = 2
TERMS = {
    "features": numeric_features("abc"),
    "task": "regression",
    "classes": (),
    "models": ("ridge",),
    "n_components": 2,
    "n_anchor_rows": 4,
    "minimum_parties": MINIMUM,
    "deadline": PAST,
}


class Clock(datetime):
    moment = START

    @classmethod
    def now(cls, tz=None):
        return cls.moment.astimezone(tz)


CLOCKED = (manifest, forget, plan, transcript)
"""All modules that read the time."""


class Cast:
    """Keys, agreements of three to five parties, and sealed uploads of all variants; made once."""

    def __init__(self, folder):
        self.identities, self.secret = keys_of(NAMES), ConsortiumSecret()
        self.rows, self.rounds, self.bytes, self.bases = _rows(), {}, {}, []
        self.models, self.trainings = {}, []
        for size in (3, 4, 5):
            place = folder / str(size)
            place.mkdir()
            names = NAMES[:size]
            made, other = (
                self._round(place, names=names, round_id=f"round-{number}") for number in (1, 0)
            )
            self.rounds[size] = made
            for name, variant in product(names, VARIANTS):
                self.bytes[size, name, variant] = self._upload(made, other, name, variant)
            self.bases += [party._basis._columns.tobytes() for party in made.parties.values()]

    def _round(self, folder, **who):
        made = real_round(folder, identities=self.identities, secret=self.secret, **TERMS, **who)
        made.rows = self.rows
        return made

    def _upload(self, made, other, name, variant):
        hours = {"future": FUTURE, "second": timedelta(hours=1)}.get(variant, timedelta())
        source = other if variant == "foreign" else made
        prepared = source.party(name).prepare(*self.rows[name])
        if variant == "spoilt":
            broken = np.where(np.arange(SIZES[name])[:, None] == 1, np.nan, prepared.rows)
            prepared = replace(prepared, rows=broken)
        signer = Identity.new(name) if variant == "forged" else None
        with mock.patch.object(Party, "prepare", return_value=prepared):
            path = source.upload(name, created=START + hours, signer=signer)
        data = path.read_bytes()
        path.unlink()
        return data[: len(data) // 2] if variant == "partial" else data

    def train(self, rows, **options):
        values, counts = np.unique(rows.block(0).labels, return_counts=True)
        self.trainings.append(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        who = tuple(values.tolist())
        if who not in self.models:  # the model itself has its own tests
            self.models[who] = REAL_TRAINING(rows, **options)
        return self.models[who]

    def secrets(self):
        key = self.secret._key
        raw = [self.rows[name][0][0].tobytes() for name in NAMES]
        return [key, key.hex().encode(), *self.bases, *raw]


def _rows():
    rng = np.random.default_rng(0)
    mixing = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2] * [[3.0], [2.0]]
    made = {}
    for name in NAMES:
        rows = rng.normal(size=(SIZES[name], 2)) @ mixing
        rows += 0.01 * rng.normal(size=rows.shape)
        made[name] = rows, np.full(SIZES[name], LABELS[name])
    return made
