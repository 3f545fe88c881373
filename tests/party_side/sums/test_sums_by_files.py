"""Sums by files: nobody's are read, none is made twice, and no two totals show a person."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from bundle.payloads import sealed
from cobasis import DPTerms, NumericFeature
from cobasis.analyst_side.membership import remove
from cobasis.bundle import envelope, transcript
from cobasis.bundle.messages import enclose
from cobasis.errors import (
    AgreementError,
    ClockError,
    DifferenceError,
    MessageError,
    SignatureError,
    StepError,
    WaitingError,
)
from cobasis.linalg.arrays import gathered
from cobasis.party_side.predict import predict, usable
from cobasis.party_side.send import require_turn
from cobasis.protocol.agreement import moment_text
from cobasis.protocol.masks import MaskKey
from cobasis.protocol.signatures import check_signature, sign_agreement
from cobasis.protocol.sums_terms import noise_of
from party_side.sites import FEATURES, PEOPLE
from party_side.summing import NAMES, PAST, TERMS


def test_four_parties_get_the_model_of_everybodys_sums_and_nothing_else_is_read(site):
    made = site.step()
    rows = [site.ready(name).rows for name in NAMES]
    assert made.sums.total.n_rows == sum(each.n_sent for each in rows)
    assert len({site.session(name).round.accepted().model for name in NAMES}) == 1
    model, right = usable(site.session("east")).model, 0
    for each in rows:
        right += np.sum(model.predict(gathered(each.sent)) == each.sent.labels())
    assert right > 0.6 * made.sums.total.n_rows
    told = site.desk().history.taken()
    assert {each.n_rows for each in told.values()} == {0}  # how many a party has is masked as well
    for new in (False, True):  # the key for masks goes with the return, and no second is made
        with pytest.raises(StepError, match="no key for masks"):
            site.session("north").round.mask_key(new=new)
    site.accept("north")  # the same, once more
    with pytest.raises(StepError, match=r"cannot be taken out of a total.* on a new round\. \["):
        remove(site.desk(), ["north"])


def test_predictions_have_scores_that_are_called_none_but_scores(site, monkeypatch):
    site.step()
    to = site.root / "out.csv"
    predict(site.session("north"), site.table("north"), to=to, why=True)
    found = pl.read_csv(to)
    names = ["explained", "base", *(f"why_{each}" for each in site.agreement.columns)]
    assert found.columns == ["patient", "prediction", "score_1", "model", *names]
    np.testing.assert_allclose(found[names[1:]].sum_horizontal(), found["score_1"], atol=1e-8)
    assert found["explained"].unique().to_list() == ["score of class 1"]
    assert found["model"].unique().to_list() == ["common"]
    # and every block of a large table is predicted as alone
    rows = pl.concat([pl.read_csv(site.table("north"), infer_schema=False)] * 6)
    path, found = site.root / "large.csv", []
    rows.write_csv(path)
    for cells in (2**20, 1):  # one block, and some of 256 rows, which share a buffer
        monkeypatch.setattr("cobasis.tables.table.BLOCK_CELLS", cells)
        predict(site.session("north"), path, to=to)
        found.append(pl.read_csv(to))
    assert len(found[0]) > 512
    assert found[0].equals(found[1])


CHANGED = {
    "rows less": lambda frame: frame.head(100),
    "a corrected cell": lambda frame: frame.with_columns(pulse=pl.col("pulse").fill_null(0) + 1),
    "another label": lambda frame: frame.with_columns(died=1 - pl.col("died")),
    "the tenth digit of a cell": lambda frame: frame.with_columns(age=pl.col("age") + 1e-9),
}


def test_no_second_file_of_other_rows_leaves(site):
    first = site.send("north")
    words = site.words("north").words
    (site.session("north").work / "1-sums.sent").unlink()  # as if it had been lost
    for change in CHANGED.values():
        with pytest.raises((DifferenceError, StepError), match=r"\[CB(706|305)\]"):
            site.send("north", change=change)
    assert np.array_equal(site.words("north").words, words)
    assert [each.upload for each in site.session("north").vault.history()] == [first.digest]


def test_a_later_round_of_the_same_rows_is_taken_and_of_few_others_refused(site, make):
    """The difference of two totals is the rows that came, whatever columns they are seen by."""
    site.send("north")
    rounds = {2027: FEATURES, 2028: FEATURES[1:], 2029: (NumericFeature(name="height"),)}
    for year, features in rounds.items():
        later = make(round_id=f"icu-{year}", features=features)
        with pytest.raises(DifferenceError, match="rows came, went or changed since"):
            later.send("north", change=lambda frame: frame.with_columns(height=1.5).head(100))
        later.send("north", change=lambda frame: frame.with_columns(height=1.5))
    history = later.session("north").vault.history()
    assert [each.round_id for each in history] == [f"icu-{year}" for year in (2026, *rounds)]


def test_without_a_party_sums_wait_and_no_attempt_begins_that_is_not_agreed(make):
    site = make(deadline=PAST)
    site.sent("north", "south", "east")
    with pytest.raises(StepError, match=r"least_rows=0 is agreed, and of fewer than 80 rows"):
        site.run(without=["west"])
    with pytest.raises(StepError, match=r"nobody can read them\. Agree on a new round\. \["):
        remove(site.desk(), ["west"])
    site.attempt()  # with its friends alone an analyst would read one party's sums
    with pytest.raises(StepError, match=r"again \(left out: west\), and the agreement"):
        site.send("north")


def test_an_attempt_without_a_party_begins_anew_under_other_masks(make):
    site = make(deadline=PAST, holdout=0.1, sums=TERMS.model_copy(update={"least_rows": 80}))
    present = NAMES[:3]
    with pytest.raises(StepError, match="2 would stay, and 3 parties must"):
        site.run(without=["west", "east"])
    site.sent(*present)
    first = site.words("north").words
    again = "waits for the sums of west.*begin sums again with the others.*--without west"
    with pytest.raises(WaitingError, match=again):
        site.run()
    with pytest.raises(StepError, match="before the total is made: cobasis run --without west"):
        remove(site.desk(), ["west"])
    site.send("west")  # late: with it the files of before would show what the attempt leaves out
    begun = site.run(without=["west"])
    assert begun.plan.attempt == 2
    assert begun.plan.missing == present
    assert not [*(site.root / "icu.round" / "received").iterdir()]
    with pytest.raises(StepError, match="Accept the news first"):
        require_turn(site.session("north"))
    refused = site.receive("north", "west")
    assert [each.code for each in refused.values()] == ["CB306", "CB306"]
    assert "send again with the newest news" in refused["north"].reason
    assert "cobasis run --with west" in refused["west"].reason
    for name in present:
        site.tell(name)
        site.send(name)
    assert not np.array_equal(site.words("north").words, first)
    assert {each.verdict for each in site.receive(*present).values()} == {"accepted"}
    made = site.run()
    assert made.concluded.card.trained_on == tuple(sorted(present))
    assert [len(site.accept(name).trained_on) for name in present] == [3] * 3
    site.tell("west")
    with pytest.raises(StepError, match=r"goes on without party 'west'.*run --with west"):
        site.send("west")
    with pytest.raises(StepError, match="sums were added up on"):
        site.run(again=["west"])


def stranger(site, name="north", **changes):
    """A file of a party's that says other things of its masks."""
    made = replace(site.words(name), **changes)
    enclosed = enclose(made, agreement=site.agreement, sender=name)
    sealed(site.file(name), enclosed, by=PEOPLE[name], to=site.lab)


