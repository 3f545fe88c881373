import numpy as np
import pytest
from experiments.harness.fedavg import FedAvg, Network, federated, local_update
from experiments.harness.systems import Dealt
from experiments.studies import ours_time_and_bytes as ways
from sklearn.neural_network import MLPClassifier, MLPRegressor


def rounds(parties, *, regression=False, **options):
    rng = np.random.default_rng(5)
    return list(federated(parties, options=FedAvg(**options), rng=rng, regression=regression))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "soft"), [(MLPRegressor, False), (MLPClassifier, True)])
def test_slopes_and_steps_of_adam_are_scikit_learns(model, soft):
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
    rows = np.random.default_rng(4).normal(size=(200, 2))
    labels = np.where(np.abs(rows[:, 0]) > 0.7, "out", "in")
    parties = {name: (rows[i::2], labels[i::2]) for i, name in enumerate(("north", "south"))}
    last = rounds(parties, rounds=150, hidden=16)[-1]
    assert np.mean(last.network.predict(rows) == labels) > 0.9
    assert last.network.n_bytes == 8 * (2 * 16 + 16 + 16 * 2 + 2)
    assert (last.rounds, last.n_bytes) == (150, 150 * 2 * last.network.n_bytes)
    number = Network(weights=(np.array([[2.0]]), np.array([1.0])), classes=None)
    assert number.predict(np.array([[3.0], [0.0]])).tolist() == [7.0, 1.0]


def test_each_way_counts_what_one_party_sends_and_is_sent():
    rows = np.random.default_rng(1).normal(size=(400, 6)) + 1
    labels = (rows[:, 0] > rows[:, 1]).astype(int)
    parties = {f"p{n}": (rows[n:300:4], labels[n:300:4]) for n in range(4)}
    dealt = Dealt(parties=parties, test_rows=rows[300:], test_labels=labels[300:], repeat=0)
    network = 6 * 256 + 256 + 256 * 2 + 2
    for basis, messages, images in (("svd", 2, 1), ("consensus", 4, 3)):
        way = list(ways.once(dealt, basis=basis, size=6))
        expected = 8 * (75 * 6 + 75 + images * 6 * 6 + 6 * 6 + network)
        assert {(point.n_bytes, point.messages) for point in way} == {(expected, messages)}
        assert way[-1].accuracy > 80
        assert [p.seconds for p in way] == sorted(p.seconds for p in way)
    way = list(ways.again_and_again(dealt, epochs=1))
    assert [point.n_bytes for point in way] == [8 * 2 * network * n for n in range(1, 41)]
    assert [point.messages for point in way] == list(range(2, 82, 2))
    assert way[-1].accuracy > 80
