"""The federated baseline does what a round computed by hand does, and counts its bytes."""

import numpy as np
import pytest
from experiments.harness import fedavg
from experiments.harness.fedavg import (
    FedAvg,
    Network,
    average,
    federated,
    first_weights,
    gradients,
    local_update,
)
from experiments.harness.systems import Dealt
from experiments.studies import ours_time_and_bytes as ways
from sklearn.neural_network import MLPClassifier, MLPRegressor

NORTH = (np.array([[1.0, 0.0], [1.0, 2.0]]), np.array([2.0, 4.0]))
SOUTH = (np.array([[2.0, 1.0]]), np.array([-3.0]))


def rounds(parties, *, seed=0, regression=False, **options):
    rng = np.random.default_rng(seed)
    return list(federated(parties, options=FedAvg(**options), rng=rng, regression=regression))


def test_a_mean_counts_parties_with_their_rows():
    north, south = (np.array([[3.0]]), np.array([0.0])), (np.array([[0.0]]), np.array([6.0]))
    matrix, offset = average([north, south], counts=[2, 1])
    assert (matrix.tolist(), offset.tolist()) == ([[2.0]], [2.0])


def test_every_round_starts_from_the_average_of_the_one_before():
    rng = np.random.default_rng(0)
    weights = first_weights([2, 3, 1], rng=rng)
    data = [(rows, labels[:, None]) for rows, labels in (NORTH, SOUTH)]
    for after in rounds({"north": NORTH, "south": SOUTH}, rounds=2, hidden=3, regression=True):
        updates = [local_update(weights, mine, epochs=1, rng=rng) for mine in data]
        weights = average(updates, counts=[2, 1])
        for ours, theirs in zip(after.network.weights, weights, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    other = rounds({"north": NORTH, "south": SOUTH}, seed=1, rounds=2, hidden=3, regression=True)
    assert not np.array_equal(other[-1].network.weights[0], weights[0])


@pytest.mark.parametrize("soft", [True, False])
def test_slopes_are_those_of_the_loss(soft, monkeypatch):
    monkeypatch.setattr(fedavg, "PENALTY", 0.3)
    rng = np.random.default_rng(1)
    rows, width = rng.normal(size=(7, 4)), 3 if soft else 1
    targets = np.eye(3)[rng.integers(0, 3, 7)] if soft else rng.normal(size=(7, 1))
    weights = first_weights([4, 5, width], rng=rng)

    def loss(weights):
        outputs = np.maximum(rows @ weights[0] + weights[1], 0) @ weights[2] + weights[3]
        if soft:
            fit = np.log(np.exp(outputs).sum(axis=1)) - (outputs * targets).sum(axis=1)
        else:
            fit = ((outputs - targets) ** 2).sum(axis=1) / 2
        return fit.mean() + 0.3 / 7 * sum((each**2).sum() / 2 for each in weights[::2])

    found = gradients(weights, (rows, targets))
    for index, slopes in enumerate(found):
        for place in np.ndindex(slopes.shape):
            moved = [[each.copy() for each in weights] for _ in range(2)]
            moved[0][index][place] += 1e-6
            moved[1][index][place] -= 1e-6
            slope = (loss(moved[0]) - loss(moved[1])) / 2e-6
            assert slopes[place] == pytest.approx(slope, abs=1e-7)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "soft"), [(MLPRegressor, False), (MLPClassifier, True)])
def test_steps_of_adam_are_scikit_learns(model, soft):
    rng = np.random.default_rng(2)
    rows, labels = rng.normal(size=(20, 3)), np.arange(20) % 3
    shape = {"hidden_layer_sizes": (4,), "batch_size": 20, "random_state": 0}
    theirs = model(**shape, max_iter=1, warm_start=True)
    theirs.fit(rows, labels)
    start = [*theirs.coefs_, *theirs.intercepts_]
    weights = tuple(start[index].copy() for index in (0, 2, 1, 3))
    theirs.set_params(max_iter=5).fit(rows, labels)
    targets = np.eye(3)[labels] if soft else labels[:, None].astype(float)
    ours = local_update(weights, (rows, targets), epochs=5, rng=rng)
    assert not np.allclose(ours[0], weights[0], atol=1e-4)
    assert ours[0] == pytest.approx(theirs.coefs_[0], abs=1e-9)
    assert ours[3] == pytest.approx(theirs.intercepts_[1], abs=1e-9)


