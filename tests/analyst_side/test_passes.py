"""Passes over files: a copy that nobody finds afterwards, room that is asked for, memory that is
bounded, and the same models as in memory."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

from aligned import aligned_rows, cut, parties
from cobasis.analyst_side.passes import FilePasses, passes_for
from cobasis.errors import DiskError, FileChangedError
from cobasis.models import out_of_core
from cobasis.models.trainer import train
from cobasis.progress import silent

CLASSES = {"task": "classification", "seed": 0}
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def rows_and_labels(n_rows=600):
    rng = np.random.default_rng(0)
    rows = (rng.exponential(size=(n_rows, 5)) - 0.8) * [4.0, 2.0, 1.0, 0.5, 0.3]
    return rows, (rows[:, 0] + rows[:, 1] * rows[:, 2] > 0.5).astype(np.int64)


@pytest.mark.parametrize("model", ["ridge", "rff", "logistic"])
def test_stripes_of_files_give_the_model_of_one_block_in_memory(tmp_path, model):
    uploads, alignment = parties(tmp_path / "uploads", *rows_and_labels(), sizes=[400, 150, 1, 49])
    changes, over = alignment.changes_of_basis, FilePasses(folder=tmp_path / "scratch")
    found = train(cut(uploads, changes, n_blocks=7), model=model, over=over, **CLASSES)
    known = train(cut(uploads, changes, n_blocks=1), model=model, **CLASSES)
    for one, two in zip(found.layers, known.layers, strict=True):
        if not isinstance(one, str):
            size = np.abs(two.weights).max()
            np.testing.assert_allclose(one.weights, two.weights, atol=1e-9 * size)
            np.testing.assert_allclose(one.offset, two.offset, atol=1e-9 * size)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["uploads"]


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


def test_what_a_kill_has_left_is_not_used_and_deleted(tmp_path):
    folder = tmp_path / "scratch"
    (folder / "rows").mkdir(parents=True)
    (folder / "rows" / "block-00007.safetensors").write_bytes(b"left")
    with FilePasses(folder=folder).copied(aligned_rows(tmp_path, *rows_and_labels())):
        assert not (folder / "rows" / "block-00007.safetensors").exists()
    assert not folder.exists()


def test_a_single_block_is_read_once_and_nothing_is_written(tmp_path):
    aligned = aligned_rows(tmp_path, *rows_and_labels(), n_blocks=1)
    with FilePasses(folder=tmp_path / "scratch").copied(aligned) as rows:
        assert rows.block(0).rows is rows.block(0).rows
        assert not (tmp_path / "scratch").exists()


def test_an_upload_that_changes_while_it_is_copied_ends_the_training(tmp_path):
    uploads, alignment = parties(tmp_path / "uploads", *rows_and_labels(), sizes=[300, 300])
    aligned = cut(uploads, alignment.changes_of_basis, n_blocks=6)
    file = uploads["p01"].path

    def change(step, done, total):  # noqa: ARG001
        if done == 1:
            file.write_bytes(file.read_bytes()[:-8] + bytes(8))

    with pytest.raises(FileChangedError, match="party 'p01'"):
        train(aligned, model="ridge", over=FilePasses(change, folder=tmp_path / "s"), **CLASSES)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(("model", "cells"), [("ridge", 600 * 6 * 8), ("xgboost", 600 * 6 * 8)])
def test_a_disk_without_room_is_one_error_and_leaves_nothing(tmp_path, monkeypatch, model, cells):
    aligned = aligned_rows(tmp_path, *rows_and_labels())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=cells - 1))
    with pytest.raises(DiskError, match=r"training writes about 0 MB .*\[CB601\]$"):
        train(aligned, model=model, over=FilePasses(folder=tmp_path / "s"), **CLASSES)
    assert not (tmp_path / "s").exists()


def test_a_disk_that_fills_up_is_one_error_and_leaves_nothing(tmp_path, monkeypatch):
    aligned = aligned_rows(tmp_path, *rows_and_labels())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(DiskError, match="No space left"):
        train(aligned, model="ridge", over=FilePasses(folder=tmp_path / "s"), **CLASSES)
    assert not (tmp_path / "s").exists()


def test_trees_keep_their_files_in_the_room_that_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "MAX_ROUNDS", 2)
    rows, sizes = np.random.default_rng(0).normal(size=(20_000, 30)), []

    def weigh(step, *_):
        if step.startswith("boosting"):
            cached = (tmp_path / "s" / "trees").glob("cache*")
            sizes.append(sum(each.stat().st_size for each in cached))

    over = FilePasses(weigh, folder=tmp_path / "s")
    train(
        aligned_rows(tmp_path, rows, rows[:, 0]),
        model="xgboost",
        task="regression",
        seed=0,
        over=over,
    )
    asked = len(rows) * (2 * 30 + out_of_core.ROW_BYTES)
    assert 0.7 * asked < max(sizes) <= asked
    assert not (tmp_path / "s").exists()


def test_passes_here_need_no_cluster(tmp_path):
    with passes_for("mlp", folder=tmp_path / "s", cluster=None, report=silent) as over:
        assert isinstance(over, FilePasses)


TRAIN = """
import sys
from pathlib import Path
from benchmarks.machine import peak_bytes
from aligned import cut, rotation
from cobasis.analyst_side.passes import FilePasses
from cobasis.bundle.payload import open_payload
from cobasis.bundle.run_folder import StateFolder
from cobasis.models.trainer import train

