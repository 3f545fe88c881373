"""``cobasis party`` as people type it."""

import json
import runpy
from pathlib import Path

import polars as pl
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from cobasis.bundle.envelope import look
from cobasis.bundle.receipts import receipt_text
from cobasis.cli import options
from cobasis.cli.main import app
from cobasis.protocol.receipts import Receipt, sign_receipt
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
    """Run `cobasis party ...` as a party, in this process, with nobody at the terminal."""
    runner = CliRunner()
    secret = written_down(site.root)

    def ran(*words, name="north", code=0, typed=None):
        (site.home(name) / "keys").mkdir(parents=True, exist_ok=True)
        (site.home(name) / "keys" / f"{name}.key").touch()
        told = {"COBASIS_HOME": str(site.home(name)), "COBASIS_PASSPHRASE_FILE": str(secret)}
        done = runner.invoke(app, ["party", *map(str, words)], env=told, input=typed)
        assert done.exit_code == code, (done.output, done.exception)
        return done

    return ran


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
def joined(site, run):
    for name in NAMES:
        run("join", site.agreement_path, site.secret_file(name), name=name)
    return site


@pytest.fixture
def accepted(joined, run):
    """North has accepted its return."""
    site, paths = joined, {}
    for name in NAMES:
        paths[name] = site.folder(name) / f"{name}.upload"
        words = ("prepare", site.agreement_path, site.table(name), "-o", paths[name], "--yes")
        run(*words, *SIGNED, name=name)
    made = site.as_files(site.analyst_of(paths).run())
    path = site.return_file(made["north"])
    found = as_json(run("accept", site.agreement_path, path, "--json"))
    return site, path, found


def test_join_says_who_made_the_secret(site, run):
    done = run("join", site.agreement_path, site.secret_file("north"), "--json")
    assert as_json(done) == {
        "command": "party join",
        "round": "icu-2026",
        "party": "north",
        "secret_from": "north",
    }


def test_check_exits_with_2_and_says_why(site, run):
    path = site.folder("north") / "bad.csv"
    frame(1).with_columns(age=pl.lit(99.0)).write_csv(path)
    done = run("check", site.agreement_path, path, code=2)
    assert "refused: 120 of 120 cells of column 'age' are outside" in done.stdout
    found = as_json(run("check", site.agreement_path, path, "--json", code=2))
    assert (found["fits"], found["n_held"]) == (False, None)
    good = as_json(run("check", site.agreement_path, site.table("north"), "--json"))
    assert good["fits"]
    assert [each["problem"] for each in good["findings"] if each["refused"]] == []


def test_prepare_without_a_person_or_yes_shows_the_dry_run_and_refuses(joined, run):
    site, to = joined, joined.folder("north") / "north.upload"
    done = run("prepare", site.agreement_path, site.table("north"), "-o", to, *SIGNED, code=2)
    assert "What leaves" in done.stdout
    assert "Who can read it: 'lab' alone" in done.stdout
    assert "nothing leaves unasked" in done.stderr
    assert "[CB107]" in done.stderr
    assert not to.exists()
    assert site.session("north").vault.history() == ()


def test_prepare_asks_on_a_terminal(joined, run, monkeypatch):
    site, to = joined, joined.folder("north") / "north.upload"
    monkeypatch.setattr(options, "on_terminal", lambda: True)
    words = ("prepare", site.agreement_path, site.table("north"), "-o", to)
    assert "Nothing was made." in run(*words, code=2, typed="A. Officer\nn\n").stderr
    assert "[CB512]" in run(*words, code=2, typed="\n").stderr
    assert not to.exists()
    assert f"Wrote {to}" in run(*words, typed="A. Officer\ny\n").stdout.replace("\n", "")
    assert look(to).n_recipients == 1


def test_a_dry_run_only_shows(joined, run):
    site, to = joined, joined.folder("north") / "north.upload"
    words = ("prepare", site.agreement_path, site.table("north"), "-o", to, "--dry-run")
    found = as_json(run(*words, "--json"))
    assert found["dry_run"]
    assert (found["reader"], found["span"], found["n_rows"]) == ("lab", "fresh", 120)
    assert "What stays here" in run(*words).stdout
    assert not to.exists()


def test_prepare_tells_the_digest_that_the_receipt_will_name(joined, run):
    site, to = joined, joined.folder("north") / "north.upload"
    words = ("prepare", site.agreement_path, site.table("north"), "-o", to, *SIGNED, "--yes")
    words = (*words, "--json")
    first, second = as_json(run(*words)), as_json(run(*words))
    assert (first["again"], second["again"]) == (False, True)
    assert site.session("north").vault.upload_of(site.agreement).entry.upload == second["sha256"]
    assert second["n_bytes"] == to.stat().st_size


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
    words = ("prepare", site.agreement_path, site.table("north"), "-o", site.root / "x.upload")
    assert "[CB107]" in run(*words, *given, "--yes", code=2).stderr
    assert site.session("north").vault.history() == ()


