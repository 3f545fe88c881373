"""After an interruption a perceptron goes on from its last round, to the same model."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier, MLPRegressor

from cobasis.engine import training_batches
from cobasis.engine.partitions import open_aligned
from cobasis.engine.training import train_partitions
from engine.partitioned import aligned_rows


def rows_and_labels(n_rows=600):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, 5))
    return rows, (rows[:, 0] * rows[:, 1] > 0).astype(np.int64)


def options(task="classification"):
    kind = MLPClassifier if task == "classification" else MLPRegressor
    model = kind(hidden_layer_sizes=(16,), learning_rate_init=0.02, shuffle=False, random_state=0)
    return {"model": model, "task": task, "seed": 0, "max_passes": 12}


def stop_after(rounds):
    def report(step, done, total):  # noqa: ARG001
        if step.startswith("training") and done == rounds:
            raise KeyboardInterrupt

    return report


def told_to(rounds):
    """Put the number of each round of training into a list."""
    return lambda step, done, _: rounds.append(done) if step.startswith("training") else None


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_interrupted_training_ends_in_the_same_weights(tmp_path, task, dtype, monkeypatch):
    monkeypatch.setattr(training_batches, "ROUND_ROWS", 250)  # a pass is three rounds
    rows, labels = rows_and_labels()
    target = labels if task == "classification" else rows[:, 0] - rows[:, 1] ** 2
    aligned = aligned_rows(tmp_path, rows, target, dtype=dtype)
    whole = train_partitions(aligned, **options(task))
    for rounds in (1, 7):
        with pytest.raises(KeyboardInterrupt):
            train_partitions(
                aligned, **options(task), work=tmp_path / "work", report=stop_after(rounds)
            )
    assert len(list((tmp_path / "work").iterdir())) == 1
    resumed = train_partitions(aligned, **options(task), work=tmp_path / "work")
    for one, two in zip(whole.estimator.coefs_, resumed.estimator.coefs_, strict=True):
        np.testing.assert_array_equal(one, two)
    assert list((tmp_path / "work").iterdir()) == []


def test_other_settings_do_not_continue_from_this_mark(tmp_path):
    aligned = aligned_rows(tmp_path, *rows_and_labels())
    with pytest.raises(KeyboardInterrupt):
        train_partitions(aligned, **options(), work=tmp_path / "work", report=stop_after(3))
    other = {**options(), "seed": 1}
    rounds = []
    train_partitions(aligned, **other, work=tmp_path / "work", report=told_to(rounds))
    fresh = train_partitions(aligned, **other)
    again = train_partitions(aligned, **other, work=tmp_path / "work")
    np.testing.assert_array_equal(fresh.estimator.coefs_[0], again.estimator.coefs_[0])
    assert rounds[0] == 1


@pytest.mark.parametrize("how", ["truncated", "no safetensors", "no state"])
def test_a_mark_that_cannot_be_read_counts_as_none(tmp_path, how):
    aligned = aligned_rows(tmp_path, *rows_and_labels())
    with pytest.raises(KeyboardInterrupt):
        train_partitions(aligned, **options(), work=tmp_path / "work", report=stop_after(3))
    (mark,) = (tmp_path / "work").iterdir()
    data = mark.read_bytes()
    if how == "truncated":
        mark.write_bytes(data[:-10])
    elif how == "no safetensors":
        mark.write_bytes(b"0" * len(data))
    else:
        assert data.count(b"steps") == 1
        mark.write_bytes(data.replace(b"steps", b"stops"))
    rounds = []
    found = train_partitions(aligned, **options(), work=tmp_path / "work", report=told_to(rounds))
    fresh = train_partitions(aligned, **options())
    assert rounds[0] == 1
    np.testing.assert_array_equal(found.estimator.coefs_[0], fresh.estimator.coefs_[0])
    assert list((tmp_path / "work").iterdir()) == []


def test_a_perceptron_that_shuffles_keeps_no_mark_because_it_would_end_in_other_weights(tmp_path):
    aligned = aligned_rows(tmp_path, *rows_and_labels())
    given = options()
    given["model"].set_params(shuffle=True)
    for rounds in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            train_partitions(aligned, **given, work=tmp_path / "work", report=stop_after(rounds))
    assert not (tmp_path / "work").exists()


SCRIPT = """
import sys
from pathlib import Path
from sklearn.neural_network import MLPClassifier
from cobasis.engine.partitions import open_aligned
from cobasis.engine.training import train_partitions

def report(step, done, total):
    if step.startswith("training"):
        print(done, flush=True)

train_partitions(
    open_aligned(sys.argv[1]), model=MLPClassifier((16,), shuffle=False, random_state=0),
    task="classification", seed=0, max_passes=100_000, work=Path(sys.argv[1]) / "work",
    report=report,
)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_ctrl_c_and_a_kill_end_training_at_once_and_leave_a_whole_mark(tmp_path, how):
    """scikit-learn's perceptron takes Ctrl-C for the end of one partition; cobasis does not."""
    noise = np.random.default_rng(0).integers(0, 2, 600)  # nothing to learn: no early end
    aligned = aligned_rows(tmp_path, rows_and_labels()[0], noise)
    running = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(aligned.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for _ in range(3):
        running.stdout.readline()
    running.send_signal(how)
    _, said = running.communicate(timeout=60)
    assert running.returncode != 0
    assert how == signal.SIGKILL or "KeyboardInterrupt" in said
    rounds = []
    train_partitions(
        open_aligned(aligned.path),
        model=MLPClassifier((16,), shuffle=False, random_state=0),
        task="classification",
        seed=0,
        max_passes=100_000,
        work=Path(aligned.path) / "work",
        report=told_to(rounds),
    )
    assert rounds == [] or rounds[0] > 3
