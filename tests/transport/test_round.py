"""A round over TLS: one command a party, and files by hand beside it."""

import json
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from answers import titles_of
from cli.round_by_commands import write_table
from cobasis.cli import options, page
from cobasis.disk.lock import Lock
from cobasis.protocol.agreement import moment_text
from cobasis.transport import wire
from transport.serving import PARTIES as NAMES
from transport.serving import ROWS, SIGNED, World
from transport.test_requests import at


def sums_of(everybody, tmp_path, monkeypatch):
    """Agree on sums that an officer of north approves, and on scores behind them."""
    sums = "--sums maps=rff,waves=2,most_rows=200,most_rows_in_all=800,least_rows=80,scores=true"
    terms = f"{sums} --holdout 0.3 --deadline 2020-01-01 west.pub --approver north=officer.pub"
    terms += " --minimum-parties 3"
    world = World(tmp_path, monkeypatch, terms=terms, names=everybody)
    for seed, name in enumerate(everybody):
        write_table(tmp_path / name / "data.csv", seed=seed, n_rows=180)
    return world


def test_what_an_officer_approves_leaves_and_what_it_covers_runs_unattended(tmp_path, monkeypatch):
    """Sums of four, begun again without one, and then scores, which take another approval."""
    everybody = (*NAMES, "west")
    world = sums_of(everybody, tmp_path, monkeypatch)
    worker, north = world.worker(), tmp_path / "north"
    approve = "approve north/icu.toml north/icu.north.audit.json"
    waits = f"waits for the approval of officer: cobasis {approve}"

    def go(*names):
        found = [world.go(name, SIGNED, code=4).output for name in names]
        worker.step()
        return " ".join(found[-1].split())

    with world.serving():
        worker.step()
        go(*everybody)
        assert waits in go("north")
        kept = (north / "icu.north.audit.json").read_bytes()
        assert "[CB512]" in go("north")
        assert (north / "icu.north.audit.json").read_bytes() == kept
        with monkeypatch.context() as patch:  # withdrawn when a file is made, and has no name
            world.typed(f"{approve} --yes --times 2 --deadline 2031-05-06", by="officer")
            patch.setattr("cobasis.party_side.send.copy_whole", Mock(side_effect=KeyboardInterrupt))
            world.go("north", SIGNED, code=130)
        world.typed(f"{approve} --yes --withdraw", by="officer")
        assert waits in go("north")
        world.typed(f"{approve} --yes --times 2 --deadline 2031-05-06", by="officer")
        assert "west, lab. Nothing is lost" in go("south", "east", "north")
        assert "waits for west, lab. Nothing is lost" in go("north")  # though the deadline is over
        world.typed("run lab/icu.toml --without west --yes", by="lab")
        assert "east, south, lab. Nothing is lost" in go("south", "east", "north")
        assert waits in (told := go("south", "east", "north"))
        assert "masks that cancel in the total of all who take part" in told  # three by now
        assert (north / "icu.north.audit.json").read_bytes() != kept
        world.typed(f"{approve} --yes --deadline 2031-05-06", by="officer")
        scores = north / "icu.north.scores.officer.approval"
        scores.rename(tmp_path / "away")
        with world.working():
            threading.Timer(1, lambda: (tmp_path / "away").rename(scores)).start()
            assert "Everything has come back" in world.go("north", "--wait 60").output
            assert "Everything has come back" in world.go("south").output
        said = world.typed("score south/icu.toml --send --yes", by="south").output
        assert "Next: cobasis go icu.toml data.csv, which brings it to lab" in said
        world.go("south")
        worker.step()
    assert "word       south: " in world.typed("status lab/icu.toml", by="lab").output


def test_what_time_it_is_at_the_server_is_told_to_whose_clock_is_off(served):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire.HTTPMessageSigner, "prepare", at(60))
        told = " ".join(served.go("north", code=3).output.split())
    assert "more than 5 minutes apart. Set the clock, then try again. [CB806]" in told


