"""A crash after any call, or a full disk at any call, loses nothing and shows nothing half."""

from contextlib import suppress
from itertools import count

import pytest

from cobasis.disk.whole import file_digest
from cobasis.errors import LocalError
from cobasis.party_side.accept import accept
from cobasis.party_side.audit import Approval, Question, approve, audited
from cobasis.party_side.predict import score
from cobasis.party_side.send import send
from faults import BROKEN, FULL, at_call, died, dying_after
from party_side.sites import copied, ready_from


def prepared(site, *, found=[]):  # noqa: B006 -- one audit stands for all: its figures do not matter
    session, to = site.session("north"), site.folder("north") / "north.upload"

    def allow(made):
        if not found:
            found.append(audited(made, question=Question(compared=False)))
        return approve(session, found[0], approval=Approval(signed_by=("A. Officer",)))

    return send(ready_from(session, site.table("north")), to, allow=allow)


def payload(site):
    """The bytes that the analyst gets, once opened."""
    bundle = site.opened("north", site.folder("north") / "north.upload")
    return bundle.parts["upload.safetensors"].read_bytes()


def outside(site):
    """What lies where files leave from."""
    return {each.name for each in site.folder("north").iterdir() if "upload" in each.name}


def killed(site, folder, work, *, step):
    """Kill some work at every step-th call, each time in a copy of its own."""
    for number in count(1, step):
        place = copied(site, folder / str(number))
        if not died(dying_after, number, lambda place=place: work(place)):
            return
        yield place


STEPS = pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.soak)])


@STEPS
def test_a_kill_while_preparing_leaves_no_upload_that_the_vault_does_not_know(
    site, tmp_path_factory, step
):
    prepared(site)  # so that the audit is made once
    (site.folder("north") / "north.upload").unlink()
    seen = []
    for place in killed(site, tmp_path_factory.mktemp("kills"), prepared, step=step):
        history = place.session("north").vault.history()
        first = payload(place) if "north.upload" in outside(place) else None
        assert outside(place) <= {"north.upload", "north.upload.part"}
        assert first is None or history[-1].upload
        again = prepared(place)
        assert outside(place) == {"north.upload"}
        assert first is None or payload(place) == first
        after = place.session("north").vault.history()
        assert after[-1].upload == again.digest
        assert after[: len(history)] == history
        assert len({each.name for each in place.session("north").vault.datasets()}) == 1
        left = {each.name for each in place.session("north").work.iterdir()}
        assert left == {"1-upload.sent", "notes.age"}
        seen.append(first is not None)
    assert len(seen) > 60 // step
    assert set(seen) == {True, False}


@STEPS
def test_a_kill_while_accepting_leaves_the_old_state_or_the_new_one(
    uploaded, tmp_path_factory, step
):
    site, paths = uploaded
    path = site.return_file(site.as_files(site.analyst_of(paths).run())["north"])
    name = path.relative_to(site.root)

    def work(place):
        accept_and_score(place.session("north"), place.root / name)

    seen = []
    for place in killed(site, tmp_path_factory.mktemp("kills"), work, step=step):
        seen.append(place.session("north").round.accepted() is not None)
        taken = accept(place.session("north"), place.root / name)
        assert place.session("north").round.accepted().bundle == taken.bundle
        assert not (place.session("north").work / "opened").exists()
    assert seen == sorted(seen)
    assert set(seen) == {True, False}


def accept_and_score(session, path):
    accept(session, path)
    score(session)


@pytest.mark.parametrize("act", [FULL, BROKEN], ids=["full", "broken"])
def test_a_disk_that_fails_at_the_kth_call_is_one_coded_error_and_a_retry_succeeds(site, act):
    ready = ready_from(site.session("north"), site.table("north"))
    to = site.folder("north") / "north.upload"
    for number in count(1, 4):  # every fourth call; the slow tests of the walk take each
        before = {entry.number for entry in site.session("north").vault.history() if entry.upload}
        with suppress(LocalError), at_call(number, act) as clock:  # and nothing else is raised
            send(ready, to)
        if clock.stopped_at is None:
            break
        known = {entry.upload for entry in site.session("north").vault.history()}
        assert not to.exists() or file_digest(to) in known, number
        assert before <= {each.number for each in site.session("north").vault.history()}
        to.unlink(missing_ok=True)
        ready = ready_from(site.session("north"), site.table("north"))
    assert number > 40
    assert outside(site) == {"north.upload"}
