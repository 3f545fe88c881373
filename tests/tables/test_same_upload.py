from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.machine import in_a_child

from bundle.payloads import read_upload
from cobasis.errors import AgreementError, FileChangedError, NotFiniteError
from cobasis.linalg.arrays import gathered
from cobasis.protocol.dp_terms import DPTerms
from cobasis.tables import StreamedTable, open_table
from protocol.consortium import NONE
from tables.parties import NAMES, assert_same, frame, kept, site, uploaded

N_ROWS = 2_900
KINDS = ("parquet", "csv", "frame", "lazy")
TERMS = DPTerms(
    epsilon=2,
    radius=4,
    centre=(0.5,) * 7,
    most_rows=N_ROWS,
    labels="randomised_response",
    label_epsilon=1,
    lifetime_epsilon=3,
)


def exact(table):
    """A table with columns of every real type, which a CSV file would not tell apart."""
    return table.with_columns(
        pl.col("x0").cast(pl.Float32),
        pl.col("x1").round().cast(pl.Int8),
        pl.col("x2").round().cast(pl.Int64),
        (pl.col("x3") > 1).alias("x3"),
    )


NUMBERS = {"task": "regression", "classes": ()}


@pytest.mark.parametrize(
    ("kind", "labels", "changes"),
    [
        *((kind, "died", {}) for kind in KINDS),
        *(("parquet", "died", {"basis": basis}) for basis in ("pca", "public")),
        ("csv", "ward", {"classes": ("west", "east")}),
        ("frame", "stay", NUMBERS),
        ("lazy", None, NONE),
        *((kind, "died", {"basis": "haar", "dp": TERMS}) for kind in KINDS),
        ("csv", "died", {"basis": "public", "dp": TERMS}),
    ],
)
def test_the_upload_is_that_of_the_in_memory_path(kind, labels, changes, tmp_path):
    """Columns are found by name, and the identifier is ignored; progress goes to the last row."""
    table, north, seen = frame(N_ROWS), site(**changes), {}
    table = table if kind == "csv" else exact(table)
    found = uploaded(
        north.party(),
        kept(kind, table, tmp_path),
        labels=labels,
        to=tmp_path / "north.safetensors",
        report=lambda step, done, total: seen.setdefault(step, []).append((done, total)),
    )
    plain = table.with_columns(pl.col(*NAMES).cast(pl.Float64))
    assert_same(found, north.in_memory(plain, labels))
    own = [] if changes.get("basis") == "public" else ["reading rows for the basis"]
    first = ["binding the noise to the rows"] if "dp" in changes else own
    assert list(seen) == [*first, "projecting rows", "putting rows in order"]
    for calls in seen.values():
        assert [done for done, _ in calls] == sorted({done for done, _ in calls})
        assert calls[-1] == (N_ROWS, N_ROWS)
    if "dp" in changes:
        assert ((read_upload(found).rows / TERMS.calibration.grid) % 1 == 0).all()


def test_labels_stay_with_their_rows_in_a_frame_that_has_no_order():
    """Polars may give the rows of a join in another order each time it is asked: once is enough."""
    rng, table = np.random.default_rng(0), frame(3_000)
    whole = {"projection_pushdown": False, "predicate_pushdown": False, "slice_pushdown": False}
    shuffled = table.lazy().map_batches(
        lambda each: each[rng.permutation(each.height)], schema=table.schema, **whole
    )
    rows = open_table(shuffled, agreement=site().agreement, party="north", labels="died")
    np.testing.assert_array_equal(gathered(rows)[:, 0] > 1.0, rows.labels() == 1)


def test_what_changes_between_the_passes_or_is_too_much_gets_no_noise(tmp_path, monkeypatch):
    table, terms = frame(N_ROWS), TERMS.model_copy(update={"most_rows": N_ROWS - 1})
    bad = table.with_columns(x3=pl.lit(float("nan")))
    real, seen = StreamedTable.labels, []

    def changed(self):
        seen.append(1)
        found = real(self).copy()
        found[5] = (found[5] + len(seen)) % 2
        return found

    def attempt(rows, error, words, dp=TERMS):
        party, to = site(basis="haar", dp=dp).party(), tmp_path / "north.safetensors"
        with pytest.raises(error, match=words):
            uploaded(party, rows, labels="died", to=to)
        assert list(tmp_path.iterdir()) == []

    attempt(table, AgreementError, "would upload 2,900 rows", dp=terms)
    attempt(bad, NotFiniteError, "'x3'")
    monkeypatch.setattr(StreamedTable, "labels", changed)
    attempt(table, FileChangedError, "rows or labels of party 'north'")


@pytest.mark.soak
def test_a_table_becomes_an_upload_in_less_memory_than_its_numbers_take(tmp_path):
    """A million rows of 200 numbers, 1.6 GB as they are added up; all of the process counts."""
    path = str(tmp_path / "table.parquet")
    in_a_child("party_table:make", path=path, n_rows=1_000_000)
    assert in_a_child("party_table:upload_once", path=path)["peak_bytes"] < 600e6
    assert Path(f"{path}.safetensors").stat().st_size > 1_000_000 * 8 * 50
