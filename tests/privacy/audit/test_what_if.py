"""What each defence would come to: measured beside an upload, or while it is still a draft."""

from dataclasses import replace

import numpy as np
import pytest

from cobasis.errors import DimensionError
from cobasis.party_side.what_if import Setting, accuracies, as_set, planned, settings_of
from cobasis.privacy.attacks import Release
from cobasis.privacy.audit.subject import Subject
from privacy.attacks.constructions import digits, subject
from protocol.consortium import terms

ROWS, LABELS = digits(500)
PUBLIC, ROWS, LABELS = ROWS[:150], ROWS[150:], LABELS[150:]
CENTRE = PUBLIC.mean(axis=0)
RADIUS = float(np.median(np.linalg.norm(PUBLIC - CENTRE, axis=1)))
BALL = {"delta": 1e-5, "radius": RADIUS, "centre": tuple(CENTRE.tolist())}
OWN = Setting(n_components=8, basis="svd")
KEY = b"k" * 32
UPLOAD = subject(ROWS, LABELS, n_components=8)


def priced(n_rows=350, labels=LABELS, *, own=OWN, public=None):
    rows, labels = ROWS[:n_rows], None if labels is None else labels[:n_rows]
    empty = {"release": Release(rows=np.empty((n_rows, 0))), "basis": np.empty((64, 0))}
    people = Subject(rows=rows, labels=labels, public_rows=public, **empty)
    task = "representation" if labels is None else "classification"
    found, told = planned(people, own=own, task=task)
    return {each.name: each for each in found}, " ".join(told)


def test_every_defence_has_a_line_in_one_order_with_what_it_wins_and_what_it_costs():
    """Fewer components lower content, and nothing but noise lowers linkage by the basis."""
    price, _ = priced(public=PUBLIC)
    now = price["as it is"]
    assert "; ".join(price) == (
        "as it is; 16 components; 4 components; 2 components; random basis; numbers as int8; "
        "public rows' basis"
    )
    content = [price[f"{size} components"].content for size in (2, 4, 16)]
    assert content == sorted(content)
    assert {each.leaked for each in price.values()} == {1}
    random = price["random basis"]
    assert random.content < now.content - 0.05
    assert random.accuracy < now.accuracy
    for each in price.values():
        assert each.n_scored == 175
        assert each.accuracy_least <= each.accuracy <= each.accuracy_most
    assert now.accuracy_least < now.accuracy_most
    worth = ["green", "amber", "red"]
    int8, more = (price[each].whole for each in ("numbers as int8", "16 components"))
    assert worth.index(int8) < worth.index(more)


def test_the_same_rows_have_the_same_prices_and_play_a_consensus_which_is_said():
    one, two = (priced(60, own=replace(OWN, basis=each)) for each in ("svd", "consensus"))
    assert one[0] == two[0]
    assert "stands for the consensus" in two[1]


def test_a_model_is_taught_what_is_sent_and_scored_without_noise_on_the_truth():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4))
    labels = rows[:, 0]
    upload = subject(rows, labels, n_components=4)

    def scored(**changes):
        sent = replace(upload, release=replace(upload.release, **changes))
        return np.mean(accuracies(sent, task="regression", seed=0))

    assert scored() == pytest.approx(1, abs=1e-6)
    assert 0.9 < scored(labels=np.rint(labels)) < 0.9999
    # noise as large as the rows, of which half of each weight is lost: 0.5 if scored on noise
    noisy = upload.release.rows + rng.normal(size=rows.shape)
    assert scored(rows=noisy) == pytest.approx(0.75, abs=0.1)


def test_a_guarantee_is_priced_where_it_is_agreed():
    own = Setting(n_components=8, basis="haar", dp=terms(**BALL))
    price, told = priced(120, own=own)
    assert "is priced where" in priced(60)[1]
    assert "clipped to a ball of radius" in told
    assert max(price[each].leaked for each in ("as it is", "4 components")) < 0.1
    contents = [price[each].content for each in ("as it is", "epsilon 8", "epsilon 32")]
    assert contents == sorted(contents)
    assert len(settings_of(UPLOAD, own, sizes=(8, 4, 4))) == 5  # each once


def test_what_leaves_is_played_as_it_is_stored_clipped_on_the_grid_and_with_its_labels():
    """Rows from inside the ball alone, and labels of a person's rows with a share of epsilon."""

    def made(upload=UPLOAD, **changes):
        return as_set(upload, basis=upload.basis, setting=replace(OWN, **changes), key=KEY)

    dp = terms(**BALL, epsilon=8.0, label_epsilon=16.0, rows_per_person=16)
    found = made(replace(UPLOAD, rows=1e6 * ROWS), dp=dp, n_classes=10)
    steps = found.release.rows * 2**12
    assert np.array_equal(steps, np.rint(steps))
    assert np.abs(found.release.rows).max() < 1e4
    assert 0.1 < np.mean(found.release.labels == LABELS) < 0.5
    assert (found.labels == LABELS).all()
    for precision in ("fp16", "int8"):
        rows = made(precision=precision).release.rows
        values = np.unique(rows)
        assert len(values) <= 255 or np.array_equal(values, values.astype("f2"))
        assert 0 < np.abs(rows - UPLOAD.release.rows).max() < 0.05


def test_few_rows_cannot_keep_every_agreement_and_a_representation_of_few_has_no_figure_of_models():
    with pytest.raises(DimensionError, match="8 components"):
        priced(5)
    found = priced(30, None)[0].values()
    assert {(each.alone, each.accuracy) for each in found} == {(None, None)}
