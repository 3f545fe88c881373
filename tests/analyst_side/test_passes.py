"""Passes over files and on a Dask cluster: a copy that nobody finds afterwards, room that is asked
for, memory that is bounded, and the same models as in memory."""

import os
import pickle
import shutil
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import distributed
import numpy as np
import pytest

from aligned import aligned_rows, cut, parties, rows_and_labels
from cobasis.analyst_side import passes
from cobasis.analyst_side.passes import ClusterPasses, FilePasses, passes_for
from cobasis.errors import DiskError, MissingExtraError, OptionError
from cobasis.models import out_of_core
from cobasis.models.trainer import train
from cobasis.progress import silent

CLASSES = {"task": "classification", "seed": 0}


def test_many_blocks_are_copied_and_the_copy_is_deleted_also_when_something_is_raised(tmp_path):
    aligned, folder = aligned_rows(tmp_path, *rows_and_labels()), tmp_path / "scratch"
    over = FilePasses(folder=folder)
    with suppress(KeyboardInterrupt), over.copied(aligned) as copy:
        assert len(list((folder / "rows").iterdir())) == 3
        assert (folder / "rows").stat().st_mode & 0o77 == 0
        for index in range(3):
            for found, known in zip(copy.block(index), aligned.block(index), strict=True):
                np.testing.assert_array_equal(found, known)
        np.testing.assert_array_equal(copy.sample(20).rows, aligned.sample(20).rows)
        raise KeyboardInterrupt
    assert not folder.exists()
    single = aligned_rows(tmp_path, *rows_and_labels(), n_blocks=1)  # which is read once, and held
    with over.copied(single) as rows:
        assert rows.block(0).rows is rows.block(0).rows
        assert not folder.exists()


def test_a_disk_without_room_and_one_that_fills_up_are_one_error_and_leave_nothing(
    tmp_path, monkeypatch
):
    aligned = aligned_rows(tmp_path, *rows_and_labels())
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=600 * 6 * 8 - 1))
        for model in ("ridge", "xgboost"):
            with pytest.raises(DiskError, match=r"training writes about 0 MB .*\[CB601\]$"):
                train(aligned, model=model, over=FilePasses(folder=tmp_path / "s"), **CLASSES)
            assert not (tmp_path / "s").exists()

    full = mock.patch.object(os, "pwrite", side_effect=OSError(28, "No space left on device"))
    with full, pytest.raises(DiskError, match="No space left"):
        train(aligned, model="ridge", over=FilePasses(folder=tmp_path / "s"), **CLASSES)
    assert not (tmp_path / "s").exists()


def test_trees_keep_their_files_in_the_room_that_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "MAX_ROUNDS", 2)
    rows, sizes = np.random.default_rng(0).normal(size=(20_000, 30)), []

    def weigh(step, *_):
        if step.startswith("boosting"):
            cached = (tmp_path / "s" / "trees").glob("cache*")
            sizes.append(sum(each.stat().st_size for each in cached))

    aligned, over = (
        aligned_rows(tmp_path, rows, rows[:, 0]),
        FilePasses(weigh, folder=tmp_path / "s"),
    )
    train(aligned, model="xgboost", task="regression", seed=0, over=over)
    asked = len(rows) * (2 * 30 + out_of_core.ROW_BYTES)
    assert 0.7 * asked < max(sizes) <= asked
    assert not (tmp_path / "s").exists()


def test_training_takes_a_few_blocks_of_memory_however_many_there_are(in_memory):
    """Of 60 MB in 40 blocks 20 MB may be held."""
    rows, labels = rows_and_labels(150_000)
    table, halves = np.pad(rows, [(0, 0), (0, 45)]), [75_000, 75_000]
    uploads, alignment = parties(in_memory / "uploads", table, labels, sizes=halves)
    aligned = cut(uploads, alignment.changes_of_basis, n_blocks=40)
    tracemalloc.start()
    try:
        for model in ("ridge", "logistic"):
            train(aligned, model=model, over=FilePasses(folder=in_memory / "s"), **CLASSES)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def over():
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster:
        address = cluster.scheduler_address
        with passes_for("ridge", folder=Path(), cluster=address, report=silent) as found:
            yield found


@pytest.fixture(scope="module")
def aligned(tmp_path_factory):
    return aligned_rows(tmp_path_factory.mktemp("cluster"), *rows_and_labels(1200), n_blocks=5)


def test_models_of_sums_are_the_same_to_rounding(over, aligned):
    """The same sums in the same order: tolerance 1e-12."""
    afar, here = (train(aligned, model="logistic", over=x, **CLASSES) for x in (over, None))
    for found, known in zip(afar.layers, here.layers, strict=True):
        if not isinstance(found, str):
            size = np.abs(known.weights).max()
            np.testing.assert_allclose(found.weights, known.weights, atol=1e-12 * size)


def test_a_worker_gets_paths_and_changes_of_basis_of_its_blocks_and_no_rows(tmp_path):
    uploads, alignment = parties(tmp_path, *rows_and_labels(4000), sizes=[3000, 997, 1, 1, 1])
    sent = cut(uploads, alignment.changes_of_basis, n_blocks=500).only([0])
    data = pickle.dumps(sent)
    assert len(data) < 10_000
    assert set(sent._uploads) < set(uploads)
    assert not [row for row in rows_and_labels(4000)[0][:50] if row.tobytes() in data]


def test_where_no_cluster_can_train_it_is_an_error_that_says_why(monkeypatch):
    def refused(error, words, *, model="ridge", at="tcp://127.0.0.1:1"):
        with (
            pytest.raises(error, match=words),
            passes_for(model, folder=Path(), cluster=at, report=silent),
        ):
            pass

    for model in ("mlp", "boosted_trees", "xgboost"):
        refused(OptionError, f"model='{model}' is not trained on a cluster", model=model)
    monkeypatch.setattr(passes, "_ANSWER_SECONDS", 1)
    for address in ("tcp://127.0.0.1:1", "no://where"):
        refused(OptionError, f"no cluster answers at '{address}'", at=address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused(MissingExtraError, r"pip install 'cobasis\[dask\]'")


KILLED = distributed.KilledWorker("a task", SimpleNamespace(address="tcp://there:9"), 3)


@pytest.mark.parametrize(
    ("error", "words"), [(KILLED, "lost its workers"), (TimeoutError(), "has no workers left")]
)
def test_a_pass_that_nobody_is_left_to_do_ends_in_words(aligned, error, words):
    client = mock.Mock(nthreads=dict)
    client.submit.return_value.result.side_effect = error
    with pytest.raises(OptionError, match=words):
        list(ClusterPasses(client=client)(lambda _, index: index, aligned, step="dying"))
