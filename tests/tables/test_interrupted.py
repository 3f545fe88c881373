"""Stopped at any moment, a rerun makes the same upload and repeats no finished pass."""

import os
import signal
import subprocess
import sys

import pytest

from cobasis import ConsortiumSecret, PartyKey
from tables.parties import assert_same, frame, site, uploaded

FIRST, SECOND, LAST = "reading rows for the basis", "projecting rows", "putting rows in order"
CHILD = """
import os, signal, sys
from cobasis import ConsortiumSecret, PartyKey
from cobasis.protocol import projection
from cobasis.tables import table
from tables.parties import site, uploaded

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a job in the background ignores
table.BLOCK_CELLS, projection.BIN_BYTES = 1, 2400
folder, stop_at, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
north = site(secret=ConsortiumSecret(b"s" * 32), key=PartyKey(b"k" * 32))

def report(step, done, total):
    if step == stop_at and done >= total / 2:
        os.kill(os.getpid(), number)

uploaded(north.party(), folder + "/icu.parquet", labels="died",
         to=folder + "/north.safetensors", report=report)
"""


def stopped(folder, step, number):
    """Start an upload in another process, which is stopped in the middle of a step."""
    place = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", CHILD, str(folder), step, str(int(number))]
    done = subprocess.run(command, env=place, capture_output=True, check=False, timeout=120)
    assert done.returncode in {-number, 130, 1}, done.stderr.decode()
    if number == signal.SIGINT:
        assert b"KeyboardInterrupt" in done.stderr


@pytest.mark.parametrize(
    ("step", "number"),
    [*((step, signal.SIGKILL) for step in (FIRST, SECOND, LAST)), (SECOND, signal.SIGINT)],
)
def test_a_rerun_starts_at_the_pass_that_was_not_finished(step, number, tmp_path):
    table = frame(2_900)
    table.write_parquet(tmp_path / "icu.parquet")
    to, work = tmp_path / "north.safetensors", tmp_path / "north.safetensors.work"
    stopped(tmp_path, step, number)
    assert not to.exists()
    assert work.exists() == (step != FIRST)

    north = site(secret=ConsortiumSecret(b"s" * 32), key=PartyKey(b"k" * 32))
    steps = []
    uploaded(
        north.party(),
        tmp_path / "icu.parquet",
        labels="died",
        to=to,
        report=lambda each, *_: steps.append(each),
    )
    assert (FIRST in steps) == (step == FIRST)
    assert_same(to, north.in_memory(table))
    assert {path.name for path in tmp_path.iterdir()} == {"icu.parquet", "north.safetensors"}
