"""Noise on a table in parts is the noise on the table in memory, bit for bit; or nothing leaves."""

import numpy as np
import polars as pl
import pytest

from cobasis.bundle.payload import open_payload
from cobasis.errors import AgreementError, FileChangedError, NotFiniteError
from cobasis.protocol import projection
from cobasis.protocol.dp_terms import DPTerms
from cobasis.tables import StreamedTable
from tables.parties import frame, site, uploaded
from tables.test_same_upload import kept_as

N_ROWS = 2_900
TERMS = DPTerms(
    epsilon=2,
    radius=4,
    centre=(0.5,) * 7,
    most_rows=N_ROWS,
    labels="randomised_response",
    label_epsilon=1,
    lifetime_epsilon=3,
)


@pytest.fixture(autouse=True)
def many_small_parts(monkeypatch):
    """As in ``test_same_upload.py``: parts and bins that no chunk of noise fits."""
    monkeypatch.setattr("cobasis.tables.table.BLOCK_CELLS", 1)
    monkeypatch.setattr(projection, "BIN_BYTES", 8 * 3 * 100)


@pytest.mark.parametrize("kind", ["parquet", "csv", "frame", "lazy", "other"])
@pytest.mark.parametrize("basis", ["haar", "public"])
def test_the_upload_is_that_of_the_in_memory_path_bit_for_bit(kind, basis, tmp_path):
    table, north = frame(N_ROWS), site(basis=basis, dp=TERMS)
    to = tmp_path / "north.safetensors"
    uploaded(north.party(), kept_as(kind, table, tmp_path), labels="died", to=to)
    found, expected = open_payload(to), north.in_memory(table)
    np.testing.assert_array_equal(found.row_block(0, N_ROWS), expected.rows)
    np.testing.assert_array_equal(found.labels(), expected.labels)
    assert ((expected.rows / TERMS.calibration.grid) % 1 == 0).all()


def test_a_second_call_and_other_parts_make_the_same_file(tmp_path, monkeypatch):
    table, north = frame(N_ROWS), site(basis="haar", dp=TERMS)
    made = []
    for at, (groups, bins) in enumerate([(700, 2400), (700, 2400), (997, 10**6)]):
        monkeypatch.setattr(projection, "BIN_BYTES", bins)
        path, to = tmp_path / f"{at}.parquet", tmp_path / f"{at}.safetensors"
        table.write_parquet(path, row_group_size=groups)
        made.append(uploaded(north.party(), path, labels="died", to=to).read_bytes())
    assert made[0] == made[1] == made[2]


def test_a_frame_that_comes_in_another_order_each_time_is_refused(tmp_path):
    shuffled = iter(range(1000))

    def other_order(table):
        return table.sample(fraction=1, shuffle=True, seed=next(shuffled))

    table = frame(N_ROWS).lazy().map_batches(other_order)
    to = tmp_path / "north.safetensors"
    party = site(basis="haar", dp=TERMS).party()
    with pytest.raises(FileChangedError, match="came in another order"):
        uploaded(party, table, labels="died", to=to)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_label_that_changes_between_the_passes_is_refused(tmp_path, monkeypatch):
    table = frame(N_ROWS)
    real = StreamedTable.labels
    seen = []

    def changed(self):
        seen.append(1)
        found = real(self).copy()
        found[5] = (found[5] + len(seen)) % 2
        return found

    monkeypatch.setattr(StreamedTable, "labels", changed)
    to = tmp_path / "north.safetensors"
    with pytest.raises(FileChangedError, match="rows or labels of party 'north'"):
        uploaded(site(basis="haar", dp=TERMS).party(), table, labels="died", to=to)
    assert not to.exists()


def test_more_rows_than_agreed_and_numbers_that_are_none_are_refused(tmp_path):
    to = tmp_path / "north.safetensors"
    few = TERMS.model_copy(update={"most_rows": N_ROWS - 1})
    with pytest.raises(AgreementError, match="would upload 2,900 rows"):
        uploaded(site(basis="haar", dp=few).party(), frame(N_ROWS), labels="died", to=to)
    bad = frame(N_ROWS).with_columns(x3=pl.lit(float("nan")))
    with pytest.raises(NotFiniteError):
        uploaded(site(basis="haar", dp=TERMS).party(), bad, labels="died", to=to)
    assert [path.name for path in tmp_path.iterdir()] == []
