"""Public rows of the same kind are enough: at least what the notes measured, without collusion."""

import numpy as np
import pytest

from cobasis.privacy.attacks import Recovered, Release
from cobasis.privacy.attacks.known_records import read_through
from cobasis.privacy.attacks.public_sample import match_sample
from cobasis.privacy.attacks.scores import score_content, score_linkage
from privacy.attacks.constructions import cancer, digits, haar_basis, own_basis

SPLITS = {"cancer": (cancer(), 280), "digits": (digits(), 800)}


def split(name, most=None):
    (rows, labels), count = SPLITS[name]
    parts = slice(count), slice(count, 2 * count)
    return [each[part][:most] for part in parts for each in (rows, labels)]


def attacked(basis, rows, labels, public, public_labels=None):
    release = Release(rows=rows @ basis, labels=labels)
    recovered = match_sample(release, public, labels=public_labels, rng=np.random.default_rng(0))
    places = np.arange(len(rows))
    linked = score_linkage(release.rows, recovered.basis, candidates=rows, places=places)
    return score_content(recovered, rows), linked


NOTES = [  # data, l, labels, R2, re-identification: to be reached, less one split's spread
    ("cancer", 10, True, 0.81, 0.74),
    pytest.param("digits", 16, False, 0.81, 0.89, marks=pytest.mark.soak),
    pytest.param("digits", 32, True, 0.93, 0.99, marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("name", "size", "labelled", "explained", "named"), NOTES)
def test_a_public_sample_gets_at_least_what_the_notes_measured(
    name, size, labelled, explained, named
):
    rows, *others = split(name)
    basis = own_basis(rows, size)
    found, linked = attacked(basis, rows, *others[: 2 + labelled])
    assert found.explained.value >= explained
    assert found.named.value >= named
    assert linked.value >= found.named.value - 0.05
    colluding = score_content(read_through(basis, rows @ basis), rows)
    assert found.explained.value <= colluding.explained.value + 0.01


def test_labels_in_the_clear_are_enough_against_a_random_basis_and_without_them_it_is_chance():
    """Notes 2.6, 800 people: R2 .53, linked 89 %; with half of them .52 and 84 %."""
    found, linked = attacked(haar_basis(64, 16), *split("digits", 400))
    assert found.explained.value > 0.45
    assert linked.value > 0.8
    blind, unlinked = attacked(haar_basis(64, 16), *split("digits", 100)[:3])
    assert blind.explained.value < 0
    assert max(blind.named.value, unlinked.value) < 0.06


def test_more_parties_do_reveal_more_about_each():
    """The seed says they reveal nothing more; 25 people each, digits, l = 16, no labels."""
    rows, found = digits()[0], []
    basis = own_basis(rows[400:700], 16)
    for parties in (1, 12):
        release = Release(rows=rows[400 : 400 + 25 * parties] @ basis)
        back = match_sample(release, rows[:250], rng=np.random.default_rng(0))
        first = Recovered(rows=back.rows[:25], basis=back.basis)
        found.append(score_content(first, rows[400:425]))
    alone, together = found
    assert (alone.explained.value < 0, together.explained.value > 0.7) == (True, True)
    assert (alone.named.value < 0.3, together.named.value > 0.9) == (True, True)
