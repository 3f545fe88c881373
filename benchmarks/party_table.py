"""A party's table on disk: 5 million rows of 200 features become an upload.

The upload is timed against one streamed read of the same file by polars, in turns: reads, then
the upload. A read is the faster of two, with polars' own batches and with batches of 10,000 rows;
reads have processes of their own, since the peak memory of this one is the uploads'. The table
lies in a temporary folder meanwhile.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from benchmarks import goals
from benchmarks.inputs import agreed
from benchmarks.machine import in_a_child, peak_bytes
from cobasis import ConsortiumSecret, Party, PartyKey
from cobasis.bundle.uploads import UploadFile, open_payload
from cobasis.tables import open_table

FEATURES, COMPONENTS, ROW_GROUP = 200, 50, 2**18
NAMES = [f"x{column}" for column in range(FEATURES)]
MOST_TIMES, MOST_BYTES, MOST_OFF = 4.0, 1.2e9, 1e-10
CHUNKS = {"polars' own batches": None, "batches of 10,000 rows": 10_000}


def measure(*, quick: bool) -> dict[str, Any]:
    n_rows = 300_000 if quick else 5_000_000
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/table.parquet"
        in_a_child("party_table:make", path=path, n_rows=n_rows)
        off = in_a_child("party_table:off", folder=place)["result"]
        before = peak_bytes()
        turns = [a_turn(path) for _ in range(3 if quick else 7)]
        size = Path(path).stat().st_size
    ratios = [each["upload"] / each["read"] for each in turns]
    found = {
        "n_rows": n_rows,
        "n_features": FEATURES,
        "n_components": COMPONENTS,
        "file_bytes": size,
        "rounds": turns,
        "upload / read": {"median": median(ratios), "least": min(ratios), "most": max(ratios)},
        "processor, upload / read": median(each["upload_cpu"] / each["read_cpu"] for each in turns),
        "peak_bytes": peak_bytes(),
        "peak_bytes_before": before,
        "off": off,
    }
    return {**found, "goals": judged(found)}


def judged(found: dict[str, Any]) -> list[goals.Judged]:
    what = f"a table of {found['n_rows']:,} rows x {FEATURES} becomes an upload"
    ratio = found["upload / read"]
    where = (
        f"the faster of two reads; {ratio['least']:.2f} to {ratio['most']:.2f} "
        f"in {len(found['rounds'])} rounds; "
        f"processor time {found['processor, upload / read']:.2f}x"
    )
    megabytes, most = found["peak_bytes"] / 1e6, MOST_BYTES / 1e6
    times: dict[str, Any] = {"most": MOST_TIMES, "unit": "x", "where": where}
    return [
        goals.goal(f"{what}, against one streamed read", ratio["median"], **times),
        goals.goal(f"{what}: peak memory", megabytes, most=most, unit=" MB"),
        goals.goal("an upload from disk against one from memory", found["off"], most=MOST_OFF),
    ]


def a_turn(path: str) -> dict[str, float]:
    reads = {
        name: in_a_child("party_table:a_read", threads=True, path=path, chunk=chunk)["result"]
        for name, chunk in CHUNKS.items()
    }
    read, read_cpu = min(reads.values())
    upload, upload_cpu = timed(lambda: upload_once(path))
    found = {"read": read, "read_cpu": read_cpu, "upload": upload, "upload_cpu": upload_cpu}
    return found | {f"read, {name}": each for name, (each, _) in reads.items()}


def a_read(path: str, chunk: int | None) -> tuple[float, float]:
    """Time one read, after a small one that starts polars."""
    pl.scan_parquet(path).head(1000).collect()
    return timed(lambda: read_once(path, chunk))


def timed(work: Callable[[], object]) -> tuple[float, float]:
    began, began_cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - began_cpu


def read_once(path: str, chunk: int | None) -> int:
    """Read all columns, batch by batch, and drop them; without `chunk` polars chooses."""
    batches = pl.scan_parquet(path).collect_batches(chunk_size=chunk, lazy=True)
    return sum(each.height for each in batches)


def upload_once(path: str) -> str:
    """Make an upload beside the table, with the same secrets every time."""
    north, to = party(), f"{path}.safetensors"
    north.write(
        open_table(path, agreement=north.agreement, party=north.name, labels="died"),
        to=UploadFile(to),
    )
    return to


def party() -> Party:
    sizes = {"n_components": COMPONENTS, "n_anchor_rows": FEATURES}
    how: dict[str, Any] = {"task": "classification", "classes": (0, 1), "model": "ridge", **sizes}
    agreement, key = agreed(("north", "south"), NAMES, **how), PartyKey(bytes(32), simulated=True)
    secret = ConsortiumSecret(bytes(32), simulated=True)
    return Party("north", agreement=agreement, secret=secret, key=key)


def off(folder: str) -> float:
    """Return how far streamed rows are from the in-memory path's, on 100,000 rows."""
    table = batch(np.random.default_rng(1), 100_000)
    path = f"{folder}/small.parquet"
    table.write_parquet(path)
    streamed = open_payload(Path(upload_once(path)))
    whole = party().prepare(table.select(NAMES).to_numpy(), table["died"].to_numpy())
    return float(np.abs(streamed.rows[:] - whole.rows).max())


def make(path: str, n_rows: int) -> None:
    """Write a table of float32 numbers, row group by row group, as polars does by default."""

    def batches(columns: list[str] | None, *_: object) -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(0)
        for start in range(0, n_rows, ROW_GROUP):
            made = batch(rng, min(ROW_GROUP, n_rows - start))
            yield made if columns is None else made.select(columns)

    schema = batch(np.random.default_rng(0), 1).schema
    register_io_source(batches, schema=schema).sink_parquet(path, row_group_size=ROW_GROUP)


def batch(rng: np.random.Generator, n_rows: int) -> pl.DataFrame:
    """Return rows whose directions fall off slowly, with a label."""
    mixing = np.random.default_rng(0).standard_normal((FEATURES, FEATURES))
    mixing *= np.exp(-np.arange(FEATURES) / 40)[:, np.newaxis]
    rows = rng.standard_normal((n_rows, FEATURES), dtype=np.float32) @ mixing.astype(np.float32)
    columns = {name: rows[:, column].copy() for column, name in enumerate(NAMES)}
    return pl.DataFrame({**columns, "died": (rows[:, 0] > 0).astype(np.int64)})
