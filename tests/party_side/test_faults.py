"""A crash at any named point, or a full disk at any call, loses nothing and shows nothing half."""

import re
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

import cobasis.party_side
from cobasis.errors import LocalError
from cobasis.party_side.approving import Approval, approve
from cobasis.party_side.auditing import Question, audited
from cobasis.party_side.desk import digest_of
from cobasis.party_side.readying import make_ready
from cobasis.party_side.receiving import accept
from cobasis.party_side.scoring import score
from cobasis.party_side.sending import prepare
from faults import BROKEN, FULL, at_call
from party_side.sites import Killed, stopping_at

SOURCE = Path(cobasis.party_side.__file__).parent
TEXT = "".join(path.read_text("utf-8") for path in SOURCE.glob("*.py"))
NAMED = [
    *re.findall(r'point\("((?:prepare|accept|score)\.\w+)"\)', TEXT),
    *(f"prepare.{name}" for name in re.findall(r'point\(f"{command}\.(\w+)"\)', TEXT)),
]


def test_there_are_twenty_points_and_more():
    assert len(NAMED) == len(set(NAMED)) >= 20


def prepared(site, *, found=[]):  # noqa: B006 -- one audit stands for all: its figures do not matter
    desk, to = site.desk("north"), site.folder("north") / "north.upload"

    def allow(made):
        if not found:
            found.append(audited(made, question=Question(compared=False)))
        return approve(desk, found[0], approval=Approval(signed_by=("A. Officer",)))

    return prepare(make_ready(desk, site.table("north")), to, allow=allow)


def payload(site):
    """The bytes that the analyst gets, once opened."""
    bundle = site.opened("north", site.folder("north") / "north.upload")
    return bundle.parts["upload.safetensors"].read_bytes()


def outside(site):
    """What lies where files leave from."""
    return {each.name for each in site.folder("north").iterdir() if "upload" in each.name}


@pytest.mark.parametrize("name", [each for each in NAMED if each.startswith("prepare.")])
def test_a_kill_while_preparing_leaves_no_upload_that_the_vault_does_not_know(
    site, monkeypatch, name
):
    seen = []
    with pytest.raises(Killed), stopping_at(name, monkeypatch, seen=seen):
        prepared(site)
    assert seen[-1] == name
    assert outside(site) - {"north.upload.part"} == (
        {"north.upload"} if name in {"prepare.named", "prepare.cleared"} else set()
    )
    history = site.desk("north").vault.history()
    if "north.upload" in outside(site):
        first = payload(site)
        assert history[-1].upload
    again = prepared(site)
    assert outside(site) == {"north.upload"}
    if name in {"prepare.named", "prepare.cleared"}:
        assert payload(site) == first
    after = site.desk("north").vault.history()
    assert after[-1].upload == again.digest
    assert after[: len(history)] == history
    assert len({each.name for each in site.desk("north").vault.datasets()}) == 1
    assert [each.name for each in site.desk("north").work.iterdir()] == ["notes.age"]


def test_a_kill_while_accepting_leaves_the_old_state_or_the_new_one(uploaded, monkeypatch):
    site, paths = uploaded
    path = site.return_file(site.as_files(site.analyst_of(paths).run())["north"])
    for name in [each for each in NAMED if each.startswith(("accept.", "score."))]:
        desk = site.desk("north")
        site.desk("north").vault.forget_round(site.agreement)
        desk.round.join(site.secret)
        with pytest.raises(Killed), stopping_at(name, monkeypatch):
            accept_and_score(desk, path)
        kept = site.desk("north").round.accepted()
        written = name.startswith("score.") or name in {"accept.kept", "accept.told"}
        assert (kept is not None) == written, name
        taken = accept(site.desk("north"), path)
        assert site.desk("north").round.accepted().bundle == taken.bundle
        assert not (desk.work / "opened").exists()


def accept_and_score(desk, path):
    accept(desk, path)
    score(desk)


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["full", "broken"])
def test_a_disk_that_fails_at_the_kth_call_is_one_coded_error_and_a_retry_succeeds(site, act):
    ready = make_ready(site.desk("north"), site.table("north"))
    to = site.folder("north") / "north.upload"
    for number in count(1, 4):  # every fourth call; the slow tests of the walk take each
        before = {entry.number for entry in site.desk("north").vault.history() if entry.upload}
        with suppress(LocalError), at_call(number, act) as clock:  # and nothing else is raised
            prepare(ready, to)
        if clock.stopped_at is None:
            break
        known = {entry.upload for entry in site.desk("north").vault.history()}
        assert not to.exists() or digest_of(to.read_bytes()) in known, number
        assert before <= {each.number for each in site.desk("north").vault.history()}
        to.unlink(missing_ok=True)
        ready = make_ready(site.desk("north"), site.table("north"))
    assert number > 40
    assert outside(site) == {"north.upload"}