def test_sums_under_other_masks_and_a_total_that_no_rows_have_end_nowhere(site):
    site.send("north")
    stranger(site, roster=bytes(32))
    [refused] = site.receive("north").values()
    assert (refused.verdict, refused.code) == ("refused", "CB306")
    assert not site.desk().history.files
    site.file("north").unlink()
    site.sent(*NAMES[:3])
    site.send("west")
    stranger(site, "west", words=site.words("west").words + np.eye(1, 28, dtype=np.uint64)[0])
    site.receive("west")
    with pytest.raises(MessageError, match="add up to what no rows have"):
        site.run()
    assert not site.desk().history.outcome
    assert not (site.root / "outbox").exists()


def test_a_signature_without_a_key_for_masks_or_with_anothers_is_none(site):
    agreement, told = site.agreement, {"name": "north", "sign": PEOPLE["north"].sign}
    with pytest.raises(AgreementError):
        sign_agreement(agreement, **told)
    made = sign_agreement(agreement, **told, mask_key=MaskKey().public)
    check_signature(agreement, made)
    for field, said, words in (
        ("mask_key", MaskKey().public, "signature not valid"),
        ("mask_key", "", "without a key for masks"),
        ("mask_key", "0" * 64, "for masks that hides"),  # of which all know what it gives
        ("name", "paris", r"none: not enrolled.*\. Ask over another channel"),
    ):
        with pytest.raises(SignatureError, match=words):
            check_signature(agreement, made.model_copy(update={field: said}))


