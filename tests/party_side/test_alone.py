"""A party's round: its secret, and one command at a time."""

from io import BytesIO

import pytest

from cobasis.bundle.seal import encrypt
from cobasis.errors import AnotherRunError, ForeignBundleError
from cobasis.keys.identity import Identity
from cobasis.party_side.accept import accept, adopt
from cobasis.party_side.send import send
from cobasis.party_side.session import forget
from party_side.sites import join, ready_from


def test_while_another_command_is_at_work_every_one_is_refused_and_touches_nothing(site):
    session, to = site.session(), site.upload()
    ready = ready_from(session, site.table("north"))
    with site.session().alone():
        (session.work / "upload.safetensors").write_bytes(b"of the other")
        for command in (
            lambda: send(ready, to),
            lambda: join(session, site.secret_file("north")),
            lambda: adopt(session, to),
            lambda: accept(session, to),
            lambda: forget(session),
        ):
            with pytest.raises(AnotherRunError, match=r"the work folder .*north.*\[CB604\]"):
                command()
        assert (session.work / "upload.safetensors").read_bytes() == b"of the other"
    assert not [*session.work.iterdir()]  # nothing plain stays, of one that was killed neither
    (session.work / "upload.safetensors").touch()
    with site.session().alone():
        assert not [*session.work.iterdir()]
    assert not to.exists()
    assert session.vault.history() == ()
    send(ready, to)
    assert to.exists()


def test_a_secret_that_was_sealed_before_a_key_was_exchanged_is_refused(make):
    """Whoever writes the enrolled keys has it sealed for a key of its own, and then for east."""
    site = make()
    mole = Identity.new("east")
    changed = [mole.public if each.name == "east" else each for each in site.agreement.enrolled]
    before = site.agreement.model_copy(update={"enrolled": tuple(changed)})
    north = site.secret_file("north", agreement=before)
    east = site.secret_file("east", agreement=before, to=mole)
    plain = BytesIO()
    mole.unseal(BytesIO(east.read_bytes()), plain)
    with east.open("wb") as file:
        encrypt(
            BytesIO(plain.getvalue()),
            file,
            recipients={"east": site.identities["east"].public.recipient},
        )
    for name, path in (("east", east), ("north", north)):
        with pytest.raises(ForeignBundleError, match="its agreement is"):
            join(site.session(name), path)
        assert not site.session(name).round.joined
