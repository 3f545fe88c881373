"""What people change, send twice or ask for too late in five folders is refused, with its code."""

import re
import shutil

from cobasis.protocol.enrolment import PublicIdentity
from walk.conftest import LAST
from walk.pages import shows
from walk.world import PARTIES


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
    other = "1" if digit != "1" else "2"
    path.write_text(data.replace(f'"signing_key":"{digit}', f'"signing_key":"{other}'))
    told = re.search(r"south +((?:[0-9a-f]{4} ){3}[0-9a-f]{4})", world("north", line, typed=""))
    assert told[1] != PublicIdentity.from_text(data).fingerprint


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
    assert all(shows(line.shown, printed) for line, printed in told if line.shown)
    assert len(told) == len(PARTIES) + 1
    assert "[CB305]" in world("north", "cobasis predict icu.toml new.csv -o new.out.csv", code=2)
    assert "[CB313]" in world("lab", "cobasis remove icu.toml late", code=2)
    assert not list(world.folder("lab").rglob("*.safetensors"))
