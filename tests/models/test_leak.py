"""The attack that row-carrying models are refused for, and that random features resist."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cobasis import simulate

NAMES = ("attacker", "north", "south", "east")


@pytest.fixture(scope="module")
def rows():
    """Four parties of 60 digits each."""
    X, y = load_digits(return_X_y=True)
    picked = np.random.default_rng(0).permutation(len(X))[:240]
    return {
        name: (X[part] / 16, y[part])
        for name, part in zip(NAMES, picked.reshape(4, 60), strict=True)
    }


def attack(rows, model):
    """What the attacker finds in the model that came back, projected back to 64 pixels.

    It uses nothing but its own F_i, its own G_i and the model: every table inside the model
    that is as wide, or as high, as the aligned rows is a list of candidates.
    """
    done = simulate(
        rows, rng=np.random.default_rng(0), n_components=16, model=model, allow_row_carrying=True
    )
    attacker = done.parties["attacker"]
    map_in = attacker._basis._columns @ attacker._return.change_of_basis
    trained = attacker._return.model
    found = []
    tables = vars(trained.estimator) if model == "svm" else vars(trained.layers[0])
    axes = trained.axes if model == "svm" else np.eye(16)  # a chain's are multiplied in
    for value in tables.values():
        if isinstance(value, np.ndarray) and value.ndim == 2:
            found += [each for each in (value, value.T) if each.shape[1] == 16]
    return np.vstack(found) @ axes.T @ np.linalg.pinv(map_in)


def named(recovered, rows):
    """Share of the others' records for which some recovered row is nearest to that record
    among all records, and correlates with it by more than .8."""
    records = np.vstack([rows[name][0] for name in NAMES])
    centre = records.mean(axis=0)

    def unit(table):
        return (table - centre) / np.linalg.norm(table - centre, axis=1, keepdims=True)

    cosines = unit(recovered) @ unit(records).T
    best = cosines.argmax(axis=1)
    hits = {int(index) for index, row in zip(best, cosines, strict=True) if row[index] > 0.8}
    return len([index for index in hits if index >= 60]) / 180


def test_with_its_own_map_a_party_reads_the_others_records_out_of_support_vectors(rows):
    recovered = attack(rows, "svm")
    assert named(recovered, rows) > 0.3


def test_random_features_give_the_same_party_nobodys_record(rows):
    recovered = attack(rows, "rff")
    assert len(recovered) >= 1000
    assert named(recovered, rows) < 0.01


def test_the_measure_names_everybody_in_the_records_and_nobody_in_noise(rows):
    everything = np.vstack([rows[name][0] for name in NAMES])
    assert named(everything, rows) == 1.0
    noise = np.random.default_rng(1).normal(size=(1000, 64))
    assert named(noise, rows) < 0.01
