"""From rows to an upload: their order, and noise that is bound to the release and drawn once."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from cobasis import Party, PartyKey, simulate
from cobasis.errors import (
    AgreementError,
    DiskError,
    FileChangedError,
    LabelError,
    NotFiniteError,
    OptionError,
    SecretError,
    StepError,
)
from cobasis.linalg.arrays import WholeTable
from cobasis.linalg.rng import haar_columns
from cobasis.progress import silent
from cobasis.protocol import projection
from cobasis.protocol.projection import InMemory, LabelledRows, RowsInMemory
from cobasis.protocol.secrets import SecretBasis
from protocol.consortium import COMPONENTS, WIDTH, consortium, tables
from protocol.test_dp_terms import RANDOMISED, terms


def north(dp=None, *, key=None, basis="haar", **changes):
    keys = {name: PartyKey() for name in tables()} | ({"north": key} if key else {})
    return consortium(basis=basis, dp=dp or terms(), keys=keys, **changes).parties["north"]


def plain():
    return consortium().parties["north"]


@pytest.fixture
def rows():
    return tables()["north"][0]


@pytest.fixture
def labels():
    return tables()["north"][1]


class InParts(LabelledRows):
    """A table that is cut otherwise than one in memory."""

    def __init__(self, table, labels, sizes):
        self.table, self.told, self.sizes, self.shape = table, labels, sizes, table.shape

    def labels(self):
        return self.told

    def over(self, work, *, step):
        assert step is not None
        first = 0
        for size in self.sizes:
            part = self.table[first : first + size]
            yield work(first, (np.asfortranarray(part[at : at + 3]) for at in range(0, size, 3)))
            first += size


def written(projection):
    sink = InMemory()
    projection.write(sink, report=silent)
    return sink.upload


def test_the_same_release_again_is_the_same_numbers(rows, labels):
    party = north(terms(**RANDOMISED))
    one, two = party.prepare(rows, labels), party.prepare(rows.copy(), labels.tolist())
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.labels, two.labels)


def test_noise_has_the_agreed_scale_and_changes_the_rows(rows, labels):
    dp = terms(radius=1e-6)  # so that what is released is noise
    many = np.tile(rows, (30, 1))
    upload = north(dp).prepare(many, np.tile(labels, 30))
    assert upload.rows.std() == pytest.approx(dp.calibration.noise, rel=0.05)


def changed(kind, rows, labels):
    if kind == "one number":
        rows = rows.copy()
        rows[3, 2] = np.nextafter(rows[3, 2], 9)
    if kind == "two rows exchanged":
        rows = rows.copy()
        rows[[3, 4]] = rows[[4, 3]]
    if kind == "one label":
        labels = labels.copy()
        labels[3] = 1 - labels[3]
    if kind == "a row less":
        rows, labels = rows[:-1], labels[:-1]
    return rows, labels


def unordered(party, rows, labels):
    """What is released, in the table's order; rows are so small that it is noise."""
    plan = party.project(RowsInMemory(rows, labels))
    return np.vstack(plan.noising.projected(0, iter([rows]))[0])


@pytest.mark.parametrize("kind", ["one number", "two rows exchanged", "one label", "a row less"])
def test_any_change_of_rows_or_labels_draws_other_noise(rows, labels, kind):
    party, rows = north(), rows * 1e-9
    one = unordered(party, rows, labels)[:29].ravel()
    np.testing.assert_array_equal(unordered(party, rows, labels)[:29].ravel(), one)
    two = unordered(party, *changed(kind, rows, labels))[:29].ravel()
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.5


def test_another_agreement_key_or_basis_draws_other_noise(rows, labels):
    key = PartyKey(b"k" * 32)
    group = consortium(basis="haar", dp=terms(), keys=dict.fromkeys(tables(), key))
    agreement, secret = group.agreement, group.secret

    def released(changed=agreement, used=key, **options):
        party = Party("north", agreement=changed, secret=secret, key=used)
        small = rows * 1e-9  # what is seen is noise
        plan = party.project(RowsInMemory(small, labels), **options)
        return np.vstack(plan.noising.projected(0, iter([small]))[0])

    other = SecretBasis(
        haar_columns(key.stream("other"), n_rows=WIDTH, n_columns=COMPONENTS), party="north"
    )
    draws = [
        released(),
        released(agreement.model_copy(update={"purpose": "another"})),
        released(used=PartyKey()),
        released(basis=other),
    ]
    np.testing.assert_array_equal(draws[0], released())
    for at, one in enumerate(draws):
        for two in draws[at + 1 :]:
            assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.5


