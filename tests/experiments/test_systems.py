"""What all studies share: versions of test rows, rounds without refused parties, printed tables."""

import numpy as np
import pytest
from experiments.harness.models import svm
from experiments.harness.systems import told_apart, without_refused
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import SVC

from cobasis.errors import UndeterminedFitError


def test_test_rows_that_agree_are_kept_once_and_counted():
    first, other = np.eye(3), np.ones((3, 3))
    found = told_apart([first, other, first * (1 + 1e-12), other, other])
    assert [count for _, count in found] == [2, 3]
    assert found[0][0] is first
    assert [count for _, count in told_apart([first, first * (1 + 1e-6)])] == [1, 1]


def test_refused_parties_are_left_out_one_after_the_other_unless_they_are_most():
    def refusing(*parties):
        def attempt(left_out):
            for name in parties:
                if name not in left_out:
                    raise UndeterminedFitError(f"party '{name}' is undetermined", (name,))
            return f"without {sorted(left_out)}"

        return attempt

    assert without_refused(refusing("b", "a"), n_parties=4) == ("without ['a', 'b']", {"a", "b"})
    assert without_refused(refusing(*"abcd"), n_parties=4) == (None, {"a", "b", "c"})

    def again(_):
        raise UndeterminedFitError("party 'a' again", ("a",))

    with pytest.raises(UndeterminedFitError, match="again"):
        without_refused(again, n_parties=4)


def test_the_fast_machine_predicts_what_scikit_learn_does():
    """Of ten classes and of two, also where test rows are far from all support vectors."""
    rng = np.random.default_rng(0)
    for load in (load_digits, load_breast_cancer):
        data = load()
        rows = data.data / data.data.max(axis=0).clip(1)
        train, test = np.array_split(rng.permutation(len(rows)), 2)
        labels = np.array([f"class {label}" for label in data.target])
        ours = svm(0).fit(rows[train], labels[train])
        theirs = SVC(C=1.0, kernel="rbf", gamma="scale").fit(rows[train], labels[train])
        for seen in (rows[test], rng.normal(size=(500, rows.shape[1])), 10 + rows[test]):
            assert np.array_equal(ours.predict(seen), theirs.predict(seen))
