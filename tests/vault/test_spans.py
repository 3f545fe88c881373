"""A row is seen through one span, as long as it lives."""

import numpy as np
import pytest

from cobasis.errors import OptionError, SpanReuseError
from cobasis.protocol.plaintext import basis_columns
from cobasis.vault import Changes, Forced, Fresh, Kept, Refused
from vault.vaults import (
    DIGEST,
    FEATURES,
    WHY,
    agree,
    choose,
    made_basis,
    open_vault,
    table,
    upload,
)


@pytest.fixture
def vault(tmp_path):
    return open_vault(tmp_path / "north")


def same(one, two):
    return np.array_equal(basis_columns(one), basis_columns(two))


def test_rows_that_were_never_uploaded_get_a_fresh_basis(vault):
    assert isinstance(choose(vault, table()), Fresh)
    upload(vault, table())
    choice = choose(vault, table(seed=1))
    assert isinstance(choice, Fresh)
    assert not choice.over_old_rows


def test_the_same_rows_get_the_stored_basis_in_every_later_round(vault, tmp_path):
    upload(vault, table())
    choice = choose(open_vault(tmp_path / "north"), table()[::-1])
    assert isinstance(choice, Kept)
    assert same(choice.basis, made_basis())
    assert choice.changes == Changes(same=30, added=0, gone=0)
    upload(vault, table(), agreement=agree("icu-2027"))
    assert [entry.span for entry in vault.history()] == ["fresh", "kept"]
    assert len(vault.datasets()) == 1


def test_one_old_row_among_new_ones_is_enough(vault):
    upload(vault, table())
    mixed = np.vstack([table(50, seed=1), table()[:1]])
    choice = choose(vault, mixed)
    assert isinstance(choice, Kept)
    assert choice.changes == Changes(same=1, added=50, gone=29)
    upload(vault, mixed)
    assert isinstance(choose(vault, table(50, seed=1)), Kept)


def test_rows_that_only_an_earlier_upload_had_are_known_all_the_same(vault):
    upload(vault, table())
    upload(vault, table()[:12])
    upload(vault, table()[:11])
    choice = choose(vault, table()[12:])
    assert isinstance(choice, Kept)
    assert choice.changes == Changes(same=0, added=18, gone=11)


@pytest.mark.parametrize(("n_changed", "few"), [(0, False), (1, True), (10, True), (11, False)])
def test_one_to_ten_changed_rows_are_a_finding(vault, n_changed, few):
    upload(vault, table())
    changed = table()
    changed[:n_changed] += 1
    choice = choose(vault, changed)
    assert choice.changes == Changes(same=30 - n_changed, added=n_changed, gone=n_changed)
    assert choice.changes.few is few


@pytest.mark.parametrize("sizes", [{"n_components": 3}, {"n_features": FEATURES + 1}])
def test_old_rows_in_a_round_of_other_sizes_are_refused(vault, sizes):
    upload(vault, table())
    choice = choose(vault, table(), **sizes)
    assert isinstance(choice, Refused)
    message = (
        r"^rows of party 'north' were uploaded before, in round 'icu-2026', through a basis of 5 "
        r"features and 2 components; this round asks for .*two people .*reason.*\[CB703\]$"
    )
    with pytest.raises(SpanReuseError, match=message):
        choice.refuse()


def test_the_refusal_counts_no_rows(vault):
    upload(vault, table(37))
    choice = choose(vault, table(37)[:13], n_components=3)
    assert not {"37", "13", "24"} & set(choice.reason.split())


def test_a_fresh_span_over_old_rows_is_forced_with_a_reason_that_stays(vault):
    upload(vault, table())
    three = agree("icu-2027", n_components=3)
    choice = choose(vault, table(), n_components=3, forced=WHY)
    assert isinstance(choice, Fresh)
    assert choice.over_old_rows
    upload(vault, table(), agreement=three, forced=WHY, seed=1)
    first, second = vault.history()
    assert (first.span, first.reason, first.by) == ("fresh", "", "")
    assert (second.span, second.reason, second.by) == (
        "forced",
        WHY.reason,
        "A. Curator and B. Officer",
    )
    assert (second.n_components, second.round_id) == (3, "icu-2027")


def test_after_a_forced_span_the_rows_stay_with_the_last_one_that_fits(vault):
    upload(vault, table())
    upload(vault, table(), forced=WHY, seed=1)
    choice = choose(vault, table())
    assert same(choice.basis, made_basis(1))
    upload(vault, table(), agreement=agree(n_components=3), forced=WHY, seed=2)
    assert same(choose(vault, table()).basis, made_basis(1))