def noisy(*, epsilon=4.0, lifetime=4.0, **changes):
    terms = {"epsilon": epsilon, "lifetime_epsilon": lifetime, "colluders": 1}
    dp = DPTerms(delta=1e-5, radius=1.0, most_rows=TERMS.most_rows, **terms)
    return {"dp": dp, **changes}


def test_noise_is_charged_before_it_leaves_and_the_same_file_costs_nothing_more(make):
    site = make(**noisy())
    report = site.looked()[1]
    assert report.verdict == "differentially-private"
    assert "eps=4, delta=1e-05, per record, features and labels" in report.verdict_words
    assert "against the analyst with the help of 1 of the parties at most" in report["D1"].words
    assert not [*report.to_sign, *report.blocking]
    site.sent()
    session = site.session("north")
    [entry] = session.vault.history()
    assert entry.charge.mu == pytest.approx(noise_of(site.agreement).mu)
    assert site.send("north").again
    assert len(session.vault.history()) == 1
    made = site.run()
    card = made.concluded.card
    assert (card.n_rows, made.concluded.sums.total.n_rows) == (0, 0)
    assert any("epsilon 4, delta 1e-05, features and labels" in each for each in card.limits)
    assert site.accept("north").trained_on == tuple(sorted(NAMES))
    told = site.ready("south", looking=True).preview.guarantee
    assert "releases so far 1, epsilon spent on these rows 4 of 4" in told


@pytest.mark.parametrize("lifetime", [5.9, 6.0])
def test_an_attempt_begins_only_where_the_promised_lifetime_is_enough_for_it(make, lifetime):
    """It deleted the files of all, and then nobody's vault let another leave: two spend 5.96."""
    site, present = make(deadline=PAST, **noisy(lifetime=lifetime)), NAMES[:3]
    site.sent(*present)
    if lifetime == 6:
        site.run(without=["west"])
        for name in present:
            site.tell(name)
        site.sent(*present)
        assert site.run().concluded.card.trained_on == tuple(sorted(present))
        return
    with pytest.raises(StepError, match=r"2 attempts spend more than lifetime_epsilon=5\.9"):
        site.run(without=["west"])
    site.attempt()
    with pytest.raises(StepError, match="a lifetime_epsilon that it does not exceed"):
        site.send("north")


def test_a_second_release_within_the_lifetime_hides_who_came(make):
    make(**noisy(lifetime=8.0)).send("north")
    later = make(**noisy(lifetime=8.0, round_id="icu-2027"))
    later.send("north", change=CHANGED["rows less"])  # the difference has the noise of both
    assert all(each.charge for each in later.session("north").vault.history())


def test_a_party_takes_no_attempt_before_the_deadline(make, monkeypatch):
    closes = datetime.now(UTC) + timedelta(days=1)
    later = closes + timedelta(hours=12)
    sums = TERMS.model_copy(update={"least_rows": 80})
    site = make(deadline=moment_text(closes), sums=sums)
    with monkeypatch.context() as clock:  # whatever time the analyst writes
        clock.setattr("cobasis.analyst_side.session.time_now", lambda: later)
        assert site.attempt()[0].time == moment_text(later)
    with pytest.raises(StepError, match="behind its deadline alone"):
        site.send("north")


@pytest.fixture
def clock(monkeypatch):
    def ahead(days):
        known = {"now": lambda tz: datetime.now(tz) + timedelta(days=days)}
        for module in (envelope, transcript):
            monkeypatch.setattr(module, "datetime", type("Clock", (datetime,), known))

    return ahead


def test_what_a_fast_clock_made_hides_nothing_later_and_sums_are_sealed_anew(site, clock):
    clock(400)
    site.receive()
    site.send("north")
    clock(0)
    with pytest.raises(ClockError, match="ask for news that are made anew"):
        site.tell()
    site.receive()
    site.tell()
    assert site.receive("north")["north"].code == "CB806"
    assert not site.send("north").again
    assert site.send("north").again
    site.sent()
    clock(-400)  # as of a battery that is empty: the file that was received looks fast
    assert not site.send("north").again
    site.run()
    clock(0)
    assert site.accept("north").trained_on == tuple(sorted(NAMES))
