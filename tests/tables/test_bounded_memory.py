"""A table of 800 MB becomes an upload in less memory than the table takes."""

import os
import subprocess
import sys

import pytest
from benchmarks.machine import ONE_THREAD

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
