"""A newer key, for which the one before signs: rounds go on, the vault goes over, nobody calls."""

import json
import re
import shutil
from pathlib import Path

import pytest

from cobasis.errors import SealError
from faults import Killed, at_call, changes, dying_half_way

REPLACE = "key new north --replace"


def test_a_running_round_ends_under_the_key_that_it_enrols(sent):
    sent.refused("key new west --replace", "[CB702]")  # there is none
    assert not Path("home-north/keys/west.key").exists()
    before = sent.identity("north")
    found = sent.json(REPLACE)
    after = sent.identity("north")
    assert found["fingerprint"] == after.public.fingerprint != before.public.fingerprint
    records = sorted(Path("home-north/vault").rglob("*.age"))
    assert len(records) > 2
    for path in records:
        with pytest.raises(SealError):
            before.unseal_own(path.read_bytes())
    sent("send icu.toml --again")
    sent.run()
    sent.accept()
    sent("predict icu.toml north.csv -o out.csv")
    assert "north.pub" in sent("key new north").stdout  # writes both files again


def agreement(typed, more, *, file="next.toml", by="south", **options):
    for path in (Path(file), *Path().glob("*.secret")):
        path.unlink(missing_ok=True)
    pubs = "east.pub north.pub south.pub --analyst lab.pub"
    told = typed.draft(file, pubs=pubs, more=more, asked="", by=by, **options).stderr
    return " ".join(told.split())


def unknown(told):
    """Whose fingerprints nobody confirmed; the fingerprints have words such as south."""
    [open_ones] = re.findall("nobody is here to confirm fingerprints: (.+?)[.] Compare", told)
    return [each.split()[0] for each in open_ones.split("; ")]


def test_who_signed_with_the_key_before_takes_the_newer_without_a_call(sent):
    for line, by in ((REPLACE, "north"), ("key new lab --analyst --replace", "lab")):
        sent(line, by=by)
    shutil.move("north.succession", "kept")
    told = agreement(sent, "--known icu.toml", code=2)
    assert unknown(told) == ["north"]
    forged = json.loads(Path("kept").read_text())
    forged["signatures"] = dict.fromkeys(forged["signatures"], "0" * 128)
    Path("north.succession").write_text(json.dumps(forged) + "\n")
    agreement(sent, "--known icu.toml", code=2)
    shutil.move("kept", "north.succession")
    agreement(sent, "", code=2)
    assert agreement(sent, "--known icu.toml").count(", which signed it") == 2
    sent("key new west", by="west")
    shutil.copy("west.pub", "south.pub")
    assert unknown(agreement(sent, "--known icu.toml", by="west", code=2))  # who signed nothing


def test_a_key_that_was_revoked_in_an_agreement_that_is_known_vouches_for_nothing(sent):
    agreement(sent, "--known icu.toml")
    for path in Path().glob("*.sig"):
        path.unlink()
    for by in ("east", "north", "south", "lab"):
        sent("sign next.toml --yes", by=by)
    sent("receive next.toml", by="lab")
    for by in ("south", "lab"):
        sent("key revoke next.toml north --yes", by=by)
    Path("torn.succession").write_text("{}")
    agreement(sent, "--yes", file="other.toml")  # nobody is known, and no word for a key is read
    Path("torn.succession").unlink()
    known = "--known next.toml --known icu.toml"  # a key revoked in the other is none, either
    for line in ("key new north", REPLACE):  # the key itself, and one that it signs for
        sent(line)
        told = agreement(sent, known, file="third.toml", code=2)
        assert unknown(told) == ["north"]
    for by in ("south", "lab"):
        sent("key revoke icu.toml north --yes", by=by)
    assert unknown(agreement(sent, "--known icu.toml", file="third.toml", code=2)) == ["north"]


def test_killed_at_any_moment_old_and_new_are_read_and_the_same_command_ends_it(sent):
    root, before = Path.cwd(), sent.identity("north").public
    shutil.copytree(root / "home-north", root / "kept")
    killed = 0
    for number in range(1, 100, 3):
        shutil.rmtree(root / "home-north")
        shutil.copytree(root / "kept", root / "home-north")
        Path("north.pub").unlink(missing_ok=True)
        with at_call(number, dying_half_way, counts=changes) as clock:
            try:
                sent(REPLACE)
            except Killed:
                killed += 1
        if not clock.dead:
            break
        sent("send icu.toml --again")  # reads the vault, under the key that is enrolled
        sent(REPLACE)
        assert before in {each.public for each in sent.identity("north").before}
        sent("send icu.toml --again")
    assert killed > 5
