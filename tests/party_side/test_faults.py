"""A crash after any call loses nothing and shows nothing half."""

from itertools import count

import pytest

from cobasis.party_side.accept import accept
from cobasis.party_side.audit import Question, approve, audited
from cobasis.party_side.send import send
from cobasis.party_side.worth import score
from faults import died, dying_after
from party_side.sites import copied, ready_from


def prepared(site, *, found=[]):  # noqa: B006 -- one audit stands for all: its figures do not matter
    session, to = site.session("north"), site.folder("north") / "north.upload"

    def allow(made):
        if not found:
            found.append(audited(made, question=Question(compared=False)))
        return approve(session, found[0], signed_by=["A. Officer"])

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
        place = copied(site, folder / f"{work.__name__}-{number}-of-{step}")
        if not died(dying_after, number, lambda place=place: work(place)):
            return
        yield place


STEPS = pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.soak)])


@STEPS
def test_a_kill_while_preparing_leaves_no_upload_that_the_vault_does_not_know(
    site, in_memory, step
):
    prepared(site)  # so that the audit is made once
    (site.folder("north") / "north.upload").unlink()
    seen = []
    for place in killed(site, in_memory, prepared, step=step):
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
        assert left == {"1-upload.sent"}
        seen.append(first is not None)
    assert len(seen) > 60 // step
    assert set(seen) == {True, False}


@STEPS
def test_a_kill_while_accepting_leaves_the_old_state_or_the_new_one(returns, in_memory, step):
    site, made = returns
    path = site.return_file(made["north"])
    name = path.relative_to(site.root)

    def work(place):
        accept_and_score(place.session("north"), place.root / name)

    seen = []
    for place in killed(site, in_memory, work, step=step):
        seen.append(place.session("north").round.accepted() is not None)
        taken = accept(place.session("north"), place.root / name)
        assert place.session("north").round.accepted().bundle == taken.bundle
        assert not (place.session("north").work / "opened").exists()
    assert seen == sorted(seen)
    assert set(seen) == {True, False}


def accept_and_score(session, path):
    accept(session, path)
    score(session)
