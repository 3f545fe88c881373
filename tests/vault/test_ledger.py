"""What uploads spend: written before noise is drawn, added up, never more than the lifetime."""

import math
from dataclasses import FrozenInstanceError, asdict, fields, replace

import numpy as np
import pytest

from cobasis import SecretBasis
from cobasis.errors import BudgetError, DiskError, SpanReuseError
from cobasis.privacy.gaussian import epsilon_of
from cobasis.protocol.dp_terms import DPTerms
from cobasis.vault import Refused
from cobasis.vault.datasets import Charge
from cobasis.vault.ledger import Spent
from faults import FULL, at_call
from vault.vaults import (
    COMPONENTS,
    FEATURES,
    NOW,
    WHY,
    agree,
    choose,
    made_basis,
    open_vault,
    table,
    upload,
)

TERMS = DPTerms(epsilon=2, radius=1, most_rows=1000, labels="public", lifetime_epsilon=4)


def noisy(round_id="first", **changes):
    return agree(round_id, basis="haar", dp=TERMS.model_copy(update=changes))


def release(vault, rows, *, agreement=None, drawn="1", finished=True, forced=None, ids=()):
    """Do what a party's command does; the number of the upload."""
    asked = {"forced": forced} if forced else {}
    choice = choose(vault, rows, ids=ids, **asked)
    if isinstance(choice, Refused):
        choice.refuse()
    basis = getattr(choice, "basis", None) or made_basis()
    number = vault.begin_upload(
        choice, basis, agreement=agreement or noisy(), time=NOW, release=drawn * 64
    )
    if finished:
        vault.finish_upload(number, "d" * 64)
    return number


def spent(vault, rows, ids=()):
    return vault.ledger.spent(choose(vault, rows, ids=ids, forced=WHY).asked)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "north"


@pytest.fixture
def vault(folder):
    return open_vault(folder)


def test_what_was_begun_is_spent_though_it_never_became_whole(vault, folder):
    release(vault, table(), finished=False)
    found = spent(open_vault(folder), table())
    assert len(found.charges) == 1
    assert found.epsilon(1e-6) == pytest.approx(2, rel=1e-3)


def test_the_same_release_again_is_free_and_stays_in_the_history(vault, folder):
    for _ in range(5):
        release(vault, table())
    assert len(open_vault(folder).history()) == 5
    found = spent(vault, table())
    assert len(found.charges) == 1
    assert found.epsilon(1e-6) == pytest.approx(2, rel=1e-3)


def test_releases_add_up_as_the_square_root_of_squares(vault):
    release(vault, table(), drawn="1")
    release(vault, table(), drawn="2", agreement=noisy("second"))
    mu = TERMS.calibration.mu
    expected = epsilon_of(noise=1, delta=1e-6, sensitivity=math.sqrt(2) * mu)
    found = spent(vault, table()).epsilon(1e-6)
    assert found == pytest.approx(expected, rel=1e-12)
    assert 2.8 < found < 3.0  # not 4


def test_labels_add_up_plainly(vault):
    changes = {"labels": "randomised_response", "label_epsilon": 0.5, "lifetime_epsilon": 9}
    fields = {"task": "classification", "classes": (0, 1)}
    for drawn in "12":
        agreement = agree(drawn, basis="haar", dp=TERMS.model_copy(update=changes), **fields)
        release(vault, table(), drawn=drawn, agreement=agreement)
    found = spent(vault, table())
    without = epsilon_of(noise=1, delta=1e-6, sensitivity=math.sqrt(2) * TERMS.calibration.mu)
    assert found.epsilon(1e-6) == pytest.approx(without + 1.0, rel=1e-9)


