"""What comes back is refused unless it is the analyst's, for this party and round, and sound."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from cobasis import ConsortiumSecret
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    ClockError,
    CobasisError,
    FitCheckError,
    ForeignBundleError,
    MessageError,
    ReplayError,
    SealError,
    SignatureError,
    StepError,
    VaultError,
)
from cobasis.keys.identity import Identity
from cobasis.party_side.accept import accept, accept_news, adopt, look_at, newest_news
from cobasis.party_side.predict import export_onnx, predict, usable
from cobasis.party_side.score import score
from cobasis.party_side.send import send
from cobasis.party_side.session import join
from cobasis.protocol.messages import ConsensusSpan, Return
from cobasis.protocol.signatures import News, Receipt, check_countersigned, sign_receipt
from party_side.sites import NAMES, Consortium, agreed, frame, ready_from


@pytest.fixture
def returns(uploaded):
    site, paths = uploaded
    return site, site.as_files(site.analyst_of(paths).run())


def changed(returned: Return, **fields) -> Return:
    return Return(**{**vars(returned), **fields})


def refused(site: Consortium, path: Path, error: type[CobasisError], match: str) -> None:
    """Nothing is kept, and nothing lies open, after a refusal."""
    with pytest.raises(error, match=match):
        accept(site.session("north"), path)
    session = site.session("north")
    assert session.round.accepted() is None
    assert not (session.work / "opened").exists()
    assert verify_transcript(session.transcript.path).entries[-1].event == "prepared"


def test_another_partys_return_is_not_opened(returns):
    site, made = returns
    refused(site, site.return_file(made["south"]), SealError, "not sealed for this key")


def test_a_return_for_another_that_was_sealed_for_us_is_foreign(returns):
    site, made = returns
    path = site.sealed(
        site.enclosed(made["south"]), site.folder("north") / "x.return", name="north"
    )
    refused(site, path, ForeignBundleError, "return of 'south'")


def test_a_return_that_somebody_else_signed_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"], sign=Identity.new("lab").sign)
    refused(site, path, SignatureError, "over another channel")


def test_a_return_from_the_future_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"], created=datetime.now(UTC) + timedelta(hours=49))
    refused(site, path, ClockError, "48 hours")


def test_a_fit_that_is_no_rotation_is_refused(returns):
    site, made = returns
    bent = made["north"].change_of_basis.copy()
    bent[0, 0] += 1e-6
    path = site.return_file(changed(made["north"], change_of_basis=bent))
    refused(site, path, FitCheckError, "no rotation")


def test_a_return_for_an_upload_that_is_not_ours_is_refused(returns):
    site, made = returns
    for upload in ("1" * 64, "none"):
        path = site.return_file(made["north"], upload=upload)
        refused(site, path, ForeignBundleError, "none that its vault has made")


def test_a_model_goes_with_the_basis_of_the_upload_that_it_was_made_for(returns):
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    sent = session.vault.upload_of(site.agreement)
    frame(77).write_csv(folder / "other.csv")
    send(ready_from(session, folder / "other.csv"), folder / "not-sent.upload")
    last = session.vault.upload_of(site.agreement)
    assert last.dataset.name != sent.dataset.name
    accept(session, site.return_file(made["north"], upload=sent.entry.upload))
    used, rows = usable(session).dataset, np.eye(8)
    assert np.array_equal(used.basis.project(rows), sent.dataset.basis.project(rows))


def test_a_fit_of_another_shape_is_refused(returns):
    site, made = returns
    path = site.return_file(changed(made["north"], change_of_basis=np.eye(4)))
    refused(site, path, MessageError, "4 components")


def test_an_upload_is_no_return(returns):
    site, _ = returns
    refused(site, site.folder("north") / "north.upload", SealError, "not sealed for this key")


def test_a_truncated_return_is_refused(returns):
    site, made = returns
    path = site.return_file(made["north"])
    path.write_bytes(path.read_bytes()[:-1])
    refused(site, path, SealError, "damaged")


def test_without_an_upload_nothing_is_accepted(site):
    with pytest.raises(StepError, match="has made no upload"):
        accept(site.session("north"), site.secret_file("north"))


def test_an_old_return_does_not_take_the_place_of_a_newer_one(returns):
    site, made = returns
    session, now = site.session("north"), datetime.now(UTC)
    folder = site.folder("north")
    old = site.return_file(
        made["north"], to=folder / "old.return", created=now - timedelta(minutes=9)
    )
    new = site.return_file(
        changed(made["north"], trained_on=("north", "east")), to=folder / "new.return", created=now
    )
    accept(session, old)
    accept(session, new)
    with pytest.raises(ReplayError, match="sends an old one again"):
        accept(session, old)
    assert accept(session, new).trained_on == ("north", "east")
    assert session.round.accepted().trained_on == ("north", "east")


def test_without_the_table_a_return_is_accepted_and_not_scored(returns):
    site, made = returns
    session, table = site.session("north"), site.table("north")
    accept(session, site.return_file(made["north"]))
    elsewhere = table.rename(site.folder("north") / "moved.csv")
    scores = score(session)
    assert (scores.together, scores.n_rows) == (None, 0)
    assert "give it: cobasis score TABLE" in scores.remarks[0]
    assert score(session, table=elsewhere).together > 0.5


def test_without_a_holdout_there_is_nothing_to_score_on(make):
    site = make(holdout=0.0)
    paths = {}
    for name in NAMES:
        join(site.session(name), site.secret_file(name))
        paths[name] = site.folder(name) / "x.upload"
        send(ready_from(site.session(name), site.table(name)), paths[name])
    made = site.as_files(site.analyst_of(paths).run())
    accept(site.session("north"), site.return_file(made["north"]))
    assert "holds no rows back" in score(site.session("north")).remarks[0]


def test_a_model_that_is_worse_than_the_partys_own_is_pointed_out(returns):
    site, made = returns
    turned = changed(made["north"], change_of_basis=-made["north"].change_of_basis)
    session = site.session("north")
    accept(session, site.return_file(turned))
    scores = score(session)
    assert scores.together < 0.5 < scores.local
    assert "worse here than the party's own" in scores.remarks[0]


def test_before_a_return_there_is_nothing_to_predict_with(uploaded):
    site, _ = uploaded
    for work in (
        lambda: predict(site.session("north"), site.table("north"), to=site.root / "out.csv"),
        lambda: export_onnx(site.session("north"), site.root / "out.onnx"),
    ):
        with pytest.raises(StepError, match="cobasis accept"):
            work()
    assert [each.name for each in site.root.glob("out.*")] == []


def test_a_table_that_fails_half_way_leaves_no_predictions(returns):
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    accept(session, site.return_file(made["north"]))
    text = site.table("north").read_text(encoding="utf-8")
    (folder / "bad.csv").write_text(text + "0000999,inf,1,2,3,icu,0\n", encoding="utf-8")
    with pytest.raises(CobasisError, match="CB101"):
        predict(session, folder / "bad.csv", to=folder / "out.csv")
    assert [each.name for each in folder.glob("out.csv*")] == []


def test_notes_that_somebody_else_wrote_are_refused(returns):
    site, made = returns
    session = site.session("north")
    (session.work / "notes.age").write_bytes(site.identities["south"].seal_for_self(b"{}"))
    with pytest.raises(VaultError, match="CB704"):
        accept(session, site.return_file(made["north"]))


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
        join(site.session("north"), site.secret_file("north"))
        return site

    def test_a_span_of_another_anchor_is_refused(self, make):
        site = self.joined(make)
        other = ConsortiumSecret().anchor_tag(site.agreement)
        with pytest.raises(MessageError, match="another anchor"):
            adopt(
                site.session("north"),
                site.consensus_file("north", self.span(site, anchor_tag=other)),
            )
        assert site.session("north").round.consensus() is None

    def test_after_the_upload_another_span_is_refused(self, make):
        site = self.joined(make)
        anchor = site.secret.anchor(site.agreement)
        one, two = (
            np.linalg.qr(anchor.apply(np.eye(8)[:, cut]))[0] for cut in ([0, 1, 2], [3, 4, 5])
        )
        session = site.session("north")
        adopt(session, site.consensus_file("north", self.span(site, rows=one)))
        adopt(session, site.consensus_file("north", self.span(site, rows=two)))
        send(ready_from(session, site.table("north")), site.folder("north") / "x.upload")
        with pytest.raises(StepError, match="one span only"):
            adopt(session, site.consensus_file("north", self.span(site, rows=one)))
        adopt(session, site.consensus_file("north", self.span(site, rows=two)))


class TestNews:
    def news(self, site, *, sign=None, receipts=(), **changes):
        fields = {
            "round_id": site.agreement.round_id,
            "agreement": site.agreement.digest().hex(),
            "analyst": "lab",
            "time": "2026-11-21T15:30:00Z",
            "agreed": (*NAMES, "lab"),
            "receipts": tuple(receipts),
        }
        path = site.root / "icu.news"
        path.write_bytes(News(**{**fields, **changes}).text(sign or site.lab.sign))
        return path

    def receipt(self, site, *, sign=None, **changes):
        sent = site.session("north").history("prepared")[-1]
        fields = {
            "round_id": site.agreement.round_id,
            "agreement": site.agreement.digest().hex(),
            "party": "north",
            "analyst": "lab",
            "exchange": 1,
            "file": sent.told["upload"],
            "time": "2026-11-21T15:30:00Z",
            "transcript": "0" * 64,
        }
        return sign_receipt(Receipt(**{**fields, **changes}), sign or site.lab.sign)

    def test_a_receipt_in_news_is_countersigned_into_the_transcript_once(self, uploaded):
        site, _ = uploaded
        session = site.session("north")
        path = self.news(site, receipts=[self.receipt(site)])
        news, [signed] = accept_news(session, path)
        check_countersigned(signed, party=site.identities["north"].public)
        assert accept_news(session, path)[1] == ()
        [line] = session.history("receipt")
        assert line.told["countersignature"] == signed.countersignature
        assert newest_news(session) == news

    def test_older_news_do_not_take_the_place_of_newer_ones(self, uploaded):
        site, _ = uploaded
        session = site.session("north")
        accept_news(session, self.news(site))
        with pytest.raises(ReplayError, match="newer ones are kept"):
            accept_news(session, self.news(site, time="2026-11-20T15:30:00Z"))
        assert newest_news(session).time == "2026-11-21T15:30:00Z"

    def test_a_receipt_for_another_file_is_refused_and_its_news_are_not_kept(self, uploaded):
        site, _ = uploaded
        path = self.news(site, receipts=[self.receipt(site, file="1" * 64)])
        with pytest.raises(ForeignBundleError, match="another file"):
            accept_news(site.session("north"), path)
        assert newest_news(site.session("north")) is None

    def test_forged_news_and_receipts_are_refused(self, uploaded):
        site, _ = uploaded
        forger = Identity.new("lab").sign
        for path in (
            self.news(site, sign=forger),
            self.news(site, receipts=[self.receipt(site, sign=forger)]),
        ):
            with pytest.raises(SignatureError):
                accept_news(site.session("north"), path)


class TestWhatCame:
    def test_a_file_is_known_by_what_is_in_it(self, returns):
        site, made = returns
        session, folder = site.session("north"), site.folder("north")
        path = site.return_file(made["north"], to=folder / "anything.bin")
        assert look_at(session, path).kind == "return"
        assert look_at(session, TestNews().news(site)).kind == "news"

    def test_a_file_of_anybody_else_says_whose_it_is(self, returns):
        site, made = returns
        session, folder = site.session("north"), site.folder("north")
        own = folder / "north.upload"
        theirs = site.return_file(made["south"], to=folder / "icu.south.1-return")
        for path, words in (
            (own, "the upload that party 'north' made for exchange 1"),
            (theirs, "by its name it is for 'south'"),
            (site.agreement_path, "It is an agreement"),
            (site.secret_file("north"), "is a secret from 'north'"),
        ):
            with pytest.raises(ForeignBundleError, match=words):
                look_at(session, path)

    def test_a_file_of_another_round_says_which(self, returns):
        site, made = returns
        path = site.return_file(made["north"])
        agreed(site.root, purpose="another purpose")
        with pytest.raises(ForeignBundleError, match="under another text of its agreement"):
            look_at(site.session("north"), path)
        agreed(site.root, round_id="icu-2027")
        with pytest.raises(ForeignBundleError, match="is a return of round 'icu-2026'"):
            look_at(site.session("north"), path)

    def test_a_span_is_no_answer_where_bases_are_the_parties_own(self, returns):
        site, _ = returns
        path = site.consensus_file("north", TestAdopting().span(site))
        with pytest.raises(ForeignBundleError, match="those are return"):
            look_at(site.session("north"), path)
