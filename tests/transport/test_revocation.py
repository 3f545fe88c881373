"""A round over TLS stands still once a key of it was revoked; the server takes nothing more."""

import shutil

import pytest

from cobasis.errors import RevokedError
from transport.serving import World


@pytest.fixture
def signed(tmp_path, monkeypatch):
    """Everybody has signed by `go`, and has brought the signature; nobody has sent."""
    world = World(tmp_path, monkeypatch)
    with world.serving():
        world.worker().step()
        for name in ("north", "south", "east"):
            world.go(name, code=4)
        world.worker().step()
        yield world


def test_a_server_takes_nothing_more_and_tells_a_revoked_key_nothing(signed, tmp_path):
    file, news = tmp_path / "file", tmp_path / "came.news"
    file.write_bytes(b"sealed")
    shutil.copy(signed.lab / "icu.sealed.toml", signed.root / "north")
    signed.typed("key revoke north/icu.toml east --yes", by="north")
    shutil.copy(signed.root / "north" / "icu.east.revocation", signed.lab)
    with signed.remote("south") as south:  # the analyst has not signed
        south.upload(file, "1-upload")
    signed.typed("key revoke lab/icu.toml east --yes", by="lab")
    file.write_bytes(b"sealed anew")
    with signed.remote("south") as south, signed.remote("east") as east:
        with pytest.raises(RevokedError, match="the server refuses: the key of 'east'"):
            south.upload(file, "1-upload")
        assert south.fetch("news", news)
        for what in ("news", "agreement", "1-return"):
            with pytest.raises(RevokedError, match=r"\[CB315\]"):
                east.fetch(what, tmp_path / "none")
    for name in ("south", "east"):
        assert "[CB315]" in signed.go(name, "--wait 0 --signed-by Officer", code=2).stderr
    told = signed.typed("status south/icu.toml", by="south").stdout
    assert "all stands still [CB315]" in told
    signed.worker().step()  # what came before it is not judged, and nothing is ended
    assert list((signed.lab / "icu.inbox").glob("south/1-upload~*"))