def test_a_lifetime_is_never_overspent_and_no_later_agreement_raises_it(vault):
    release(vault, table(), drawn="1")
    release(vault, table(), drawn="2", agreement=noisy("second"))
    release(vault, table(), drawn="3", agreement=noisy("third", lifetime_epsilon=60))
    before = vault.history()
    match = (
        r"would be release 4.*epsilon=4\.\d+ at delta=1e-06.*lifetime of 4 was promised.*\[CB705\]$"
    )
    with pytest.raises(BudgetError, match=match):
        release(vault, table(), drawn="4", agreement=noisy("fourth", lifetime_epsilon=60))
    assert vault.history() == before
    release(vault, table(), drawn="2", agreement=noisy("second"))  # known, and free
    assert len(spent(vault, table()).charges) == 3


def test_a_later_agreement_can_promise_less_and_that_holds_too(vault):
    release(vault, table(), drawn="1", agreement=noisy(lifetime_epsilon=60))
    with pytest.raises(BudgetError, match="lifetime of 2 was promised"):
        release(vault, table(), drawn="2", agreement=noisy("second", lifetime_epsilon=2))
    release(vault, table(), drawn="2", agreement=noisy("second", lifetime_epsilon=3))
    with pytest.raises(BudgetError, match="lifetime of 3 was promised"):
        release(vault, table(), drawn="3", agreement=noisy("third", lifetime_epsilon=60))


def test_a_budget_of_exactly_one_release_takes_one(vault):
    agreement = noisy(lifetime_epsilon=2)
    release(vault, table(), agreement=agreement)
    with pytest.raises(BudgetError, match="lifetime of 2"):
        release(vault, table(), drawn="2", agreement=agreement)


def test_one_row_that_is_known_is_enough_to_be_charged(vault):
    release(vault, table(), agreement=noisy(lifetime_epsilon=2))
    rows = np.vstack([table(seed=9), table()[:1]])
    with pytest.raises(BudgetError, match="release 2 of some of its rows"):
        release(vault, rows, drawn="2")
    release(vault, table(seed=9), drawn="2")
    assert len({each.name for each in vault.datasets()}) == 2


def test_people_are_charged_whatever_their_numbers_are_now(vault):
    ids = [f"p{at}" for at in range(30)]
    release(vault, table(), ids=ids, agreement=noisy(lifetime_epsilon=2))
    with pytest.raises(BudgetError, match="lifetime of 2"):
        release(vault, table(seed=5), drawn="2", ids=ids)


def test_rows_in_two_data_sets_have_spent_in_both(vault):
    release(vault, table(), drawn="1")
    release(vault, table(seed=1), drawn="2", agreement=noisy(lifetime_epsilon=3))
    both = np.vstack([table()[:5], table(seed=1)[:5]])
    with pytest.raises(BudgetError, match="lifetime of 3"):  # the smaller of the two
        release(vault, both, drawn="3", forced=WHY)
    assert len(spent(vault, both).charges) == 2
    assert len(spent(vault, table()).charges) == 1


def test_after_an_upload_without_noise_nothing_is_promised(vault):
    upload(vault, table(), agreement=agree("bare"), digest=None)  # begun is enough
    with pytest.raises(BudgetError, match=r"without noise, in round 'bare'.*infinite.*\[CB705\]$"):
        release(vault, table(), drawn="1")
    assert spent(vault, table()).epsilon(1e-6) == math.inf


def test_after_an_upload_with_noise_none_leaves_without(vault):
    release(vault, table())
    before = vault.history()
    for forced in (None, WHY):
        with pytest.raises(BudgetError, match=r"no \[dp\] section.*take the guarantee back"):
            upload(vault, table(), agreement=agree("bare"), forced=forced)
    assert vault.history() == before


def test_directions_that_were_proposed_are_something_without_noise(vault, folder):
    asked = choose(vault, table()).asked
    vault.ledger.propose(asked, agree("span"))
    vault.ledger.propose(choose(vault, table(seed=1)).asked, agree("span"))
    again = open_vault(folder)
    for rows in (table(), table(seed=1), np.vstack([table(seed=2), table()[:1]])):
        with pytest.raises(BudgetError, match="in round 'span'"):
            release(again, rows)
    release(again, table(seed=2))
    with pytest.raises(BudgetError, match="take the guarantee back"):
        again.ledger.propose(choose(again, table(seed=2)).asked, agree("span"))