def test_what_was_damaged_and_came_by_hand_is_taken_and_who_was_left_out_told_to_wait(served):
    served.turn(worker := served.worker(), names=NAMES[:2])
    worker.step()  # and nothing is new but what comes by hand
    shutil.copy(served.root / "north" / "east.secret", served.root / "east")
    served.typed("sign east/icu.toml -o lab/east.sig --yes", by="east")
    worker.step()
    for name in NAMES[:2]:
        served.go(name, SIGNED, code=4)
    [file] = served.lab.glob("icu.inbox/north/1-upload~*")
    file.write_bytes(file.read_bytes()[:-1])
    served.worker().step()
    for _ in range(2):
        told = served.go("north", code=3).output
        assert "the analyst did not take 'icu.north.1-upload'" in told
    served.typed("receive lab/icu.toml north/icu.north.1-upload", by="lab")
    assert "waits for east, lab" in served.go("north", code=4).output
    served.typed("run lab/icu.toml --without east --yes", by="lab")
    told = " ".join(served.go("east", SIGNED, code=4).output.split())
    assert "waits for lab to type: cobasis run --with east. Nothing is lost" in told


def test_a_secret_that_another_party_puts_in_keeps_nobody_out(served, tmp_path):
    (tmp_path / "junk").write_bytes(b"junk")
    for name, other in (("east", "south"), ("south", "east")):
        with served.remote(name) as remote:
            remote.upload(tmp_path / "junk", f"secret.{other}")
    found = served.go("south", code=4).output  # of the maker there is none yet
    assert "What 'east' left as the secret is not taken" in " ".join(found.split())
    assert "waits for the secret" in found
    served.go("north", code=4)
    assert "waits for everybody's signature" in served.go("south", code=4).output


def test_what_the_server_cannot_end_is_told_to_all_until_it_is_ended(served):
    told = "lab could not end the exchange: rows on another scale than everybody else's [CB309]"
    table, worker = served.root / "east" / "data.csv", served.worker()
    pl.read_csv(table).with_columns(pl.col("a", "b", "c", "d") * 1e4).write_csv(table)
    served.turn(worker, times=2, more=SIGNED + "".join(f" --checked {each}" for each in "abcd"))
    worker.step()
    assert f"{told}. Ask" in served.go("north", code=3).output
    home = options.Home(home=served.root / "home-lab")
    assert told in page._topic(home, served.lab / "icu.toml").line
    assert (served.lab / "icu.round" / "transcript.jsonl").read_text().count('"halted"') == 1
    served.typed("run lab/icu.toml --without east --yes", by="lab")
    assert "Everything has come back" in served.go("north").output


def test_a_run_that_cannot_be_planned_is_told_to_all_as_well(served):
    worker = served.worker()
    served.turn(worker)
    served.turn(worker, names=NAMES[1:])
    served.typed(f"remove lab/icu.toml {' '.join(NAMES[1:])}", by="lab")
    served.turn(worker, names=NAMES[:1])
    worker.step()
    told = "lab could not end the exchange: a step of the round taken before its turn [CB305]"
    assert told in " ".join(served.go("north", code=3).output.split())
    assert (served.lab / "icu.round" / "transcript.jsonl").read_text().count('"halted"') == 1


def test_what_was_fetched_and_not_accepted_is_accepted_by_the_same_command(served):
    """As after a kill between the two, or where somebody sent it by hand as well."""
    served.turn(served.worker(), times=2)
    for name in ("outbox/icu.north.1-return", "icu.news"):
        shutil.copy(served.lab / name, served.root / "north")
    told = json.loads(served.go("north", "--wait 0 --json").stdout)
    assert titles_of(told) == ["`go`: the round, as far as its last answer"]
    assert (told["party"], Path(told["card"]).exists()) == ("north", True)
    served.typed("remove lab/icu.toml south", by="lab")  # which has not fetched its own
    assert "nothing is left to do for 'south' in this round" in served.go("south", code=2).output
    for name in ("north", "east"):
        assert "Trained on east, north.\n" in served.go(name).output
    served.typed("forget north/icu.toml --yes")
    assert "nothing is left to do for 'north' in this round" in served.go("north", code=2).output


CHANGES = (  # of what lies at the server: the file, how, the exit code, and what is told
    ("icu.toml", lambda text: text.replace("days = 30", "days = 31"), 3, "[CB903]"),
    ("icu.sealed.toml", lambda text: text[: text.rindex("[[sig")], 4, "[CB311]"),
    ("icu.sealed.toml", lambda text: text[:300], 2, "[CB303]"),
    ("icu.news", lambda text: text[:-9], 3, "[CB803]"),
)


