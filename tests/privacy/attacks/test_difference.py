"""Whoever came or left between two uploads stands out, unless there are many of them.

Figures of notes/privacy 2.8: the new person isolated in 20 of 20 runs.
"""

from functools import cache

import numpy as np
import pytest
from experiments.attacks.difference import Difference

from cobasis.errors import ShapeError
from cobasis.privacy.attacks.release import Release
from cobasis.privacy.attacks.scores import score_decision
from privacy.attacks.constructions import anchor, cancer, digits, own_basis, released
from vault.vaults import choose, open_vault, table, upload

DATA = [(cancer, 5), (digits, 8), (digits, 16)]
N_ROWS = 200


@cache
def secret(n_features):
    return anchor("isometric", n_features, n_features)


def two_uploads(data, n_components, *, n_changed=1, run=0, same_span=False):
    """An upload, one with people who came, in another order, and who they are in it."""
    rng = np.random.default_rng(run)
    rows = rng.permutation(data()[0])[: N_ROWS + n_changed]
    first = own_basis(rows[:N_ROWS], n_components, number=2 * run)
    second = first if same_span else own_basis(rows, n_components, number=2 * run + 1)
    order = rng.permutation(len(rows))
    before = released(rows[:N_ROWS], first, secret(rows.shape[1]))
    after = released(rows[order], second, secret(rows.shape[1]))
    return before, after, order >= N_ROWS, (rows, first)


@pytest.mark.parametrize(("data", "n_components"), DATA)
@pytest.mark.parametrize("same_span", [False, True], ids=["new span", "same span"])
def test_the_one_who_came_is_isolated_in_every_run(data, n_components, same_span):
    """Shuffled rows, a new basis and a new rotation; the same span isolates them all the more."""
    for run in range(20):
        before, after, new, _ = two_uploads(data, n_components, run=run, same_span=same_span)
        assert new[np.argmax(Difference(before=before).came(after))]


@pytest.mark.parametrize(("data", "n_components"), DATA)
def test_the_one_who_left_is_isolated_in_every_run(data, n_components):
    for run in range(20):
        after, before, gone, _ = two_uploads(data, n_components, run=run)
        assert gone[np.argmax(Difference(before=before).left(after))]


def test_a_crowd_stands_out_as_a_crowd_and_nobody_in_it():
    """Eleven who came are told from the rest, and which of them is who is a guess of one in 11."""
    found = []
    for run in range(20):
        before, after, new, _ = two_uploads(digits, 16, n_changed=11, run=run)
        scores = Difference(before=before).came(after)
        assert score_decision(scores, new).auc.value > 0.99
        order = np.random.default_rng(run).permutation(np.flatnonzero(new))
        found.append(order[0] == np.argmax(scores))
    assert np.mean(found) < 0.3


def test_a_person_who_did_not_come_does_not_stand_out():
    before, _, _, (rows, basis) = two_uploads(digits, 16)
    again = released(rows[:N_ROWS][::-1], basis, secret(64))
    assert Difference(before=before).came(again).max() < 1e-6


@pytest.mark.parametrize(("data", "n_components", "least"), [(cancer, 5, 0.9), (digits, 16, 0.8)])
def test_a_new_span_shows_what_the_newcomer_has_that_nobody_had(data, n_components, least):
    """The notes have .62 to .68 for the top eigenvector of P2 - P1, which points half inside."""
    cosines, chances = [], []
    for run in range(10):
        before, after, _, (rows, first) = two_uploads(data, n_components, run=run)
        new = rows[-1] - first @ (first.T @ rows[-1])
        attack = Difference(before=before, anchor=secret(rows.shape[1]))
        cosines.append(abs(attack.outside(after) @ new) / np.linalg.norm(new))
        blind = np.random.default_rng(run).normal(size=len(new))
        chances.append(abs(blind @ new) / np.linalg.norm(new) / np.linalg.norm(blind))
    assert np.mean(cosines) > least
    assert np.mean(chances) < 0.25


def test_the_notes_figure_is_the_newcomer_seen_at_45_degrees():
    before, after, _, (rows, first) = two_uploads(cancer, 5)
    second = own_basis(rows, 5)
    towards = np.linalg.eigh(second @ second.T - first @ first.T)[1][:, -1]
    new = rows[-1] - first @ (first.T @ rows[-1])
    direct = Difference(before=before, anchor=secret(30)).outside(after)
    ratio = abs(towards @ new) / abs(direct @ new)
    assert ratio == pytest.approx(np.sqrt(0.5), abs=0.03)


def test_a_kept_span_shows_nothing_new_of_the_newcomer():
    cosines = []
    for run in range(10):
        before, after, _, (rows, first) = two_uploads(digits, 16, run=run, same_span=True)
        new = rows[-1] - first @ (first.T @ rows[-1])
        attack = Difference(before=before, anchor=secret(64))
        cosines.append(abs(attack.outside(after) @ new) / np.linalg.norm(new))
    assert np.mean(cosines) < 0.25


@pytest.mark.parametrize(("n_new", "few"), [(1, True), (10, True), (11, False)])
def test_the_vault_reports_exactly_the_changes_that_isolate_people(tmp_path, n_new, few):
    vault = open_vault(tmp_path / "north")
    upload(vault, table())
    more = np.vstack([table(), table(n_new, seed=9)])
    assert choose(vault, more).changes.few is few


def test_spans_cannot_be_compared_without_the_anchor():
    before, after, _, _ = two_uploads(cancer, 5)
    with pytest.raises(ShapeError, match="only with the anchor"):
        Difference(before=before).outside(after)


def test_uploads_of_different_anchors_are_refused():
    one, other = (Release(rows=np.eye(2), anchor_image=np.ones((size, 2))) for size in (4, 5))
    with pytest.raises(ShapeError, match="have 4 and 5 rows"):
        Difference(before=one).came(other)
