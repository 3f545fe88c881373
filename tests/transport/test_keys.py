"""Keys on a server: one that was revoked, a newer one of the analyst's, and rounds of one name."""

import shutil
from dataclasses import replace

import pytest

from cli import round_by_commands
from cobasis.errors import RequestError, RevokedError
from cobasis.transport.client import Remote
from transport.serving import World


def test_a_server_goes_on_under_an_analysts_newer_key_and_tells_a_revoked_key_nothing(
    served, tmp_path
):
    file, news = tmp_path / "file", tmp_path / "came.news"
    for name in ("north", "south", "east"):
        served.go(name, code=4)
        if name == "north":
            served.typed("key new lab --analyst --replace", by="lab")
        served.worker().step()
    assert (served.lab / "icu.sealed.toml").exists()
    assert len([*(served.lab / ".server").glob("lab.*.statement")]) == 2
    file.write_bytes(b"sealed")
    shutil.copy(served.lab / "icu.sealed.toml", served.root / "north")
    served.typed("key revoke north/icu.toml east --yes", by="north")
    shutil.copy(served.root / "north" / "icu.east.revocation", served.lab)
    with served.remote("south") as south:  # the analyst has not signed
        south.upload(file, "1-upload")
    served.typed("key revoke lab/icu.toml east --yes", by="lab")
    file.write_bytes(b"sealed anew")
    with served.remote("south") as south, served.remote("east") as east:
        with pytest.raises(RevokedError, match="the server refuses: the key of 'east'"):
            south.upload(file, "1-upload")
        assert south.fetch("news", news)
        with pytest.raises(RevokedError, match=r"\[CB315\]"):
            east.fetch("news", tmp_path / "none")
    for name in ("south", "east"):
        assert "[CB315]" in served.go(name, "--wait 0 --signed-by Officer", code=2).stderr
    served.worker().step()  # what came before it is not judged, and nothing is ended
    assert list((served.lab / "icu.inbox").glob("south/1-upload~*"))


def test_rounds_of_one_name_with_parties_of_the_same_names_do_not_mix(tmp_path, monkeypatch):
    one = World(tmp_path / "one", monkeypatch)
    monkeypatch.setattr(round_by_commands.KEPT, "name", tmp_path)  # of keys of another north
    two = World(tmp_path / "two", monkeypatch)
    (one.lab / "icu-2.toml").write_bytes((two.root / "icu.toml").read_bytes())
    for worker in (one.worker(), replace(one.worker(), identity=two.identity("lab"))):
        worker.step()
    file, came, rounds = tmp_path / "file", tmp_path / "came", ((one, "icu"), (two, "icu-2"))
    with one.serving(), one.serving(port=two.port):
        for world, stem in rounds:
            with world.remote("north") as remote:
                for number in range(6):  # of six texts; a party may have four of a kind waiting
                    file.write_text(f"of {stem}, {number}")
                    remote.upload(file, "secret.south")
                remote.upload(file, "1-upload")
        for world, stem in rounds:
            with world.remote("south") as remote:
                assert remote.fetch("secret", came)
            [upload] = (one.lab / f"{stem}.inbox" / "north").glob("1-upload~*")
            assert came.read_text() == upload.read_text() == f"of {stem}, 5"
            came.unlink()
        stranger = Remote(one.agreement, name="north", sign=two.identity("north").sign)
        with stranger, pytest.raises(RequestError, match="no such round here"):
            stranger.fetch("news", came)
