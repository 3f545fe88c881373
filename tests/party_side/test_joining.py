"""Secrets are taken from those who may send them, and kept."""

from io import BytesIO

import pytest

from cobasis.bundle.enclosure import write_bundle
from cobasis.bundle.seal import encrypt
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    CommitmentError,
    ForeignBundleError,
    SignatureError,
    StepError,
)
from cobasis.keys.identity import Identity
from cobasis.party_side.send import take_secret
from cobasis.party_side.session import forget, join


class TestJoining:
    def test_another_secret_is_refused_and_not_kept(self, make):
        site = make()
        path = site.secret_file("north", key=bytes(32))
        with pytest.raises(CommitmentError, match="does not open the commitment"):
            join(site.session("north"), path)
        assert not site.session("north").round.joined

    def test_a_secret_of_another_length_is_refused(self, make):
        site = make()
        with pytest.raises(CommitmentError, match="31 bytes"):
            join(site.session("north"), site.secret_file("north", key=bytes(31)))

    def test_a_secret_from_the_analyst_is_refused(self, make):
        site = make()
        path = site.folder("north") / "x.secret"
        write_bundle(
            path,
            draft=site.secret_draft(sender="lab"),
            parts={"secret.bin": site.key},
            sign=site.lab.sign,
            recipients=[site.identities["north"].public],
        )
        with pytest.raises(SignatureError, match="not among the enrolled"):
            join(site.session("north"), path)

    def test_a_secret_that_was_sealed_before_a_key_was_exchanged_is_refused(self, make):
        # whoever writes the enrolled keys puts its own in place of east's, has the secret sealed,
        # opens it, and seals it for east again: the maker's signature over it stands
        site = make()
        mole = Identity.new("east")
        changed = [mole.public if each.name == "east" else each for each in site.agreement.enrolled]
        before = site.agreement.model_copy(update={"enrolled": tuple(changed)})
        for name in ("east", "north"):
            path = site.folder(name) / f"{name}.secret"
            draft = site.secret_draft(sender="north")
            write_bundle(
                path,
                draft={**draft, "agreement": before.digest().hex()},
                parts={"secret.bin": site.key},
                sign=site.identities["north"].sign,
                recipients=[mole.public if name == "east" else site.identities[name].public],
            )
        plain, path = BytesIO(), site.folder("east") / "east.secret"
        mole.unseal(BytesIO(path.read_bytes()), plain)
        with path.open("wb") as file:
            encrypt(BytesIO(plain.getvalue()), file, recipients=[site.identities["east"].recipient])
        for name in ("east", "north"):
            with pytest.raises(ForeignBundleError, match="its agreement is"):
                join(site.session(name), site.folder(name) / f"{name}.secret")
            assert not site.session(name).round.joined

    def test_a_round_that_is_forgotten_leaves_the_basis_and_no_secret(self, uploaded):
        site, _ = uploaded
        session = site.session("north")
        when = forget(session)
        assert not session.work.exists()
        session = site.session("north")
        assert not session.round.joined
        assert len(session.vault.datasets()) == 1
        told = verify_transcript(session.transcript.path).entries[-1]
        assert (told.event, told.time) == ("forgotten", when)
        with pytest.raises(StepError, match="has forgotten the round"):
            take_secret(session)

    def test_joining_twice_is_the_same_as_once(self, site):
        join(site.session("north"), site.secret_file("north"))
        assert site.session("north").round.joined
