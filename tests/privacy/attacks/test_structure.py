"""Who is near whom, and who stands alone, is seen in a release by anybody who opens it."""

import numpy as np
import pytest

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.structure import StandingAlone, score_structure
from privacy.attacks.constructions import cancer, digits, own_basis, released

FOUND = [  # correlation of squared distances, nearest ten kept
    (cancer, 280, 3, 0.97, 0.53),
    (cancer, 280, 10, 0.999, 0.89),
    (digits, 800, 4, 0.75, 0.38),
    (digits, 800, 8, 0.92, 0.64),
    (digits, 800, 16, 0.983, 0.83),
    (digits, 800, 32, 0.999, 0.94),
]


@pytest.mark.parametrize(("data", "n_rows", "n_components", "correlation", "kept"), FOUND)
def test_distances_and_neighbours_survive_projection(data, n_rows, n_components, correlation, kept):
    rows = data()[0][:n_rows]
    seen = score_structure(released(rows, own_basis(rows, n_components)), rows)
    assert seen.distance_correlation.value == pytest.approx(correlation, abs=0.02)
    assert seen.neighbours_kept.value == pytest.approx(kept, abs=0.04)
    assert seen.neighbours_kept.chance == 10 / (n_rows - 1)


def test_it_is_what_numpy_says():
    rng = np.random.default_rng(0)
    rows, raw = rng.normal(size=(600, 3)), rng.normal(size=(600, 4))  # more than one block
    raw[:, :2] = rows[:, :2]
    apart = [((each[:, np.newaxis] - each) ** 2).sum(axis=2) for each in (rows, raw)]
    pairs = np.triu_indices(600, 1)
    expected = np.corrcoef(apart[0][pairs], apart[1][pairs])[0, 1]
    nearest = [each.argsort(axis=1)[:, 1:11] for each in apart]
    shared = [len(np.intersect1d(*two)) for two in zip(*nearest, strict=True)]
    seen = score_structure(Release(rows=rows), raw)
    assert seen.distance_correlation.value == pytest.approx(expected, abs=1e-9)
    assert seen.neighbours_kept.value == np.mean(shared) / 10


def test_unrelated_rows_keep_no_more_than_chance():
    rng = np.random.default_rng(0)
    seen = score_structure(Release(rows=rng.normal(size=(400, 5))), rng.normal(size=(400, 7)))
    assert abs(seen.distance_correlation.value) < 0.05
    assert seen.neighbours_kept.value == pytest.approx(seen.neighbours_kept.chance, abs=0.01)


def test_equal_rows_have_no_correlation_and_nobody_alone():
    seen = score_structure(Release(rows=np.ones((20, 2))), np.ones((20, 3)))
    assert (seen.distance_correlation.value, seen.alone, seen.alone_in_truth) == (0, 0, 0)


def test_whoever_is_like_nobody_is_seen_in_the_release():
    rows = cancer()[0][:200].copy()
    rows[17] *= 3
    release = released(rows, own_basis(rows, 10))
    scores = StandingAlone().decide(release)
    assert scores.argmax() == 17
    assert scores[17] > 3
    seen = score_structure(release, rows)
    assert seen.alone == np.sum(scores > 3) >= seen.alone_in_truth >= 1


def test_what_does_not_fit_is_refused():
    for rows, raw in (((5, 2), (5, 3)), ((20, 2), (19, 3))):
        with pytest.raises(ShapeError, match="fewer neighbours"):
            score_structure(Release(rows=np.ones(rows)), np.ones(raw))
    with pytest.raises(ShapeError, match="Give at least 2"):
        StandingAlone().decide(Release(rows=np.ones((1, 2))))
