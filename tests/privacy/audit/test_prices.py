"""The price of each defence while an agreement is still a draft, and the papers' distance."""

import re
from dataclasses import replace

import numpy as np
import pytest

from cobasis.errors import DimensionError
from cobasis.privacy.audit.prices import Offer, choices, plan
from cobasis.privacy.audit.subject import Budget, Setting, Spans
from cobasis.privacy.audit.what_if import THIS, accuracies, as_set, distances
from privacy.attacks.constructions import digits, subject

ROWS, LABELS = digits(500)
PUBLIC, ROWS, LABELS = ROWS[:150], ROWS[150:], LABELS[150:]
CENTRE = PUBLIC.mean(axis=0)
BUDGET = Budget(
    epsilon=1,
    delta=1e-5,
    radius=float(np.median(np.linalg.norm(PUBLIC - CENTRE, axis=1))),
    centre=tuple(CENTRE),
)
OWN = Setting(n_components=8, basis="svd")
NAMES = tuple("abcdefghij")
KEY = b"k" * 32


def planned(rows=ROWS, labels=LABELS, *, own=OWN, task="classification", seed=0, **changes):
    told = {"offer": Offer(), "classes": NAMES if task == "classification" else (), **changes}
    places = np.arange(len(rows))
    rng = np.random.default_rng(seed)
    return plan(rows, labels, places=places, own=own, task=task, rng=rng, **told)


@pytest.fixture(scope="module")
def found():
    offer = Offer(noise=(0.1, 0.4), epsilon=(32, 2), budget=BUDGET, ball="of public rows")
    return planned(offer=offer, public_rows=PUBLIC)


def prices(found):
    return {each.name: each for each in found.effects}


def test_every_defence_has_a_line_in_one_order_with_what_it_wins_and_what_it_costs(found):
    """Fewer components lower content, and only noise lowers linkage by the basis."""
    price, now = prices(found), found.effects[0]
    assert "; ".join(price) == (
        "as it is; 16 components; 4 components; 2 components; random basis; numbers as fp16; "
        "numbers as int8; public rows' basis; no labels; labels in 5 classes; noise 0.1; "
        "noise 0.4; epsilon 32, public rows' basis; epsilon 2, public rows' basis"
    )
    content = [price[f"{size} components"].content for size in (2, 4, 16)]
    assert content == sorted(content)
    assert all(price[name].leaked == 1 for name in price if not re.search("noise|epsilon", name))
    assert price["noise 0.4"].leaked < price["noise 0.1"].leaked < 1
    private, random = price["epsilon 2, public rows' basis"], price["random basis"]
    assert max(private.content, private.leaked) < 0.1
    assert random.content < now.content - 0.05
    assert random.accuracy < now.accuracy
    for each in found.effects:
        assert each.n_scored == 175
        assert each.accuracy_least <= each.accuracy <= each.accuracy_most
    assert price["noise 0.4"].accuracy_least < price["noise 0.4"].accuracy_most


def test_the_same_rows_have_the_same_prices_and_play_a_consensus_which_is_said():
    few = {"offer": Offer(n_components=(3,), noise=(0.3,))}
    own = replace(OWN, basis="consensus")
    one, two, consensus = (
        planned(ROWS[:60], LABELS[:60], own=each, **few) for each in (OWN, OWN, own)
    )
    assert one.effects == two.effects
    assert "stands for the consensus" in consensus.told[0]
    assert consensus.effects[0].content == one.effects[0].content


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
    assert scored(labels=rng.permutation(labels)) < 0.1
    # noise as large as the rows, of which half of each weight is lost: 0.5 if scored on noise
    assert scored(rows=upload.release.rows + rng.normal(size=rows.shape)) == pytest.approx(
        0.75, abs=0.1
    )


def chosen(labels, *, classes=NAMES, own=OWN, **changes):
    return choices(ROWS, labels, own=own, offer=Offer(**changes), classes=classes)


def test_labels_lose_detail_and_people_by_rules_that_are_said():
    """Half of the classes, steps of half a deviation, no class of fewer than eleven."""
    labels = np.repeat(np.arange(4), [50, 20, 30, 11])
    settings, told = chosen(labels)
    merged = ((0,), (1, 2, 3))
    assert [each.groups for each in settings if each.groups] == [merged]
    assert any("2 classes" in each and "b + c + d" in each for each in told)
    upload, setting = subject(ROWS[:111], labels, n_components=3), replace(OWN, groups=merged)
    made = as_set(upload, basis=np.eye(64)[:, :3], setting=setting, key=KEY)
    assert np.unique(made.release.labels, return_counts=True)[1].tolist() == [50, 61]
    assert (made.labels == made.release.labels).all()
    settings, told = chosen(np.repeat([0, 1], 20))
    assert not any(each.groups for each in settings)
    assert any("two classes put together are no label" in each for each in told)

    numbers = np.random.default_rng(0).normal(scale=50, size=300)
    for values, steps in ((numbers, [20.0]), (np.ones(300), [])):
        settings, _ = chosen(values, classes=())
        assert [each.step for each in settings if each.step] == steps

    made = as_set(upload, basis=np.eye(64)[:, :3], setting=replace(OWN, labels=False), key=KEY)
    assert (made.release.labels, len(made.labels)) == (None, 111)  # a model is scored on the own
    random = planned(ROWS[:240], LABELS[:240], own=replace(OWN, n_components=16, basis="haar"))
    told = {each.name: each.alone for each in random.effects}
    assert told["no labels"] < 0.1 < told["as it is"] / 3

    few, enough = (np.repeat([0, 1, 2], [40, 30, fewest]) for fewest in (10, 11))
    assert any("No class has" in each for each in chosen(enough)[1])
    assert any("10 of 80 rows stay at home" in each for each in chosen(few)[1])
    price = planned(ROWS[:80], few, offer=Offer(n_components=(3,), noise=(0.1,))).effects
    left = next(each for each in price if each.name == "without 1 small class")
    assert (left.n_rows, price[0].n_rows) == (70, 80)