def test_what_is_changed_at_the_server_is_refused_and_the_right_one_taken(served):
    served.turn(served.worker())
    told = served.typed("status north/icu.toml").stdout  # the server's news come without it
    assert "when lab has answered:\n             cobasis go icu.toml data.csv\n" in told
    for file, changed, code, told in CHANGES:
        path = served.lab / file
        text = path.read_text()
        path.write_text(changed(text))
        assert told in served.go("north", code=code).output
        path.write_text(text)
    assert "Wrote north/icu.north.1-upload" in served.go("north", SIGNED, code=4).output
    for path in (served.root / "north").glob("*.s*"):
        path.unlink()
    assert "waits for east, south, lab" in served.go("north", code=4).output


def test_status_asks_the_server_too_and_go_says_what_it_needs(fresh, monkeypatch):
    words, worker = "status north/icu.toml", fresh.worker()
    worker.step()
    with fresh.serving():
        fresh.go("north", code=4)
        before = fresh.typed(words).output
        worker.step()
        after = fresh.typed(words).output
    gone = fresh.typed(words).output  # what is known from before still stands there
    for told, asked, who in (
        (before, "The server was asked now", "lab"),
        (after, "The server was asked now", "north, lab"),
        (gone, "The server has told nothing: ", "north, lab"),
    ):
        assert asked in told
        assert f"signed by {who}" in told
    assert fresh.typed.json(words)["asked"].endswith("[CB901]")
    monkeypatch.setattr("cobasis.transport.client._PAUSES", (0.0,))
    assert "[CB901]" in fresh.go("north", code=4).output
    text = (fresh.root / "icu.toml").read_text()
    (fresh.root / "plain.toml").write_text(text.replace(fresh.agreement.server, ""))
    nothing = "--passphrase-file nowhere"  # it is not looked for before the words are right
    fresh.typed.refused(f"go plain.toml x.csv {nothing}", "names no server")
    fresh.typed.refused("go icu.toml x.csv", "The analyst's is serve", by="lab")


def test_what_follows_a_clock_that_was_fast_is_taken_once_it_is_right(served, monkeypatch):
    with monkeypatch.context() as patch:
        fast = datetime.now(UTC) + timedelta(days=1)
        patch.setattr("cobasis.analyst_side.session.time_now", lambda: fast)
        served.turn(served.worker(), times=2)
        for name in NAMES:
            served.go(name)
    served.typed("remove lab/icu.toml east", by="lab", typed="east\n")
    for name in ("north", "south"):
        assert f"Accepted the news of {moment_text(fast)}" in served.go(name).output
    assert "Everything has come back" in served.go("north").output


def test_somebody_at_the_terminal_waits_and_is_told_for_whom_and_a_second_go_does_not(
    served, monkeypatch
):
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    monkeypatch.setattr("cobasis.cli.go.WAIT_SECONDS", 0.2)
    monkeypatch.setattr("cobasis.cli.go.inf", 2.5)
    done = served.go("north", "", code=4)
    assert "The round waits for everybody's signature. Ctrl-C ends" in done.output
    [path] = (served.root / "home-north" / "transcripts" / "north").iterdir()
    with Lock(path, what="it"):
        assert "[CB604]" in served.go("north", code=2).output


def test_who_comes_after_the_span_was_made_takes_it_and_sends_an_upload(tmp_path, monkeypatch):
    everybody = (*NAMES, "west")
    terms = f"west.pub {ROWS} --basis consensus --deadline 2099-12-31"
    world = World(tmp_path, monkeypatch, terms=terms, names=everybody)
    worker = world.worker()
    worker.step()
    with world.serving():
        world.turn(worker, names=everybody)
        world.turn(worker)
        world.typed("run lab/icu.toml --without west --yes", by="lab")
        told = world.go("west", SIGNED, code=4).output
        assert "Accepted icu.west.1-span" in told
        assert "Wrote west/icu.west.2-upload" in told
        worker.step()
        assert "cobasis run --with west" in world.go("west", SIGNED, code=4).output
        world.turn(worker)
        world.typed("run lab/icu.toml --with west --yes", by="lab")
        assert "Trained on east, north, south, west." in world.go("west").output
