"""What a party sends: the rows that are not held back, through one span, and nothing unsaid."""

import numpy as np
import polars as pl
import pytest

from cobasis.bundle.transcript import verify_transcript
from cobasis.disk.whole import file_digest
from cobasis.errors import (
    DiskError,
    FeatureError,
    LabelError,
    OptionError,
    ShapeError,
    SpanReuseError,
    StepError,
    UnsignedError,
    WaitingError,
)
from cobasis.party_side.rows import check, gathered, open_rows
from cobasis.party_side.send import (
    finish,
    require_span,
    require_turn,
    send,
    send_again,
    take_secret,
)
from cobasis.party_side.session import join, open_session, upcoming
from cobasis.vault import Forced
from faults import Killed, at_call, dying_before, on
from party_side.sites import FEATURES, NAMES, agreed, frame, ready_from


def sent_by(site, name, **options):
    session = site.session(name)
    to = site.folder(name) / f"{session.work.name}.upload"
    ready = ready_from(session, site.table(name), **options)
    return ready, send(ready, to)


def distances(one, two):
    return np.linalg.norm(one[:, None] - two[None], axis=2)


def test_rows_that_are_held_back_are_in_no_upload(site):
    ready, sent = sent_by(site, "north")
    upload = site.opened_upload("north", sent.path)
    basis = site.session("north").vault.upload_of(site.agreement).dataset.basis
    assert 10 < ready.rows.n_held < 60
    assert len(upload.rows) == ready.rows.n_sent == 120 - ready.rows.n_held
    held, others = (basis.project(gathered(each)) for each in (ready.rows.kept, ready.rows.sent))
    assert distances(others, upload.rows).min(axis=1).max() < 1e-12
    assert distances(held, upload.rows).min() > 1e-6


def test_a_row_stays_on_its_side_whatever_stands_around_it(site):
    table = frame(1)
    table.sample(fraction=1, shuffle=True, seed=3).extend(frame(8)).write_csv(
        site.folder("north") / "more.csv"
    )
    session = site.session("north")
    one = open_rows(session, site.table("north"))
    two = open_rows(session, site.folder("north") / "more.csv")
    sides = dict(zip(two.marks.tolist(), two.held.tolist(), strict=True))
    assert [sides[mark] for mark in one.marks.tolist()] == one.held.tolist()
    assert not np.array_equal(open_rows(site.session("south"), site.table("north")).held, one.held)


def test_who_is_held_back_stays_so_when_a_cell_changes_and_in_another_encoding(make):
    site = make()
    one = open_rows(site.session("north"), site.table("north"))
    frame(1).with_columns(age=pl.col("age") + 1.0).write_csv(site.folder("north") / "older.csv")
    features = (FEATURES[0].model_copy(update={"scale": 2.0}), *FEATURES[1:])
    agreed(site.root, features=features)
    two = open_rows(site.session("north"), site.folder("north") / "older.csv")
    assert not set(one.marks.tolist()) & set(two.marks.tolist())
    assert np.array_equal(one.held, two.held)


def test_the_same_people_on_another_scale_get_no_fresh_span(make):
    site = make()
    join(site.session("north"), site.secret_file("north"))
    sent_by(site, "north")
    agreed(site.root, features=(FEATURES[0].model_copy(update={"low": -60.0}), *FEATURES[1:]))
    join(site.session("north"), site.secret_file("north"))
    assert ready_from(site.session("north"), site.table("north")).preview.span == "kept"
    agreed(site.root, features=(FEATURES[0].model_copy(update={"scale": 2.0}), *FEATURES[1:]))
    join(site.session("north"), site.secret_file("north"))
    with pytest.raises(SpanReuseError, match="become numbers in the same way"):
        ready_from(site.session("north"), site.table("north"))


def test_without_identifiers_nothing_is_uploaded_where_they_are_agreed(site):
    path = site.folder("north") / "bare.csv"
    frame(1).drop("patient").write_csv(path)
    with pytest.raises(FeatureError, match="table has none of that name"):
        ready_from(site.session("north"), path)
    frame(1).with_columns(patient=pl.lit(None, dtype=pl.String)).write_csv(path)
    with pytest.raises(FeatureError, match="120 cells of the id column"):
        ready_from(site.session("north"), path)


def test_labels_stay_with_their_rows(site):
    _, sent = sent_by(site, "north")
    upload = site.opened_upload("north", sent.path)
    session = site.session("north")
    basis = session.vault.upload_of(site.agreement).dataset.basis
    rows = open_rows(session, site.table("north"))
    projected, labels = basis.project(gathered(rows.table)), rows.table.labels()
    nearest = distances(upload.rows, projected).argmin(axis=1)
    np.testing.assert_array_equal(labels[nearest], upload.labels)
    assert (np.diff(nearest) < 0).sum() > 20  # in no order of the table's


