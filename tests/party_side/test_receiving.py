"""What comes back is refused unless it is the analyst's, for this party and round, and sound."""

from datetime import UTC, datetime, timedelta

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
from cobasis.party_side.predict import export_onnx, predict, score, usable
from cobasis.party_side.send import send
from cobasis.party_side.session import join
from cobasis.protocol.messages import ConsensusSpan, Return
from cobasis.protocol.signatures import News, Receipt, check_countersigned, sign_receipt
from party_side.sites import NAMES, agreed, frame, ready_from

FORGER = Identity.new("lab").sign
BENT = np.zeros((3, 3))
BENT[0, 0] = 1e-6


def changed(returned: Return, **fields) -> Return:
    return Return(**{**vars(returned), **fields})


def fit(made, change):
    before = made["north"].change_of_basis
    return changed(made["north"], change_of_basis=change(before))


def for_another(site, made):
    """A return of south's, sealed for north."""
    enclosed, to = site.enclosed(made["south"]), site.folder("north") / "x.return"
    return site.sealed(enclosed, to, name="north")


def cut(site, made):
    path = site.return_file(made["north"])
    path.write_bytes(path.read_bytes()[:-1])
    return path


def later(site, made):
    created = datetime.now(UTC) + timedelta(hours=49)
    return site.return_file(made["north"], created=created)


