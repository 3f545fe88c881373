"""Marks: private, whole or absent, and bound to what they were made from."""

import stat

import numpy as np
import pytest

from cobasis.errors import DiskError
from cobasis.keys.identity import Identity
from cobasis.tables.table import Marks

TABLE = {"table": "/data/icu.parquet", "stamp": "1/2/3"}
ARRAY = np.arange(6.0).reshape(2, 3)


def test_a_mark_is_read_back_exactly(tmp_path):
    Marks(tmp_path / "work", bound_to=TABLE)["directions"] = ARRAY.T
    marks = Marks(tmp_path / "work", bound_to=TABLE)
    np.testing.assert_array_equal(marks["directions"], ARRAY.T)
    assert dict(marks).keys() == {"directions"}
    assert len(marks) == 1


def test_only_the_owner_can_read_a_mark(tmp_path):
    Marks(tmp_path / "work", bound_to=TABLE)["directions"] = ARRAY
    (path,) = (tmp_path / "work").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700


@pytest.mark.parametrize("change", [{"stamp": "1/2/4"}, {"table": "/data/other.csv"}, {"more": ""}])
def test_a_mark_of_something_else_counts_as_absent(change, tmp_path):
    Marks(tmp_path, bound_to=TABLE)["directions"] = ARRAY
    other = Marks(tmp_path, bound_to=TABLE | change)
    assert "directions" not in other
    assert list(other) == []
    with pytest.raises(KeyError, match="directions"):
        _ = other["directions"]
    other["directions"] = ARRAY + 1
    assert "directions" not in Marks(tmp_path, bound_to=TABLE)


@pytest.mark.parametrize("size", [0, 7, 100, -1])
def test_a_mark_that_was_cut_short_counts_as_absent(size, tmp_path):
    Marks(tmp_path, bound_to=TABLE)["directions"] = ARRAY
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert "directions" not in Marks(tmp_path, bound_to=TABLE)


def test_nothing_is_left_after_clear(tmp_path):
    marks = Marks(tmp_path / "work", bound_to=TABLE)
    marks["directions"] = ARRAY
    marks["other"] = ARRAY
    (tmp_path / "work" / "directions.mark.part").write_bytes(b"half")
    marks.clear()
    assert not (tmp_path / "work").exists()
    marks.clear()


def test_clear_leaves_what_is_not_its_own(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    marks = Marks(tmp_path, bound_to=TABLE)
    marks["directions"] = ARRAY
    del marks["directions"]
    with pytest.raises(KeyError):
        del marks["directions"]
    marks.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_clear_leaves_files_that_only_look_like_its_own(tmp_path):
    """In a folder that is shared with the user's notes and with another upload."""
    others = {"notes.markdown", "bench.mark", "old.mark.csv", "north.mark.part"}
    for name in others:
        (tmp_path / name).write_text("mine")
    south = Marks(tmp_path, bound_to=TABLE | {"party": "south"})
    south["basis"] = ARRAY
    marks = Marks(tmp_path, bound_to=TABLE)
    marks["directions"] = ARRAY
    marks.clear()
    assert {path.name for path in tmp_path.iterdir()} == {*others, "basis.mark"}
    np.testing.assert_array_equal(south["basis"], ARRAY)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "work").write_text("a file in the way")
    with pytest.raises(DiskError, match=r"folder '.*work' cannot be made.*\[CB601\]"):
        Marks(tmp_path / "work", bound_to=TABLE)["directions"] = ARRAY


def test_a_mark_that_is_sealed_shows_nothing_on_the_disk_and_only_its_owner_reads_it(tmp_path):
    def sealed(who):
        return {"bound_to": TABLE, "seal": who.seal_for_self, "unseal": who.unseal_own}

    north, south = Identity.new("north"), Identity.new("south")
    Marks(tmp_path, **sealed(north))["directions"] = ARRAY
    (path,) = tmp_path.iterdir()
    assert ARRAY.tobytes() not in path.read_bytes()
    assert b"icu.parquet" not in path.read_bytes()
    np.testing.assert_array_equal(Marks(tmp_path, **sealed(north))["directions"], ARRAY)
    assert "directions" not in Marks(tmp_path, **sealed(north) | {"bound_to": {}})
    assert "directions" not in Marks(tmp_path, **sealed(south))
    assert "directions" not in Marks(tmp_path, bound_to=TABLE)
