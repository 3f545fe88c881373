"""The second exchange of sums by files: probabilities, and a score of all parties."""

from itertools import count

import numpy as np
import polars as pl
import pytest

from cobasis.bundle.messages import sums_in
from cobasis.cli.run import importance_in_words
from cobasis.errors import (
    DifferenceError,
    ForeignBundleError,
    MessageError,
    ReplayError,
    RetentionError,
    StepError,
    WaitingError,
)
from cobasis.party_side.audit import audited
from cobasis.party_side.predict import usable
from cobasis.party_side.send import projected
from cobasis.protocol.card import ModelCard, make_card
from cobasis.report.pages import render_card
from faults import died, dying_after
from party_side.sites import ready_from
from party_side.summing import NAMES, TERMS


@pytest.fixture
def scoring(make):
    return make(holdout=0.4, sums=TERMS.model_copy(update={"scores": True}))


def asked(site):
    """The first model is at every party, and the files of sums are gone."""
    site.sent()
    site.run()
    for name in NAMES:
        site.accept(name)
        (site.root / f"{name}.sums").unlink()


def card(site, name):
    return ModelCard.read(site.session(name).round.accepted().card)


def test_scores_make_probabilities_and_the_first_model_is_of_use_without_them(scoring):
    asked(scoring)
    first = usable(scoring.session("north")).model
    assert not first.likely
    assert not card(scoring, "north").scores
    assert scoring.session("north").round.mask_key().public
    assert {each.verdict for each in scoring.sent().values()} == {"accepted"}
    made = scoring.run().concluded
    models = {scoring.accept(name, number=2).model_sha256 for name in NAMES}
    assert len(models) == 1
    last, rows = usable(scoring.session("north")).model, np.random.default_rng(0)
    table = rows.normal(size=(40, first.widths[0]))
    assert last.likely
    np.testing.assert_array_equal(last.predict(table), first.predict(table))
    told = card(scoring, "north")
    assert told.gives == "probabilities"
    assert told.scores == made.worth.told()
    assert told.scores["rows"] > 100
    assert f"On {told.scores['rows']:,.0f} rows that all parties held back" in render_card(told)
    with pytest.raises(StepError, match="no key for masks"):
        scoring.session("north").round.mask_key()


def test_importance_comes_with_scores_on_every_card(make, monkeypatch):
    site = make(holdout=0.4, sums=TERMS.model_copy(update={"scores": True, "importance": True}))
    asked(site)
    site.sent()
    made = site.run().concluded
    site.accept("north", number=2)
    told = card(site, "north")
    columns = site.agreement.columns
    assert told.importance == dict(zip(columns, made.worth.importance, strict=True))
    lines, page = [*importance_in_words(told)], render_card(told)
    assert "how much accuracy falls" in lines[0]
    assert len(lines) == 1 + len(columns)
    for name, (falls, error) in told.importance.items():
        assert f"<td>{falls:.4f} ({error:.4f})</td>" in page
        assert any(line.split() == [name, f"{falls:.4f}", f"{error:.4f}"] for line in lines)
    wrong = {"importance": {columns[0]: (0.5, 0.1)}}
    monkeypatch.setattr(
        "cobasis.analyst_side.run.make_card",
        lambda *of, **more: make_card(*of, **{**more, **wrong}),
    )
    for path in (site.root / "out").glob("*"):
        path.unlink()
    site.run()
    with pytest.raises(MessageError, match=r"contradicts the agreement.*: importance"):
        site.accept("south", number=2)


def test_a_run_waits_for_everybodys_scores_and_writes_lost_models_meanwhile(scoring):
    asked(scoring)
    scoring.sent("north", "south")
    with pytest.raises(WaitingError, match="waits for the scores of east, west"):
        scoring.run()
    lost = scoring.root / "out" / "icu.west.1-return"
    lost.unlink()
    found = scoring.run()
    assert {*found.written} == {"west"}
    assert lost.exists()
    with pytest.raises(StepError, match="sums were added up on"):
        scoring.run(without=["west"])


def test_scores_are_taken_once_and_of_the_rows_held_back_then(scoring):
    asked(scoring)
    scoring.send("north")
    again = scoring.send("north")
    assert again.again
    (scoring.session("north").work / "2-scores.sent").unlink()
    with pytest.raises((DifferenceError, StepError), match=r"\[CB(706|305)\]"):
        scoring.send("north", change=lambda frame: frame.head(60))


