"""Boosted trees by external memory: as good as in memory, and nothing is left behind."""

import shutil
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import r2_score

from cobasis.engine import trees
from cobasis.engine.training import train_partitions
from cobasis.errors import DiskError, MissingExtraError
from cobasis.models.training import train
from engine.partitioned import aligned_rows, digits

CLASSES = {"model": "boosted_trees", "task": "classification", "seed": 0}


def curved(n_rows=600, seed=0):
    """Rows with a target that no plane gives."""
    rng = np.random.default_rng(seed)
    rows = (rng.exponential(size=(n_rows, 4)) - 0.8) * [4.0, 2.0, 1.0, 0.5]
    return rows, np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 2] > 0)


def test_trees_tell_even_digits_from_odd_as_those_in_memory_do(tmp_path):
    """Within two points of accuracy."""
    (rows, labels), (test, told) = digits()
    aligned = aligned_rows(tmp_path, rows, labels % 2 * 5)  # classes 0 and 5
    in_memory = HistGradientBoostingClassifier(max_iter=60, min_samples_leaf=10, random_state=0)
    found = train_partitions(aligned, **CLASSES, max_passes=60)
    known = train(rows, labels % 2 * 5, **{**CLASSES, "model": in_memory})
    accuracy = [np.mean(each.predict(test) == told % 2 * 5) for each in (found, known)]
    assert accuracy[0] > accuracy[1] - 0.02
    likelihoods = found.scores(test, method="predict_proba")
    assert likelihoods.shape == (597, 2)
    np.testing.assert_allclose(likelihoods.sum(axis=1), 1.0, atol=1e-6)


def test_trees_tell_three_classes_that_are_not_counted_from_zero(tmp_path):
    rows, target = curved()
    labels = np.digitize(target, [-0.5, 0.5]) * 10 - 10
    found = train_partitions(aligned_rows(tmp_path, rows, labels), **CLASSES, max_passes=30)
    assert set(found.predict(rows)) == {-10, 0, 10}
    assert np.mean(found.predict(rows) == labels) > 0.9


def test_a_regression_stops_early_and_predicts_new_rows(tmp_path):
    rounds = []
    found = train_partitions(
        aligned_rows(tmp_path, *curved(1500)),
        model="boosted_trees",
        task="regression",
        seed=0,
        report=lambda step, done, _: rounds.append(done) if "boosting" in step else None,
    )
    rows, target = curved(seed=1)
    assert r2_score(target, found.predict(rows)) > 0.8
    assert rounds[-1] < 300


def test_steps_from_held_out_rows_are_as_good_as_from_all(tmp_path, monkeypatch):
    """As large tables have them; R2 on new rows within 0.03."""
    aligned = aligned_rows(tmp_path, *curved(3000))
    rows, target = curved(seed=1)
    scores = []
    for enough in (10_000, 200):
        monkeypatch.setattr(trees, "ENOUGH_FOR_STEPS", enough)
        options = {"model": "boosted_trees", "task": "regression", "seed": 0, "max_passes": 40}
        scores.append(r2_score(target, train_partitions(aligned, **options).predict(rows)))
    assert scores[1] > scores[0] - 0.03
    assert scores[0] > 0.8


def test_equal_seeds_boost_equal_trees(tmp_path):
    rows, target = curved()
    aligned = aligned_rows(tmp_path, rows, (target > 0).astype(np.int64))
    one, two = (train_partitions(aligned, **CLASSES, max_passes=5).estimator for _ in range(2))
    np.testing.assert_array_equal(one.raw, two.raw)


def test_the_cache_is_where_it_was_asked_for_and_gone_afterwards(tmp_path):
    rows, target = curved()
    aligned = aligned_rows(tmp_path, rows, (target > 0).astype(np.int64))
    seen = []

    def look(step, done, total):  # noqa: ARG001
        if step.startswith("boosting"):
            seen.append([each.name for each in (tmp_path / "work").glob("*/cache*")])

    train_partitions(aligned, **CLASSES, max_passes=2, work=tmp_path / "work", report=look)
    assert all(seen)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_fitted_model_weighs_its_trees_and_carries_no_row(tmp_path):
    rows, target = curved()
    aligned = aligned_rows(tmp_path, rows, (target > 0).astype(np.int64))
    found = train_partitions(aligned, **CLASSES, max_passes=5)
    assert found.n_bytes > found.estimator.raw.nbytes > 1000


def test_without_xgboost_the_extra_is_named(tmp_path, monkeypatch):
    rows, target = curved()
    aligned = aligned_rows(tmp_path, rows, (target > 0).astype(np.int64))
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'cobasis\[trees\]'"):
        train_partitions(aligned, **CLASSES)


def test_trees_are_not_begun_where_the_disk_has_no_room_for_their_cache(tmp_path, monkeypatch):
    aligned = aligned_rows(tmp_path / "rows", *curved())
    asked = 600 * (2 * 4 + trees.ROW_BYTES)
    told = partial(
        train_partitions, aligned, model="boosted_trees", task="regression", seed=0, max_passes=2
    )
    for free, room in ((asked, True), (asked - 1, False)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        if room:
            told(work=tmp_path / "work")
            continue
        with pytest.raises(DiskError, match=r"about 0 MB to '.*scratch-.*', whose disk has 0 MB"):
            told(work=tmp_path / "work")
    assert list((tmp_path / "work").iterdir()) == []


def test_the_cache_is_not_larger_than_the_room_that_was_asked_for(tmp_path):
    sizes = []

    def weigh(*_):
        cached = (tmp_path / "work").glob("scratch-*/cache*")
        sizes.append(sum(each.stat().st_size for each in cached))

    rows = np.random.default_rng(0).normal(size=(20_000, 30))
    train_partitions(
        aligned_rows(tmp_path / "rows", rows, rows[:, 0]),
        model="boosted_trees",
        task="regression",
        seed=0,
        max_passes=2,
        work=tmp_path / "work",
        report=weigh,
    )
    asked = len(rows) * (2 * 30 + trees.ROW_BYTES)
    assert 0.7 * asked < max(sizes) <= asked
