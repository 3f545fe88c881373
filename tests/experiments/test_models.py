"""The models of the experiments."""

import numpy as np
from experiments.harness.models import svm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.svm import SVC


def test_the_fast_machine_predicts_what_scikit_learn_does() -> None:
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
