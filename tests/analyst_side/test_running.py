"""Running: one sealed return per party, one model, and what the agreement forbids."""

import hashlib
from datetime import UTC, datetime

import numpy as np
import pytest

from analyst_side.rounds import NAMES, real_round
from analyst_side.test_receiving import contents
from cobasis import Analyst, ConsortiumSecret, Party
from cobasis.analyst_side.receive import receive
from cobasis.analyst_side.run import run
from cobasis.bundle.envelope import open_bundle
from cobasis.bundle.messages import return_in
from cobasis.bundle.payload import open_payload
from cobasis.bundle.transcript import verify_transcript
from cobasis.errors import (
    AgreementError,
    AnchorTagError,
    LabelError,
    SealError,
    StepError,
    UnknownPartyError,
    WaitingError,
)
from cobasis.models.chain_file import encode_chain
from cobasis.protocol import aligned


def opened_return(made, name, *, path=None):
    """What a party reads of its return."""
    bundle = open_bundle(
        path or made.reply(name),
        unseal=made.identities[name].unseal,
        signer=made.identities["lab"].public,
        into=made.folder / f"opened-{name}",
    )
    return return_in(bundle, agreement=made.agreement, party=name)


@pytest.fixture
def made(tmp_path):
    found = real_round(tmp_path)
    found.uploads()
    receive(found.session(), [found.inbox])
    return found


def test_every_party_gets_its_own_change_of_basis_and_the_one_model(made):
    ran = run(made.session())
    analyst = Analyst(made.agreement)
    for name in sorted(NAMES):
        analyst.receive(open_payload(made.work.payload(name)))
    wanted = analyst.run()
    models = set()
    for name in NAMES:
        got = opened_return(made, name)
        np.testing.assert_allclose(
            got.change_of_basis, wanted[name].change_of_basis, rtol=0, atol=1e-12
        )
        rows = made.party(name)._basis.project(made.rows[name][0]) @ got.change_of_basis
        np.testing.assert_allclose(
            got.model.scores(rows, method="decision_function"),
            wanted[name].model.scores(rows, method="decision_function"),
            rtol=0,
            atol=1e-9,
        )
        assert (got.model.predict(rows) == made.rows[name][1]).mean() > 0.9
        assert got.trained_on == NAMES
        assert got.evidence == ran.concluded.certificate.parties[name].evidence
        assert got.target_carries == ("east",)
        models.add(hashlib.sha256(encode_chain(got.model)).hexdigest())
    assert models == {ran.concluded.outcome.model_sha256}
    assert ran.concluded.outcome.n_rows == 160


def test_a_return_is_sealed_for_its_party_and_nobody_else(made):
    run(made.session())
    for name in NAMES:
        for other in {*NAMES, "lab"} - {name}:
            with pytest.raises(SealError):
                open_bundle(
                    made.reply(name),
                    unseal=made.identities[other].unseal,
                    signer=made.identities["lab"].public,
                    into=made.folder / "stolen",
                )
    g = opened_return(made, "north").change_of_basis.tobytes()
    sent = {name: made.reply(name).read_bytes() for name in NAMES}
    assert not [name for name, data in sent.items() if g in data]


def test_until_everybody_is_in_a_run_waits_and_says_for_whom(tmp_path):
    made = real_round(tmp_path)
    made.uploads(["north", "south", "east"])
    receive(made.session(), [made.inbox])
    with pytest.raises(WaitingError, match=r"upload of west, and no deadline.*--without west"):
        run(made.session())
    assert not made.returns.exists()
    ran = run(made.session(), without=["west"])
    assert set(ran.written) == {"east", "north", "south"}
    assert made.news().without == ("west",)


def test_below_the_minimum_a_run_is_refused_with_a_list_of_who_is_missing(tmp_path):
    made = real_round(tmp_path, deadline="2026-12-31T23:59:59Z")
    made.uploads(["north", "south"])
    receive(made.session(), [made.inbox])
    after = datetime(2027, 1, 1, tzinfo=UTC)
    with pytest.raises(WaitingError, match=r"at least 3.*Missing: east, west.*\[CB314\]"):
        run(made.session(), now=after)
    with pytest.raises(StepError, match="Missing: nobody; left out: east, west"):
        run(made.session(), without=["east", "west"])
    assert not made.returns.exists()


def test_a_party_that_is_left_out_does_not_count_for_the_minimum(tmp_path):
    made = real_round(tmp_path)
    made.uploads(["north", "south", "east"])
    receive(made.session(), [made.inbox])
    with pytest.raises(StepError, match="left out: east, west"):
        run(made.session(), without=["east", "west"])
    with pytest.raises(UnknownPartyError):
        run(made.session(), without=["lab"])


def test_after_the_deadline_those_are_out_who_sent_nothing(tmp_path):
    made = real_round(tmp_path, deadline="2030-01-01T00:00:00Z")
    made.uploads(["north", "south", "east"])
    receive(made.session(), [made.inbox])
    with pytest.raises(WaitingError, match="deadline is 2030-01-01T00:00:00Z"):
        run(made.session(), now=datetime(2029, 12, 31, tzinfo=UTC))
    ran = run(made.session(), now=datetime(2030, 1, 2, tzinfo=UTC))
    assert (ran.plan.missing, ran.plan.without) == (("west",), ())
    assert sorted(path.name for path in made.returns.iterdir()) == [
        f"icu.{name}.1-return" for name in ("east", "north", "south")
    ]


