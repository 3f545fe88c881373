"""A late party needs the target alone; a party that leaves changes nobody else."""

import numpy as np
import pytest

from aligners import (
    Row,
    Toy,
    make_toy,
    on_every_aligner,
    on_every_condition,
    spread,
)
from cobasis.algorithms.base import Alignment, align
from cobasis.algorithms.odc import ODC
from cobasis.errors import DuplicatePartyError, UnknownPartyError


def without(toy: Toy, party: str) -> Toy:
    return Toy(anchor=toy.anchor, bases={p: b for p, b in toy.bases.items() if p != party})


def assert_same_fits(after: Alignment, before: Alignment) -> None:
    """Not equal numbers: the same objects, with the same bits as before."""
    for party in set(after.fits) & set(before.fits):
        assert after.fits[party] is before.fits[party]
    assert after.target is before.target


@on_every_aligner
@on_every_condition
def test_a_late_party_is_fitted_to_the_frozen_target(row: Row, condition):
    toy = make_toy(condition)
    before = without(toy, "p3").align(row)
    frozen = before.target.rows.copy()
    kept = {party: change.copy() for party, change in before.changes_of_basis.items()}
    after = before.add("p3", toy.images["p3"])
    assert_same_fits(after, before)
    np.testing.assert_array_equal(after.target.rows, frozen)
    for party, change in kept.items():
        np.testing.assert_array_equal(after.changes_of_basis[party], change)
    assert set(before.fits) == {"p0", "p1", "p2"}
    assert "p3" not in after.target.shaped_by
    apart = spread(toy.products(after))
    assert (apart < toy.rounding()) == (condition in row.concordant_under)


@on_every_aligner
@pytest.mark.parametrize("leaver", ["p0", "p2"])
def test_a_party_that_leaves_changes_no_other_fit_and_may_come_back(row: Row, leaver):
    """p0 is the reference of those that have one; a fit is the same, late or in time."""
    toy = make_toy("diffspan")
    before = toy.align(row)
    after = before.remove(leaver)
    assert set(after.fits) == set(toy.bases) - {leaver}
    assert set(before.fits) == set(toy.bases)
    assert_same_fits(after, before)
    again = after.add(leaver, toy.images[leaver])
    np.testing.assert_allclose(
        again.changes_of_basis[leaver], before.changes_of_basis[leaver], rtol=0, atol=1e-12
    )
    assert again.departed == ()


@on_every_aligner
def test_departed_names_whose_trace_the_target_still_carries(row: Row):
    found = make_toy("diffspan_orth").align(row)
    assert found.departed == ()
    gone = found.remove("p0").remove("p2")
    shaped_by_one = row.name.startswith(("odc", "whitened"))
    assert found.target.shaped_by == (("p0",) if shaped_by_one else ("p0", "p1", "p2", "p3"))
    assert gone.departed == (("p0",) if shaped_by_one else ("p0", "p2"))


def test_a_second_image_under_one_name_and_a_stranger_that_leaves_are_refused():
    toy = make_toy("diffspan")
    found = align(ODC(), toy.images)
    with pytest.raises(DuplicatePartyError, match=r"party 'p1' is aligned already.*\[CB307\]"):
        found.add("p1", toy.images["p1"])
    with pytest.raises(UnknownPartyError, match=r"'p1' is not in .*\(p0, p2, p3\).*\[CB304\]"):
        found.remove("p1").remove("p1")


def test_fits_cannot_be_exchanged_from_outside():
    found = align(ODC(), make_toy("diffspan").images)
    for stage in (found, found.remove("p1"), found.remove("p1").add("p1", found.target.rows)):
        with pytest.raises(TypeError, match="does not support item assignment"):
            stage.fits["p0"] = None