def test_a_second_call_makes_the_same_upload_again(site):
    _, sent = sent_by(site, "north")
    before = site.opened("north", sent.path).parts["upload.safetensors"].read_bytes()
    ready, again = sent_by(site, "north")
    assert ready.preview.span == "kept"
    after = site.opened("north", again.path).parts["upload.safetensors"].read_bytes()
    assert after == before


def test_looking_writes_nothing_down(site):
    ready = ready_from(site.session("north"), site.table("north"))
    assert ready.preview.span == "fresh"
    assert ready.preview.reader == "lab"
    assert site.session("north").vault.history() == ()
    assert [each.name for each in site.folder("north").iterdir() if each.suffix == ".upload"] == []


def test_the_history_and_the_transcript_name_the_file(site):
    _, sent = sent_by(site, "north")
    session = site.session("north")
    [line] = session.vault.history()
    assert (line.upload, line.span) == (sent.digest, "fresh")
    last = verify_transcript(session.transcript.path).entries[-1]
    assert (last.event, last.told["upload"]) == ("prepared", sent.digest)


def test_nothing_private_is_left_in_the_work_folder(site):
    sent_by(site, "north")
    left = [each.name for each in site.session("north").work.rglob("*")]
    assert sorted(left) == ["1-upload.sent", "notes.age"]


def test_a_later_round_of_other_sizes_is_refused_for_the_same_rows(make):
    site = make()
    join(site.session("north"), site.secret_file("north"))
    sent_by(site, "north")
    agreed(site.root, n_components=2)
    session = site.session("north")
    join(session, site.secret_file("north"))
    with pytest.raises(SpanReuseError, match="CB703"):
        ready_from(session, site.table("north"))
    people = ("A. Curator", "B. Officer")
    forced = Forced(reason="the ethics board asked for fewer numbers", by=people)
    ready, _ = sent_by(site, "north", forced=forced)
    assert ready.preview.span == "forced"
    assert any("through another basis" in each for each in ready.preview.warnings)
    assert session.vault.history()[-1].reason == forced.reason


def test_a_later_round_of_the_same_sizes_uses_the_stored_basis(make):
    site = make()
    join(site.session("north"), site.secret_file("north"))
    sent_by(site, "north")
    first = site.session("north").vault.upload_of(site.agreement).dataset.basis
    agreed(site.root, purpose="another purpose")
    join(site.session("north"), site.secret_file("north"))
    ready, _ = sent_by(site, "north")
    assert ready.preview.span == "kept"
    second = site.session("north").vault.upload_of(site.agreement).dataset.basis
    np.testing.assert_array_equal(first.project(np.eye(8)), second.project(np.eye(8)))


def test_few_changed_rows_are_pointed_out(site):
    sent_by(site, "north")
    frame(1).extend(frame(8, 10)).write_csv(site.table("north"))  # all ten are not held back
    ready = ready_from(site.session("north"), site.table("north"))
    assert any("came and 0 went" in each for each in ready.preview.warnings)


def test_before_joining_nothing_can_be_made(make):
    site = make()
    ready = ready_from(site.session("north"), site.table("north"))
    with pytest.raises(StepError, match="has not joined"):
        send(ready)
    assert not site.session("north").vault.datasets()


@pytest.mark.parametrize(
    ("target", "error"), [("data.csv", OptionError), ("none/x.upload", DiskError)]
)
def test_a_target_that_would_do_harm_is_refused_before_the_history_grows(site, target, error):
    table = site.table("north")
    before = table.read_bytes()
    ready = ready_from(site.session("north"), table)
    with pytest.raises(error):
        send(ready, site.folder("north") / target)
    assert table.read_bytes() == before
    assert site.session("north").vault.history() == ()


def test_an_empty_label_stops_the_upload_before_the_history_grows(site):
    made = frame(1).with_columns(died=pl.when(pl.int_range(120) == 5).then(None).otherwise("died"))
    made.write_csv(site.table("north"))
    with pytest.raises(LabelError, match="1 of 120 cells of column 'died' are empty"):
        sent_by(site, "north")
    assert site.session("north").vault.history() == ()


def test_check_says_all_that_is_wrong_at_once(site):
    made = frame(1).drop("pulse").with_columns(age=pl.lit(99.0), patient=pl.lit("0000001"))
    path = site.folder("north") / "bad.csv"
    made.write_csv(path)
    found = check(site.session("north"), path)
    assert not found.fits
    assert {(each.column, each.problem) for each in found.findings if each.refused} == {
        ("pulse", "absent"),
        ("age", "range"),
    }
    [problem] = found.problems
    assert "1 identifier(s) in the id column 'patient'" in str(problem)
    good = check(site.session("north"), site.table("north"))
    assert good.fits
    assert good.n_held == open_rows(site.session("north"), site.table("north")).n_held


