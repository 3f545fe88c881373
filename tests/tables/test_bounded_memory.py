"""A table of 800 MB becomes an upload in less memory than the table takes."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

import polars as pl
import pytest
from benchmarks.machine import ONE_THREAD

from cobasis.linalg.threads import in_order
from cobasis.tables import sources

ENVIRONMENT = {**os.environ, **ONE_THREAD, "PYTHONPATH": os.pathsep.join(sys.path)}

MAKE = """
import sys
import numpy as np
import polars as pl

column = np.random.default_rng(0).normal(size=500_000)
pl.DataFrame({f"x{i}": np.roll(column, 7 * i) for i in range(200)}).write_parquet(
    sys.argv[1] + "/icu.parquet", row_group_size=10_000, compression="uncompressed")
"""
UPLOAD = """
import sys
from benchmarks.children import peak_bytes
from cobasis import Agreement, ConsortiumSecret, Party, numeric_features
from cobasis.bundle.precision import UploadFile
from cobasis.tables import open_table

folder = sys.argv[1]
secret = ConsortiumSecret()
agreement = Agreement(
    round_id="r", parties=("north",), task="representation", n_components=20, n_anchor_rows=200,
    features=numeric_features([f"x{i}" for i in range(200)]), commitment=secret.commitment("r"))
north = Party("north", agreement=agreement, secret=secret)
table = open_table(folder + "/icu.parquet", agreement=agreement, party="north")
north.write(table, to=UploadFile(folder + "/north.safetensors"))
print(peak_bytes())
"""


def run(code, folder):
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        check=False,
        timeout=300,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_a_table_of_800_megabytes_becomes_an_upload_in_less_than_650(tmp_path):
    """All of the process counts: Python, NumPy, polars and the rest take 105 of them.

    It has one thread; two read up to 512 MB of cells together, as the next test says.
    """
    run(MAKE, tmp_path)
    peak = int(run(UPLOAD, tmp_path))
    assert (tmp_path / "icu.parquet").stat().st_size > 800e6
    assert (tmp_path / "north.safetensors").stat().st_size > 80e6
    assert peak < 650e6


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_more_threads_read_less_each(tmp_path, monkeypatch, threads):
    """No more than 256 MB of cells each and 512 MB together, but whole row groups for two."""
    monkeypatch.setattr(sources, "available_threads", lambda: threads)
    path, names, n_rows = tmp_path / "icu.parquet", [f"x{i}" for i in range(200)], 5_000_000
    pl.DataFrame({name: pl.Series([1.0], dtype=pl.Float32) for name in names}).write_parquet(path)
    source = sources.source_of(path, party="north")
    starts = [start for start, _ in source.parts(names, n_rows=n_rows, batch=1000)]
    size = starts[1]
    assert starts == list(range(0, n_rows, size))
    assert size * 4 * len(names) * threads <= 2**29
    assert (size == 2**18) == (threads <= 2)


def test_no_more_than_two_threads_read_at_a_time(tmp_path, monkeypatch):
    """Each unpacks a row group of its own, on all cores: eight of them took a gigabyte more."""
    pl.DataFrame({"x": range(20)}).write_parquet(tmp_path / "icu.parquet")
    source = sources.source_of(tmp_path / "icu.parquet", party="north")
    under_way, seen = set(), []

    @contextmanager
    def watched(_):
        me = object()
        under_way.add(me)
        seen.append(len(under_way))
        time.sleep(0.02)
        yield
        under_way.remove(me)

    monkeypatch.setattr(sources, "PART_ROWS", 1)
    monkeypatch.setattr(sources, "available_threads", lambda: 8)
    parts = list(source.parts(["x"], n_rows=20, batch=1))
    monkeypatch.setattr(sources.Source, "reading", watched)
    frames = list(in_order(lambda part: part[1](), parts, workers=8))
    assert [frame["x"].item() for frame in frames] == list(range(20))
    assert max(seen) == 2
