"""What uploads spend: written before noise is drawn, added up, never more than the lifetime."""

import math

import numpy as np
import pytest

from cobasis.errors import BudgetError
from cobasis.privacy.gaussian import epsilon_of
from cobasis.protocol.dp_terms import DPTerms
from cobasis.vault.ledger import spent_on
from vault.vaults import WHY, agree, choose, propose, table, upload

TERMS = DPTerms(epsilon=2, radius=1, most_rows=1000, labels="public", lifetime_epsilon=4)
IDS = [f"p{at}" for at in range(30)]


def noisy(round_id="first", **changes):
    return agree(round_id, basis="haar", dp=TERMS.model_copy(update=changes))


def release(vault, rows, *, agreement=None, drawn="1", **options):
    return upload(vault, rows, agreement=agreement or noisy(), release=drawn * 64, **options)


def spent(vault, rows, ids=()):
    return spent_on(vault.datasets(), choose(vault, rows, ids=ids, forced=WHY).asked)


def test_what_was_begun_is_spent_once_though_it_never_became_whole(vault, again):
    release(vault, table(), digest=None)
    for _ in range(4):  # the same release is the same numbers
        release(vault, table())
    assert len(again().history()) == 5
    found = spent(again(), table())
    [charge] = found.charges
    assert found.epsilon(1e-6) == pytest.approx(2, rel=1e-3)
    assert (charge.release, charge.mu, charge.labels) == ("1" * 64, TERMS.calibration.mu, 0.0)
    assert (charge.lifetime_epsilon, charge.delta) == (4.0, 1e-6)


def test_noise_for_a_row_beside_the_centre_hides_half_of_one_that_is_somebody_elses(vault):
    """A promise of `replace-one` is about rows that are 2r apart, whatever came later hides."""
    terms = TERMS.model_copy(update={"adjacency": "add-remove"})
    centred = {"adjacency": "add-remove", "lifetime_epsilon": 3}
    release(vault, table(), drawn="1", agreement=noisy("first", **centred))
    release(vault, table(), drawn="2", agreement=noisy("second", **centred))
    mu = terms.calibration.mu
    assert spent(vault, table()).epsilon(1e-6, centred=True) == pytest.approx(2.93, abs=0.01)
    expected = epsilon_of(noise=1, delta=1e-6, sensitivity=math.sqrt(8) * mu)
    assert spent(vault, table()).epsilon(1e-6) == pytest.approx(expected, rel=1e-12)
    release(vault, table(seed=1), drawn="1", agreement=noisy("first", lifetime_epsilon=3))
    with pytest.raises(BudgetError, match=r"epsilon=4\.899.*lifetime of 3 was promised"):
        release(vault, table(seed=1), drawn="2", agreement=noisy("second", **centred))


def test_releases_add_up_as_the_square_root_of_squares_and_labels_plainly(vault):
    changes = {"labels": "randomised_response", "label_epsilon": 0.5, "lifetime_epsilon": 9}
    fields = {"task": "classification", "classes": (0, 1)}
    for drawn in "12":
        agreement = agree(drawn, basis="haar", dp=TERMS.model_copy(update=changes), **fields)
        release(vault, table(), drawn=drawn, agreement=agreement)
    without = epsilon_of(noise=1, delta=1e-6, sensitivity=math.sqrt(2) * TERMS.calibration.mu)
    assert 2.8 < without < 3.0  # not 4
    assert spent(vault, table()).epsilon(1e-6) == pytest.approx(without + 1.0, rel=1e-9)


def test_a_lifetime_is_never_overspent_and_no_later_agreement_raises_it(vault):
    for drawn, lifetime in (("1", 4.0), ("2", 4.0), ("3", 60.0)):
        release(vault, table(), drawn=drawn, agreement=noisy(drawn, lifetime_epsilon=lifetime))
    before = vault.history()
    match = r"would be release 4.*epsilon=4\.\d+ at delta=1e-06.*lifetime of 4 was.*\[CB705\]$"
    with pytest.raises(BudgetError, match=match):
        release(vault, table(), drawn="4", agreement=noisy("4", lifetime_epsilon=60))
    assert vault.history() == before
    release(vault, table(), drawn="2", agreement=noisy("2"))  # known, and free
    assert len(spent(vault, table()).charges) == 3
    release(vault, table(seed=1), drawn="5", agreement=noisy("5", lifetime_epsilon=60))
    with pytest.raises(BudgetError, match="lifetime of 2 was promised"):  # less holds too
        release(vault, table(seed=1), drawn="6", agreement=noisy("6", lifetime_epsilon=2))


def test_one_row_or_person_that_is_known_is_enough_to_be_charged_in_every_data_set(vault):
    exactly_one = noisy(lifetime_epsilon=2)
    asked = choose(vault, table()).asked
    assert vault.affordable(asked, exactly_one).charges == ()  # to look spends nothing
    release(vault, table(), ids=IDS, agreement=exactly_one)
    assert len(vault.affordable(asked, exactly_one).charges) == 1
    with pytest.raises(BudgetError, match="lifetime of 2"):
        vault.affordable(asked, noisy("second", lifetime_epsilon=9))
    rows = np.vstack([table(seed=9), table()[:1]])
    for some, ids in ((table(), IDS), (rows, ()), (table(seed=5), IDS)):
        with pytest.raises(BudgetError, match=r"release 2 of some of its rows.*lifetime of 2"):
            release(vault, some, drawn="2", ids=ids)
    release(vault, table(seed=9), drawn="2", agreement=noisy(lifetime_epsilon=3))
    assert len({each.name for each in vault.datasets()}) == 2
    both = np.vstack([table()[:5], table(seed=9)[:5]])
    with pytest.raises(BudgetError, match="lifetime of 2"):  # the smaller of the two
        release(vault, both, drawn="3", forced=WHY)
    assert len(spent(vault, both).charges) == 2
    assert len(spent(vault, table()).charges) == 1


def test_with_and_without_noise_do_not_mix_whoever_asks_for_it(vault):
    upload(vault, table(), agreement=agree("bare"), digest=None)  # begun is enough
    with pytest.raises(BudgetError, match=r"without noise, in round 'bare'.*infinite.*\[CB705\]$"):
        release(vault, table(), drawn="1")
    assert spent(vault, table()).epsilon(1e-6) == math.inf
    release(vault, table(seed=1))
    before = vault.history()
    for work, told in ((upload, {}), (upload, {"forced": WHY}), (propose, {})):
        with pytest.raises(BudgetError, match=r"no \[dp\] section.*take the guarantee back"):
            work(vault, table(seed=1), agreement=agree("bare"), **told)
    assert vault.history() == before


def test_directions_that_were_proposed_are_something_without_noise(vault, again):
    propose(vault, table(), ids=IDS, agreement=agree("span"))
    propose(vault, table(seed=1), ids=[f"q{at}" for at in range(30)], agreement=agree("other"))
    mixed = np.vstack([table(seed=2), table()[:1]])
    for rows, ids in ((table(), ()), (table(seed=1), ()), (mixed, ()), (table(seed=3), IDS)):
        with pytest.raises(BudgetError, match=r"in round '(span|other)'"):
            release(again(), rows, ids=ids)