def test_people_whose_directions_were_proposed_are_known_again(vault):
    ids = [f"p{at}" for at in range(30)]
    vault.ledger.propose(choose(vault, table(), ids=ids).asked, agree("span"))
    with pytest.raises(BudgetError, match="in round 'span'"):
        release(vault, table(seed=3), ids=ids)


def test_looking_refuses_what_cannot_be_afforded_and_lets_a_repetition_through(vault):
    agreement = noisy(lifetime_epsilon=2)
    asked = choose(vault, table()).asked
    assert vault.ledger.affordable(asked, agreement).charges == ()
    release(vault, table(), agreement=agreement)
    assert len(vault.ledger.affordable(asked, agreement).charges) == 1
    with pytest.raises(BudgetError, match="lifetime of 2"):
        vault.ledger.affordable(asked, noisy("second", lifetime_epsilon=9))


def test_a_line_from_before_there_was_noise_counts_as_one_without(vault, folder):
    upload(vault, table(), agreement=agree("old"))
    [dataset] = vault.datasets()
    records = vault._records
    record = records.get(f"datasets/{dataset.name}")
    del record.about["history"][0]["charge"]
    records.put(f"datasets/{dataset.name}", record)
    assert open_vault(folder).history()[0] == replace(dataset.history[0], charge=None)
    with pytest.raises(BudgetError, match="in round 'old'"):
        release(open_vault(folder), table())


def test_a_charge_comes_back_as_it_was(vault, folder):
    release(vault, table())
    [line] = open_vault(folder).history()
    assert (line.charge.release, line.charge.mu) == ("1" * 64, TERMS.calibration.mu)
    assert (line.charge.lifetime_epsilon, line.charge.delta) == (4.0, 1e-6)
    assert line.charge.labels == 0.0


@pytest.mark.parametrize(
    "stated", [Spent(), Charge(release="1" * 64, mu=1, labels=0, lifetime_epsilon=4, delta=1e-6)]
)
def test_what_is_spent_cannot_be_changed_and_no_two_numbers_can_be_mixed_up(stated):
    for each in fields(stated):
        with pytest.raises(FrozenInstanceError):
            setattr(stated, each.name, getattr(stated, each.name))
    with pytest.raises(TypeError, match="positional"):
        type(stated)(*asdict(stated).values())


@pytest.mark.parametrize("step", ["charge", "proposal"])
def test_a_disk_that_is_full_at_any_call_leaves_the_old_account_or_the_new_one(tmp_path, step):
    number = 0
    while True:
        number += 1
        vault = open_vault(tmp_path / str(number))
        release(vault, table(seed=1), agreement=noisy("before"))
        choice = choose(vault, table())
        try:
            with at_call(number, FULL) as clock:
                if step == "charge":
                    vault.begin_upload(
                        choice, made_basis(), agreement=noisy(), time=NOW, release="1" * 64
                    )
                else:
                    vault.ledger.propose(choice.asked, agree("span"))
        except DiskError:
            pass
        again = open_vault(tmp_path / str(number))
        assert len(spent(again, table(seed=1)).charges) == 1
        found = spent(again, table())
        if clock.stopped_at is None:
            assert found.charges or found.bare == ("span",)
            break
        assert len(found.charges) in (0, 1)
        assert found.bare in ((), ("span",))
    assert number > 5


def test_the_basis_of_a_charge_is_the_stored_one(vault):
    release(vault, table())
    choice = choose(vault, table())
    other = SecretBasis(
        np.linalg.qr(np.random.default_rng(8).normal(size=(FEATURES, COMPONENTS)))[0],
        party="north",
    )
    before = vault.history()
    with pytest.raises(SpanReuseError):
        vault.begin_upload(choice, other, agreement=noisy(), time=NOW, release="1" * 64)
    assert vault.history() == before
