"""A party's commands as people type them: `send`, `accept`, `score`, `predict` and `export`."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import polars as pl
import polars.selectors as cs
import pytest

from cli.round_by_commands import NAMES, write_table
from cobasis.bundle.seal import look
from cobasis.cli import options
from cobasis.disk.whole import file_digest
from faults import at_call, on

UPLOAD = Path("icu.north.1-upload")


def test_before_its_turn_send_reads_no_table_and_a_dry_run_lists_all_that_does_not_fit(cobasis):
    cobasis.agreed()
    cobasis.refused("send icu.toml none.csv", "missing: east, north, south", "[CB311]", code=4)
    cobasis.refused("send icu.toml none.csv", "'lab' is the analyst of round", by="lab")
    good = pl.read_csv(write_table(Path("north.csv"), seed=2))
    words = pl.when(pl.int_range(pl.len()) == 6).then(pl.lit("high")).otherwise(pl.lit("1"))
    good.with_columns(a=words, sex=pl.lit("x")).write_csv("bad.csv")
    line = "send icu.toml bad.csv --dry-run"
    cobasis.refused(
        line,
        "the first text is in row 7 below",
        "told: column 'sex' has words that are not agreed, and they count as any other (40 of 40",
    )
    found = cobasis.json(line, code=2)
    assert (found["fits"], found["n_held"], found["preview"]) == (False, None, None)
    preview = cobasis.json("send icu.toml north.csv --dry-run")["preview"]
    assert (preview["reader"], preview["span"]) == ("lab", "fresh")
    assert not list(Path().glob("icu.north.*"))


def test_nothing_leaves_unasked_or_unsigned_and_a_lost_file_comes_again_to_the_last_byte(
    sealed, monkeypatch
):
    line = "send icu.toml north.csv"
    with monkeypatch.context() as here:
        here.setattr(options, "on_terminal", lambda: True)
        sealed.said(line, "Nothing was done.", typed="A. Officer\nn\n", code=2)
        sealed.said(line, "[CB512]", typed="\n", code=2)
    done = sealed(f"{line} --signed-by Officer", code=2)
    assert max(map(len, done.stdout.splitlines())) < 80
    screen = ("Exchange 1 of 1: upload. Nothing has left yet.", "Who can read it: 'lab' alone")
    sealed.refused(f"{line} --signed-by Officer", *screen, "nothing is done unasked", "[CB107]")
    sealed.refused(f"{line} --yes", "[CB512]")
    assert "Exchange" not in sealed.refused(f"{line} --out home-north", "is a folder, or in one")
    for half in ("--override-by A --override-by B", "--override-reason why"):
        sealed.refused(f"{line} {half} --yes", "[CB107]")
    assert (UPLOAD.exists(), sealed.events("north")) == (False, ["joined", "signed"])
    with monkeypatch.context() as here:
        here.setattr(options, "on_terminal", lambda: True)
        done = sealed(f"{line} --json", typed="A. Officer\ny\n")
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["path"], found["sha256"]) == (str(UPLOAD), file_digest(UPLOAD))
    assert look(UPLOAD) == 1
    sealed.refused("send icu.toml north.csv --yes", "a round takes one")
    sealed.said(f"{line} --dry-run", "upload. One was made on 20", "this is only how the table")
    UPLOAD.unlink()
    sealed.refused("send icu.toml north.csv --again", "nothing of north.csv would be in it")
    again = sealed.json("send icu.toml --again")
    assert (again["again"], file_digest(UPLOAD)) == (True, found["sha256"])
    said = ("signature: good", '"verdict": "pseudonymised"')
    sealed.said(f"inspect {UPLOAD} --as lab --agreement icu.toml", *said, by="lab")


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(sealed):
    def interrupt(real, told):
        real(*told)
        raise KeyboardInterrupt

    line = "send icu.toml north.csv --signed-by Officer --yes"
    for file in ("1-upload.made", UPLOAD.name):
        with at_call(1, interrupt, counts=on("replace", file)):
            assert "the same command goes on" in sealed(line, code=130).stderr
    then = "cobasis accept icu.toml icu.news icu.north.1-return"
    sealed.said(line, "The same file as before, to the last byte.", "as that was then.", then)


def test_ctrl_c_at_a_question_ends_the_command_though_a_table_was_read(tmp_path):
    """polars has a handler of its own, which lets the system go on reading the keyboard."""
    table = write_table(tmp_path / "table.csv", seed=0, n_rows=4)
    words = f"agreement new icu.toml --columns {table} --purpose p --task table --id patient"
    keyboard, terminal = pty.openpty()
    line = [sys.executable, "-m", "cobasis", *words.split()]
    with subprocess.Popen(line, cwd=tmp_path, stdin=terminal, stderr=subprocess.PIPE) as child:
        said = b""
        while b"shall be no features" not in said:
            said += os.read(child.stderr.fileno(), 1000)
        time.sleep(0.2)  # it says so before it listens
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(10) == 130
        finally:
            child.kill()  # or this test would wait for it
    os.close(keyboard)
    os.close(terminal)


def test_predict_and_export_write_what_they_say_and_over_no_table(ran):
    write_table(Path("new.csv"), seed=9)
    ran.said("predict icu.toml new.csv -o out.csv", "40 predictions")
    likely = ["probability_no", "probability_yes"]
    assert pl.read_csv("out.csv").columns == ["patient", "prediction", *likely, "model"]
    ran("predict icu.toml new.csv -o out.csv --model common --explain")
    found = pl.read_csv("out.csv")
    assert set(found["explained"]) == {"log-odds of class yes"}
    odds = (found["probability_yes"] / found["probability_no"]).log()
    parts = found.select("base", cs.starts_with("why_")).sum_horizontal()
    assert parts.to_numpy() == pytest.approx(odds.to_numpy())
    Path("link.csv").hardlink_to("north.csv")
    pl.read_csv("south.csv").write_parquet("south.parquet")
    names = ("link.csv", "south.csv", "south.parquet")
    tables = {path: path.read_bytes() for path in map(Path, names)}
    for path in tables:
        ran.refused(f"predict icu.toml new.csv -o {path}", "a table of yours", "[CB107]")
    ran.refused("export icu.toml -o link.csv", "a table of yours")
    assert {path: path.read_bytes() for path in tables} == tables
    found = ran.json("export icu.toml -o n.onnx")
    made = Path("n.onnx").stat()
    assert (made.st_size, made.st_mode & 0o777) == (found["n_bytes"], 0o600)


def test_export_writes_a_few_lines_that_stand_for_the_model_and_are_as_near_as_they_say(ran):
    write_table(Path("new.csv"), seed=9, n_rows=200)
    pl.read_csv("new.csv").drop("sick", "patient").write_csv("own.csv")  # rows without labels
    said = ran("export icu.toml --surrogate own.csv -o model.txt").stdout
    first, _, shown = Path("model.txt").read_text().partition("\n\n")
    assert re.fullmatch(r"(?s).*model of round 'icu-.* by rows of party 'north'\.", first)
    assert said.startswith(shown)
    found = ran.json("export icu.toml --surrogate own.csv")["surrogate"]
    for word in (
        "A line that stands for the log-odds of class yes: 200 rows",
        f"R2 {found['fidelity']:.3f}",
    ):
        assert word in shown.replace("\n", " ")
    ran.refused("export icu.toml --of no", "--of is of a surrogate")
    ran.refused("export icu.toml --surrogate own.csv -o own.csv", "a table of yours")
    maybe = "no class 'maybe' can be explained, of no, yes"
    ran.refused("export icu.toml --surrogate own.csv --of maybe", maybe)


def test_what_lies_here_and_is_new_is_taken_and_what_is_damaged_is_named(sealed):
    sealed.send()
    sealed.run()
    came = Path("icu.north.1-return")
    whole = Path("outbox", came).read_bytes()
    came.write_bytes(whole[:-1])
    why = "Refused icu.north.1-return: SealError: the bundle 'icu.north.1-return': what"
    sealed.refused("accept icu.toml", why, "Accepted the news of", code=3)
    came.write_bytes(whole)
    found = sealed.json("accept icu.toml")
    assert (found["passed_over"], found["refused"]) == (["icu.news"], [])
    assert found["returned"]["trained_on"] == list(NAMES)
    assert sealed.events("north")[2:] == ["audited", "prepared", "receipt", "accepted"]
    again = "name the file itself, which is taken again"
    sealed.refused("accept icu.toml", "none is new for 'north'", again, code=4)
    card = Path("icu.north.card.html")
    card.unlink()  # as where a kill came before it
    sealed("accept icu.toml icu.north.1-return")
    assert card.exists()


def test_a_map_before_the_basis_is_signed_and_leads_to_predictions_reasons_and_a_graph(cobasis):
    cobasis.agreed(more="--map mixed,waves=8 --n-components 12")
    line = "agreement new b.toml --numbers a --map rff,knots=3"
    cobasis.refused(line, "--map rff,knots=3 cannot be read: knots: nothing")
    shown = cobasis.signed()
    assert "Map mixed: at each party a row first becomes " in shown
    assert "EVERY RECORD, nearly" in shown
    cobasis.tables()
    cobasis("audit icu.toml north.csv -o audit.html")
    for words in ("columns behind the map", "numbers of the map become 12", "through the map"):
        assert words in Path("audit.html").read_text()
    cobasis.send()
    cobasis.run()
    assert "go through the agreed map" in Path("icu.card.html").read_text()
    cobasis.accept()
    cobasis("predict icu.toml north.csv -o out.csv --explain")
    found = pl.read_csv("out.csv")
    told = found.select(pl.sum_horizontal("base", cs.starts_with("why_"))).to_series()
    np.testing.assert_allclose(1 / (1 + np.exp(-told)), found["probability_yes"], atol=1e-9)
    cobasis("export icu.toml -o n.onnx")
    session = onnxruntime.InferenceSession("n.onnx", providers=["CPUExecutionProvider"])
    frame = pl.read_csv("north.csv").select("a", "b", "c", "d", "sex")
    given = {each.name: each.to_numpy()[:, None] for each in frame.with_columns(cs.float())}
    given["sex"] = given["sex"].astype(object)
    label = session.run(["label"], given)[0]
    assert [["no", "yes"][each] for each in label] == found["prediction"].to_list()
    cobasis.said("plan icu.toml north.csv", "rows")
