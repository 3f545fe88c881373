"""Bases are kept, orders are not; marks and traces travel with whatever they touched."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import Analyst, ConsortiumSecret, Party, PartyKey, Round, SecretBasis, simulate
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    MessageError,
    OptionError,
    StepError,
    UndeterminedFitError,
    UnknownPartyError,
)
from cobasis.linalg.arrays import principal_cosines
from protocol.consortium import COMPONENTS, NAMES, agree, consortium, tables

KEY = bytes(range(60, 92))


def a_party(name="north", *, round_id="icu-2026", key=None, **changes):
    secret = ConsortiumSecret(bytes(range(32)))
    agreement = agree(secret, round_id=round_id, **changes)
    return Party(name, agreement=agreement, secret=secret, key=key or PartyKey(KEY))


def consensus_side():
    """Parties that agreed on a span, their span, and the analyst that made it."""
    secret = ConsortiumSecret()
    agreement = agree(secret, basis="consensus")
    parties = {name: Party(name, agreement=agreement, secret=secret) for name in NAMES}
    analyst = Analyst(agreement)
    rows = tables()
    span = analyst.consensus(party.propose(rows[name][0]) for name, party in parties.items())
    for name, party in parties.items():
        analyst.receive(party.prepare(*rows[name], consensus=span))
    return parties, span, analyst


def test_a_later_round_with_the_kept_basis_shows_the_same_span_in_another_order():
    rows, labels = tables()["north"]
    first, later = a_party(), a_party(round_id="icu-2027")
    one = first.prepare(rows, labels)
    two = later.prepare(rows, labels, basis=first.basis)
    assert isinstance(first.basis, SecretBasis)
    assert not np.allclose(one.rows, two.rows)
    np.testing.assert_allclose(np.sort(one.rows, axis=0), np.sort(two.rows, axis=0))


def test_a_proposal_shows_the_span_and_not_which_direction_is_the_strongest():
    rows = tables()["north"][0]
    party = a_party(basis="consensus")
    image = party.propose(rows).image
    strongest = party._anchor.apply(np.linalg.svd(rows, full_matrices=False)[2][:COMPONENTS].T)
    np.testing.assert_allclose(principal_cosines(image, strongest), 1.0)
    assert np.abs(np.sum(image * strongest, axis=0)).max() < 0.999


def test_a_consensus_keeps_the_trace_of_who_left_even_after_realigning():
    _, span, analyst = consensus_side()
    assert span.contributors == NAMES
    analyst.remove("east")
    returns = analyst.run(realign=True)
    assert "east" in returns["north"].target_carries
    assert "east" not in returns["north"].trained_on


def test_one_simulated_party_marks_everybodys_return():
    made = consortium()
    made.parties["west"] = Party(
        "west", agreement=made.agreement, secret=made.secret, key=PartyKey(KEY, simulated=True)
    )
    done = Round(agreement=made.agreement, parties=made.parties, analyst=made.analyst)
    done.run(made.rows)
    assert [party.returned.simulated for party in done.parties.values()] == [True] * 4


def test_a_simulated_consensus_marks_what_is_made_from_it():
    parties, span, _ = consensus_side()
    rows = tables()["north"]
    assert not parties["north"].prepare(*rows, consensus=span).simulated
    marked = replace(span, simulated=True)
    assert parties["north"].prepare(*rows, consensus=marked).simulated


def test_a_mark_cannot_be_taken_off():
    with pytest.raises(AttributeError):
        PartyKey(KEY, simulated=True).simulated = False


def test_excluding_everybody_drops_nobody():
    analyst = consortium().received()
    with pytest.raises(StepError, match=r"all 4 parties are excluded.*\[CB305\]$"):
        analyst.run(exclude=NAMES)
    assert tuple(analyst.uploads) == NAMES


@pytest.mark.parametrize("change", ["missing", "unknown"])
def test_rows_of_other_parties_than_the_round_s_are_refused_before_anything_is_sent(change):
    made = consortium()
    done = Round(agreement=made.agreement, parties=made.parties, analyst=made.analyst)
    rows = dict(made.rows)
    if change == "missing":
        rows.pop("west")
    else:
        rows["ghost"] = rows["west"]
    with pytest.raises(UnknownPartyError, match=r"'(west|ghost)'.*\[CB304\]$"):
        done.run(rows)
    assert tuple(made.analyst.uploads) == ()


def test_a_run_that_fails_keeps_the_uploads_it_was_to_exclude():
    made = consortium()
    uploads = made.uploads()
    for name, upload in uploads.items():
        made.analyst.receive(replace(upload, anchor_tag=bytes(32)) if name == "west" else upload)
    with pytest.raises(AnchorTagError):
        made.analyst.run(exclude=["north"])
    assert set(made.analyst.uploads) == set(NAMES)
    assert set(made.analyst.run(exclude=["west"])) == {"north", "south", "east"}


def test_a_run_that_fails_late_leaves_no_alignment_of_fewer_parties_behind():
    class Broken:
        def fit(self, *_):
            raise ZeroDivisionError

        def get_params(self, **_):
            return {}

    analyst = consortium().received()
    with pytest.raises(ZeroDivisionError):
        analyst.run(exclude=["north"], model=Broken())
    assert set(analyst.uploads) == set(NAMES)
    with pytest.raises(StepError, match="nothing is aligned yet"):
        analyst.certify()


@pytest.mark.parametrize("aligner", ["imakura", "kawakami", "odc", "whitened", "gopp"])
def test_a_party_with_nothing_in_common_is_refused_by_every_aligner(aligner):
    rng = np.random.default_rng(0)
    rows = {}
    for name in "abcd":
        table = np.zeros((40, 12))
        columns = slice(6, 12) if name == "d" else slice(0, 6)
        table[:, columns] = rng.normal(size=(40, 6)) * [9, 8, 7, 0.1, 0.1, 0.1]
        rows[name] = (table, np.arange(40) % 2)
    with pytest.raises(UndeterminedFitError, match=r"'d'.*\[CB205\]$") as caught:
        simulate(rows, rng=rng, n_components=3, aligner=aligner)
    assert caught.value.parties == ("d",)


@pytest.mark.parametrize("aligner", ["imakura", "kawakami", "whitened"])
@pytest.mark.parametrize("condition", ["samespan", "diffspan"])
def test_an_oblique_basis_is_not_taken_for_an_undetermined_one(aligner, condition):
    """A_i' Z is as ill-conditioned as E_i; the angles between the spans do not see E_i."""
    rng = np.random.default_rng(1)
    rows = {name: (rng.normal(size=(90, 60)), np.arange(90) % 2) for name in "abcd"}
    done = simulate(
        rows, rng=rng, n_components=45, aligner=aligner, span_condition=condition, model="ridge"
    )
    figures, target = done.analyst.certificate.parties, done.analyst.alignment.target.rows
    worst = min(
        1
        / (
            np.linalg.cond(done.analyst.uploads[name].anchor_image.T @ target)
            * each.smallest_cosine
        )
        for name, each in figures.items()
    )
    assert worst < 0.1