def test_sums_are_no_scores_and_scores_wait_for_their_turn(scoring):
    scoring.sent("north", "south", "east")
    early = scoring.send("west")
    scoring.receive("west")
    scoring.run()
    for name in NAMES:
        scoring.accept(name)
    late = scoring.desk()
    assert late.open_exchange().message == "scores"
    with late.at_work():
        bundle = late.opened(early.path)
    with pytest.raises(ForeignBundleError):
        sums_in(bundle, agreement=scoring.agreement, exchange=late.open_exchange())


def test_a_first_return_does_not_come_again_behind_scores(scoring):
    asked(scoring)
    scoring.send("north")
    with pytest.raises(ReplayError, match="made its scores"):
        scoring.accept("north")
    assert scoring.send("north").again


def test_a_return_with_scores_is_none_before_any_were_sent(scoring, monkeypatch):
    scoring.sent()
    with monkeypatch.context() as patched:
        for name, told in (("sums", {"rows": 9.0}), ("words", {"x": 1.0})):
            patched.setattr(
                "cobasis.analyst_side.run.make_card",
                lambda *of, told=told, **more: make_card(*of, **{**more, "scores": told}),
            )
            for path in (scoring.root / "out").glob("*"):
                path.unlink()
            scoring.run()
            with pytest.raises(MessageError, match=r"sent none|contradicts"):
                scoring.accept("north")
            assert scoring.session("north").round.mask_key().public, name


def test_scores_are_added_up_with_the_very_parties_of_the_model(scoring):
    asked(scoring)
    desk = scoring.desk()
    with desk.at_work():
        desk.begin_attempt(2, without=["west"])
        desk.tell()
    scoring.tell("north")
    with pytest.raises(StepError, match="is of the sums of east, north, south, west"):
        scoring.send("north")


def test_the_model_that_was_scored_is_found_under_another_versions_name(scoring):
    asked(scoring)
    scoring.sent()
    [model] = (scoring.desk().work.models).glob("*.model")
    away = model.rename(model.with_name("0123.model"))
    kept = away.read_bytes()
    away.write_bytes(b"damaged")
    with pytest.raises(RetentionError, match="Restore the folder"):
        scoring.run()
    away.write_bytes(kept)
    assert scoring.run().concluded.worth.n_rows > 0


def test_a_party_without_a_held_back_row_takes_part_in_later_rounds(make):
    site = make(holdout=0.0001, sums=TERMS.model_copy(update={"scores": True}))
    asked(site)
    site.send("north")
    (site.root / "north.sums").unlink()
    site.desk().news.unlink()
    later = make(holdout=0.0001, round_id="icu-2027")
    assert later.send("north").n_bytes


def test_the_audit_of_scores_counts_small_bins(scoring):
    asked(scoring)
    with projected(ready_from(scoring.session("north"), scoring.table("north"))) as made:
        findings = {each.id: each for each in audited(made).report.findings}
    assert findings["S3"].figures["small_cells"] == made.party.small_cells > 0
    assert "held-back rows of each class" in findings["S3"].words


@pytest.mark.parametrize("step", [15, pytest.param(1, marks=pytest.mark.soak)])
def test_a_kill_while_scores_leave_keeps_one_content_for_one_mask(scoring, in_memory, step):
    asked(scoring)
    seen = set()
    for number in count(1, step):
        place = scoring.copied(in_memory / f"scores-{step}-{number}")
        if not died(dying_after, number, lambda place=place: place.send("north")):
            break
        place.send("north")
        desk = place.desk()
        with desk.at_work():
            bundle = desk.opened(place.root / "north.sums")
            seen.add(bundle.manifest.parts[0].sha256)
    assert len(seen) == 1


def test_people_held_back_may_look_like_people_who_were_summed_up(make):
    """With few distinct values rows of other people are alike; identifiers tell them apart."""
    terms = TERMS.model_copy(update={"scores": True, "least_rows": 20})
    site = make(holdout=0.4, sums=terms)

    def coarse(frame):
        return frame.with_columns(pl.col("age", "pulse", "lactate", "weight").sign())

    for name in NAMES:
        site.send(name, change=coarse)
    site.receive(*NAMES)
    site.run()
    for name in NAMES:
        site.accept(name)
        (site.root / f"{name}.sums").unlink()
    for name in NAMES:
        site.send(name, change=coarse)
    assert {each.verdict for each in site.receive(*NAMES).values()} == {"accepted"}
