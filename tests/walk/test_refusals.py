"""What is changed on its way between five folders is refused, with its code."""

import re
import shutil

import polars as pl
import pytest

from cobasis.protocol.enrolment import PublicIdentity
from walk.conftest import LAST
from walk.pages import shows
from walk.world import PARTIES


def changed(path, *, at):
    """One bit of one byte is another."""
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 1
    path.write_bytes(data)


SEALED = [
    ("world", "north", "north.secret", "sign icu.toml --secret north.secret", "CB801"),
    ("world", "north", "icu.north.1-return", "accept icu.toml icu.north.1-return", "CB80[14]"),
    ("world", "lab", "inbox/icu.north.1-upload", "receive icu.toml inbox/", "CB801"),
    ("common", "lab", "inbox/icu.north.1-proposal", "receive icu.toml inbox/", "CB801"),
    ("common", "north", "icu.north.1-span", "accept icu.toml icu.north.1-span", "CB80[14]"),
]


@pytest.mark.parametrize("at", [0, 0.01, 0.4, 0.8, 1])
@pytest.mark.parametrize("line", SEALED, ids=lambda line: line[2])
def test_a_changed_byte_of_a_sealed_file_is_refused(line, at, request):
    basis, role, file, words, code = line
    world = request.getfixturevalue(basis)
    changed(world.folder(role) / file, at=at)
    assert re.search(rf"\[{code}\]", world(role, f"cobasis {words}", code=3))


@pytest.mark.parametrize("at", [0, 0.3, 0.6, 0.98])
def test_a_changed_byte_of_the_news_or_a_signature_is_refused(world, at):
    changed(world.folder("north") / "icu.news", at=at)
    told = world("north", "cobasis accept icu.toml icu.news", code=3)
    assert re.search(r"\[CB80[234]\]", told)
    changed(world.folder("lab") / "inbox" / "north.sig", at=at)
    (world.folder("lab") / "icu.sealed.toml").unlink()
    told = world("lab", "cobasis receive icu.toml inbox/north.sig", code=3)
    assert re.search(r"north.sig +refused: .*\[CB\d{3}\]", told, re.DOTALL)


def test_a_changed_field_of_the_agreement_voids_it_and_a_comment_does_not(world):
    path = world.folder("north") / "icu.toml"
    text = path.read_text()
    path.write_text(text.replace("retention_days = 90", "retention_days = 91"))
    line = "cobasis accept icu.toml icu.north.1-return"
    assert "[CB303]" in world("north", line, code=2)
    sealed = path.with_name("icu.sealed.toml").rename(path.with_name("sealed"))
    assert "[CB311]" in world("north", line, code=4)
    sealed.rename(path.with_name("icu.sealed.toml"))
    path.write_text(f"# read on Monday\n{text}")
    world("north", line)


def test_a_changed_byte_of_a_public_key_shows_in_its_fingerprint_or_is_refused(world):
    path = world.folder("north") / "south.pub"
    data = path.read_text()
    line = "cobasis agreement new new.toml south.pub --numbers a,b --yes"
    path.write_text(data.replace('"age1', '"age1q', 1))
    assert "[CB" in world("north", line, code=2, typed="")
    digit = re.search(r'"signing_key":"(.)', data)[1]
    path.write_text(
        data.replace(f'"signing_key":"{digit}', f'"signing_key":"{"1" if digit != "1" else "2"}')
    )
    told = re.search(r"south +((?:[0-9a-f]{4} ){3}[0-9a-f]{4})", world("north", line, typed=""))
    assert told[1] != PublicIdentity.from_text(data).fingerprint


def test_a_row_that_was_changed_in_the_transcript_is_found(world):
    path = world.folder("lab") / "icu.round" / "transcript.jsonl"
    changed(path, at=0.5)
    told = world("lab", "cobasis verify icu.toml icu.round/", code=3)
    assert re.search(r"FAILS.*\[CB807\]", told, re.DOTALL)


def test_a_table_that_does_not_fit_exits_with_2(world):
    path = world.folder("north") / "data.csv"
    pl.read_csv(path).with_columns(sick=pl.lit("perhaps"), mean_area=None).write_csv(path)
    assert "refused" in world("north", "cobasis send icu.toml data.csv --dry-run", code=2)


def test_an_old_return_and_a_second_upload_are_refused(world, walked):
    returns = [line for line, _ in walked.read if "cobasis accept" in line.words]
    assert len(returns) == 5
    north = world.folder("north")
    (north / "pass").write_text("another\n")
    assert "[CB701]" in world("north", "cobasis accept icu.toml icu.north.1-return", code=2)
    again = "cobasis send icu.toml data.csv -o again.upload --signed-by Officer"
    (north / "pass").write_text("north keeps this to itself\n")
    assert "[CB305]" in world("north", again, code=2)
    shutil.rmtree(north / "home" / "transcripts")  # which knows that one was sent
    world("north", again)
    world.send("north", "again.upload", "the analyst", "inbox/")
    told = world("lab", "cobasis receive icu.toml inbox/", code=3)
    assert re.search(r"again.upload +refused: .*\[CB805\]", told, re.DOTALL)


def test_after_the_end_of_retention_nobody_is_added_or_removed(world):
    told = []
    world.walk(lambda *each: told.append((each[2], world(*each[:2]))), numbers=[LAST])
    assert [
        printed for line, printed in told if line.shown and not shows(line.shown, printed)
    ] == []
    assert len(told) == len(PARTIES) + 1
    assert "[CB305]" in world("north", "cobasis predict icu.toml new.csv -o new.out.csv", code=2)
    assert "[CB313]" in world("lab", "cobasis remove icu.toml late", code=2)
    assert not list(world.folder("lab").rglob("*.safetensors"))
