"""What a party sends: the rows that are not held back, through one span, and nothing unsaid."""

import numpy as np
import polars as pl
import pytest

from cobasis.errors import (
    CobasisError,
    DimensionError,
    DiskError,
    OptionError,
    SpanReuseError,
    StepError,
    WaitingError,
)
from cobasis.linalg.arrays import gathered
from cobasis.party_side.rows import check, open_rows
from cobasis.party_side.send import finish, require_turn, send, send_again
from cobasis.vault.datasets import Forced
from party_side.sites import FEATURES, NUMBERS, agreed, frame, ready_from


def scaled(**changes):
    return (FEATURES[0].model_copy(update=changes), *FEATURES[1:])


def sent_by(site, **options):
    made = site.ready(**options)
    return made, send(made, site.of_round())


def basis_of(site):
    return site.session("north").vault.upload_of(site.agreement)[0].basis


def distances(one, two):
    return np.linalg.norm(one[:, None] - two[None], axis=2)


def written(site, table, name="other.csv"):
    path = site.folder("north") / name
    table.write_csv(path)
    return path


def test_rows_that_are_held_back_are_in_no_upload_and_labels_stay_with_the_others(site):
    made, sent = sent_by(site)
    upload, basis = site.opened_upload("north", sent.path), basis_of(site)
    assert 10 < made.rows.n_held < 60
    assert len(upload.rows) == made.rows.n_sent == 120 - made.rows.n_held
    held, others = (basis.project(gathered(each)) for each in (made.rows.kept, made.rows.sent))
    apart = distances(upload.rows, others)
    assert apart.min(axis=0).max() < 1e-12
    assert distances(held, upload.rows).min() > 1e-6
    nearest = apart.argmin(axis=1)
    np.testing.assert_array_equal(made.rows.sent.labels()[nearest], upload.labels)
    assert (np.diff(nearest) < 0).sum() > 20  # in no order of the table's


def test_a_row_stays_on_its_side_whatever_stands_around_it(site):
    shuffled = frame(1).sample(fraction=1, shuffle=True, seed=3).extend(frame(8))
    session, more = site.session("north"), written(site, shuffled)
    one, two = open_rows(session, site.table("north")), open_rows(session, more)
    sides = dict(zip(two.marks.tolist(), two.held.tolist(), strict=True))
    assert [sides[mark] for mark in one.marks.tolist()] == one.held.tolist()
    assert not np.array_equal(open_rows(site.session("south"), site.table("north")).held, one.held)
    # and who is held back stays so when a cell changes, and in another encoding
    older = written(site, frame(1).with_columns(age=pl.col("age") + 1.0))
    agreed(site.root, features=scaled(scale=2.0))
    two = open_rows(site.session("north"), older)
    assert not set(one.marks.tolist()) & set(two.marks.tolist())
    assert np.array_equal(one.held, two.held)


def test_the_same_people_get_the_stored_basis_or_no_span(make):
    site = make()
    site.joined()
    _, sent = sent_by(site)
    first = basis_of(site)
    before = site.opened("north", sent.path).parts["upload.safetensors"].read_bytes()
    made, again = sent_by(site)
    assert made.choice.span == "kept"
    assert site.opened("north", again.path).parts["upload.safetensors"].read_bytes() == before
    for changes in ({"purpose": "another"}, {"features": scaled(low=-60.0)}):
        site.joined(**changes)
        assert sent_by(site)[0].choice.span == "kept"
        np.testing.assert_array_equal(first.project(np.eye(8)), basis_of(site).project(np.eye(8)))
    session = site.joined(features=scaled(scale=2.0))
    with pytest.raises(SpanReuseError, match=r"become numbers in the same way.*CB703"):
        site.ready()
    forced = Forced(reason="the board asked for fewer numbers", by=("A. Curator", "B. Officer"))
    made, _ = sent_by(site, forced=forced)
    assert made.choice.span == "forced"
    last = session.vault.history()[-1]
    assert (last.reason, last.by) == (forced.reason, "A. Curator and B. Officer")


def test_before_joining_nothing_can_be_made(make):
    site = make()
    with pytest.raises(StepError, match="has not joined"):
        send(site.ready())
    with pytest.raises(WaitingError, match="'cobasis sign' takes it"):
        require_turn(site.session("north"))
    assert not site.session("north").vault.datasets()


def test_a_target_that_would_do_harm_is_refused_before_the_history_grows(site):
    table, made = site.table("north"), site.ready()
    before, taken = table.read_bytes(), site.session("north").beside("1-upload")
    taken.write_text("somebody else's")
    for target, error, words in (
        (table, OptionError, "a table of yours"),
        (site.folder("north") / "none" / "x.upload", DiskError, "a folder"),
        (None, DiskError, "is no file that party 'north' made"),
    ):
        with pytest.raises(error, match=words):
            send(made, target)
    assert (table.read_bytes(), taken.read_text()) == (before, "somebody else's")
    assert site.session("north").vault.history() == ()


ALIKE = {name: pl.lit(2.0) for name in NUMBERS}
REFUSED = {
    "empty ids": (frame(1).with_columns(patient=pl.lit(None, dtype=pl.String)), "CB105"),
    "months for years": (frame(1).with_columns(age=pl.col("age") + 100.0), "CB105"),
    "no rows": (frame(1)[:0], "CB102"),
    "one row": (frame(1)[:1], "CB106"),
    "rows all alike": (frame(1).with_columns(**ALIKE, ward=pl.lit("icu")), "CB106"),
}


def test_a_table_that_does_not_fit_is_refused_before_the_history_grows(make):
    site = make(holdout=0.0)
    session = site.joined()
    for what, (table, code) in REFUSED.items():
        with pytest.raises(CobasisError, match=rf"\[{code}\]$"):
            site.send(table=written(site, table))
        assert (session.vault.history(), site.upload().exists()) == ((), False), what
        assert {each.name for each in session.work.iterdir()} == set(), what
    table = frame(1).with_columns(age=pl.lit(2.0), died=pl.lit(1))  # constant, of one class
    assert site.send(table=written(site, table)).path.exists()


def test_check_finds_people_of_several_rows_and_too_few_who_are_not_held_back(site):
    session = site.session("north")
    [problem] = check(session, written(site, frame(1).with_columns(patient=pl.lit("1")))).problems
    assert "some identifiers in the id column 'patient'" in str(problem)
    held = open_rows(session, site.table("north")).held
    assert check(session, site.table("north")).n_held == np.count_nonzero(held)
    few = [*np.flatnonzero(held)[:10], *np.flatnonzero(~held)[:2]]  # counted after the holdout
    with pytest.raises(DimensionError, match="holds back, fewer rows than the 3"):
        ready_from(session, written(site, frame(1)[few]))


def test_the_upload_waits_for_the_span_and_until_then_the_proposal_is_the_same(make):
    site = make(basis="consensus")
    require_turn(site.joined())
    sent = send(site.ready())
    assert sent.path.name == "icu.north.1-proposal"
    assert send_again(site.session("north"), None).digest == sent.digest
    assert finish(site.session("north"), None) is None
    assert send(site.ready()).digest == sent.digest