REFUSED = {
    "another party's": (
        lambda site, made: site.return_file(made["south"]),
        *(SealError, "not sealed for this key"),
    ),
    "our own upload": (
        lambda site, _: site.folder("north") / "north.upload",
        *(SealError, "not sealed for this key"),
    ),
    "another party's, sealed for us": (for_another, ForeignBundleError, "return of 'south'"),
    "signed by somebody else": (
        lambda site, made: site.return_file(made["north"], sign=FORGER),
        *(SignatureError, "over another channel"),
    ),
    "of the future": (later, ClockError, "48 hours"),
    "a fit that is no rotation": (
        lambda site, made: site.return_file(fit(made, lambda before: before + BENT)),
        *(FitCheckError, "no rotation"),
    ),
    "a fit of another shape": (
        lambda site, made: site.return_file(fit(made, lambda _: np.eye(4))),
        *(MessageError, "4 components"),
    ),
    "for an upload that is not ours": (
        lambda site, made: site.return_file(made["north"], upload="1" * 64),
        *(ForeignBundleError, "none that its vault has made"),
    ),
    "for no upload": (
        lambda site, made: site.return_file(made["north"], upload="none"),
        *(ForeignBundleError, "none that its vault has made"),
    ),
    "truncated": (cut, SealError, "damaged"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_the_analysts_for_this_party_is_refused_and_not_kept(returns, what):
    (make_file, error, words), (site, made) = REFUSED[what], returns
    path = make_file(site, made)
    with pytest.raises(error, match=words):
        accept(site.session("north"), path)
    session = site.session("north")
    assert session.round.accepted() is None
    assert not (session.work / "opened").exists()
    assert verify_transcript(session.transcript.path).entries[-1].event == "prepared"


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


def test_without_an_upload_nothing_is_accepted(site):
    with pytest.raises(StepError, match="has made no upload"):
        accept(site.session("north"), site.secret_file("north"))


def test_an_old_return_does_not_take_the_place_of_a_newer_one(returns):
    site, made = returns
    session, now, folder = site.session("north"), datetime.now(UTC), site.folder("north")
    before = now - timedelta(minutes=9)
    old = site.return_file(made["north"], to=folder / "old.return", created=before)
    newer = changed(made["north"], trained_on=("north", "east"))
    new = site.return_file(newer, to=folder / "new.return", created=now)
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


def test_a_model_that_is_worse_than_the_partys_own_is_pointed_out(returns):
    site, made = returns
    session = site.session("north")
    accept(session, site.return_file(fit(made, np.negative)))
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


def test_notes_that_somebody_else_wrote_are_refused(uploaded):
    site, _ = uploaded
    session = site.session("north")
    (session.work / "notes.age").write_bytes(site.identities["south"].seal_for_self(b"{}"))
    with pytest.raises(VaultError, match="CB704"):
        send(ready_from(session, site.table("north")), site.folder("north") / "x.upload")


def span(site, columns=(0, 1, 2), **changes):
    rows = site.secret.anchor(site.agreement).apply(np.eye(8)[:, columns])
    fields = {
        "agreement_digest": site.agreement.digest(),
        "anchor_tag": site.secret.anchor_tag(site.agreement),
        "rows": np.linalg.qr(rows)[0],
        "contributors": NAMES,
        "simulated": False,
    }
    return ConsensusSpan(**{**fields, **changes})


def test_a_span_is_of_this_anchor_and_after_the_upload_no_other_takes_its_place(make):
    site = make(basis="consensus")
    session = site.session("north")
    join(session, site.secret_file("north"))
    foreign = span(site, anchor_tag=ConsortiumSecret().anchor_tag(site.agreement))
    with pytest.raises(MessageError, match="another anchor"):
        adopt(session, site.consensus_file("north", foreign))
    assert session.round.consensus() is None
    for columns in ([0, 1, 2], [3, 4, 5]):
        adopt(session, site.consensus_file("north", span(site, columns)))
    send(ready_from(session, site.table("north")), site.folder("north") / "x.upload")
    with pytest.raises(StepError, match="one span only"):
        adopt(session, site.consensus_file("north", span(site)))
    adopt(session, site.consensus_file("north", span(site, [3, 4, 5])))


def news_of(site, *, sign=None, receipts=(), **changes):
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


def receipt_of(site, *, sign=None, **changes):
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


def test_a_receipt_in_news_is_countersigned_into_the_transcript_once(uploaded):
    site, _ = uploaded
    session = site.session("north")
    path = news_of(site, receipts=[receipt_of(site)])
    news, [signed] = accept_news(session, path)
    check_countersigned(signed, party=site.identities["north"].public)
    assert accept_news(session, path)[1] == ()
    [line] = session.history("receipt")
    assert line.told["countersignature"] == signed.countersignature
    assert newest_news(session) == news
    with pytest.raises(ReplayError, match="newer ones are kept"):
        accept_news(session, news_of(site, time="2026-11-20T15:30:00Z"))
    assert newest_news(session) == news


FORGED = {
    "news": (lambda site: news_of(site, sign=FORGER), SignatureError, "not signed by the analyst"),
    "a receipt": (
        lambda site: news_of(site, receipts=[receipt_of(site, sign=FORGER)]),
        *(SignatureError, "CB802"),
    ),
    "a receipt for another file": (
        lambda site: news_of(site, receipts=[receipt_of(site, file="1" * 64)]),
        *(ForeignBundleError, "another file"),
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_news_and_receipts_are_refused_and_not_kept(uploaded, what):
    (make_file, error, words), (site, _) = FORGED[what], uploaded
    with pytest.raises(error, match=words):
        accept_news(site.session("north"), make_file(site))
    assert newest_news(site.session("north")) is None


def test_a_file_is_known_by_what_is_in_it_and_anybody_elses_says_whose_it_is(returns):
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    path = site.return_file(made["north"], to=folder / "anything.bin")
    assert look_at(session, path).kind == "return"
    assert look_at(session, news_of(site)).kind == "news"
    theirs = site.return_file(made["south"], to=folder / "icu.south.1-return")
    for other, words in (
        (folder / "north.upload", "the upload that party 'north' made for exchange 1"),
        (theirs, "by its name it is for 'south'"),
        (site.agreement_path, "It is an agreement"),
        (site.secret_file("north"), "is a secret from 'north'"),
        (site.consensus_file("north", span(site)), "those are return"),
    ):
        with pytest.raises(ForeignBundleError, match=words):
            look_at(session, other)
    agreed(site.root, purpose="another purpose")
    with pytest.raises(ForeignBundleError, match="under another text of its agreement"):
        look_at(site.session("north"), path)
    agreed(site.root, round_id="icu-2027")
    with pytest.raises(ForeignBundleError, match="is a return of round 'icu-2026'"):
        look_at(site.session("north"), path)
