"""Marks: private, whole or absent, and bound to what they were made from."""

import stat

import numpy as np
import pytest

from cobasis import ConsortiumSecret
from cobasis.errors import DiskError
from cobasis.keys.identity import Identity
from cobasis.tables import open_table
from cobasis.tables.table import Marks
from tables.parties import frame, kept, site

TABLE = {"table": "/data/icu.parquet", "stamp": "1/2/3"}
SECRET = ConsortiumSecret(bytes(32))
ARRAY = np.arange(6.0).reshape(2, 3)
NORTH, SOUTH = Identity.new("north"), Identity.new("south")


def marks(folder, *, who=None, **changes):
    keys = {} if who is None else {"seal": who.seal_for_self, "unseal": who.unseal_own}
    return Marks(folder, bound_to=TABLE | changes, **keys)


@pytest.mark.parametrize("who", [None, NORTH])
def test_a_mark_is_read_back_exactly_and_by_its_owner_alone(tmp_path, who):
    marks(tmp_path / "work", who=who)["directions"] = ARRAY.T
    own = marks(tmp_path / "work", who=who)
    np.testing.assert_array_equal(own["directions"], ARRAY.T)
    assert list(own) == ["directions"]
    (path,) = (tmp_path / "work").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700
    assert (b"icu.parquet" in path.read_bytes()) == (who is None)
    assert "directions" not in marks(tmp_path / "work", who=SOUTH if who else NORTH)


def test_a_mark_that_was_cut_short_counts_as_absent(tmp_path):
    marks(tmp_path)["directions"] = ARRAY
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for size in (0, 7, 100, -1):
        path.write_bytes(whole[:size])
        assert "directions" not in marks(tmp_path)
    (tmp_path / "work").touch()
    with pytest.raises(DiskError, match=r"folder '.*work' cannot be made.*\[CB601\]"):
        marks(tmp_path / "work")["directions"] = ARRAY


def test_clear_leaves_nothing_of_its_own_and_all_that_only_looks_so(tmp_path):
    """Also in a folder that is shared with the user's notes and with another upload."""
    own = marks(tmp_path / "work")
    own["directions"] = ARRAY
    (tmp_path / "work" / "directions.mark.part").write_bytes(b"half")
    own.clear()
    assert not (tmp_path / "work").exists()
    others = {"notes.markdown", "bench.mark", "old.mark.csv", "north.mark.part"}
    for name in others:
        (tmp_path / name).write_text("mine")
    south, shared = marks(tmp_path, party="south"), marks(tmp_path)
    south["basis"] = shared["directions"] = ARRAY
    shared.clear()
    assert {path.name for path in tmp_path.iterdir()} == {*others, "basis.mark"}


def test_a_mark_of_another_table_agreement_or_party_is_not_used(tmp_path):
    path = kept("parquet", frame(100), tmp_path)

    def memory(party="north", **changes):
        agreement = site(secret=SECRET, **changes).agreement
        return open_table(path, agreement=agreement, party=party).memory(tmp_path / "work")

    memory()["directions"] = ARRAY
    assert "directions" in memory()
    assert "directions" not in memory(n_components=2)
    assert "directions" not in memory("south")
    kept("parquet", frame(100, seed=1), tmp_path)
    assert "directions" not in memory()