def test_only_families_that_the_agreement_allows_are_trained(made):
    with pytest.raises(AgreementError, match=r"'mlp'.*allowed: ridge, logistic"):
        run(made.session(), model="mlp")
    ran = run(made.session(), model="logistic")
    assert ran.concluded.outcome.family == "logistic"
    assert opened_return(made, "north").model.family == "logistic"


def test_a_representation_has_returns_without_a_model(tmp_path):
    made = real_round(tmp_path, task="representation", model=None, models=(), classes=(), label="")
    made.rows = {name: (rows, None) for name, (rows, _) in made.rows.items()}
    made.uploads()
    receive(made.session(), [made.inbox])
    ran = run(made.session())
    assert ran.concluded.outcome.model_sha256 is None
    assert opened_return(made, "north").model is None


def test_rows_of_one_class_only_are_refused(tmp_path):
    made = real_round(tmp_path)
    made.rows = {name: (rows, labels * 0) for name, (rows, labels) in made.rows.items()}
    made.uploads()
    receive(made.session(), [made.inbox])
    with pytest.raises(LabelError, match="one class"):
        run(made.session())


def test_a_party_with_another_anchor_stops_the_run_and_can_be_left_out_by_name(tmp_path):
    made = real_round(tmp_path)
    made.uploads(["north", "south", "east"])
    wrong = ConsortiumSecret()
    theirs = made.agreement.model_copy(
        update={"commitment": wrong.commitment(made.agreement.round_id)}
    )
    prepared = Party("west", agreement=theirs, secret=wrong).prepare(*made.rows["west"])
    forged = type(prepared)(**{**vars(prepared), "agreement_digest": made.agreement.digest()})
    made.party("west").prepare = lambda *_, **__: forged
    made.upload("west")
    receive(made.session(), [made.inbox])
    with pytest.raises(AnchorTagError, match="west"):
        run(made.session())
    ran = run(made.session(), without=["west"])
    assert set(ran.concluded.files) == {"east", "north", "south"}


def test_more_rows_than_memory_may_hold_are_trained_on_in_parts(made, monkeypatch):
    inside = run(made.session())
    rows = np.random.default_rng(1).normal(size=(50, 3))
    want = opened_return(made, "north").model.predict(rows)
    for path in made.work.models.iterdir():
        path.unlink()
    monkeypatch.setattr(aligned, "MOST_CELLS", 10)
    monkeypatch.setattr(aligned, "BLOCK_BYTES", 1000)
    outside = run(made.session())
    got = opened_return(made, "north").model.predict(rows)
    np.testing.assert_array_equal(got, want)
    assert inside.concluded.outcome.n_rows == outside.concluded.outcome.n_rows
    assert [path.suffix for path in made.work.models.iterdir()] == [".model"]


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_uploads_in_fewer_bits_are_received_and_trained_on(tmp_path, precision):
    scale = {"int8_range": 40.0} if precision == "int8" else {}
    made = real_round(tmp_path, precision=precision, **scale)
    made.uploads()
    assert not receive(made.session(), [made.inbox]).refused
    run(made.session())
    got = opened_return(made, "north")
    rows = made.party("north")._basis.project(made.rows["north"][0]) @ got.change_of_basis
    assert (got.model.predict(rows) == made.rows["north"][1]).mean() > 0.9


def test_a_lost_opened_upload_is_opened_again_from_the_sealed_one(made):
    first = run(made.session())
    made.work.payload("north").write_bytes(b"changed")
    made.work.payload("south").unlink()
    again = run(made.session())
    assert again.concluded.outcome.model_sha256 == first.concluded.outcome.model_sha256


def test_with_nothing_new_only_lost_files_are_written_and_the_transcript_stays(made):
    first = run(made.session())
    lines = verify_transcript(made.work.transcript).entries
    kept = contents(made.returns)
    assert run(made.session()).written == {}
    assert contents(made.returns) == kept
    assert verify_transcript(made.work.transcript).entries == lines
    made.reply("south").unlink()
    again = run(made.session())
    assert again.written == {"south": made.reply("south")}
    assert again.concluded.outcome.model_sha256 == first.concluded.outcome.model_sha256
    assert {**contents(made.returns), "icu.south.1-return": b""} == {
        **kept,
        "icu.south.1-return": b"",
    }
    assert opened_return(made, "south").trained_on == NAMES


def test_another_family_that_is_allowed_is_trained_on_the_same_parties_and_stays(made):
    run(made.session())
    ran = run(made.session(), model="logistic")
    assert (ran.concluded.outcome.family, len(ran.written)) == ("logistic", 4)
    assert run(made.session()).concluded.outcome.family == "logistic"


def test_who_took_part_is_not_left_out_afterwards_but_removed(made):
    run(made.session())
    with pytest.raises(StepError, match="cobasis remove south"):
        run(made.session(), without=["south"])


def test_a_party_that_is_left_out_stays_out_until_it_is_taken_in_again(tmp_path):
    made = real_round(tmp_path)
    made.uploads(["north", "south", "east"])
    receive(made.session(), [made.inbox])
    run(made.session(), without=["west"])
    made.upload("west")
    assert receive(made.session(), [made.inbox]).late == ("west",)
    assert run(made.session()).written == {}
    with pytest.raises(StepError, match="nobody said that they are to be taken in"):
        run(made.session(), again=["west"])
    ran = run(made.session(), again=["west"], confirmed=["west"])
    assert (ran.plan.new, set(ran.written)) == (("west",), set(NAMES))
    assert made.news().without == ()