def test_parties_learn_and_bytes_are_the_models_for_each_and_round():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(200, 2))
    labels = np.where(np.abs(rows[:, 0]) > 0.7, "out", "in")
    parties = {name: (rows[i::2], labels[i::2]) for i, name in enumerate(("north", "south"))}
    last = rounds(parties, rounds=300, hidden=16)[-1]
    assert np.mean(last.network.predict(rows) == labels) > 0.9
    assert last.network.n_bytes == 8 * (2 * 16 + 16 + 16 * 2 + 2)
    assert (last.rounds, last.n_bytes) == (300, 300 * 2 * last.network.n_bytes)
    number = Network(weights=(np.array([[2.0]]), np.array([1.0])), classes=None)
    assert number.predict(np.array([[3.0], [0.0]])).tolist() == [7.0, 1.0]


def some_images(_):
    pixels = np.random.default_rng(0).integers(0, 256, size=(2000, 30)).astype(np.uint8)
    return pixels, np.repeat(np.arange(10), 200)


def test_image_parties_have_two_labels_each_and_share_no_row(monkeypatch):
    monkeypatch.setattr(ways, "images", some_images)
    monkeypatch.setattr(ways, "ROWS", 40)
    monkeypatch.setattr(ways, "TESTS", 300)
    dealt = ways.deal("mnist", repeat=0)
    assert len(dealt.parties) == 20
    assert {len(np.unique(labels)) for _, labels in dealt.parties.values()} == {2}
    assert {len(rows) for rows, _ in dealt.parties.values()} == {40}
    everything = np.vstack([dealt.pooled()[0], dealt.test_rows])
    assert len(np.unique(everything, axis=0)) == 800 + 300
    assert sorted(np.unique(dealt.pooled()[1], return_counts=True)[1]) == [80] * 10


def easy(n_parties=4):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 6)) + 1
    labels = (rows[:, 0] > rows[:, 1]).astype(int)
    parties = {f"p{n}": (rows[n:300:n_parties], labels[n:300:n_parties]) for n in range(n_parties)}
    return Dealt(parties=parties, test_rows=rows[300:], test_labels=labels[300:])


@pytest.mark.parametrize(("basis", "messages", "images"), [("svd", 2, 1), ("consensus", 4, 3)])
def test_one_exchange_counts_what_one_party_sends_and_is_sent(basis, messages, images):
    way = list(ways.once(easy(), basis=basis, size=6, repeat=0))
    network = 6 * 256 + 256 + 256 * 2 + 2
    expected = 8 * (75 * 6 + 75 + images * 6 * 6 + 6 * 6 + network)
    assert {point.n_bytes for point in way} == {expected}
    assert {point.messages for point in way} == {messages}
    assert way[-1].accuracy > 80
    assert [p.seconds for p in way] == sorted(p.seconds for p in way)


def test_federated_averaging_counts_two_models_a_round():
    way = list(ways.again_and_again(easy(), epochs=1, repeat=0))
    network = 6 * 256 + 256 + 256 * 2 + 2
    assert [point.n_bytes for point in way] == [8 * 2 * network * n for n in range(1, 41)]
    assert [point.messages for point in way] == list(range(2, 82, 2))
    assert way[-1].accuracy > 80


def test_a_way_tells_when_an_accuracy_was_reached_first_and_omits_what_was_not():
    way = [
        ways.Point(accuracy=accuracy, n_bytes=1e6 * n, seconds=float(n), messages=2 * n)
        for n, accuracy in enumerate([50.0, 81.0, 79.0, 84.0], start=1)
    ]
    found = ways.measured(way, targets=(80, 90))
    assert found["accuracy at the end"] == 84
    assert (found["MB of a party to 80 %"], found["messages to 80 %"]) == (2, 4)
    assert found["seconds with the network to 80 %"] == pytest.approx(2 + 16e6 / 1e8 + 4 * 0.05)
    assert not any(name.endswith("90 %") for name in found)