@pytest.mark.parametrize("dp", [None, terms(**RANDOMISED)], ids=["plain", "noisy"])
@pytest.mark.parametrize("sizes", [(7, 23), (1, 28, 1)])
def test_rows_in_parts_are_the_upload_of_the_whole_table(rows, labels, sizes, dp):
    """With noise, whose grid hides rounding, bit for bit."""
    party = consortium(basis="haar", dp=dp).parties["north"]
    expected = party.prepare(rows, labels)
    found = written(party.project(InParts(rows, labels, sizes)))
    np.testing.assert_allclose(found.rows, expected.rows, rtol=0, atol=0 if dp else 1e-14)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.anchor_image, expected.anchor_image)


def test_rows_beyond_one_chunk_of_noise_are_independent_and_the_same_in_parts():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(700, WIDTH)) * 1e-9, rng.integers(0, 2, 700)
    party = north()
    table = InParts(rows, labels, (100, 300, 300))
    plan = party.project(table)
    parts = list(table.over(plan.noising.projected, step=""))
    found = np.vstack([block for blocks, _ in parts for block in blocks])
    expected = party.prepare(rows, labels).rows
    np.testing.assert_array_equal(found[plan.order], expected)
    assert len(np.unique(np.round(found, 6), axis=0)) == 700
    assert abs(np.corrcoef(found[:256].ravel(), found[256:512].ravel())[0, 1]) < 0.2


@pytest.mark.parametrize("kind", ["one number", "two rows exchanged"])
def test_rows_that_change_after_the_noise_was_bound_are_refused(rows, labels, kind):
    party = north()
    plan = party.project(RowsInMemory(rows, labels))
    other, _ = changed(kind, rows, labels)
    with pytest.raises(FileChangedError, match="not those that its noise was drawn for"):
        written(replace(plan, rows=RowsInMemory(other, labels)))
    with pytest.raises(FileChangedError, match="rows or labels of party 'north'"):
        written(replace(plan, rows=RowsInMemory(rows, 1 - labels)))
    assert written(plan).rows.shape == (30, COMPONENTS)


def test_a_rehearsal_has_other_noise_of_the_same_scale_and_is_the_same_each_time(rows, labels):
    """It is drawn from a stream of its own, so it says nothing of the noise that leaves."""
    party = north(terms(**RANDOMISED))
    many, told = np.tile(rows, (30, 1)) * 1e-9, np.tile(labels, 30)
    plan = party.project(RowsInMemory(many, told))
    real, shown = written(plan), written(plan.rehearsed())
    np.testing.assert_array_equal(shown.rows, written(plan.rehearsed()).rows)
    assert abs(np.corrcoef(real.rows.ravel(), shown.rows.ravel())[0, 1]) < 0.1
    assert shown.rows.std() == pytest.approx(real.rows.std(), rel=0.1)
    changed = [upload.labels != told[plan.order] for upload in (real, shown)]
    assert abs(np.corrcoef(*changed)[0, 1]) < 0.2
    np.testing.assert_array_equal(written(plan).rows, real.rows)


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_what_is_not_finite_is_refused_before_it_is_compared_with_the_radius(rows, labels, bad):
    party = north()
    rows = rows.copy()
    plan = party.project(RowsInMemory(rows, labels))
    rows[2, 1] = bad
    with pytest.raises(NotFiniteError):
        plan.noising.projected(0, iter([rows]))
    with pytest.raises(NotFiniteError):
        party.prepare(rows, labels)


def test_a_row_far_outside_the_ball_moves_the_release_by_no_more_than_the_sensitivity(rows, labels):
    dp = terms()
    party = north(dp)
    released = []
    for sign in (1, -1):
        far = rows.copy()
        far[0] = sign * 1e6 * rows[0]
        plan = party.project(RowsInMemory(far, labels))
        clean, _ = plan.noising.projected(0, iter([far]))
        noise = plan.noising._normal(0, 30, n_columns=COMPONENTS) * dp.calibration.noise
        released.append(clean[0] - noise)
    moved = np.linalg.norm(released[0] - released[1])
    assert 0.2 < moved <= dp.sensitivity + 4 * dp.calibration.grid


def test_more_rows_than_agreed_are_refused(rows, labels):
    with pytest.raises(AgreementError, match=r"would upload 30 rows.*most_rows=29"):
        north(terms(most_rows=29)).prepare(rows, labels)
    assert len(north(terms(most_rows=30)).prepare(rows, labels).rows) == 30


