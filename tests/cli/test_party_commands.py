"""A party's commands as people type them."""

import json
import os
import pty
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from cobasis.bundle.seal import look
from cobasis.cli import options
from cobasis.cli.main import app
from cobasis.disk.whole import file_digest
from cobasis.protocol.signatures import News, Receipt, sign_receipt
from faults import at_call, on
from party_side.sites import NAMES, consortium, frame

ROOT = Path(__file__).parents[2]
SIGNED = ("--signed-by", "A. Officer")


def written_down(folder):
    path = folder / "passphrase"
    path.write_text("correct horse battery staple\n", encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def site(tmp_path, monkeypatch):
    return consortium(tmp_path, monkeypatch)


@pytest.fixture
def run(site):
    """Run a command as a party, in this process, with nobody at the terminal."""
    runner = CliRunner()
    secret = written_down(site.root)

    def ran(*words, name="north", code=0, typed=None):
        (site.home(name) / "keys").mkdir(parents=True, exist_ok=True)
        (site.home(name) / "keys" / f"{name}.key").touch()
        told = {"COBASIS_HOME": str(site.home(name)), "COBASIS_PASSPHRASE_FILE": str(secret)}
        done = runner.invoke(app, list(map(str, words)), env=told, input=typed)
        assert done.exit_code == code, (done.output, done.exception)
        return done

    return ran


def flat(text):
    return " ".join(text.split())


def as_json(done):
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    found = json.loads(lines[0])
    [model] = [each for each in models() if fits(each, found)]
    assert f"`{found['command']}" in model.__doc__
    return found


def models():
    return runpy.run_path(str(ROOT / "docs" / "make_json_reference.py"))["models"]()


def fits(model, found):
    """Whether an object is what the reference says of a command."""
    try:
        model.model_validate(found)
    except ValidationError:
        return False
    return True


@pytest.fixture
def joined(site):
    """Everybody has its secret beside the agreement."""
    for name in NAMES:
        site.secret_file(name).rename(site.root / f"{name}.secret")
    return site


def sent(site, run, name="north", *more):
    words = ("send", site.agreement_path, site.table(name), "--yes", *SIGNED, *more)
    return run(*words, name=name)


def made(site, name, word):
    return site.root / f"icu.{name}.{word}"


def news_of(site, *receipts, time="2026-11-21T15:30:00Z"):
    told = {"round_id": "icu-2026", "agreement": site.agreement.digest().hex(), "analyst": "lab"}
    news = News(**told, time=time, agreed=(*NAMES, "lab"), receipts=receipts)
    path = site.root / "icu.news"
    path.write_bytes(news.text(site.lab.sign))
    return path


def receipt_of(site, path, *, exchange):
    told = {"round_id": "icu-2026", "party": "north", "analyst": "lab", "exchange": exchange}
    told |= {"agreement": site.agreement.digest().hex(), "file": file_digest(path)}
    receipt = Receipt(**told, transcript=f"{exchange:064x}", time="2026-11-21T15:30:00Z")
    return sign_receipt(receipt, site.lab.sign)


@pytest.fixture
def accepted(joined, run):
    """North has accepted its return."""
    site, paths = joined, {}
    for name in NAMES:
        sent(site, run, name)
        paths[name] = made(site, name, "1-upload")
    returns = site.as_files(site.analyst_of(paths).run())
    path = site.return_file(returns["north"], to=made(site, "north", "1-return"))
    return site, path, as_json(run("accept", site.agreement_path, "--json"))


def test_send_takes_the_secret_that_lies_beside_and_says_who_made_it(joined, run):
    said = sent(joined, run).stdout
    assert "The secret that 'north' made is the agreement's" in said
    assert joined.session("north").round.joined


def test_before_its_turn_send_says_what_is_missing_and_reads_no_table(site, run):
    none = site.folder("north") / "none.csv"
    done = run("send", site.agreement_path, none, code=4)
    assert "'north.secret' does not lie beside 'icu.toml'" in done.stderr
    assert "[CB314]" in done.stderr
    text = site.agreement_path.read_text(encoding="utf-8")
    site.agreement_path.write_text(text[: text.index("[[signature]]")], encoding="utf-8")
    done = run("send", site.agreement_path, none, code=4)
    assert "missing: north, south, east, lab" in done.stderr
    assert "[CB311]" in done.stderr


def test_a_dry_run_lists_all_that_does_not_fit_also_before_anybody_signed(site, run):
    text = site.agreement_path.read_text(encoding="utf-8")
    site.agreement_path.write_text(text[: text.index("[[signature]]")], encoding="utf-8")
    path = site.folder("north") / "bad.csv"
    text = pl.when(pl.int_range(120) == 6).then(pl.lit("high")).otherwise(pl.lit("1"))
    frame(1).with_columns(age=pl.lit(99.0), pulse=text).write_csv(path)
    words = ("send", site.agreement_path, path, "--dry-run")
    done = run(*words, code=2)
    assert "refused: 120 of 120 cells of column 'age' are outside" in done.stdout
    assert "'pulse' is of type String, the first text in row 7 below" in flat(done.stdout)
    found = as_json(run(*words, "--json", code=2))
    assert (found["fits"], found["n_held"], found["preview"]) == (False, None, None)
    good = as_json(run("send", site.agreement_path, site.table("north"), "--dry-run", "--json"))
    assert good["fits"]
    assert (good["preview"]["reader"], good["preview"]["span"]) == ("lab", "fresh")
    assert not list(site.root.glob("icu.north.*"))


def test_the_same_table_is_refused_by_send_as_by_its_dry_run(joined, run):
    path = joined.folder("north") / "bad.csv"
    for change in ({"patient": pl.lit("1")}, {"died": pl.lit(7)}, {"age": pl.lit(99.0)}):
        frame(1).with_columns(**change).write_csv(path)
        codes = {
            run("send", joined.agreement_path, path, *more, code=2).stderr.strip()[-7:]
            for more in (("--dry-run",), ("--yes", *SIGNED))
        }
        assert len(codes) == 1, codes


def test_without_a_person_or_yes_send_shows_what_would_leave_and_refuses(joined, run):
    site = joined
    done = run("send", site.agreement_path, site.table("north"), *SIGNED, code=2)
    assert "Exchange 1 of 1: upload. Nothing has left yet." in done.stdout
    assert "Who can read it: 'lab' alone" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 80
    assert "nothing leaves unasked" in done.stderr
    assert "[CB107]" in done.stderr
    assert not made(site, "north", "1-upload").exists()
    assert site.session("north").vault.history() == ()


def test_send_asks_on_a_terminal(joined, run, monkeypatch):
    site, to = joined, made(joined, "north", "1-upload")
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    words = ("send", site.agreement_path, site.table("north"))
    assert "Nothing was made." in run(*words, code=2, typed="A. Officer\nn\n").stderr
    assert "[CB512]" in run(*words, code=2, typed="\n").stderr
    assert not to.exists()
    assert f"Wrote {to}" in run(*words, typed="A. Officer\ny\n").stdout.replace("\n", "")
    assert look(to).n_recipients == 1


def test_send_tells_the_digest_and_writes_a_lost_file_again_to_the_last_byte(joined, run):
    site, to = joined, made(joined, "north", "1-upload")
    first = as_json(sent(site, run, "north", "--json"))
    assert first["sha256"] == file_digest(to)
    assert site.session("north").vault.upload_of(site.agreement).entry.upload == first["sha256"]
    done = run("send", site.agreement_path, site.table("north"), "--yes", code=2)
    assert "a round takes one" in done.stderr
    to.unlink()
    again = as_json(run("send", site.agreement_path, "--again", "--json"))
    assert (again["again"], again["sha256"], file_digest(to)) == (True, *[first["sha256"]] * 2)


@pytest.mark.parametrize(
    "given",
    [
        ("--override-by", "A", "--override-reason", "a reason"),
        ("--override-by", "A", "--override-by", "a", "--override-reason", "a reason"),
        ("--override-by", "A", "--override-by", "B"),
        ("--override-reason", "a reason"),
    ],
)
def test_an_override_takes_two_people_and_a_reason(joined, run, given):
    site = joined
    words = ("send", site.agreement_path, site.table("north"))
    assert "[CB107]" in run(*words, *given, "--yes", code=2).stderr
    assert site.session("north").vault.history() == ()


def test_accept_shows_three_figures_and_keeps_the_model(accepted, run):
    site, path, found = accepted
    returned = found["returned"]
    assert returned["score"]["metric"] == "accuracy"
    assert returned["score"]["together"] > returned["score"]["baseline"]
    assert returned["trained_on"] == list(NAMES)
    shown = run("accept", site.agreement_path, path).stdout
    for word in ("together", "a model of your own", "the best constant", returned["model_sha256"]):
        assert word in shown
    assert "the first" not in run("score", site.agreement_path).stdout
    assert as_json(run("score", site.agreement_path, "--json"))["score"] == returned["score"]


def test_a_file_that_was_accepted_is_not_taken_from_beside_again(accepted, run):
    site, _, _ = accepted
    done = run("accept", site.agreement_path, code=4)
    assert "icu.north.1-return were accepted before" in done.stderr


def test_another_table_is_scored_without_the_rows_that_were_uploaded(accepted, run):
    site, _, found = accepted
    words = ("score", site.agreement_path)
    moved = site.table("north").rename(site.folder("north") / "moved.csv")
    assert "give it: cobasis score TABLE" in run(*words).stdout
    again = as_json(run(*words, moved, "--json"))["score"]
    assert again == found["returned"]["score"]
    later = site.folder("north") / "later.csv"
    pl.concat([frame(1), frame(8)]).write_csv(later)
    more = as_json(run(*words, later, "--json"))["score"]
    assert more["n_rows"] == again["n_rows"] + 120
    frame(8).write_csv(later)
    alone = as_json(run(*words, later, "--json"))["score"]
    assert (alone["n_rows"], alone["local"]) == (120, None)
    assert alone["together"] is not None


def test_predict_and_export_write_what_they_say(accepted, run):
    site, _, _ = accepted
    new, out, onnx = (site.folder("north") / each for each in ("new.csv", "out.csv", "n.onnx"))
    frame(9).write_csv(new)
    assert "120 predictions" in run("predict", site.agreement_path, new, "-o", out).stdout
    assert pl.read_csv(out).columns == ["patient", "prediction", "score_1"]
    assert as_json(run("predict", site.agreement_path, new, "-o", out, "--json"))["n_rows"] == 120
    table = site.table("north").read_bytes()
    for command in (("predict", site.agreement_path, new), ("export", site.agreement_path)):
        assert "a table of yours" in run(*command, "-o", site.table("north"), code=2).stderr
    assert site.table("north").read_bytes() == table
    found = as_json(run("export", site.agreement_path, "-o", onnx, "--json"))
    assert found["n_bytes"] == onnx.stat().st_size
    assert onnx.stat().st_mode & 0o777 == 0o600


def test_whatever_came_is_accepted_in_the_right_order_and_the_rest_is_named(
    tmp_path, monkeypatch, run
):
    site = consortium(tmp_path, monkeypatch, basis="consensus")
    proposals = []
    for name in NAMES:
        site.secret_file(name).rename(site.root / f"{name}.secret")
        words = ("send", site.agreement_path, site.table(name))
        shown = run(*words, "--dry-run", name=name).stdout
        assert "every projected row and every label" in shown
        assert "The basis" not in shown
        run(*words, "--yes", name=name)
        proposals.append(site.proposal(name, made(site, name, "1-proposal")))
    again = run(*words, "--yes", name="east").stdout
    assert "The same file as before, to the last byte." in again
    assert "cobasis accept icu.toml icu.news icu.east.1-span" in again
    assert "[CB314]" in run("accept", site.agreement_path, code=4).stderr
    inbox = site.root / "inbox"
    inbox.mkdir()
    span = site.analyst_of({}).consensus(proposals)
    for name in NAMES:
        site.consensus_file(name, span).rename(inbox / f"icu.{name}.1-span")
    receipt = receipt_of(site, made(site, "north", "1-proposal"), exchange=1)
    news_of(site, receipt).rename(inbox / "zz.news")
    shutil.copy(made(site, "north", "1-proposal"), inbox)
    found = as_json(run("accept", site.agreement_path, inbox, "--json"))
    assert found["span"]["contributors"] == list(NAMES)
    assert found["news"]["receipts"] == [receipt.receipt.file]
    others = ["icu.east.1-span", "icu.north.1-proposal", "icu.south.1-span"]
    assert (found["passed_over"], found["refused"]) == (others, [])
    damaged = inbox / "icu.north.1-span"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    done = run("accept", site.agreement_path, inbox, "--json", code=3)
    assert "Refused icu.north.1-span: SealError: 'icu.north.1-span' cannot be" in done.stderr
    assert as_json(done)["news"]["receipts"] == []
    events = [
        each.event for each in site.session("north").history("proposed", "receipt", "adopted")
    ]
    assert events == ["proposed", "receipt", "adopted"]


@pytest.mark.parametrize(
    ("words", "code", "found"),
    [
        (("accept", "{agreement}", "{secret}"), 3, "CB804"),
        (("accept", "{agreement}", "none.return"), 2, "CB601"),
        (("accept", "none.toml", "{secret}"), 2, "CB601"),
        (("send", "{agreement}", "none.csv", "--dry-run"), 2, "CB601"),
        (("send", "{agreement}"), 2, "CB107"),
        (("send", "{agreement}", "{table}", "--as", "west"), 2, "CB304"),
        (("send", "{agreement}", "{table}", "--as", "lab"), 2, "CB702"),
        (("send", "{agreement}", "--again"), 2, "CB305"),
        (("score", "{agreement}"), 2, "CB305"),
        (("predict", "{agreement}", "{table}", "-o", "out.csv"), 2, "CB305"),
    ],
)
def test_an_error_is_one_message_with_a_code_and_says_whose_it_is(site, run, words, code, found):
    places = {
        "agreement": site.agreement_path,
        "secret": site.secret_file("north"),
        "table": site.table("north"),
    }
    if words[0] == "score":  # without a table that was sent there is nothing to look for
        words = (*words, places["table"])
    done = run(*(str(word).format(**places) for word in words), code=code)
    assert f"[{found}]" in done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(joined, run):
    def interrupt(real, told):
        real(*told)
        raise KeyboardInterrupt

    site, to = joined, made(joined, "north", "1-upload")
    words = ("send", site.agreement_path, site.table("north"), *SIGNED, "--yes")
    for file in ("1-upload.made", to.name):
        with at_call(1, interrupt, counts=on("replace", file)):
            assert "the same command goes on" in run(*words, code=130).stderr
    assert "The same file as before" in run(*words).stdout
    assert to.exists()


ASKS = """
import polars as pl
from cobasis.cli.main import app
from cobasis.cli.options import consent

@app.command()
def ask(table: str):
    pl.scan_csv(table).collect(engine="streaming")
    consent("Well?", yes=False, what="it")

app(["ask", {table!r}])
"""


def test_ctrl_c_at_a_question_ends_the_command_though_a_table_was_read(tmp_path):
    """polars has a handler of its own, which lets the system go on reading the keyboard."""
    (tmp_path / "table.csv").write_text("a\n1\n")
    program = ASKS.format(table=str(tmp_path / "table.csv"))
    keyboard, terminal = pty.openpty()
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=terminal, stderr=subprocess.PIPE) as child:
        said = b""
        while b"Well?" not in said:
            said += os.read(child.stderr.fileno(), 1000)
        time.sleep(0.2)  # it says so before it listens
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130
    os.close(keyboard)
    os.close(terminal)
