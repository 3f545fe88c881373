"""A round over TLS: one command a party, and files by hand beside it."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from answers import titles_of
from cli.test_holdings_by_commands import HELD, HOLDINGS, parted
from cobasis.bundle.transcript import verify_transcript
from cobasis.cli import options
from cobasis.disk.lock import Lock
from transport.serving import SUMS, World

NAMES = ("north", "south", "east")


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def by_hand(world, name, worker):
    """Take part with the five commands and a folder, as if there were no server."""
    folder = world.root / name
    shutil.copy(world.root / "north" / f"{name}.secret", folder)
    world.typed(f"sign {name}/icu.toml -o {name}/{name}.sig --yes", by=name)
    shutil.copy(folder / f"{name}.sig", world.lab)
    worker.step()
    return folder


def test_parties_by_one_command_and_one_by_files_get_one_model(fresh):
    with fresh.serving():
        worker = fresh.worker()
        east = by_hand(fresh, "east", worker)
        for name in ("north", "south"):
            assert "waits for everybody's signature" in fresh.go(name, code=4).output
            worker.step()
        shutil.copy(fresh.lab / "icu.sealed.toml", east)
        told = "send east/icu.toml east/data.csv --yes --signed-by Officer"
        fresh.typed(told, by="east")
        fresh.typed("receive lab/icu.toml east/icu.east.1-upload", by="lab")
        for name in ("north", "south"):
            done = fresh.go(name, "--wait 0 --signed-by Officer", code=4)
            assert "waits for" in done.output
            assert "lab" in done.output
            worker.step()
        shutil.copy(fresh.lab / "outbox" / "icu.east.1-return", east)
        shutil.copy(fresh.lab / "icu.news", east)
        fresh.typed("accept east/icu.toml", by="east")
        for name in ("north", "south"):
            done = fresh.go(name, "--wait 0 --json")
            told = json.loads(done.stdout)
            assert titles_of(told) == ["`go`: the round, as far as its last answer"]
            assert (told["party"], Path(told["card"]).exists()) == (name, True)
    models = {verified(fresh, name) for name in NAMES}
    assert len(models) == 1


def verified(world, name):
    """The digest of the model that a party has accepted, as its transcript says."""
    [path] = (world.root / f"home-{name}" / "transcripts" / name).glob("*/transcript.jsonl")
    [line] = [each for each in verify_transcript(path).entries if each.event == "accepted"]
    return line.told["model_sha256"]


@pytest.mark.parametrize("release", ["sums", "columns of the same people"])
def test_every_release_goes_round_by_the_same_command(release, tmp_path, monkeypatch):
    if release == "sums":
        world = World(tmp_path, monkeypatch, terms=SUMS)
    else:
        terms = "--basis svd --n-components 4 --holdout 0"
        world = World(tmp_path, monkeypatch, terms=terms, more=HOLDINGS)
        parted(pl.read_csv(tmp_path / "north" / "data.csv"), tmp_path)
        for name in HELD:
            shutil.move(tmp_path / f"{name}.csv", tmp_path / name / "data.csv")
    signed = "--wait 0 --signed-by Officer"
    world.worker().step()
    with world.serving(), world.working():
        for name in NAMES:
            world.go(name, signed, code=4)
        world.sealed()
        for name in NAMES[:2]:
            world.go(name, signed, code=4)
        done = world.go(NAMES[2], "--wait 30 --signed-by Officer")  # the answer comes meanwhile
        assert "Everything has come back" in done.output
        for name in NAMES:
            assert "Everything has come back" in world.go(name).output
    assert len({verified(world, name) for name in NAMES}) == 1


def test_what_the_analyst_refuses_is_told_to_its_party(fresh):
    with fresh.serving():
        worker = fresh.worker()
        worker.step()
        fresh.go("north", code=4)
        [blob] = (fresh.lab / "icu.inbox").glob("north/signature~*")
        blob.write_bytes(blob.read_bytes().replace(b'"signature":"', b'"signature":"00'))
        worker.step()
        for _ in range(2):
            assert "the analyst did not take 'north.sig'" in fresh.go("north", code=3).output


def test_a_secret_that_another_party_puts_in_keeps_nobody_out(fresh, tmp_path):
    (tmp_path / "junk").write_bytes(b"junk")
    with fresh.serving():
        fresh.worker().step()
        for name in ("east", "south"):
            with fresh.remote(name) as remote:
                other = "south" if name == "east" else "east"
                remote.upload(tmp_path / "junk", f"secret.{other}")
        found = fresh.go("south", code=4).output  # of the maker there is none yet
        assert "What 'east' left as the secret is not taken" in " ".join(found.split())
        assert "waits for the secret" in found
        fresh.go("north", code=4)
        assert "waits for everybody's signature" in fresh.go("south", code=4).output
        assert not (fresh.root / "south" / "south.secret.came").exists()


def test_what_was_fetched_and_not_accepted_is_accepted_by_the_same_command(fresh):
    """As after a kill between the two, or where somebody sent it by hand as well."""
    signed = "--wait 0 --signed-by Officer"
    with fresh.serving():
        worker = fresh.worker()
        for _ in range(2):
            worker.step()
            for name in NAMES:
                fresh.go(name, signed, code=4)
        worker.step()
        north = fresh.root / "north"
        shutil.copy(fresh.lab / "outbox" / "icu.north.1-return", north)
        shutil.copy(fresh.lab / "icu.news", north)
        assert "Everything has come back" in fresh.go("north").output


def test_a_second_go_of_a_party_waits_its_turn(fresh):
    with fresh.serving():
        fresh.worker().step()
        fresh.go("north", code=4)
        [path] = (fresh.root / "home-north" / "transcripts" / "north").iterdir()
        with Lock(path, what="it"):
            assert "[CB604]" in fresh.go("north", code=2).output


def test_go_says_what_it_needs(fresh):
    plain = fresh.root / "plain.toml"
    text = (fresh.root / "icu.toml").read_text()
    plain.write_text(text.replace(fresh.agreement.server, ""))
    found = fresh.typed("go plain.toml north/data.csv", code=2)
    assert "names no server" in found.output
    nothing = "--passphrase-file nowhere"  # it is not looked for before the words are right
    assert "Name exactly one" in fresh.typed(f"go icu.toml {nothing}", code=2).output
    assert "names no server" in fresh.typed(f"go plain.toml x.csv {nothing}", code=2).output
    assert "The analyst's is serve" in fresh.typed("go icu.toml x.csv", by="lab", code=2).output
    assert "[CB901]" in quick(fresh, "go north/icu.toml north/data.csv --yes", code=4).output


def test_status_asks_the_server_too(fresh):
    words = "status north/icu.toml"
    with fresh.serving():
        worker = fresh.worker()
        worker.step()
        fresh.go("north", code=4)
        before = fresh.typed(words)
        worker.step()
        after = fresh.typed(words)
    for told, who in ((before, "lab"), (after, "north, lab")):
        assert "The server was asked now" in told.output
        assert f"signed by {who}" in told.output
        assert "(signed by lab; less than an hour old)" in told.output
    gone = fresh.typed(words)  # what is known from before still stands there
    assert "The server has told nothing: " in gone.output
    assert "[CB901]" in gone.output
    assert "signed by north, lab" in gone.output
    assert fresh.typed.json(words)["asked"].endswith("[CB901]")


def quick(world, words, **options_):
    """Type a line with nobody at the other end, without the pauses between tries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cobasis.transport.client._PAUSES", (0.0,))
        return world.typed(words, **options_)


def test_somebody_at_the_terminal_waits_and_is_told_for_whom(fresh, monkeypatch):
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    monkeypatch.setattr("cobasis.cli.go._TURN", 0.2)
    with fresh.serving():
        worker = fresh.worker()
        worker.step()
        monkeypatch.setattr("cobasis.cli.go._FOR_EVER", 2.5)
        done = fresh.go("north", "", code=4)
    assert "The round waits for everybody's signature. Ctrl-C ends" in done.output
