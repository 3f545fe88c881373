"""What is changed on its way between five folders is refused, with its code."""

import re
import shutil

import polars as pl
import pytest

from walk.pages import shows
from walk.world import PARTIES


def changed(path, *, at):
    """One bit of one byte is another."""
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 1
    path.write_bytes(data)


SEALED = [
    ("world", "north", "north.secret", "party join icu.toml north.secret", "CB801"),
    ("world", "north", "north.return", "party accept icu.toml north.return", "CB801"),
    ("world", "lab", "late.upload", "analyst add icu.toml late.upload -o returns/", "CB801"),
    ("world", "lab", "inbox/north.upload", "analyst receive icu.toml inbox/", "CB801"),
    ("common", "north", "north.consensus", "party adopt icu.toml north.consensus", "CB801"),
]


@pytest.mark.parametrize("at", [0, 0.01, 0.4, 0.8, 1])
@pytest.mark.parametrize("line", SEALED, ids=lambda line: line[2])
def test_a_changed_byte_of_a_sealed_file_is_refused(line, at, request):
    basis, role, file, words, code = line
    world = request.getfixturevalue(basis)
    changed(world.folder(role) / file, at=at)
    assert f"[{code}]" in world(role, f"cobasis {words}", code=3)


@pytest.mark.parametrize("at", [0, 0.3, 0.6, 0.98])
def test_a_changed_byte_of_a_receipt_or_a_signature_is_refused(world, at):
    changed(world.folder("north") / "north.receipt", at=at)
    told = world("north", "cobasis party receipt icu.toml north.receipt", code=3)
    assert re.search(r"\[CB80[234]\]", told)
    changed(world.folder("lab") / "north.sig", at=at)
    text = (world.folder("lab") / "icu.toml").read_text()
    (world.folder("lab") / "icu.toml").write_text(text[: text.index("[[signature]]")])
    told = world("lab", "cobasis agreement seal icu.toml *.sig", code=2)
    assert re.search(r"\[CB3(03|11)\]", told)


def test_a_changed_field_of_the_agreement_voids_it_and_a_comment_does_not(world):
    path = world.folder("north") / "icu.toml"
    text = path.read_text()
    path.write_text(text.replace("retention_days = 90", "retention_days = 91"))
    line = "cobasis party accept icu.toml north.return"
    assert "[CB311]" in world("north", line, code=2)
    path.write_text(f"# read on Monday\n{text}")
    world("north", line)


def test_a_changed_byte_of_a_public_key_shows_in_its_fingerprint_or_is_refused(world):
    lab, north = world.folder("lab"), world.folder("north")
    shutil.copy(north / "north.pub", lab / "changed.pub")
    data = (lab / "changed.pub").read_text()
    world("lab", "cobasis agreement new new.toml --numbers a,b", typed=None)
    (lab / "changed.pub").write_text(data.replace('"age1', '"age1q', 1))
    done = world("lab", "cobasis agreement enrol new.toml --party changed.pub", code=2)
    assert "[CB" in done
    digit = re.search(r'"signing_key":"(.)', data)[1]
    other = data.replace(
        f'"signing_key":"{digit}', f'"signing_key":"{"1" if digit != "1" else "2"}'
    )
    (lab / "changed.pub").write_text(other)
    shown = world("lab", "cobasis agreement enrol new.toml --party changed.pub")
    true = re.search(
        r"north +((?:[0-9a-f]{4} ?){4})", world("lab", "cobasis agreement show icu.toml")
    )
    assert true[1].strip() not in shown


def test_a_row_that_was_changed_in_the_transcript_is_found(world):
    path = world.folder("lab") / "icu.round" / "transcript.jsonl"
    changed(path, at=0.5)
    assert re.search(
        r"FAILS.*\[CB807\]", world("lab", "cobasis verify icu.toml icu.round/", code=3)
    )


def test_a_table_that_does_not_fit_exits_with_2(world):
    path = world.folder("north") / "data.csv"
    pl.read_csv(path).with_columns(sick=pl.lit("perhaps"), mean_area=None).write_csv(path)
    assert "refused" in world("north", "cobasis party check icu.toml data.csv", code=2)


def test_an_old_return_and_a_second_upload_are_refused(world, walked):
    returns = [line for line, _ in walked.read if "party accept" in line.words]
    assert len(returns) == 5
    north = world.folder("north")
    (north / "pass").write_text("another\n")
    assert "[CB701]" in world("north", "cobasis party accept icu.toml north.return", code=2)
    again = "cobasis party prepare icu.toml data.csv -o again.upload --signed-by Officer"
    (north / "pass").write_text("north keeps this to itself\n")
    world("north", again)
    world.send("north", "again.upload", "the analyst", "inbox/")
    told = world("lab", "cobasis analyst receive icu.toml inbox/", code=3)
    assert re.search(r"again.upload: refused.*\[CB805\]", told)


def test_after_the_end_of_retention_nobody_is_added_or_removed(world):
    told = []
    world.walk(lambda *each: told.append((each[2], world(*each[:2]))), numbers=[21])
    assert [
        printed for line, printed in told if line.shown and not shows(line.shown, printed)
    ] == []
    assert len(told) == len(PARTIES) + 1
    assert "[CB305]" in world(
        "north", "cobasis party predict icu.toml new.csv -o new.out.csv", code=2
    )
    line = "cobasis analyst remove icu.toml late -o returns/"
    assert "[CB313]" in world("lab", line, code=2)
    assert not list(world.folder("lab").rglob("*.safetensors"))
