"""Memory does not grow with the rows, and a killed process leaves nothing half-written."""

import os
import signal
import subprocess
import sys

import numpy as np

from cobasis.engine.partitioning import write_aligned
from cobasis.engine.partitions import open_aligned
from engine.partitioned import aligned_rows, parties

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

TRAIN = """
import sys
from benchmarks.children import peak_bytes
from cobasis.engine.partitions import open_aligned
from cobasis.engine.training import train_partitions
import sklearn.linear_model

aligned, before = open_aligned(sys.argv[1]), peak_bytes()
train_partitions(aligned, model=sys.argv[2], task="classification", seed=0)
print(peak_bytes() - before)
"""

WRITE = """
import sys
from pathlib import Path
from engine.partitioned import alignment_of, rotation
from cobasis.bundle.payload import open_payload
from cobasis.engine.partitioning import write_aligned

folder = Path(sys.argv[1])
uploads = {each.stem: open_payload(each) for each in sorted((folder / "uploads").iterdir())}
changes = {name: rotation(20, place).T for place, name in enumerate(uploads)}

def report(step, done, total):
    print(done, flush=True)

write_aligned(
    uploads, alignment_of(changes), to=folder / "aligned", partition_bytes=32_000, report=report
)
"""


def test_training_takes_a_few_partitions_of_memory_however_many_there_are(tmp_path):
    """160 MB of rows in 40 partitions; 80 MB more than before are allowed."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400_000, 50))
    aligned = aligned_rows(
        tmp_path, rows, (rows[:, 0] > 0).astype(np.int64), n_partitions=40, n_parties=2
    )
    command = [sys.executable, "-c", TRAIN, str(aligned.path), "ridge"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT)
    assert int(done.stdout) < 80e6
    assert sum(each.stat().st_size for each in aligned.path.iterdir()) > 160e6


def test_a_killed_writer_goes_on_where_it_was(tmp_path):
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(20_000, 20)), rng.integers(0, 3, 20_000)
    uploads, alignment = parties(tmp_path / "uploads", rows, labels, sizes=[12_000, 8_000])
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    for _ in range(5):
        running.stdout.readline()
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)
    folder = tmp_path / "aligned"
    assert not (folder / "manifest.json").exists()
    before = {each: each.stat().st_mtime_ns for each in folder.glob("*.safetensors")}
    assert 5 <= len(before) < 100
    aligned = write_aligned(uploads, alignment, to=folder, partition_bytes=32_000)
    assert {each: each.stat().st_mtime_ns for each in before} == before
    whole = write_aligned(uploads, alignment, to=tmp_path / "whole", partition_bytes=32_000)
    assert open_aligned(folder).partitions == aligned.partitions == whole.partitions
