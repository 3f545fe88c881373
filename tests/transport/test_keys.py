"""Keys on a server: a newer one of the analyst's, and rounds and texts of one name."""

from dataclasses import replace

import pytest

from cobasis.errors import RequestError
from cobasis.transport.client import Remote
from transport.serving import World


def test_a_server_goes_on_under_an_analysts_newer_key(tmp_path, monkeypatch):
    world = World(tmp_path, monkeypatch)
    world.worker().step()
    with world.serving():
        world.go("north", code=4)
        world.typed("key new lab --analyst --replace", by="lab")
        for name in ("north", "south", "east"):
            world.worker().step()
            world.go(name, code=4)
        world.worker().step()
        assert (world.lab / "icu.sealed.toml").exists()
        assert len([*(world.lab / ".server").glob("lab.*.statement")]) == 2


def test_rounds_of_one_name_with_parties_of_the_same_names_do_not_mix(tmp_path, monkeypatch):
    one, two = (World(tmp_path / name, monkeypatch) for name in ("one", "two"))
    (one.lab / "icu-2.toml").write_bytes((two.root / "icu.toml").read_bytes())
    for worker in (one.worker(), replace(one.worker(), identity=two.identity("lab"))):
        worker.step()
    files = [tmp_path / name for name in ("first", "second")]
    with one.serving(), one.serving(port=two.port):
        for world, file in zip((one, two), files, strict=True):
            file.write_text(file.name)
            with world.remote("north") as remote:
                remote.upload(file, "1-upload")
                remote.upload(file, "secret.south")
        for world, file in zip((one, two), files, strict=True):
            with world.remote("south") as remote:
                assert remote.fetch("secret", tmp_path / "came")
            assert (tmp_path / "came").read_bytes() == file.read_bytes()
            (tmp_path / "came").unlink()
        sign = two.identity("north").sign
        with (
            Remote(one.agreement, name="north", sign=sign) as remote,
            pytest.raises(RequestError, match="no such round here"),
        ):
            remote.fetch("news", tmp_path / "news")
    for stem, file in zip(("icu", "icu-2"), files, strict=True):
        [path] = (one.lab / f"{stem}.inbox" / "north").glob("1-upload~*")
        assert path.read_bytes() == file.read_bytes()


def test_of_texts_of_one_name_the_last_ones_secret_is_kept_alone(tmp_path, monkeypatch):
    world, file = World(tmp_path, monkeypatch), tmp_path / "secret"
    world.worker().step()
    with world.serving(), world.remote("north") as north, world.remote("south") as south:
        for number in range(6):  # more than a party may have waiting of one kind
            file.write_text(f"of text {number}")
            north.upload(file, "secret.south")
            north.upload(file, "secret.east")
        assert south.fetch("secret", tmp_path / "came")
    assert (tmp_path / "came").read_bytes() == file.read_bytes()
    for name in ("south", "east"):
        assert len([*(world.lab / "icu.inbox" / "north").glob(f"secret.{name}~*")]) == 1
