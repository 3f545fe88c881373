"""A row is known again by keyed bytes, and is seen through one span, as long as it lives."""

import hmac

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cobasis.errors import OptionError, SpanReuseError
from cobasis.protocol.plaintext import basis_columns
from cobasis.vault.datasets import Changes, Forced, compare
from vault.vaults import DIGEST, FEATURES, WHY, agree, choose, made_basis, open_vault, table, upload

ROWS = st.lists(st.integers(0, 6), max_size=30)
IDS = [f"{number:05d}" for number in range(30)]


@pytest.fixture
def used(vault):
    upload(vault, table())
    return vault


def same(choice, basis):
    return np.array_equal(basis_columns(choice.dataset.basis), basis_columns(basis))


def marks(vault, rows):
    return vault.fingerprints(row.tobytes() for row in np.asarray(rows, dtype=float))


def test_a_fingerprint_is_the_beginning_of_an_hmac_over_the_rows_bytes(vault, tmp_path):
    key = vault._records.derived(b"fingerprints")
    macs = [hmac.digest(key, row.tobytes(), "sha256")[:8] for row in table(3)]
    assert marks(vault, table(3)).tolist() == [int.from_bytes(each, "little") for each in macs]
    other = marks(open_vault(tmp_path / "south"), table())
    assert not np.intersect1d(marks(vault, table()), other).size
    assert not np.intersect1d(vault.people(IDS), marks(vault, table())).size
    # a cell that changes in its last bit makes another row
    changed = table()
    changed[3, 2] = np.nextafter(changed[3, 2], np.inf)
    found = compare(marks(vault, table()), marks(vault, changed))
    assert found == Changes(same=29, added=1, gone=1)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(before=ROWS, after=ROWS)
def test_rows_are_counted_as_often_as_they_occur(before, after):
    one, two = (np.sort(np.array(rows, dtype=np.uint64)) for rows in (before, after))
    both = sum(min(before.count(each), after.count(each)) for each in set(before))
    expected = Changes(same=both, added=len(after) - both, gone=len(before) - both)
    assert compare(one, two) == expected


def test_one_old_row_is_enough_whichever_upload_had_it(used):
    assert choose(used, table(50, seed=1)).span == "fresh"
    mixed = np.vstack([table(50, seed=1), table()[:1]])
    choice = choose(used, mixed)
    assert choice.span == "kept"
    assert same(choice, made_basis())
    assert choice.changes == Changes(same=1, added=50, gone=29)
    upload(used, mixed)
    assert choose(used, table(50, seed=1)).span == "kept"
    upload(used, table()[:12])
    upload(used, table()[:11])
    choice = choose(used, table()[12:])
    assert choice.span == "kept"
    assert choice.changes == Changes(same=0, added=18, gone=11)


def test_old_rows_in_a_round_of_other_sizes_are_refused_without_counting_them(used):
    message = (
        r"^rows of party 'north' were uploaded before, in round 'icu-2026', through a basis of 5 "
        r"features and 2 component\(s\); this round asks for .*two people .*reason.*\[CB703\]$"
    )
    for sizes in ({"n_components": 3}, {"n_features": FEATURES + 1}):
        with pytest.raises(SpanReuseError, match=message) as refused:
            choose(used, table()[:13], **sizes)
        assert not {"30", "13", "17"} & set(str(refused.value).split())


def test_a_second_span_is_forced_with_a_mark_that_stays_and_the_last_one_that_fits_is_kept(used):
    upload(used, table(), agreement=agree("icu-2027", n_components=3), forced=WHY, seed=1)
    upload(used, table(seed=1), forced=WHY)  # without need, which leaves no mark
    upload(used, table(), forced=WHY, seed=2)
    fresh, forced = ("fresh", "", ""), ("forced", WHY.reason, "A. Curator and B. Officer")
    told = [(each.span, each.reason, each.by) for each in used.history()]
    assert told == [fresh, forced, fresh, forced]
    assert same(choose(used, table()), made_basis(2))


def test_forcing_needs_a_reason_and_two_people():
    two = ("A. Curator", "B. Officer")
    alone = ((), two[:1], ("A. Curator", " "), ("A. Curator", " a.  curator"))
    for reason, by in (("", two), ("  ", two), *(("a reason", each) for each in alone)):
        with pytest.raises(OptionError, match=r"It takes 2 different people.*\[CB107\]$"):
            Forced(reason=reason, by=by)


def test_rows_of_two_spans_in_one_table_are_refused(used):
    upload(used, table(seed=1), agreement=agree("icu-2027"), seed=1)
    dataset, _ = used.upload_of(agree("icu-2027"))
    assert np.array_equal(basis_columns(dataset.basis), basis_columns(made_basis(1)))
    told = {(each.upload, each.n_rows, each.basis) for each in used.history()}
    assert told == {(DIGEST, 30, "svd")}
    with pytest.raises(SpanReuseError, match=r"in round 'icu-2026', 'icu-2027', through"):
        choose(used, np.vstack([table(), table(seed=1)]))


def test_what_was_begun_counts_and_no_other_basis_than_the_vaults_is_begun(vault, again):
    wrong = made_basis(shape=(FEATURES, 3))
    other = again()
    early, late = choose(vault, table()), choose(other, table())
    with pytest.raises(SpanReuseError):
        vault.begin_upload(early, wrong, agreement=agree(), time="")
    assert vault.history() == ()
    vault.begin_upload(early, made_basis(), agreement=agree(), time="")
    with pytest.raises(SpanReuseError, match="another upload of them may have begun meanwhile"):
        other.begin_upload(late, made_basis(1), agreement=agree(), time="")
    kept = choose(vault, table())  # though no file became whole, it may have left
    assert (kept.span, vault.upload_of(agree())) == ("kept", None)
    with pytest.raises(SpanReuseError, match=r"is not the one that its vault has.*\[CB703\]$"):
        vault.begin_upload(kept, made_basis(1), agreement=agree(), time="")
    assert [each.upload for each in vault.history()] == [""]


def test_people_are_known_again_whatever_becomes_of_their_rows(vault, again):
    upload(vault, table(), ids=IDS, columns="of 2026")
    scaled = table() * 3.0
    assert choose(vault, scaled, ids=IDS, columns="of 2026").span == "kept"
    assert choose(vault, scaled, ids=[f"x{each}" for each in IDS]).span == "fresh"
    # one among new ones is enough, and brings the others in
    mixed = {"rows": table(2, seed=5), "ids": ["new", *IDS[:1]]}
    for rows, ids in ((scaled, IDS), mixed.values()):
        with pytest.raises(SpanReuseError, match="become numbers in the same way"):
            choose(again(), rows, ids=ids, columns="of 2027")
    upload(vault, **mixed, columns="of 2026")
    with pytest.raises(SpanReuseError):
        choose(vault, table(1, seed=6), ids=["new"], columns="of 2027")
