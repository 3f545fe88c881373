"""From a file or from memory: the same upload."""

from functools import partial

import numpy as np
import polars as pl
import pytest

from cobasis import Analyst, Party, PartyKey
from cobasis.bundle.payload import open_payload
from cobasis.errors import OrthonormalityError
from cobasis.protocol import projection
from cobasis.protocol.secrets import SecretBasis
from cobasis.tables import open_table
from tables.parties import NAMES, assert_same, frame, numbers, site, uploaded

N_ROWS = 2_900


@pytest.fixture(autouse=True)
def many_small_parts(monkeypatch):
    """Twelve blocks in three parts, and 29 bins, as a table of millions of rows would have."""
    monkeypatch.setattr("cobasis.tables.table.BLOCK_CELLS", 1)
    monkeypatch.setattr(projection, "BIN_BYTES", 8 * 3 * 100)


class Frame:
    """What pandas and its like have in common."""

    def __init__(self, table):
        self._table = {name: table[name].to_numpy() for name in table.columns}
        self.columns = list(self._table)

    def __getitem__(self, name):
        return self._table[name]


def kept_as(kind, table, folder):
    """The table as a file or a frame."""
    if kind == "parquet":
        table.write_parquet(folder / "icu.parquet", row_group_size=700)
        return folder / "icu.parquet"
    if kind == "csv":
        table.write_csv(folder / "icu.csv")
        return str(folder / "icu.csv")
    return {"frame": table, "lazy": table.lazy(), "other": Frame(table)}[kind]


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame", "lazy", "other"])
@pytest.mark.parametrize("basis", ["svd", "pca", "haar", "public"])
def test_the_upload_is_that_of_the_in_memory_path(kind, basis, tmp_path):
    """Columns are found by name, and the identifier is ignored."""
    table, north = frame(N_ROWS), site(basis=basis)
    to = tmp_path / "north.safetensors"
    found = uploaded(north.party(), kept_as(kind, table, tmp_path), labels="died", to=to)
    assert found == to
    assert_same(to, north.in_memory(table))


def test_pandas_frames_are_read(tmp_path):
    pytest.importorskip("pandas", reason="pandas is not installed; a look-alike is tested above")
    table, north = frame(N_ROWS), site()
    to = tmp_path / "north.safetensors"
    uploaded(north.party(), table.to_pandas(), labels="died", to=to)
    assert_same(to, north.in_memory(table))


def paired(rows, labels):
    """Rows with their labels behind, in an order that says nothing."""
    found = np.column_stack([rows, labels])
    return found[np.argsort(found[:, 0])]


@pytest.mark.parametrize("plan", ["unique", "join", "shuffled"])
def test_labels_stay_with_their_rows_in_a_frame_that_has_no_order(plan, tmp_path):
    """Polars may give such a frame's rows in another order each time it is asked."""
    table = frame(3_000)
    ward = pl.DataFrame({"patient": np.arange(3_000)[::-1]}).lazy()
    lazy = {
        "unique": table.lazy().unique(subset="patient"),
        "join": table.lazy().join(ward, on="patient"),
        "shuffled": shuffled(table),
    }[plan]
    north, to = site(), tmp_path / "north.safetensors"
    party = north.party()
    uploaded(party, lazy, labels="died", to=to)
    found = open_payload(to)
    scaled = (table.select(NAMES).to_numpy() - 0.5) / [1, 2, 1, 3, 1, 1, 0.5]
    np.testing.assert_allclose(
        paired(found.row_block(0, 3_000), found.labels()),
        paired(party.basis.project(scaled), table["died"].to_numpy()),
        atol=1e-10,
    )


def shuffled(table):
    """A plan that is sure to give another order each time."""
    rng = np.random.default_rng(0)
    return table.lazy().map_batches(
        lambda whole: whole[rng.permutation(whole.height)],
        schema=table.schema,
        projection_pushdown=False,
        predicate_pushdown=False,
        slice_pushdown=False,
    )


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame"])
def test_a_wide_table_is_worked_on_in_few_pieces(kind, tmp_path, monkeypatch):
    """Each piece gives a Gram matrix, which would be 134 MB for 4,096 features."""
    table = kept_as(kind, frame(N_ROWS), tmp_path)
    rows = open_table(table, agreement=site().agreement, party="north")
    heights = partial(rows.over, lambda _, blocks: sum(map(len, blocks)), step="")
    assert len(list(heights())) > 1
    monkeypatch.setattr("cobasis.tables.table.WIDE", 6)
    assert list(heights()) == [N_ROWS]


def test_labels_may_be_words(tmp_path):
    table, north = frame(N_ROWS), site(classes=("west", "east"))
    to = tmp_path / "north.safetensors"
    uploaded(north.party(), table, labels="ward", to=to)
    assert_same(to, north.in_memory(table, "ward"))


