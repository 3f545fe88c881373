"""Public rows: the agreed ones, told by their digest, with and without categories."""

import numpy as np
import pytest

from cobasis import ConsortiumSecret, Party
from cobasis.errors import AgreementError, LocalError
from cobasis.features.encoder import encode
from cobasis.protocol.secrets import public_rows_digest
from features.frames import MIXED, WIDTH, mixed
from protocol.consortium import agree, tables

SECRET = ConsortiumSecret(bytes(32))


def made(**changes):
    return agree(SECRET, **changes)


def test_public_rows_must_be_the_agreed_ones_in_both_directions():
    rows = tables(names=("public",))["public"][0]
    agreement = made(basis="public", public_rows_sha256=public_rows_digest(rows))

    def join(rows, agreement=agreement):
        return Party("north", agreement=agreement, secret=SECRET, public_rows=rows)

    join(rows)
    for other in (None, rows[::-1], rows[:-1], rows + 1e-9):
        with pytest.raises(AgreementError, match=r"party 'north' has .*\[CB303\]$"):
            join(other)
    with pytest.raises(AgreementError, match="the agreement says none"):
        join(rows, made())


def test_the_digest_of_public_rows_covers_shape_order_and_values():
    rows = np.arange(6.0).reshape(2, 3)
    tables_ = [rows, rows.reshape(3, 2), rows[::-1], rows[:, ::-1], -rows]
    assert len({public_rows_digest(each) for each in tables_}) == len(tables_)
    assert public_rows_digest(rows) == public_rows_digest(np.asfortranarray(rows.astype(int)))
    with pytest.raises(LocalError):
        public_rows_digest([[np.nan]])


def test_public_rows_with_categories_are_known_by_their_encoding():
    frame = mixed(12)
    digest = public_rows_digest(encode(frame, MIXED, party="public"))
    agreement = made(features=MIXED, n_anchor_rows=WIDTH, basis="public", public_rows_sha256=digest)
    Party("north", agreement=agreement, secret=SECRET, public_rows=frame)
    with pytest.raises(AgreementError, match="party 'north' has public rows with digest"):
        Party("north", agreement=agreement, secret=SECRET, public_rows=frame[::-1])