def test_accept_shows_three_figures_and_keeps_the_model(accepted, run):
    site, path, found = accepted
    assert found["metric"] == "accuracy"
    assert found["together"] > found["baseline"]
    assert found["trained_on"] == list(NAMES)
    assert len(found["model_sha256"]) == 64
    shown = run("accept", site.agreement_path, path).stdout
    for word in ("together", "a model of your own", "the best constant", found["model_sha256"]):
        assert word in shown


def test_predict_and_export_write_what_they_say(accepted, run):
    site, _, _ = accepted
    new, out, onnx = (site.folder("north") / each for each in ("new.csv", "out.csv", "n.onnx"))
    frame(9).write_csv(new)
    assert "120 predictions" in run("predict", site.agreement_path, new, "-o", out).stdout
    assert pl.read_csv(out).columns == ["patient", "prediction", "score_1"]
    found = as_json(run("export", site.agreement_path, "--onnx", "-o", onnx, "--json"))
    assert found["n_bytes"] == onnx.stat().st_size
    assert onnx.stat().st_mode & 0o777 == 0o600


def test_a_forgotten_round_predicts_nothing(accepted, run):
    site, _, _ = accepted
    assert "nothing leaves unasked" in run("forget", site.agreement_path, code=2).stderr
    assert as_json(run("forget", site.agreement_path, "--yes", "--json"))["time"].endswith("Z")
    words = ("predict", site.agreement_path, site.table("north"), "-o", site.root / "out.csv")
    assert "has accepted no return" in run(*words, code=2).stderr


def test_a_receipt_is_countersigned(accepted, run):
    site, _, _ = accepted
    upload = site.session("north").vault.upload_of(site.agreement).entry.upload
    told = {"round_id": "icu-2026", "party": "north", "analyst": "lab", "upload": upload}
    told |= {"agreement": site.agreement.digest().hex(), "transcript": "0" * 64}
    signed = sign_receipt(Receipt(**told, time="2026-11-21T15:30:00Z"), site.lab.sign)
    path = site.folder("north") / "north.receipt"
    path.write_bytes(receipt_text(signed))
    found = as_json(run("receipt", site.agreement_path, path, "--json"))
    assert found["upload_sha256"] == upload


def test_propose_and_adopt_make_a_common_span(tmp_path, monkeypatch, run):
    site = consortium(tmp_path, monkeypatch, basis="consensus")
    proposals = []
    for name in NAMES:
        run("join", site.agreement_path, site.secret_file(name), name=name)
        to = site.folder(name) / f"{name}.span"
        words = ("propose", site.agreement_path, site.table(name), "-o", to)
        shown = run(*words, "--dry-run", name=name).stdout
        assert "every projected row and every label" in shown
        assert "The basis" not in shown
        run(*words, "--yes", name=name)
        proposals.append(site.proposal(name, to))
    span = site.analyst_of({}).consensus(proposals)
    path = site.consensus_file("north", span)
    found = as_json(run("adopt", site.agreement_path, path, "--json"))
    assert found["contributors"] == list(NAMES)


@pytest.mark.parametrize("basis", ["svd", "haar"])
def test_nothing_is_said_to_leave_where_nothing_is_proposed(tmp_path, monkeypatch, run, basis):
    site = consortium(tmp_path, monkeypatch, basis=basis)
    run("join", site.agreement_path, site.secret_file("north"))
    refused = run("propose", site.agreement_path, site.table("north"), "-o", "x.span", code=2)
    assert "What leaves" not in refused.output
    assert f"basis='{basis}' takes one exchange" in refused.output
    assert "[CB305]" in refused.output


@pytest.mark.parametrize(
    ("words", "code", "found"),
    [
        (("accept", "{agreement}", "{secret}"), 2, "CB305"),
        (("join", "{agreement}", "{agreement}"), 3, "CB801"),
        (("join", "{agreement}", "none.secret"), 2, "CB601"),
        (("join", "none.toml", "{secret}"), 2, "CB601"),
        (("check", "{agreement}", "none.csv"), 2, "CB601"),
        (("prepare", "{agreement}", "{table}", "-o", "x.upload"), 2, "CB305"),
        (("join", "{agreement}", "{secret}", "--as", "west"), 2, "CB304"),
    ],
)
def test_an_error_is_one_message_with_a_code_and_says_whose_it_is(site, run, words, code, found):
    places = {
        "agreement": site.agreement_path,
        "secret": site.secret_file("north"),
        "table": site.table("north"),
    }
    done = run(*(word.format(**places) for word in words), code=code)
    assert f"[{found}]" in done.stderr
    assert "Traceback" not in done.output
    assert done.stdout == ""


def test_another_partys_secret_exits_with_3(site, run):
    done = run("join", site.agreement_path, site.secret_file("south"), code=3)
    assert "not sealed for this key" in done.stderr


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(joined, run):
    def interrupt(real, told):
        real(*told)
        raise KeyboardInterrupt

    site, to = joined, joined.folder("north") / "north.upload"
    words = ("prepare", site.agreement_path, site.table("north"), "-o", to, *SIGNED, "--yes")
    with at_call(1, interrupt, counts=on("replace", "sealed.upload")):
        assert "the same command goes on" in run(*words, code=130).stderr
    assert [each.name for each in site.folder("north").glob("*.upload*")] == []
    run(*words)
    assert to.exists()
