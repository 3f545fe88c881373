"""A table of 800 MB becomes an upload in less memory than the table takes."""

import os
import subprocess
import sys
import time

import polars as pl
import pytest
from benchmarks.machine import ONE_THREAD

from cobasis.tables import sources

TWO_THREADS = dict.fromkeys(ONE_THREAD, "2")
ENVIRONMENT = {**os.environ, **TWO_THREADS, "PYTHONPATH": os.pathsep.join(sys.path)}

MAKE = """
import sys
import numpy as np
import polars as pl

column = np.random.default_rng(0).normal(size=500_000)
pl.DataFrame({f"x{i}": np.roll(column, 7 * i) for i in range(200)}).write_parquet(
    sys.argv[1] + "/icu.parquet", row_group_size=500_000, compression="uncompressed")
"""
UPLOAD = """
import sys
from benchmarks.machine import peak_bytes
from cobasis import Agreement, ConsortiumSecret, Party, numeric_features
from cobasis.bundle.uploads import UploadFile
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
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.mark.soak
def test_a_table_of_800_megabytes_becomes_an_upload_in_less_memory(tmp_path):
    """All of the process counts: Python, NumPy, polars and the rest take 105 of them.

    Its one row group is the whole table: how much is read at a time is not the file's choice.
    """
    run(MAKE, tmp_path)
    peak = int(run(UPLOAD, tmp_path))
    assert (tmp_path / "icu.parquet").stat().st_size > 800e6
    assert (tmp_path / "north.safetensors").stat().st_size > 80e6
    assert peak < 800e6


@pytest.mark.parametrize(
    ("n_columns", "dtype", "at_once"),
    [
        (3, pl.Float64, 2**18),
        (200, pl.Float32, 2**18),
        (200, pl.Float64, 2**17),
        (9000, pl.Int8, 2**11),
    ],
)
def test_no_more_than_256_megabytes_of_cells_are_read_at_a_time(
    tmp_path, monkeypatch, n_columns, dtype, at_once
):
    """But a row group as polars writes them, which has 2**18 rows, is read whole if it can be."""
    names, asked = [f"x{i}" for i in range(n_columns)], []
    path, frame = tmp_path / "icu.parquet", pl.DataFrame({name: [1] for name in names})
    frame.cast(dtype).write_parquet(path)
    monkeypatch.setattr(
        sources.Source, "_rows", lambda _, __, *rows: asked.append(rows) or frame.clear()
    )
    list(sources.source_of(path, party="north").parts(names, n_rows=1_000_000, batch=1000))
    assert asked == [(start, at_once) for start in range(0, 1_000_000, at_once)]


def test_polars_is_asked_for_few_columns_at_a_time_by_two_threads(tmp_path, monkeypatch):
    """It may hold a whole row group of what it is asked for: 1.6 GB of a million rows x 200."""
    frame = pl.DataFrame({f"x{i}": [i, -i, i] for i in range(2080)})
    frame.write_parquet(tmp_path / "icu.parquet")
    source = sources.source_of(tmp_path / "icu.parquet", party="north")
    under_way, seen, collect = set(), [], pl.LazyFrame.collect

    def watched(asked, **options):
        under_way.add(id(asked))
        seen.append(len(under_way))
        time.sleep(0.02)
        found = collect(asked, **options)
        under_way.remove(id(asked))
        assert found.width == 65
        return found

    monkeypatch.setattr(pl.LazyFrame, "collect", watched)
    read = list(source.parts(frame.columns, n_rows=3, batch=2))
    assert [first for first, _ in read] == [0, 2]
    assert pl.concat([some for _, some in read]).equals(frame)
    assert max(seen) == 2
