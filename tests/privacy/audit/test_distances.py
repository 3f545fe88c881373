"""The papers' distance is computed as they define it, and says less than the attacks do."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis.privacy.audit.what_if import THIS, distances
from privacy.attacks.constructions import digits
from privacy.audit.uploads import subject

ROWS, PUBLIC = digits()[0][:600], digits()[0][600:900]


def swept(rows=ROWS, *, n_components=16, public=None, basis=None):
    """The distances by kind of basis and number of components."""
    upload = replace(subject(rows, n_components=n_components, basis=basis), public_rows=public)
    found = {}
    for each in distances(upload, settings=(), rng=np.random.default_rng(0)):
        found.setdefault(each.basis, {})[each.n_components] = each
    return found


def test_it_is_the_mean_length_of_what_the_basis_does_not_span_beside_the_average_persons():
    basis = subject(ROWS, n_components=16).basis
    lost = np.sort(np.linalg.norm(ROWS - ROWS @ basis @ basis.T, axis=1))
    whole = np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=1).mean()
    found = swept()[THIS][16]
    assert found.mean == pytest.approx(lost.mean() / whole)
    assert found.worst == pytest.approx(lost[:6].mean() / whole)
    skewed = basis @ np.random.default_rng(0).normal(size=(16, 16))
    assert swept(basis=skewed)[THIS][16].mean == pytest.approx(found.mean)


def test_more_components_lose_less_and_all_of_them_nothing():
    found = swept(n_components=32, public=PUBLIC)
    assert list(found) == [THIS, "svd", "haar", "public", "consensus"]
    for kind, by_size in found.items():
        means = [each.mean for each in by_size.values()]
        assert means == sorted(means, reverse=True), kind
        assert all(each.worst <= each.mean for each in by_size.values())
    assert found["haar"][64].mean == pytest.approx(0, abs=1e-12)
    for size in (8, 16, 32):
        svd, consensus = found["svd"][size].mean, found["consensus"][size].mean
        assert svd <= consensus * (1 + 1e-6)
        assert svd < found["public"][size].mean < found["haar"][size].mean


def test_a_random_basis_loses_more_than_the_average_person():
    """And links everybody (P3): a distance ignores what an attacker knows besides."""
    assert swept()["haar"][16].mean > 1


@pytest.mark.parametrize(("n_rows", "sizes"), [(12, [1, 2, 4]), (3, [1]), (2, [])])
def test_sizes_that_rows_or_a_third_of_them_cannot_have_are_left_out(n_rows, sizes):
    found = swept(ROWS[:n_rows], n_components=min(4, n_rows))
    assert list(found.get("consensus", ())) == sizes
    assert max(found["svd"]) <= n_rows