def test_forcing_without_need_leaves_no_mark(vault):
    upload(vault, table(), forced=WHY)
    [entry] = vault.history()
    assert (entry.span, entry.reason, entry.by) == ("fresh", "", "")


@pytest.mark.parametrize(
    ("reason", "by"),
    [
        ("", ("A. Curator", "B. Officer")),
        ("  ", ("A. Curator", "B. Officer")),
        ("a reason", ()),
        ("a reason", ("A. Curator",)),
        ("a reason", ("A. Curator", " ")),
        ("a reason", ("A. Curator", " a.  curator")),
    ],
)
def test_forcing_needs_a_reason_and_two_people(reason, by):
    with pytest.raises(OptionError, match=r"It takes 2 different people.*\[CB107\]$"):
        Forced(reason=reason, by=by)


def test_rows_of_two_spans_in_one_table_are_refused(vault):
    upload(vault, table())
    upload(vault, table(seed=1), agreement=agree("icu-2027"), seed=1)
    choice = choose(vault, np.vstack([table(), table(seed=1)]))
    with pytest.raises(SpanReuseError, match=r"in round 'icu-2026', 'icu-2027', through"):
        choice.refuse()


def test_an_upload_that_was_begun_and_never_finished_counts(vault):
    """Its file may have left all the same."""
    upload(vault, table(), digest=None)
    assert isinstance(choose(vault, table()), Kept)
    assert vault.history()[0].upload == ""
    assert vault.upload_of(agree()) is None


def test_another_basis_than_the_stored_one_is_refused_when_the_upload_begins(vault):
    upload(vault, table())
    choice = choose(vault, table())
    with pytest.raises(SpanReuseError, match=r"is not the one that its vault has.*\[CB703\]$"):
        vault.begin_upload(choice, made_basis(1), agreement=agree(), time="")
    assert len(vault.history()) == 1


def test_of_two_uploads_that_begin_at_once_the_second_is_refused(vault, tmp_path):
    other = open_vault(tmp_path / "north")
    first, second = choose(vault, table()), choose(other, table())
    vault.begin_upload(first, made_basis(), agreement=agree(), time="")
    with pytest.raises(SpanReuseError, match="another upload of them may have begun meanwhile"):
        other.begin_upload(second, made_basis(1), agreement=agree(), time="")
    assert len(vault.datasets()) == 1


def test_a_fresh_basis_has_the_sizes_that_were_asked_for(vault):
    choice = choose(vault, table())
    with pytest.raises(SpanReuseError):
        vault.begin_upload(choice, made_basis(shape=(FEATURES, 3)), agreement=agree(), time="")
    assert vault.history() == ()


def test_the_history_counts_through_all_data_sets(vault):
    for seed in range(3):
        upload(vault, table(seed=seed), agreement=agree(f"round-{seed}"), seed=seed)
    upload(vault, table(seed=0), agreement=agree("again"))
    history = vault.history()
    assert [entry.number for entry in history] == [1, 2, 3, 4]
    assert [entry.round_id for entry in history] == ["round-0", "round-1", "round-2", "again"]
    assert history[0].agreement == agree("round-0").digest().hex()
    assert {(entry.upload, entry.n_rows, entry.basis) for entry in history} == {(DIGEST, 30, "svd")}


IDS = [f"{number:05d}" for number in range(30)]


def test_people_are_known_again_whatever_becomes_of_their_rows(vault):
    upload(vault, table(), ids=IDS, columns="of 2026")
    scaled = table() * 3.0
    assert isinstance(choose(vault, scaled, ids=IDS, columns="of 2026"), Kept)
    refused = choose(vault, scaled, ids=IDS, columns="of 2027")
    assert isinstance(refused, Refused)
    assert "become numbers in the same way" in refused.reason
    assert isinstance(choose(vault, scaled, ids=[f"x{each}" for each in IDS]), Fresh)


def test_one_known_person_among_new_ones_is_enough(vault):
    upload(vault, table(), ids=IDS, columns="of 2026")
    ids = ["new", *IDS[:1]]
    assert isinstance(choose(vault, table(2, seed=5), ids=ids, columns="of 2027"), Refused)
    assert isinstance(choose(vault, table(2, seed=5), ids=ids, columns="of 2026"), Kept)
    upload(vault, table(2, seed=5), ids=ids, columns="of 2026")
    assert isinstance(choose(vault, table(1, seed=6), ids=["new"], columns="of 2027"), Refused)


def test_people_stay_known_after_the_vault_is_opened_again(vault, tmp_path):
    upload(vault, table(), ids=IDS, columns="of 2026")
    again = open_vault(tmp_path / "north")
    assert isinstance(choose(again, table(seed=3), ids=IDS, columns="of 2027"), Refused)