def test_noise_without_labels_where_there_are_some_is_refused(rows):
    with pytest.raises(LabelError, match="gave no labels"):
        north().project(RowsInMemory(rows))


def test_a_basis_that_is_oblique_or_filled_up_is_refused_even_in_a_simulation(rows, labels):
    key = PartyKey(bytes(32), simulated=True)
    basis = SecretBasis(2 * np.eye(WIDTH)[:, :COMPONENTS], party="north", oblique=True)
    with pytest.raises(AgreementError, match="not orthonormal"):
        north(key=key).prepare(rows, labels, basis=basis)
    group = consortium(basis="haar", dp=terms())
    told = {"agreement": group.agreement, "secret": group.secret, "key": key}
    with pytest.raises(OptionError, match="complete_basis"):
        Party("north", **told, complete_basis=True)


def test_public_labels_travel_as_they_are_and_others_are_randomised(rows, labels):
    for dp, kept in ((terms(), True), (terms(**RANDOMISED), False)):
        party = north(dp)
        order = party.project(RowsInMemory(rows, labels)).order
        told = party.prepare(rows, labels).labels
        assert np.array_equal(told, labels[order]) == kept
        assert set(told.tolist()) <= {0, 1}


@pytest.mark.parametrize("basis", ["haar", "public"])
def test_a_whole_round_runs_with_noise_and_predicts_better_than_chance(basis):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(3000, 4)) * [3, 1, 1, 1]
    label = (table[:, 0] > 0).astype(int)
    rows = {name: (table[at::3], label[at::3]) for at, name in enumerate("abc")}
    done = simulate(
        rows,
        rng=np.random.default_rng(5),
        n_components=3,
        basis=basis,
        public_rows=rng.normal(size=(50, 4)) * [3, 1, 1, 1] if basis == "public" else None,
        dp=terms(epsilon=8, radius=3, most_rows=1000, lifetime_epsilon=8),
    )
    assert np.mean(done.parties["a"].predict(table[:300]) == label[:300]) > 0.8


@pytest.mark.parametrize("bin_bytes", [1, 8 * COMPONENTS * 7, 2**24])
def test_rows_stand_in_the_order_that_only_the_party_knows(rows, labels, bin_bytes, monkeypatch):
    monkeypatch.setattr(projection, "BIN_BYTES", bin_bytes)
    party = plain()
    made = party.project(RowsInMemory(rows, labels))
    upload = party.prepare(rows, labels)
    assert sorted(made.order) == list(range(30))
    assert (np.diff(made.order) < 0).sum() > 5
    np.testing.assert_array_equal(upload.rows, made.basis.project(rows)[made.order])
    np.testing.assert_array_equal(upload.labels, labels[made.order])


def test_a_basis_is_the_partys_only_when_its_upload_is_whole(rows, labels):
    class Full(InMemory):
        def write_labels(self, _):
            raise DiskError("the disk is full")

    party = plain()
    with pytest.raises(DiskError):
        party.write(RowsInMemory(rows, labels), to=Full())
    with pytest.raises(StepError, match="has not prepared its upload"):
        _ = party.basis
    party.write(RowsInMemory(rows, labels), to=InMemory())
    assert party.basis.shape == (6, COMPONENTS)


def test_a_projection_and_its_noise_are_neither_shown_nor_copied(rows, labels):
    made = north().project(RowsInMemory(rows, labels))
    assert repr(made) == "<Projection, hidden>"
    assert repr(made.noising) == "<Noising, hidden>"
    for held in (made, made.noising):
        for carry in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(SecretError, match="does not travel"):
                carry(held)


def test_directions_are_kept_in_memory_and_looked_up_there(rows, labels):
    party, memory = plain(), {}
    plan = party.project(RowsInMemory(rows, labels), memory=memory)
    assert memory["directions"].shape == (6, COMPONENTS)
    unlike = RowsInMemory(rows * 0 + 7, labels)  # they are not looked at
    other = party.project(unlike, memory=memory)
    np.testing.assert_array_equal(other.anchor_image, plan.anchor_image)
    shared = {}
    north().project(RowsInMemory(rows, labels), memory=shared)
    assert shared == {}


def test_blocks_are_proposed_like_rows(rows):
    group = consortium(basis="consensus")
    agreement, key = group.agreement, group.keys["north"]
    pair = [
        Party("north", agreement=agreement, secret=group.secret, key=key).propose(each)
        for each in (rows, WholeTable(rows))
    ]
    np.testing.assert_array_equal(pair[0].image, pair[1].image)
