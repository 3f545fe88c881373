"""Three parties with masked sums, for the tests."""

import numpy as np

from cobasis import Agreement, DPTerms
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.sums import SumsAnalyst
from cobasis.protocol.sums_party import SumsParty
from cobasis.protocol.totals import Layout, gram, ones_and

NAMES = ("north", "south", "east")
LAYOUT = Layout(n_features=(2,), n_targets=1, one_hot=False, most_rows=1000)
KEYS = {name: MaskKey(bytes([number]) * 32) for number, name in enumerate(NAMES, 1)}
PUBLIC = {name: key.public for name, key in KEYS.items()}
OCCASION = {"round_id": "icu-2026", "exchange": 1, "attempt": 1}
DP = DPTerms(epsilon=2.0, delta=0.01, radius=1.0, most_rows=3, lifetime_epsilon=2.0, colluders=1)
FIELDS = {"round_id": "icu-2026", "parties": NAMES, "release": "sums", "minimum_parties": 3}
"""What every agreement on their sums says."""


def agree(**fields):
    return Agreement(**FIELDS | fields)


def party(name, agreement, keys=KEYS):
    public = {each: key.public for each, key in keys.items()}
    return SumsParty(name, agreement=agreement, key=keys[name], keys=public)


def summing(agreement, rows, *, send=SumsParty.prepare, **options):
    """The analyst who has what each party sends of its own rows, by default its masked sums."""
    analyst = SumsAnalyst(agreement, keys=PUBLIC, **options)
    for name in NAMES:
        analyst.receive(send(party(name, agreement), *rows[name]))
    return analyst


def dealt(*tables):
    """Every third row of each table, by party."""
    return {name: tuple(each[at::3] for each in tables) for at, name in enumerate(NAMES)}


def rows_of(name, *, n_rows=4):
    """Some rows of two features and one target; the first cell lies between two multiples."""
    rng = np.random.default_rng(NAMES.index(name))
    table = rng.integers(-(2**10), 2**10, size=(n_rows, 3)) / 2**10
    table[0, 0] = 2**-20 * 7.75
    return table


def sums_of(table, layout=LAYOUT):
    features, targets = np.split(table, [-layout.n_targets], axis=1)
    whole = ones_and(features, targets, bits=layout.bits)
    return gram([whole], width=whole.shape[1], bits=layout.bits)[layout.places(whole.shape[1])]


def message(name, *, sums=None, keys=PUBLIC, salt=None, **occasion):
    made = sums_of(rows_of(name)) if sums is None else sums
    told = {"salt": salt or LAYOUT.digest(), "occasion": tuple((OCCASION | occasion).values())}
    return KEYS[name].masked(made, name=name, keys=keys, **told)


def added(messages):
    """Everybody's words, added up modulo 2**64 and read as signed integers."""
    return np.sum(list(messages), axis=0, dtype=np.uint64).view(np.int64)
