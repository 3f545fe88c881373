"""Where keys lie, and that a name never leads elsewhere."""

import stat

import pytest

from cobasis.errors import DiskError, IdentityError
from cobasis.keys.identity import home, key_path, names


def test_the_home_is_what_is_given_or_named_or_in_the_persons_own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COBASIS_HOME", raising=False)
    assert home() == tmp_path / ".cobasis"
    monkeypatch.setenv("COBASIS_HOME", str(tmp_path / "named"))
    assert home() == tmp_path / "named"
    assert home(tmp_path / "given") == tmp_path / "given"
    for folder in (".cobasis", "named", "given"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


def test_a_key_has_its_place(tmp_path):
    path = key_path(tmp_path, "north")
    assert path == tmp_path / "keys" / "north.key"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert names(tmp_path) == ()
    for name in ("south", "north.east"):
        key_path(tmp_path, name).touch()
    (tmp_path / "keys" / "notes.txt").touch()
    assert names(tmp_path) == ("north.east", "south")


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/passwd", "a/b", ".a", "a\n", "x" * 101])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(IdentityError, match="no identity's name"):
        key_path(tmp_path, name)


def test_a_home_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="cannot be made"):
        home(tmp_path / "file")
    with pytest.raises(DiskError, match="cannot be made"):
        key_path(tmp_path / "file", "north")
