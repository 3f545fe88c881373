"""Marked values are planted in everything private; no byte of a message may hold one."""

import dataclasses
from itertools import product

import numpy as np
import pytest

from aligners import principal_cosines
from cobasis import ConsortiumSecret, PartyKey
from cobasis.models.chain_file import encode_chain
from cobasis.protocol.projection import RowsInMemory
from protocol.consortium import COMPONENTS, ROUND, WIDTH, consortium, joined, tables

SECRET, KEY = bytes(range(1, 33)), bytes(range(101, 133))


def needles(table):
    return [each.tobytes() for some in (table, table.T, np.ravel(table)) for each in some]


def pieces(secret):
    runs = [secret[i : i + 8] for i in range(len(secret) - 7)]
    return [*runs, *(run.hex().encode() for run in runs)]


def hits(message, private):
    """(field, private thing) for every planted value that a field holds."""
    found = []
    for field in dataclasses.fields(message):
        content = getattr(message, field.name)
        if isinstance(content, np.ndarray):
            content = np.ascontiguousarray(content).tobytes() + content.tobytes(order="F")
        elif not isinstance(content, bytes):
            content = repr(content).encode()
        for name, sought in private.items():
            found += [(field.name, name)] * any(needle in content for needle in sought)
    return found


def party_with_canaries(**changes):
    secret = ConsortiumSecret(SECRET)
    party = joined(secret, key=PartyKey(KEY), **changes)
    rows, labels = tables()["north"]
    rows[7] = 1234.5678 + np.arange(WIDTH)
    private = {
        "rows": needles(rows),
        "anchor": needles(party._anchor.apply(np.eye(WIDTH))),
        "consortium secret": pieces(SECRET),
        "party key": pieces(KEY),
        "anchor key": pieces(secret._mac(b"draw", party.agreement.anchor_recipe())),
    }
    return party, rows, labels, private


OWN = list(product(["svd", "pca", "lpp", "haar"], ["isometric", "gaussian"]))
COMMON = [("consensus", "isometric"), ("weighted_consensus", "isometric")]


@pytest.mark.parametrize(("basis", "anchor"), [*OWN, *COMMON])
def test_neither_an_upload_nor_a_proposal_holds_a_private_value(basis, anchor):
    party, rows, labels, private = party_with_canaries(basis=basis, anchor=anchor)
    if (basis, anchor) in COMMON:
        private["directions"] = needles(party._directions(rows))
        message = party.propose(rows)
    else:
        message = party.prepare(rows, labels)
        private["basis"] = needles(party._basis._columns)
    assert hits(message, private) == []


def test_a_proposal_shows_the_span_and_not_which_direction_is_the_strongest():
    rows = tables()["north"][0]
    party = joined(ConsortiumSecret(SECRET), key=PartyKey(KEY), basis="consensus")
    image = party.propose(rows).image
    strongest = party._anchor.apply(np.linalg.svd(rows, full_matrices=False)[2][:COMPONENTS].T)
    np.testing.assert_allclose(principal_cosines(image, strongest), 1.0)
    assert np.abs(np.sum(image * strongest, axis=0)).max() < 0.999


def test_the_span_and_the_returns_hold_no_private_value_of_anybody():
    made = consortium(basis="consensus")
    span = made.agreed(made.proposals())
    private = {"anchor": needles(made.secret.anchor(made.agreement).apply(np.eye(WIDTH)))}
    for name, party in made.parties.items():
        private[f"rows of {name}"] = needles(made.rows[name][0])
        private[f"basis of {name}"] = needles(party._basis._columns)
    returns = made.analyst.run()
    assert [hit for message in (span, *returns.values()) for hit in hits(message, private)] == []
    for each in returns.values():
        stored = encode_chain(each.model)
        assert not any(needle in stored for sought in private.values() for needle in sought)


def test_the_search_finds_each_kind_of_planted_value():
    party, rows, labels, private = party_with_canaries()
    upload = party.prepare(rows, labels)
    basis, spoilt = party._basis._columns, upload.rows.copy()
    private["basis"] = needles(basis)
    spoilt[3, 1] = rows[7, 2]
    for planted, expected in (
        ({"rows": np.vstack([np.resize(rows, (9, WIDTH)), rows[7]])}, "rows"),
        ({"rows": spoilt}, "rows"),
        ({"anchor_image": party._anchor.apply(np.eye(WIDTH))}, "anchor"),
        ({"anchor_image": np.asfortranarray(basis)}, "basis"),
        ({"anchor_tag": b"tag" + KEY[3:20]}, "party key"),
        ({"party": SECRET[5:15].hex()}, "consortium secret"),
    ):
        assert expected in {
            name for _, name in hits(dataclasses.replace(upload, **planted), private)
        }


def test_order_and_basis_come_from_the_partys_own_key_and_from_nothing_that_is_sent():
    """Equal rows, labels, agreement and secret: they still differ from key to key."""
    secret, (X, y), seen = ConsortiumSecret(), tables()["north"], set()

    def order(key):
        made = joined(secret, key=PartyKey(key)).project(RowsInMemory(X, y))
        seen.add(made.basis._columns.tobytes())
        return tuple(made.order)

    assert len({order(bytes([index]) * 32) for index in range(8)}) == len(seen) == 8
    drawn = PartyKey(bytes(32)).stream(f"order/{ROUND}").permutation(len(X))
    assert order(bytes(32)) == tuple(drawn)
