"""The second exchange of sums by files: probabilities, and a score of all parties."""

import numpy as np
import polars as pl
import pytest

from cobasis.analyst_side.receive import receive
from cobasis.errors import DifferenceError, MessageError, ReplayError, RetentionError, StepError
from cobasis.party_side.approval import Audited
from cobasis.party_side.predict import usable
from cobasis.privacy.audit.report import as_json
from cobasis.protocol.card import ModelCard, make_card
from cobasis.report.audit_page import render_audit
from cobasis.report.pages import render_card
from party_side.summing import NAMES, TERMS


@pytest.fixture
def scoring(make):
    return make(holdout=0.4, sums=TERMS.model_copy(update={"scores": True}))


def card(site, name):
    return ModelCard.read(site.session(name).round.accepted().card)


def test_scores_make_probabilities_and_the_first_model_is_of_use_without_them(scoring):
    scoring.step()
    first = usable(scoring.session("north")).model
    assert not first.likely
    assert not card(scoring, "north").scores
    assert scoring.session("north").round.mask_key().public
    made = scoring.step()
    models = {scoring.session(name).round.accepted().model_sha256 for name in NAMES}
    assert len(models) == 1
    last, rows = usable(scoring.session("north")).model, np.random.default_rng(0)
    table = rows.normal(size=(40, first.widths[0]))
    assert last.likely
    np.testing.assert_array_equal(last.predict(table), first.predict(table))
    told = card(scoring, "north")
    assert told.gives == "probabilities"
    assert told.scores == made.card.scores
    assert told.scores["rows"] > 100
    assert f"On {told.scores['rows']:,.0f} rows that all parties held back" in render_card(told)
    with pytest.raises(StepError, match="no key for masks"):
        scoring.session("north").round.mask_key()


def test_scores_are_taken_once_and_of_the_rows_held_back_then(scoring):
    scoring.step()
    scoring.send("north")
    again = scoring.send("north")
    assert again.again
    (scoring.session("north").work / "2-scores.sent").unlink()
    with pytest.raises((DifferenceError, StepError), match=r"\[CB(706|305)\]"):
        scoring.send("north", change=lambda frame: frame.head(60))
    scoring.attempt()
    with pytest.raises(StepError, match="is of the sums of east, north, south, west"):
        scoring.send("north")


def test_scores_are_audited_and_neither_sums_nor_a_first_return_stand_for_them(scoring):
    scoring.step()
    late = scoring.desk()
    found = receive(late, [scoring.file("west")])
    assert [each.verdict for each in found] == ["received before"]  # and not as scores
    made, report = scoring.looked()
    assert report["S3"].figures["small_cells"] == made.party.small_cells > 0
    assert "held-back rows of each class" in report["S3"].words
    assert "these scores give" in render_audit(Audited(told=as_json(report)), scoring.agreement)
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
            scoring.run(anew=True)
            with pytest.raises(MessageError, match=r"sent none|contradicts"):
                scoring.accept("north")
            assert scoring.session("north").round.mask_key().public, name


def test_the_model_that_was_scored_is_found_under_another_versions_name(scoring):
    scoring.step()
    scoring.sent()
    [model] = (scoring.desk().work.models).glob("*.model")
    away = model.rename(model.with_name("0123.model"))
    kept = away.read_bytes()
    away.write_bytes(b"damaged")
    with pytest.raises(RetentionError, match="Restore the folder"):
        scoring.run()
    away.write_bytes(kept)
    assert scoring.run().concluded.card.scores["rows"] > 0


def test_a_party_without_a_held_back_row_takes_part_in_later_rounds(make):
    site = make(holdout=0.0001, sums=TERMS.model_copy(update={"scores": True}))
    site.step()
    assert site.looked()[1].verdict == "aggregate"  # of zeros, which tell of nobody
    site.send("north")
    later = make(holdout=0.0001, round_id="icu-2027")
    assert later.send("north").n_bytes


def test_people_held_back_may_look_like_people_who_were_summed_up(make):
    """With few distinct values rows of other people are alike; identifiers tell them apart."""
    terms = TERMS.model_copy(update={"scores": True, "least_rows": 20})
    site = make(holdout=0.4, sums=terms)

    def coarse(frame):
        return frame.with_columns(pl.col("age", "pulse", "lactate", "weight").sign())

    site.step(change=coarse)
    assert site.ready(change=coarse).choice.renamed == 0
    site.sent(change=coarse)