def test_labels_may_be_numbers_or_absent(tmp_path):
    table = frame(N_ROWS)
    to = tmp_path / "north.safetensors"
    north = site(task="regression", classes=())
    uploaded(north.party(), table, labels="stay", to=to)
    assert_same(to, north.in_memory(table, "stay"))
    north = site(task="representation", classes=(), model=None)
    uploaded(north.party(), table, to=to)
    assert_same(to, north.in_memory(table, None))


def test_the_consensus_exchange_works_from_a_file(tmp_path):
    """The directions that were found for the proposal are those of the in-memory path."""
    table, north = frame(N_ROWS), site(basis="consensus")
    table.write_parquet(tmp_path / "icu.parquet")
    others = [
        Party(name, agreement=north.agreement, secret=north.secret) for name in ("south", "east")
    ]
    proposals = [other.propose(numbers(50, seed=9)) for other in others]
    party = north.party()
    rows = open_table(tmp_path / "icu.parquet", agreement=north.agreement, party="north")
    own = party.propose(rows)
    expected = north.party().propose(table.select(NAMES).to_numpy())
    np.testing.assert_allclose(own.image, expected.image, atol=1e-12)
    consensus = Analyst(north.agreement).consensus([own, *proposals])
    to = tmp_path / "north.safetensors"
    uploaded(party, tmp_path / "icu.parquet", labels="died", to=to, consensus=consensus)
    assert_same(to, north.in_memory(table, consensus=consensus))


@pytest.mark.parametrize("weakest", [1e-2, 1e-6])
@pytest.mark.parametrize("basis", ["svd", "pca"])
def test_weak_directions_are_found_as_precisely_as_by_a_singular_value_decomposition(
    basis, weakest, tmp_path
):
    """A Gram matrix alone is off by 1e-4 where the weakest is a millionth of the strongest."""
    strengths = (1, 0.9, *(weakest / 2**power for power in range(5)))
    table = frame(N_ROWS, strengths=strengths)
    north = site(basis=basis, n_components=4)
    steps = set()
    to = tmp_path / "north.safetensors"
    uploaded(north.party(), table, labels="died", to=to, report=lambda step, *_: steps.add(step))
    assert_same(to, north.in_memory(table))
    assert ("reading rows for the basis, precisely" in steps) == (weakest < 1e-3)


def test_a_basis_that_was_kept_is_used_again_without_a_first_pass(tmp_path):
    table, north = frame(N_ROWS), site()
    to = tmp_path / "north.safetensors"
    party, steps = north.party(), []
    uploaded(party, table, labels="died", to=to)
    basis = party.basis
    again = north.party()
    uploaded(
        again, table, labels="died", to=to, basis=basis, report=lambda step, *_: steps.append(step)
    )
    assert_same(to, north.in_memory(table, basis=basis))
    assert set(steps) == {"projecting rows", "putting rows in order"}
    oblique = SecretBasis(np.ones((7, 3)), party="north", oblique=True)
    with pytest.raises(OrthonormalityError, match="CB202"):
        uploaded(again, table, labels="died", to=to, basis=oblique)


def test_the_party_goes_on_as_after_prepare(tmp_path):
    """Its basis is kept, so that a return can be accepted."""
    table, north = frame(N_ROWS), site()
    party = north.party()
    uploaded(party, table, labels="died", to=tmp_path / "north.safetensors")
    other = north.party()
    rows = table.select(NAMES).to_numpy()
    other.prepare(rows, table["died"].to_numpy())
    np.testing.assert_allclose(party.basis.project(rows), other.basis.project(rows), atol=1e-10)


def test_another_key_gives_another_order_and_rotation(tmp_path):
    table, north = frame(N_ROWS), site()
    to = tmp_path / "north.safetensors"
    uploaded(north.party(), table, labels="died", to=to)
    other = site(key=PartyKey(), secret=north.secret)
    with pytest.raises(AssertionError):
        assert_same(to, other.in_memory(table))


def test_columns_of_every_real_type_are_read_exactly(tmp_path):
    table = frame(N_ROWS).with_columns(
        pl.col("x0").cast(pl.Float32),
        pl.col("x1").round().cast(pl.Int8),
        pl.col("x2").round().cast(pl.Int64),
        (pl.col("x3") > 1).alias("x3"),
    )
    plain = table.with_columns(pl.col(*NAMES).cast(pl.Float64))
    table.write_parquet(tmp_path / "icu.parquet")
    north, to = site(), tmp_path / "north.safetensors"
    uploaded(north.party(), tmp_path / "icu.parquet", labels="died", to=to)
    assert_same(to, north.in_memory(plain))


def test_progress_goes_from_the_first_row_to_the_last(tmp_path):
    seen = {}
    uploaded(
        site().party(),
        frame(N_ROWS),
        labels="died",
        to=tmp_path / "north.safetensors",
        report=lambda step, done, total: seen.setdefault(step, []).append((done, total)),
    )
    assert list(seen) == ["reading rows for the basis", "projecting rows", "putting rows in order"]
    for calls in seen.values():
        assert [done for done, _ in calls] == sorted({done for done, _ in calls})
        assert calls[-1] == (N_ROWS, N_ROWS)
