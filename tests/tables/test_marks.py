"""Marks: private, whole or absent, and bound to what they were made from."""

import stat

import numpy as np
import pytest

from cobasis.errors import DiskError
from cobasis.keys.identity import Identity
from cobasis.tables.table import Marks

TABLE = {"table": "/data/icu.parquet", "stamp": "1/2/3"}
ARRAY = np.arange(6.0).reshape(2, 3)
NORTH, SOUTH = Identity.new("north"), Identity.new("south")


def sealed(who, bound_to=None):
    return {"bound_to": bound_to or TABLE, "seal": who.seal_for_self, "unseal": who.unseal_own}


def test_a_mark_is_read_back_exactly_and_by_its_owner_alone(tmp_path):
    Marks(tmp_path / "work", bound_to=TABLE)["directions"] = ARRAY.T
    marks = Marks(tmp_path / "work", bound_to=TABLE)
    np.testing.assert_array_equal(marks["directions"], ARRAY.T)
    assert list(marks) == ["directions"]
    (path,) = (tmp_path / "work").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700


@pytest.mark.parametrize("change", [{"stamp": "1/2/4"}, {"table": "/data/other.csv"}, {"more": ""}])
def test_a_mark_of_something_else_counts_as_absent(change, tmp_path):
    Marks(tmp_path, bound_to=TABLE)["directions"] = ARRAY
    other = Marks(tmp_path, bound_to=TABLE | change)
    assert list(other) == []
    with pytest.raises(KeyError, match="directions"):
        _ = other["directions"]
    other["directions"] = ARRAY + 1
    assert "directions" not in Marks(tmp_path, bound_to=TABLE)


def test_a_mark_that_was_cut_short_counts_as_absent(tmp_path):
    Marks(tmp_path, bound_to=TABLE)["directions"] = ARRAY
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for size in (0, 7, 100, -1):
        path.write_bytes(whole[:size])
        assert "directions" not in Marks(tmp_path, bound_to=TABLE)


def test_clear_leaves_nothing_of_its_own_and_all_that_only_looks_so(tmp_path):
    """Also in a folder that is shared with the user's notes and with another upload."""
    own = Marks(tmp_path / "work", bound_to=TABLE)
    own["directions"] = own["other"] = ARRAY
    (tmp_path / "work" / "directions.mark.part").write_bytes(b"half")
    own.clear()
    assert not (tmp_path / "work").exists()
    own.clear()
    others = {"notes.markdown", "bench.mark", "old.mark.csv", "north.mark.part"}
    for name in others:
        (tmp_path / name).write_text("mine")
    south = Marks(tmp_path, bound_to=TABLE | {"party": "south"})
    south["basis"] = ARRAY
    shared = Marks(tmp_path, bound_to=TABLE)
    shared["directions"] = shared["basis of ours"] = ARRAY
    del shared["basis of ours"]
    with pytest.raises(KeyError):
        del shared["basis of ours"]
    shared.clear()
    assert {path.name for path in tmp_path.iterdir()} == {*others, "basis.mark"}
    np.testing.assert_array_equal(south["basis"], ARRAY)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "work").write_text("a file in the way")
    with pytest.raises(DiskError, match=r"folder '.*work' cannot be made.*\[CB601\]"):
        Marks(tmp_path / "work", bound_to=TABLE)["directions"] = ARRAY


def test_a_mark_that_is_sealed_shows_nothing_on_the_disk_and_only_its_owner_reads_it(tmp_path):
    Marks(tmp_path, **sealed(NORTH))["directions"] = ARRAY
    (path,) = tmp_path.iterdir()
    assert ARRAY.tobytes() not in path.read_bytes()
    assert b"icu.parquet" not in path.read_bytes()
    np.testing.assert_array_equal(Marks(tmp_path, **sealed(NORTH))["directions"], ARRAY)
    for other in (sealed(NORTH, {"a": "b"}), sealed(SOUTH), {"bound_to": TABLE}):
        assert "directions" not in Marks(tmp_path, **other)
