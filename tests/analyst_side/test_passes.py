"""Passes over files: a copy that nobody finds afterwards, room that is asked for, memory that is
bounded, and the same models as in memory."""

import os
import shutil
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from aligned import aligned_rows, cut, parties, rows_and_labels
from cobasis.analyst_side.passes import FilePasses
from cobasis.errors import DiskError
from cobasis.models import out_of_core
from cobasis.models.trainer import train

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