folder = Path(sys.argv[1])
uploads = {each.stem: open_payload(each) for each in sorted((folder / "uploads").iterdir())}
changes = {name: rotation(50, place).T for place, name in enumerate(uploads)}

def report(step, done, total):
    print(step, done, flush=True)

before = peak_bytes()
over = FilePasses(report, folder=folder / "scratch")
rows, state = cut(uploads, changes, n_blocks=40), StateFolder(folder / "run")
told = {"over": over, "state": state, "report": report}
train(rows, model=sys.argv[2], task="classification", seed=0, **told)
print(peak_bytes() - before)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """160 MB of rows."""
    folder = tmp_path_factory.mktemp("large")
    rows = np.random.default_rng(0).normal(size=(400_000, 50))
    labels = (rows[:, 0] > 0).astype(np.int64)
    parties(folder / "uploads", rows, labels, sizes=[200_000, 200_000])
    return folder


@pytest.mark.parametrize("model", ["ridge", "logistic"])
def test_training_takes_a_few_blocks_of_memory_however_many_there_are(large, model):
    """Of 160 MB in 40 blocks; 80 MB more than before are allowed."""
    command = [sys.executable, "-c", TRAIN, str(large), model]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    assert int(done.stdout.split()[-1]) < 80e6


def test_after_a_kill_the_next_training_clears_what_was_left(large):
    running = subprocess.Popen(
        [sys.executable, "-c", TRAIN, str(large), "ridge"],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    for _ in range(5):
        running.stdout.readline()
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    assert list((large / "scratch" / "rows").iterdir())
    command = [sys.executable, "-c", TRAIN, str(large), "ridge"]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)
    assert [path.name for path in large.iterdir()] == ["uploads"]


def test_after_a_kill_a_perceptron_goes_on_from_its_last_round(tmp_path):
    rows, labels = rows_and_labels(1_000)
    wide = np.zeros((len(rows), 50))
    wide[:, :5] = rows
    parties(tmp_path / "uploads", wide, labels, sizes=[400, 600])
    command = [sys.executable, "-c", TRAIN, str(tmp_path), "mlp"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while running.stdout.readline() != "training, rounds at most 5\n":
        assert running.poll() is None
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    rounds = [line for line in done.stdout.splitlines() if line.startswith("training, rounds")]
    assert int(rounds[0].split()[-1]) > 5
    assert list((tmp_path / "run").iterdir()) == []
