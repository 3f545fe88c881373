"""A uniform anchor's image gives the secret basis away; an isometric and a Gaussian one's do not.

Figures of notes/privacy 2.5, on digits and breast cancer.
"""

import numpy as np
import pytest
from experiments.attacks.anchor_ica import AnchorIca, AnchorMean, score_row_sums

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import in_order, score_content, score_directions
from privacy.attacks.constructions import anchor, cancer, digits, own_basis, released

SLACK = 0.05
SAFE = ["gaussian", "isometric"]


def attacked(rows, kind, *, n_components, n_rows, number=0):
    """What the attack makes of a party's upload, and the secret basis."""
    basis = own_basis(rows, n_components, number=number)
    release = released(rows, basis, anchor(kind, n_rows, rows.shape[1], number=number))
    return AnchorIca(n_features=rows.shape[1]).recover(release), basis


def n_columns_read(recovered, rows):
    """How many features correlate above .95 with one of the sources that were found."""
    sources = recovered.rows[:, np.any(recovered.basis != 0, axis=1)]
    likeness = np.corrcoef(sources, rows, rowvar=False)[: sources.shape[1], sources.shape[1] :]
    return int(np.count_nonzero(np.abs(likeness).max(axis=0) > 0.95))


def test_a_uniform_anchor_shows_every_record_at_full_width():
    rows = cancer()[0][:280]
    recovered, basis = attacked(rows, "uniform", n_components=30, n_rows=5000)
    content = score_content(in_order(recovered, basis), rows)
    assert content.named.value == 1.0
    assert content.explained.value > 0.97
    assert score_directions(recovered, basis).value > 0.99


def test_a_thousand_uniform_anchor_rows_are_enough():
    """The notes have 0.81 to 0.84 and 11 of 30 columns: their search found less."""
    rows = cancer()[0][:280]
    recovered, basis = attacked(rows, "uniform", n_components=30, n_rows=1000)
    assert score_directions(recovered, basis).value > 0.95
    assert n_columns_read(recovered, rows) == 30


@pytest.mark.slow
def test_a_uniform_anchor_shows_every_digit_at_full_width():
    rows = digits()[0][:800]
    recovered, basis = attacked(rows, "uniform", n_components=64, n_rows=20_000)
    content = score_content(in_order(recovered, basis), rows)
    assert content.explained.value > 0.99
    assert content.named.value == 1.0


@pytest.mark.parametrize(
    ("n_components", "least", "most"), [(28, 28, 30), (25, 24, 30), (20, 17, 28), (10, 2, 10)]
)
def test_fewer_components_hide_few_columns_from_a_uniform_anchor(n_components, least, most):
    rows = cancer()[0][:280]
    recovered, _ = attacked(rows, "uniform", n_components=n_components, n_rows=5000)
    assert least <= n_columns_read(recovered, rows) <= most


@pytest.mark.parametrize("kind", SAFE)
@pytest.mark.parametrize(("n_components", "n_rows"), [(30, 1000), (10, 5000)])
def test_a_safe_anchor_stays_at_chance(kind, n_components, n_rows):
    rows = cancer()[0][:280]
    recovered, basis = attacked(rows, kind, n_components=n_components, n_rows=n_rows)
    directions = score_directions(recovered, basis)
    assert directions.value <= directions.chance + SLACK
    named = score_content(in_order(recovered, basis), rows).named
    assert named.value <= named.chance + SLACK
    assert n_columns_read(recovered, rows) <= 3  # features of cancer cells go together


def test_a_square_isometric_anchor_stays_at_chance():
    """The default: as many anchor rows as features."""
    rows = digits()[0][:400]
    recovered, basis = attacked(rows, "isometric", n_components=16, n_rows=64)
    directions = score_directions(recovered, basis)
    assert directions.value <= directions.chance + SLACK
    named = score_content(in_order(recovered, basis), rows).named
    assert named.value <= named.chance + SLACK


def sums_read(rows, kind, *, n_components, draws):
    basis = own_basis(rows, n_components)
    shares = [
        score_row_sums(released(rows, basis, anchor(kind, 200, rows.shape[1], number=number)), rows)
        for number in range(draws)
    ]
    return np.mean([each.value for each in shares]), np.mean([each.chance for each in shares])


@pytest.mark.parametrize(
    ("rows", "n_components", "least"), [(cancer, 10, 0.999), (digits, 16, 0.95)]
)
def test_the_mean_row_of_a_uniform_anchor_shows_the_row_sums(rows, n_components, least):
    value, chance = sums_read(rows()[0][:280], "uniform", n_components=n_components, draws=3)
    assert value > least
    assert chance < 0.6


@pytest.mark.parametrize("kind", SAFE)
def test_the_mean_row_of_a_safe_anchor_shows_nothing(kind):
    value, chance = sums_read(digits()[0][:280], kind, n_components=16, draws=40)
    assert value <= chance + SLACK


def test_row_sums_have_the_size_of_the_true_ones():
    rows = cancer()[0][:280]
    release = released(rows, own_basis(rows, 10), anchor("uniform", 5000, 30))
    np.testing.assert_allclose(AnchorMean().row_sums(release), rows.sum(axis=1), rtol=0.05)


def test_signs_need_no_truth_where_entries_have_a_mean():
    """The attacker knows that entries are positive; a Gaussian anchor leaves signs open."""
    rows = cancer()[0][:280]
    recovered, basis = attacked(rows, "uniform", n_components=30, n_rows=5000)
    likeness = recovered.basis @ basis.T
    assert np.all(likeness[np.arange(30), np.abs(likeness).argmax(axis=1)] > 0)


def test_the_same_release_gives_the_same_guess():
    rows = cancer()[0][:100]
    first, second = (attacked(rows, "uniform", n_components=8, n_rows=500)[0] for _ in range(2))
    np.testing.assert_array_equal(first.basis, second.basis)


@pytest.mark.parametrize(("n_features", "n_rows"), [(7, 50), (20, 8)])
def test_sizes_that_no_round_has_are_refused(n_features, n_rows):
    release = Release(rows=np.ones((3, 8)), anchor_image=np.ones((n_rows, 8)))
    with pytest.raises(ShapeError, match=r"not that many sources.*\[CB"):
        AnchorIca(n_features=n_features).recover(release)


def test_without_an_anchor_image_there_is_nothing_to_read():
    release = Release(rows=np.ones((3, 2)))
    with pytest.raises(ShapeError, match="no anchor image"):
        AnchorIca(n_features=4).recover(release)
    with pytest.raises(ShapeError, match="no anchor image"):
        AnchorMean().row_sums(release)