def test_a_guarantee_is_played_where_a_ball_is_known_or_its_noise_is_agreed():
    settings, told = chosen(LABELS)
    assert not any(each.budget for each in settings)
    assert any(each.startswith("Noise with a guarantee was left out") for each in told)
    assert any("none or at least 18 new ones" in each for each in told)
    # and where there is one, through no basis that rows shape
    kinds = {each.basis for each in chosen(LABELS, budget=BUDGET)[0] if each.budget is not None}
    assert kinds == {"haar"}
    own = Setting(n_components=8, basis="haar", budget=replace(BUDGET, epsilon=2))
    offer = Offer(n_components=(4,), noise=(0.1,), budget=None)
    price = prices(planned(ROWS[:120], LABELS[:120], own=own, offer=offer))
    assert price["as it is"].leaked < 0.1
    assert price["4 components"].leaked < 0.1
    assert price["noise 0.1"].leaked > 0.5  # the other noise, in place of the agreed


def test_released_rows_of_a_guarantee_stand_on_its_grid_and_labels_are_randomised():
    """Rows from inside the ball alone, and labels of a person's rows with a share of epsilon."""
    budget = replace(BUDGET, epsilon=8, label_epsilon=16.0, rows_per_person=16, n_classes=10)
    setting = Setting(n_components=4, basis="haar", budget=budget)
    upload = replace(subject(ROWS, LABELS, n_components=4), rows=1e6 * ROWS)
    made = as_set(upload, basis=upload.basis, setting=setting, key=KEY)
    steps = made.release.rows * 2**12
    assert np.array_equal(steps, np.rint(steps))
    assert np.abs(made.release.rows).max() < 1e4
    assert 0.1 < np.mean(made.release.labels == LABELS) < 0.5
    assert (made.labels == LABELS).all()


def test_few_rows_cannot_keep_every_agreement_and_a_representation_of_few_has_no_figure_of_models():
    with pytest.raises(DimensionError, match="8 components"):
        planned(ROWS[:5], LABELS[:5])
    found = planned(ROWS[:30], None, task="representation", classes=())
    assert {each.alone for each in found.effects} == {None}
    assert {each.accuracy for each in found.effects} == {None}
    assert not any("label" in each.name for each in found.effects)
    assert "hidden" in repr(found)


def swept(rows=ROWS, *, n_components, public=None):
    upload, found = replace(subject(rows, n_components=n_components), public_rows=public), {}
    spans = Spans(upload, own="svd", largest=2 * n_components, key=bytes(32))
    for each in distances(upload, settings=(), spans=spans, rng=np.random.default_rng(0)):
        found.setdefault(each.basis, {})[each.n_components] = each
    return found


def test_a_distance_is_what_is_lost_beside_the_average_person_and_all_components_lose_nothing():
    basis = subject(ROWS, n_components=32).basis
    lost = np.sort(np.linalg.norm(ROWS - ROWS @ basis @ basis.T, axis=1))
    whole = np.linalg.norm(ROWS - ROWS.mean(axis=0), axis=1).mean()
    found = swept(n_components=32, public=PUBLIC)
    assert found[THIS][32].mean == pytest.approx(lost.mean() / whole)
    assert found[THIS][32].worst == pytest.approx(lost[:4].mean() / whole)
    assert list(found) == [THIS, "svd", "haar", "public", "consensus"]
    for kind, by_size in found.items():
        means = [each.mean for each in by_size.values()]
        assert means == sorted(means, reverse=True), kind
        assert all(each.worst <= each.mean for each in by_size.values())
    assert found["haar"][64].mean == pytest.approx(0, abs=1e-12)
    assert found["haar"][16].mean > 1  # more than the average person, and links everybody (P3)
    for size in (8, 16, 32):
        svd, consensus = found["svd"][size].mean, found["consensus"][size].mean
        assert svd <= consensus * (1 + 1e-6)
        assert svd < found["public"][size].mean < found["haar"][size].mean


@pytest.mark.parametrize(("n_rows", "sizes"), [(12, [1, 2, 4]), (3, [1]), (2, [])])
def test_sizes_that_rows_or_a_third_of_them_cannot_have_are_left_out(n_rows, sizes):
    found = swept(ROWS[:n_rows], n_components=min(4, n_rows))
    assert list(found.get("consensus", ())) == sizes
    assert max(found["svd"]) <= n_rows


def test_a_file_of_fewer_bits_is_played_as_it_is_stored_and_gives_less_of_whole_records(found):
    upload = subject(ROWS, LABELS, n_components=8)
    for precision in ("fp16", "int8"):
        setting = replace(OWN, precision=precision)
        made = as_set(upload, basis=upload.basis, setting=setting, key=KEY)
        values = np.unique(made.release.rows)
        assert len(values) <= 255 or np.array_equal(values, values.astype("f2"))
        assert 0 < np.abs(made.release.rows - upload.release.rows).max() < 0.05
    worth = ["green", "amber", "red"]
    whole = [worth.index(prices(found)[f"numbers as {each}"].whole) for each in ("fp16", "int8")]
    assert whole == sorted(whole, reverse=True)
    assert whole[1] < worth.index(prices(found)["16 components"].whole)
