"""Secrets, common spans and receipts are taken from those who may send them, and kept."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest

from cobasis import ConsortiumSecret
from cobasis.bundle.enclosing import write_bundle
from cobasis.bundle.receipts import receipt_text
from cobasis.bundle.sealing import seal
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    CommitmentError,
    ForeignBundleError,
    MessageError,
    SignatureError,
    StepError,
)
from cobasis.keys.identity import Identity
from cobasis.party_side.preview import make_ready
from cobasis.party_side.receiving import adopt, receipt
from cobasis.party_side.secret import forget, join
from cobasis.party_side.send import prepare
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.receipts import Receipt, check_countersigned, sign_receipt
from party_side.sites import NAMES


class TestJoining:
    def test_another_secret_is_refused_and_not_kept(self, make):
        site = make()
        path = site.secret_file("north", key=bytes(32))
        with pytest.raises(CommitmentError, match="does not open the commitment"):
            join(site.desk("north"), path)
        assert not site.desk("north").round.joined

    def test_a_secret_of_another_length_is_refused(self, make):
        site = make()
        with pytest.raises(CommitmentError, match="31 bytes"):
            join(site.desk("north"), site.secret_file("north", key=bytes(31)))

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
            join(site.desk("north"), path)

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
                draft=replace(draft, agreement=before.digest().hex()),
                parts={"secret.bin": site.key},
                sign=site.identities["north"].sign,
                recipients=[mole.public if name == "east" else site.identities[name].public],
            )
        plain, path = BytesIO(), site.folder("east") / "east.secret"
        mole.unseal(BytesIO(path.read_bytes()), plain)
        with path.open("wb") as file:
            seal(BytesIO(plain.getvalue()), file, recipients=[site.identities["east"].recipient])
        for name in ("east", "north"):
            with pytest.raises(ForeignBundleError, match="its agreement is"):
                join(site.desk(name), site.folder(name) / f"{name}.secret")
            assert not site.desk(name).round.joined

    def test_a_round_that_is_forgotten_leaves_the_basis_and_no_secret(self, uploaded):
        site, _ = uploaded
        desk = site.desk("north")
        when = forget(desk)
        assert not desk.work.exists()
        desk = site.desk("north")
        assert not desk.round.joined
        assert len(desk.vault.datasets()) == 1
        told = verify_transcript(desk.transcript.path).entries[-1]
        assert (told.event, told.time) == ("forgotten", when)
        with pytest.raises(StepError, match="has forgotten the round"):
            make_ready(desk, site.table("north"))

    def test_joining_twice_is_the_same_as_once(self, site):
        join(site.desk("north"), site.secret_file("north"))
        assert site.desk("north").round.joined


class TestAdopting:
    def span(self, site, **changes):
        rows = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 3)))[0]
        fields = {
            "agreement_digest": site.agreement.digest(),
            "anchor_tag": site.secret.anchor_tag(site.agreement),
            "rows": rows,
            "contributors": NAMES,
            "simulated": False,
        }
        return ConsensusSpan(**{**fields, **changes})

    def joined(self, make):
        site = make(basis="consensus")
        join(site.desk("north"), site.secret_file("north"))
        return site

    def test_a_span_of_another_anchor_is_refused(self, make):
        site = self.joined(make)
        other = ConsortiumSecret().anchor_tag(site.agreement)
        with pytest.raises(MessageError, match="another anchor"):
            adopt(
                site.desk("north"), site.consensus_file("north", self.span(site, anchor_tag=other))
            )
        assert site.desk("north").round.consensus() is None

    def test_after_the_upload_another_span_is_refused(self, make):
        site = self.joined(make)
        anchor = site.secret.anchor(site.agreement)
        one, two = (
            np.linalg.qr(anchor.apply(np.eye(8)[:, cut]))[0] for cut in ([0, 1, 2], [3, 4, 5])
        )
        desk = site.desk("north")
        adopt(desk, site.consensus_file("north", self.span(site, rows=one)))
        adopt(desk, site.consensus_file("north", self.span(site, rows=two)))
        prepare(make_ready(desk, site.table("north")), site.folder("north") / "x.upload")
        with pytest.raises(StepError, match="one span only"):
            adopt(desk, site.consensus_file("north", self.span(site, rows=one)))
        adopt(desk, site.consensus_file("north", self.span(site, rows=two)))


class TestReceipts:
    def file(self, site, sign=None, **changes):
        desk = site.desk("north")
        fields = {
            "round_id": site.agreement.round_id,
            "agreement": site.agreement.digest().hex(),
            "party": "north",
            "analyst": "lab",
            "upload": desk.vault.upload_of(site.agreement).entry.upload,
            "time": "2026-11-21T15:30:00Z",
            "transcript": "0" * 64,
        }
        signed = sign_receipt(Receipt(**{**fields, **changes}), sign or site.lab.sign)
        path = site.folder("north") / "north.receipt"
        path.write_bytes(receipt_text(signed))
        return path

    def test_a_receipt_is_countersigned_into_the_transcript(self, uploaded):
        site, _ = uploaded
        desk = site.desk("north")
        signed = receipt(desk, self.file(site))
        check_countersigned(signed, party=site.identities["north"].public)
        told = verify_transcript(desk.transcript.path).entries[-1].told
        assert told["countersignature"] == signed.countersignature

    def test_a_receipt_for_another_upload_is_refused(self, uploaded):
        site, _ = uploaded
        with pytest.raises(ForeignBundleError, match="another upload"):
            receipt(site.desk("north"), self.file(site, upload="1" * 64))

    def test_a_forged_receipt_is_refused(self, uploaded):
        site, _ = uploaded
        with pytest.raises(SignatureError):
            receipt(site.desk("north"), self.file(site, sign=Identity.new("lab").sign))