def test_check_counts_rows_after_the_holdout(site):
    session, path = site.session("north"), site.folder("north") / "few.csv"
    held = open_rows(session, site.table("north")).held
    few = [*np.flatnonzero(held)[:10], *np.flatnonzero(~held)[:2]]
    frame(1)[few].write_csv(path)
    found = check(session, path)
    assert not found.fits
    [problem] = found.problems
    assert "of 12 rows 10 are held back, and the 2 others are fewer than the 3" in str(problem)


def test_a_table_that_is_held_back_whole_is_refused(site):
    session = site.session("north")
    whole = open_rows(session, site.table("north"))
    at = int(np.flatnonzero(whole.held)[0])
    frame(1)[at : at + 1].write_csv(site.folder("north") / "one.csv")
    with pytest.raises(ShapeError, match="all rows of party 'north' are held back"):
        ready_from(session, site.folder("north") / "one.csv")


def test_an_agreement_that_not_all_have_signed_opens_no_desk_but_for_a_check(site):
    text = site.agreement_path.read_text(encoding="utf-8")
    site.agreement_path.write_text(text[: text.rindex("[[signature]]")], encoding="utf-8")
    options = {"home": site.home("north"), "name": "north", "passphrase": str}
    with pytest.raises(UnsignedError, match="lab"):
        open_session(site.agreement_path, **options)
    assert open_session(site.agreement_path, **options, sealed=False).name in NAMES


def test_a_number_that_nobody_can_have_is_refused_before_an_upload_too(make):
    site = make()
    join(site.session("north"), site.secret_file("north"))
    table = site.folder("north") / "in-months.csv"
    frame(1).with_columns(age=pl.col("age") + 100.0).write_csv(table)
    with pytest.raises(FeatureError, match="column 'age' are outside the agreed range"):
        ready_from(site.session("north"), table)


class TestTurns:
    def sent(self, site, **options):
        session = site.session("north")
        to = session.beside(f"{upcoming(session).number}-{upcoming(session).message}")
        return send(ready_from(session, site.table("north")), to, **options)

    def test_a_lost_file_is_written_again_to_the_last_byte(self, site):
        sent = self.sent(site)
        before = sent.path.read_bytes()
        sent.path.unlink()
        again = send_again(site.session("north"), None)
        assert (again.path, again.digest, again.again) == (sent.path, sent.digest, True)
        assert again.path.read_bytes() == before
        assert len(site.session("north").vault.history()) == 1

    def test_a_round_takes_one_upload(self, site):
        self.sent(site)
        with pytest.raises(StepError, match=r"a round takes one\. 'cobasis send --again'"):
            require_turn(site.session("north"))

    def test_the_upload_waits_for_the_span_and_until_then_the_proposal_is_the_same(self, make):
        site = make(basis="consensus")
        join(site.session("north"), site.secret_file("north"))
        require_turn(site.session("north"))
        sent = self.sent(site)
        assert sent.path.name == "icu.north.1-proposal"
        with pytest.raises(WaitingError, match="has accepted none yet"):
            require_span(site.session("north"))
        for written in (send_again, finish):
            assert written(site.session("north"), None).digest == sent.digest

    def test_nothing_that_was_not_sent_is_written_again(self, site):
        with pytest.raises(StepError, match="keeps no file that it sent"):
            send_again(site.session("north"), None)

    def test_a_file_of_somebody_else_is_not_overwritten(self, site):
        path = site.session("north").beside("1-upload")
        path.write_text("somebody else's")
        with pytest.raises(DiskError, match="is no file that party 'north' made"):
            self.sent(site)
        assert path.read_text() == "somebody else's"
        assert site.session("north").vault.history() == ()

    def test_the_secret_is_taken_from_beside_the_agreement(self, make):
        site = make()
        with pytest.raises(WaitingError, match=r"'north\.secret' does not lie beside 'icu\.toml'"):
            take_secret(site.session("north"))
        site.secret_file("north").rename(site.root / "north.secret")
        assert take_secret(site.session("north")) == "north"
        assert take_secret(site.session("north")) is None

    def test_a_file_that_a_kill_left_without_a_name_gets_it_from_the_same_command(self, site):
        to = site.session("north").beside("1-upload")
        named = on("replace", to.name)
        with pytest.raises(Killed), at_call(1, dying_before, counts=named):
            self.sent(site)
        assert not to.exists()
        done = finish(site.session("north"), to)
        assert (done.again, file_digest(to)) == (True, done.digest)
        assert finish(site.session("north"), to) is None

    def test_the_vault_reads_each_data_set_once_a_state(self, site, monkeypatch):
        self.sent(site)
        frame(1).extend(frame(8)).write_csv(site.table("north"))
        session, read = site.session("north"), []
        unseal = session.vault._records._unseal
        monkeypatch.setattr(
            session.vault._records, "_unseal", lambda sealed: read.append(1) or unseal(sealed)
        )
        send(ready_from(session, site.table("north")), session.beside("1-upload"))
        assert len(read) <= 4  # the data set twice, for it was written once; secret; nothing else