@pytest.mark.parametrize(
    "wrong", [{"rng": 0}, {"aligner": Analyst}, {"model": 3}, {"rows": [1]}], ids=str
)
def test_what_is_no_option_at_all_is_refused_by_name(wrong):
    options = {"rows": tables(), "rng": np.random.default_rng(0), "n_components": 3, **wrong}
    with pytest.raises(OptionError, match=rf"{next(iter(wrong))} is n.*\[CB107\]$"):
        simulate(options.pop("rows"), **options)


def test_a_return_whose_model_does_not_go_with_it_is_refused():
    made = consortium()
    returned = made.received().run()["north"]
    narrow = replace(returned, change_of_basis=returned.change_of_basis[:, :2])
    for wrong in (replace(returned, model=None), narrow):
        with pytest.raises(MessageError, match=r"model in the return to party 'north'.*\[CB306\]$"):
            made.parties["north"].accept(wrong)


def test_public_rows_of_too_low_a_rank_are_the_agreements_mistake():
    public = np.ones((5, 6))
    with pytest.raises(AgreementError, match=r"5 public rows have 1 independent.*\[CB303\]$"):
        simulate(
            tables(),
            rng=np.random.default_rng(0),
            n_components=COMPONENTS,
            basis="public",
            public_rows=public,
        )


def test_a_span_condition_and_a_basis_are_not_given_together():
    options = {"n_components": COMPONENTS, "basis": "haar", "span_condition": "samespan"}
    with pytest.raises(OptionError, match=r"basis='haar' would have no effect.*\[CB107\]$"):
        simulate(tables(), rng=np.random.default_rng(0), **options)
