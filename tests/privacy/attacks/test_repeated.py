"""Uploads of the same rows through fresh spans give them all back; through one span, no more.

Figures of notes/privacy 2.8: digits, l = 8: 2 uploads 4 %, 4 uploads 23 %, 8 uploads exact.
"""

import numpy as np
import pytest
from experiments.attacks.repeated import Repeated

from cobasis.errors import ShapeError, SpanReuseError
from cobasis.linalg.rng import KeyStream
from cobasis.privacy.attacks.scores import score_content
from cobasis.protocol.plaintext import basis_columns
from privacy.attacks.constructions import anchor, cancer, digits, haar_basis, own_basis, released
from vault.vaults import FEATURES, WHY, agree, choose, open_vault, table, upload


def rebuilt(rows, bases, *, shuffled=False, prior=None):
    """What the uploads show together, set against the truth."""
    secret = anchor("isometric", rows.shape[1], rows.shape[1])
    orders = [np.arange(len(rows))] * len(bases)
    if shuffled:
        stream = KeyStream(bytes(32), "tests/order")
        orders[1:] = [stream.permutation(len(rows)) for _ in bases[1:]]
    uploads = [
        released(rows[order], basis, secret) for order, basis in zip(orders, bases, strict=True)
    ]
    attack = Repeated(anchor=secret, others=uploads[1:], prior_rows=prior)
    return score_content(attack.recover(uploads[0]), rows)


def fresh(n_features, n_components, count):
    return [haar_basis(n_features, n_components, number=number) for number in range(count)]


@pytest.mark.parametrize(
    ("data", "n_components", "count"), [(digits, 8, 8), (cancer, 5, 6), (cancer, 5, 8)]
)
def test_fresh_spans_that_fill_all_features_give_every_row_exactly(data, n_components, count):
    rows = data()[0][:280]
    content = rebuilt(rows, fresh(rows.shape[1], n_components, count))
    assert content.named.value == 1.0
    assert content.explained.value > 1 - 1e-12


@pytest.mark.parametrize(("count", "least", "most"), [(2, 0.0, 0.08), (4, 0.13, 0.33)])
def test_fewer_fresh_spans_give_as_much_as_the_notes_say(count, least, most):
    rows = digits()[0][:800]
    assert least <= rebuilt(rows, fresh(64, 8, count)).named.value <= most


@pytest.mark.parametrize("count", [2, 8])
def test_the_same_span_however_turned_shows_nothing_more(count):
    rows = digits()[0][:280]
    once = rebuilt(rows, [own_basis(rows, 8)])
    again = rebuilt(rows, [own_basis(rows, 8, number=number) for number in range(count)])
    assert again.explained.value == pytest.approx(once.explained.value, abs=1e-9)
    assert again.named == once.named


def test_another_order_in_each_round_stops_whoever_cannot_match_rows():
    rows = digits()[0][:280]
    content = rebuilt(rows, fresh(64, 16, 5), shuffled=True)
    assert content.named.value < content.named.chance + 0.05


def test_another_order_stops_nobody_who_has_rows_of_the_kind():
    rows, prior = digits()[0][:400], digits()[0][400:1200]
    content = rebuilt(rows, fresh(64, 16, 5), shuffled=True, prior=prior)
    assert content.named.value > 0.9


def test_another_order_holds_where_components_are_few():
    """8 of 64: too little in common to match rows by. A mitigation, not a rule to rely on."""
    rows, prior = digits()[0][:280], digits()[0][400:1200]
    content = rebuilt(rows, fresh(64, 8, 8), shuffled=True, prior=prior)
    assert content.named.value < 0.15


def test_through_the_vault_repeating_shows_nothing_more(tmp_path):
    """The rule in force: every further round gets the stored basis."""
    vault, rows, bases = open_vault(tmp_path / "north"), table(), []
    for number in range(3):
        upload(vault, rows, agreement=agree(f"round-{number}"), seed=number)
        bases.append(basis_columns(choose(vault, rows).basis))
    together, alone = rebuilt(rows, bases), rebuilt(rows, bases[:1])
    assert together.explained.value == pytest.approx(alone.explained.value, abs=1e-9)
    assert alone.explained.value < 0.7


def test_a_second_span_is_refused_and_if_it_is_forced_rows_come_back_exactly(tmp_path):
    """The rule in force, and the same uploads with the rule overridden."""
    vault, rows = open_vault(tmp_path / "north"), table()
    upload(vault, rows)
    with pytest.raises(SpanReuseError, match="Seen through a second span, rows can be rebuilt"):
        upload(vault, rows, agreement=agree("again", n_components=3))
    upload(vault, rows, agreement=agree("again", n_components=3), forced=WHY, seed=1)
    bases = [basis_columns(choose(vault, rows, n_components=each).basis) for each in (2, 3)]
    assert sum(each.shape[1] for each in bases) == FEATURES
    assert rebuilt(rows, bases).explained.value > 1 - 1e-9


def test_uploads_of_different_people_are_refused():
    secret = anchor("isometric", 4, 4)
    one, other = (released(np.ones((count, 4)), np.eye(4)[:, :2], secret) for count in (3, 5))
    with pytest.raises(ShapeError, match="different numbers of rows"):
        Repeated(anchor=secret, others=[other]).recover(one)
