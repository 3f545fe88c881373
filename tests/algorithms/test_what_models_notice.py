"""A common rotation and a common scale: who does not notice them."""

import numpy as np
import pytest
from sklearn.svm import SVC

from aligners import Row, haar, key_of, make_toy, on_every_aligner, on_every_condition
from cobasis.algorithms.base import align
from cobasis.algorithms.odc import ODC
from cobasis.linalg.rng import KeyStream


def features(toy, changes) -> tuple[np.ndarray, np.ndarray]:
    """Aligned rows of all parties, and labels that depend on the rows."""
    rows = {p: KeyStream(key_of(9), f"rows/{p}").normal((40, 12)) for p in toy.bases}
    labels = np.hstack([np.sin(2 * table[:, 0]) + table[:, 1] > 0 for table in rows.values()])
    return np.vstack([rows[p] @ toy.bases[p] @ changes[p] for p in rows]), labels


def predictions(X, y, **kernel) -> np.ndarray:
    return SVC(**kernel).fit(X[::2], y[::2]).decision_function(X[1::2])


@on_every_condition
@pytest.mark.parametrize("kernel", [{"gamma": 0.1}, {"kernel": "linear"}], ids=["rbf", "linear"])
def test_a_kernel_of_distances_does_not_notice_the_rotation(condition, kernel):
    """With a fixed gamma; gamma='scale' is not rotation-invariant on uncentred features."""
    toy = make_toy(condition)
    plain, labels = features(toy, align(ODC(), toy.images).changes_of_basis)
    turned, _ = features(toy, align(ODC(rotation=haar(8, 4)), toy.images).changes_of_basis)
    np.testing.assert_allclose(
        predictions(turned, labels, **kernel), predictions(plain, labels, **kernel), atol=1e-2
    )
    assert not np.allclose(plain, turned, atol=0.1)


@on_every_condition
@on_every_aligner
def test_gamma_scale_does_not_notice_one_global_factor(row: Row, condition):
    toy = make_toy(condition)
    plain, labels = features(toy, toy.align(row).changes_of_basis)
    scaled = predictions(1000 * plain, labels, gamma="scale")
    np.testing.assert_allclose(scaled, predictions(plain, labels, gamma="scale"), atol=1e-6)
