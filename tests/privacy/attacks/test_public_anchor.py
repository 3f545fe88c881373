"""Anchor rows from a collection that the analyst has are found, and then it is collusion.

Figures of notes/privacy 2.5: all rows identified, the result is collusion's.
"""

import numpy as np
import pytest
from experiments.attacks.public_anchor import PublicAnchor

from cobasis.errors import ShapeError
from cobasis.linalg.arrays import Matrix
from cobasis.privacy.attacks.collusion import Collusion, LeakedBasis
from cobasis.privacy.attacks.public_sample import PublicSample
from cobasis.privacy.attacks.release import Recovered
from cobasis.privacy.attacks.scores import nearest, score_content
from privacy.attacks.constructions import anchor, cancer, digits, own_basis, released


class Nobody:
    """A first guess without a basis."""

    def recover(self, release):
        return Recovered(rows=release.rows)


def sides(data, *, n_own, n_public):
    """A party's rows and labels, and a collection's."""
    rows, labels = data()
    stop = n_own + n_public
    return rows[:n_own], labels[:n_own], rows[n_own:stop], labels[n_own:stop]


def attack_on(pool, labels):
    first = PublicSample(rows=pool, labels=labels, rng=np.random.default_rng(0))
    return PublicAnchor(pool=pool, first=first)


def chosen(pool: Matrix, count, *, seed=0):
    return np.random.default_rng(seed).choice(len(pool), count, replace=False)


@pytest.mark.parametrize("seed", range(3))
def test_every_anchor_row_of_cancer_records_is_identified(seed):
    rows, labels, pool, theirs = sides(cancer, n_own=280, n_public=280)
    places = chosen(pool, 100, seed=seed)
    secret = anchor("public", 100, 30, public_rows=pool[places])
    release = released(rows, own_basis(rows, 10, number=seed), secret, labels=labels)
    attack = attack_on(pool, theirs)
    found = attack.matches(release)
    np.testing.assert_array_equal(pool[found], pool[places])


def test_every_anchor_row_of_digits_is_identified_and_the_result_is_collusions():
    rows, labels, pool, theirs = sides(digits, n_own=400, n_public=400)
    secret = anchor("public", 120, 64, public_rows=pool[chosen(pool, 120)])
    release = released(rows, own_basis(rows, 16), secret, labels=labels)
    found = score_content(attack_on(pool, theirs).recover(release), rows)
    expected = score_content(Collusion(anchor=secret).recover(release), rows)
    assert found.explained.value == pytest.approx(expected.explained.value, abs=1e-9)
    assert found.explained.value > 0.82
    assert found.named == expected.named


@pytest.mark.parametrize(
    ("data", "n_components", "count", "wrong"), [(cancer, 10, 100, 0.8), (digits, 16, 120, 1.0)]
)
def test_a_poor_first_guess_is_enough(data, n_components, count, wrong):
    """One match in ten, or in three, is right at first; in the end all are."""
    rows, _, pool, _ = sides(data, n_own=280, n_public=280)
    places, basis = chosen(pool, count), own_basis(rows, n_components)
    secret = anchor("public", count, rows.shape[1], public_rows=pool[places])
    noise = np.random.default_rng(0).normal(size=basis.shape) / np.sqrt(rows.shape[1])
    guess = basis + wrong * noise
    release = released(rows, basis, secret)
    assert np.mean(nearest(release.anchor_image, among=pool @ guess) == places) < 0.6
    found = PublicAnchor(pool=pool, first=LeakedBasis(basis=guess)).matches(release)
    np.testing.assert_array_equal(pool[found], pool[places])


def drawn(kind, pool):
    """An anchor of 100 rows; with public moments it keeps what public rows add to accuracy."""
    if kind != "public moments":
        return anchor(kind, 100, 30)
    factor = np.linalg.cholesky(np.cov(pool, rowvar=False) + 1e-12 * np.eye(30))
    return pool.mean(axis=0) + anchor("gaussian", 100, 30) @ factor.T


@pytest.mark.parametrize("kind", ["isometric", "gaussian", "public moments"])
def test_an_anchor_that_was_drawn_has_no_rows_to_find(kind):
    rows, labels, pool, theirs = sides(cancer, n_own=280, n_public=280)
    release = released(rows, own_basis(rows, 10), drawn(kind, pool), labels=labels)
    content = score_content(attack_on(pool, theirs).recover(release), rows)
    assert content.named.value <= content.named.chance + 0.05
    assert content.explained.value < 0


def test_a_first_guess_without_a_basis_is_refused():
    release = released(np.ones((4, 3)), np.eye(3)[:, :2], np.ones((7, 3)))
    with pytest.raises(ShapeError, match="no basis of 3 features and 2 components"):
        PublicAnchor(pool=np.ones((5, 3)), first=Nobody()).recover(release)
