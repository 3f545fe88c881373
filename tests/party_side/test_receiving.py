"""What comes back is kept if it is the newest and goes with what was sent; others' is refused."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from cobasis import ConsortiumSecret
from cobasis.bundle.agreement_file import news_at
from cobasis.errors import (
    ClockError,
    ForeignBundleError,
    MessageError,
    ReplayError,
    SealError,
    SignatureError,
    StepError,
)
from cobasis.keys.identity import Identity
from cobasis.party_side.accept import accept, accept_news, adopt, look_at
from cobasis.party_side.predict import usable
from cobasis.party_side.worth import score
from cobasis.protocol.messages import ConsensusSpan
from cobasis.protocol.news import News
from cobasis.protocol.signatures import Receipt, sign_receipt
from party_side.sites import NAMES, ROUND, agreed, frame


def test_a_regression_is_scored_by_r2(make):
    site = make(task="regression", classes=(), label="later", models=())
    for at, name in enumerate(NAMES, start=1):
        frame(at).with_columns(later=2 * pl.col("pulse") + 1).write_csv(site.table(name))
        site.joined(name)
    paths = {name: site.send(name).path for name in NAMES}
    made, session = site.analyst_of(paths).run(), site.session("north")
    accept(session, site.return_file(made["north"]))
    scores = score(session)
    assert set(scores.together) == {"R2", "MAE"}
    alone, constant = (each["R2"].value for each in (scores.alone, scores.constant))
    assert (alone > 0.99, constant < 0.1) == (True, True)
    assert alone >= scores.together["R2"].value


def test_people_who_were_held_back_are_scored_though_others_have_the_same_values(site):
    alike = pl.col("age", "pulse", "lactate", "weight").sign()
    for at, name in enumerate(NAMES, start=1):
        frame(at).with_columns(alike).write_csv(site.table(name))
    ready, paths = site.ready(), {name: site.send(name).path for name in NAMES}
    made, session = site.analyst_of(paths).run(), site.session("north")
    assert accept(session, site.return_file(made["north"])).trained_on == NAMES
    assert score(session).n_rows == ready.rows.n_held > 10


def test_a_model_goes_with_the_basis_of_the_upload_that_it_was_made_for(returns):
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    first, sent = session.vault.upload_of(site.agreement)
    frame(77).write_csv(folder / "other.csv")
    site.send(table=folder / "other.csv", to=folder / "not-sent.upload")
    last, _ = session.vault.upload_of(site.agreement)
    assert last.name != first.name
    with pytest.raises(ForeignBundleError, match="none that its vault has made"):
        accept(site.session("south"), site.return_file(made["south"], upload="0" * 64))
    returned = site.return_file(made["north"], upload=sent.upload)
    with pytest.raises(ForeignBundleError, match="of kind 'return', and kind 'consensus'"):
        adopt(session, returned)
    accept(session, returned)
    used, rows = usable(session).dataset, np.eye(8)
    assert np.array_equal(used.basis.project(rows), first.basis.project(rows))


def test_an_old_return_does_not_take_the_place_of_a_newer_one(returns):
    site, made = returns
    session, now, folder = site.session("north"), datetime.now(UTC), site.folder("north")
    before = now - timedelta(minutes=9)
    old = site.return_file(made["north"], to=folder / "old.return", created=before)
    newer = replace(made["north"], trained_on=("north", "east"))
    new = site.return_file(newer, to=folder / "new.return", created=now)
    accept(session, old)
    accept(session, new)
    with pytest.raises(ReplayError, match="sends an old one again"):
        accept(session, old)
    assert accept(session, new).trained_on == ("north", "east")
    assert session.round.accepted().trained_on == ("north", "east")


def test_a_model_that_is_worse_than_the_partys_own_is_pointed_out(returns):
    site, made = returns
    session = site.session("north")
    turned = replace(made["north"], change_of_basis=-made["north"].change_of_basis)
    accept(session, site.return_file(turned))
    scores = score(session)
    assert scores.together["accuracy"].value < 0.5 < scores.alone["accuracy"].value
    assert (scores.verdict, "worse here" in scores.remarks[0]) == ("worse", True)


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
    session = site.joined()
    foreign = span(site, anchor_tag=ConsortiumSecret().anchor_tag(site.agreement))
    with pytest.raises(MessageError, match="another anchor"):
        adopt(session, site.consensus_file("north", foreign))
    assert session.round.consensus() is None
    for columns in ([0, 1, 2], [3, 4, 5]):
        adopt(session, site.consensus_file("north", span(site, columns)))
    site.send()
    with pytest.raises(StepError, match="one span only"):
        adopt(session, site.consensus_file("north", span(site)))
    adopt(session, site.consensus_file("north", span(site, [3, 4, 5])))


def news_of(site, *, sent=(), time="2026-11-21T15:30:00Z", sign=None, vouch=None):
    """With a receipt for each file that north sent."""
    told = {"round_id": ROUND, "agreement": site.agreement.digest().hex(), "analyst": "lab"}
    told |= {"time": time}
    mine = {"party": "north", "exchange": 1, "transcript": "0" * 64}
    vouch = vouch or site.lab.sign
    receipts = (sign_receipt(Receipt(**told, **mine, file=x), vouch) for x in sent)
    path, agreed_by = site.root / "icu.news", (*NAMES, "lab")
    news = News(**told, agreed=agreed_by, receipts=tuple(receipts))
    path.write_bytes(news.text(sign or site.lab.sign))
    return path


def test_forged_news_and_receipts_are_refused_and_not_kept(uploaded):
    site, _ = uploaded
    session, forger = site.session("north"), Identity.new("lab").sign
    sent = session.digests_sent(session.exchanges[0])
    for told, error, words in (
        ({"sent": sent, "sign": forger}, SignatureError, "not signed by the analyst"),
        ({"sent": sent, "vouch": forger}, SignatureError, "is not signed by analyst 'lab'"),
        ({"sent": ("1" * 64,)}, ForeignBundleError, "is for another file"),
        ({"time": "2999-01-01T00:00:00Z"}, ClockError, "more than 48 hours after"),
    ):
        with pytest.raises(error, match=words):
            accept_news(session, news_of(site, **told))
    assert news_at(session.news, session.agreement) is None
    assert session.history("receipt") == ()


def test_a_receipt_in_news_is_noted_in_the_transcript_once(uploaded):
    site, _ = uploaded
    session = site.session("north")
    path = news_of(site, sent=session.digests_sent(session.exchanges[0]))
    news, [signed] = accept_news(session, path)
    assert accept_news(session, path)[1] == ()
    [line] = session.history("receipt")
    assert line.told == {**signed.receipt.model_dump(), "signature": signed.signature}
    assert news_at(session.news, session.agreement) == news
    with pytest.raises(ReplayError, match="newer ones are kept"):
        accept_news(session, news_of(site, time="2026-11-20T15:30:00Z"))
    assert news_at(session.news, session.agreement) == news


def test_a_file_is_known_by_what_is_in_it_and_others_are_refused(returns):
    site, made = returns
    session, folder = site.session("north"), site.folder("north")
    path = site.return_file(made["north"], to=folder / "anything.bin")
    assert look_at(session, path) == "return"
    assert look_at(session, news_of(site)) == "news"
    with pytest.raises(SealError, match="sealed for another key"):
        look_at(session, folder / "north.upload")
    for other, words in (
        (site.agreement_path, "is an agreement"),
        (site.secret_file("north"), "is a secret from 'north'"),
        (site.consensus_file("north", span(site)), "those are news, return"),
    ):
        with pytest.raises(ForeignBundleError, match=words):
            look_at(session, other)
    agreed(site.root, round_id="icu-2027")
    with pytest.raises(ForeignBundleError, match="is of round 'icu-2026', not of"):
        look_at(site.session("north"), path)
