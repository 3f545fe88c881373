"""From rows to an upload: their order, and noise that is bound to the release and drawn once."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis import ConsortiumSecret, PartyKey, SecretBasis, simulate
from cobasis.errors import FileChangedError
from cobasis.linalg.rng import haar_columns
from cobasis.progress import silent
from cobasis.protocol import projection
from cobasis.protocol.projection import InMemory, RowsInMemory
from protocol.consortium import COMPONENTS, RANDOMISED, WIDTH, joined, tables, terms

ROWS, LABELS = tables()["north"]


def north(dp=None, **changes):
    return joined(ConsortiumSecret(), **{"basis": "haar", "dp": dp or terms(), **changes})


def written(projection):
    to = InMemory()
    projection.write(to, report=silent)
    return to.upload


def swapped(rows):
    return rows[[0, 1, 2, 4, 3, *range(5, len(rows))]]


def nudged(rows):
    rows = rows.copy()
    rows[3, 2] = np.nextafter(rows[3, 2], 9)
    return rows


def test_any_change_of_rows_labels_agreement_key_or_basis_draws_other_noise():
    key, rows = PartyKey(b"k" * 32), ROWS * 1e-9  # what is seen is noise
    secret = ConsortiumSecret()

    def drawn(rows=rows, labels=LABELS, *, key=key, basis=None, **changes):
        party = joined(secret, key=key, basis="haar", dp=terms(), **changes)
        plan = party.project(RowsInMemory(rows, labels), basis=basis)
        return np.vstack(plan.noising.projected(0, iter([rows]))[0])[:29].ravel()

    other = haar_columns(key.stream("other"), n_rows=WIDTH, n_columns=COMPONENTS)
    draws = [
        drawn(),
        drawn(nudged(rows)),
        drawn(swapped(rows)),
        drawn(rows[:-1], LABELS[:-1]),
        drawn(labels=np.r_[1 - LABELS[:1], LABELS[1:]]),
        drawn(purpose="another"),
        drawn(key=PartyKey()),
        drawn(basis=SecretBasis(other, party="north")),
    ]
    np.testing.assert_array_equal(draws[0], drawn())
    assert np.abs(np.corrcoef(draws) - np.eye(len(draws))).max() < 0.5


def test_rows_beyond_one_chunk_of_noise_are_independent():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(700, WIDTH)) * 1e-9, rng.integers(0, 2, 700)
    found, _ = north().project(RowsInMemory(rows, labels)).noising.projected(0, iter([rows]))
    assert len(np.unique(np.round(found[0], 6), axis=0)) == 700
    assert abs(np.corrcoef(found[0][:256].ravel(), found[0][256:512].ravel())[0, 1]) < 0.2


def test_rows_that_change_after_the_noise_was_bound_are_refused():
    plan = north().project(RowsInMemory(ROWS, LABELS))
    for other in ((nudged(ROWS), LABELS), (swapped(ROWS), LABELS), (ROWS, 1 - LABELS)):
        with pytest.raises(FileChangedError, match="party 'north' are not those that its noise"):
            written(replace(plan, rows=RowsInMemory(*other)))
    upload = written(plan)
    assert upload.rows.shape == (30, COMPONENTS)
    np.testing.assert_array_equal(upload.labels, LABELS[plan.order])  # public, so as they are


def test_a_release_is_the_same_each_time_and_a_rehearsal_has_other_noise_of_the_agreed_scale():
    """It is drawn from a stream of its own, so it says nothing of the noise that leaves."""
    party = north(terms(**RANDOMISED))
    many, told = np.tile(ROWS, (30, 1)) * 1e-9, np.tile(LABELS, 30)
    plan = party.project(RowsInMemory(many, told))
    real, shown = written(plan), written(plan.rehearsed())
    assert real.rows.std() == pytest.approx(terms().calibration.noise, rel=0.05)
    np.testing.assert_array_equal(shown.rows, written(plan.rehearsed()).rows)
    assert abs(np.corrcoef(real.rows.ravel(), shown.rows.ravel())[0, 1]) < 0.1
    assert shown.rows.std() == pytest.approx(real.rows.std(), rel=0.1)
    changed = [upload.labels != told[plan.order] for upload in (real, shown)]
    assert abs(np.corrcoef(*changed)[0, 1]) < 0.2
    again = party.prepare(many.copy(), told.tolist())
    np.testing.assert_array_equal(again.rows, real.rows)
    np.testing.assert_array_equal(again.labels, real.labels)


def test_a_row_far_outside_the_ball_moves_the_release_by_no_more_than_the_sensitivity():
    dp, party, released = terms(), north(), []
    for sign in (1, -1):
        far = np.vstack([sign * 1e6 * ROWS[:1], ROWS[1:]])
        noising = party.project(RowsInMemory(far, LABELS)).noising
        [clean], _ = noising.projected(0, iter([far]))
        noise = noising._normal(0, 30, n_columns=COMPONENTS) * dp.calibration.noise
        released.append(clean - noise)
    moved = np.linalg.norm(released[0] - released[1])
    assert 0.2 < moved <= dp.sensitivity + 4 * dp.calibration.grid


def test_a_whole_round_runs_with_noise_and_predicts_better_than_chance():
    rng = np.random.default_rng(3)
    table, public = (rng.normal(size=(each, 4)) * [3, 1, 1, 1] for each in (3000, 50))
    label = (table[:, 0] > 0).astype(int)
    rows = {name: (table[at::3], label[at::3]) for at, name in enumerate("abc")}
    loud = terms(epsilon=8, radius=3, most_rows=1000, lifetime_epsilon=8)
    for options in ({"basis": "haar"}, {"basis": "public", "public_rows": public}):
        done = simulate(rows, rng=np.random.default_rng(5), n_components=3, dp=loud, **options)
        assert min(done.score(table[:300], label[:300]).values()) > 0.8


@pytest.mark.parametrize("bin_bytes", [1, 8 * COMPONENTS * 7, 2**24])
def test_rows_stand_in_the_order_that_only_the_party_knows(bin_bytes, monkeypatch):
    monkeypatch.setattr(projection, "BIN_BYTES", bin_bytes)
    party, before = joined(ConsortiumSecret()), ROWS.copy()
    made = party.project(RowsInMemory(ROWS, LABELS))
    upload = party.prepare(ROWS, LABELS)
    np.testing.assert_array_equal(ROWS, before)
    assert sorted(made.order) == list(range(30))
    assert (np.diff(made.order) < 0).sum() > 5
    np.testing.assert_array_equal(upload.rows, made.basis.project(ROWS)[made.order])
    np.testing.assert_array_equal(upload.labels, LABELS[made.order])
