"""A crash after any call loses nothing and shows nothing half."""

from cobasis.party_side.accept import accept
from cobasis.party_side.audit import approve, audited
from cobasis.party_side.worth import score
from party_side.sites import killed, steps


def prepared(site, *, found=[]):  # noqa: B006 -- one audit stands for all: its figures do not matter
    session = site.session()

    def allow(made):
        if not found:
            found.append(audited(made, compared=False))
        return approve(session, found[0], signed_by=["A. Officer"])

    return site.send(allow=allow)


def left(site):
    """What lies where files leave from, and what the analyst gets of it."""
    names = {each.name for each in site.folder("north").iterdir() if "upload" in each.name}
    if site.upload().name not in names:
        return names, None
    return names, site.opened("north", site.upload()).parts["upload.safetensors"].read_bytes()


@steps(9)
def test_a_kill_while_preparing_leaves_no_upload_that_the_vault_does_not_know(
    site, in_memory, step
):
    prepared(site)  # so that the audit is made once
    site.upload().unlink()
    seen = []
    for place in killed(site, in_memory, prepared, step=step):
        history, (names, first) = place.session().vault.history(), left(place)
        assert names <= {"north.upload", "north.upload.part"}
        assert first is None or history[-1].upload
        again = prepared(place)
        after, (names, last) = place.session().vault.history(), left(place)
        assert names == {"north.upload"}
        assert first in {None, last}
        assert after[-1].upload == again.digest
        assert after[: len(history)] == history
        assert len({each.name for each in place.session().vault.datasets()}) == 1
        assert [each.name for each in place.session().work.iterdir()] == ["1-upload.sent"]
        seen.append(first is not None)
    assert len(seen) > 60 // step
    assert set(seen) == {True, False}


@steps(9)
def test_a_kill_while_accepting_leaves_the_old_state_or_the_new_one(returns, in_memory, step):
    site, made = returns
    path = site.return_file(made["north"])
    name = path.relative_to(site.root)

    def work(place):
        accept(place.session(), place.root / name)
        score(place.session())

    seen = []
    for place in killed(site, in_memory, work, step=step):
        seen.append(place.session().round.accepted() is not None)
        taken = accept(place.session(), place.root / name)
        assert place.session().round.accepted().bundle == taken.bundle
        assert not (place.session().work / "opened").exists()
    assert seen == sorted(seen)
    assert set(seen) == {True, False}
