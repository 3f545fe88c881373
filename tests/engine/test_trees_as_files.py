"""Boosted trees that were fitted out of core travel like those of scikit-learn."""

import json

import numpy as np
import pytest

from cobasis.engine.training import train_partitions
from cobasis.models.sources import read_chain
from cobasis.models.training import TrainedModel
from engine.partitioned import aligned_rows
from engine.test_trees import curved

CUTS = {2: [0.1], 3: [-0.5, 0.5], 0: None}


def trained(folder, n_classes):
    """A model, the rows it was trained on, whose values splits are made of, and the task."""
    rows, target = curved()
    labels = target if n_classes == 0 else np.digitize(target, CUTS[n_classes])
    task = "classification" if n_classes else "regression"
    aligned = aligned_rows(folder, rows, labels)
    model = train_partitions(aligned, model="boosted_trees", task=task, seed=0, max_passes=20)
    return model, rows, task


@pytest.mark.parametrize("n_classes", CUTS)
def test_a_chain_gives_what_xgboost_gives(n_classes, tmp_path):
    """xgboost itself adds up in float32, so to 1e-6; rows that were trained on lie on splits."""
    model, known, task = trained(tmp_path, n_classes)
    rows = np.vstack([known, curved(seed=1)[0]])
    read = read_chain(model, task=task, n_classes=n_classes)
    wanted, found = model.predict(rows), read.predict(rows)
    if n_classes:
        np.testing.assert_array_equal(found, wanted)
        wanted = model.scores(rows, method="predict_proba")
        found = read.scores(rows, method="predict_proba")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert len(np.unique(wanted)) > 50


def test_a_row_on_a_split_goes_to_the_side_that_xgboost_sends_it(tmp_path):
    model, rows, task = trained(tmp_path, 0)
    turned = TrainedModel(axes=np.eye(4), estimator=model.estimator)
    read = read_chain(turned, task=task, n_classes=0)
    told = json.loads(bytes(model.estimator.booster.save_raw("json")))
    trees = told["learner"]["gradient_booster"]["model"]["trees"]
    splits = [
        split
        for tree in trees
        for split, column, left in zip(
            tree["split_conditions"], tree["split_indices"], tree["left_children"], strict=True
        )
        if column == 0 and left >= 0
    ]
    on_split = np.tile(rows[0] @ model.axes, (len(splits), 1)).astype(np.float32)
    on_split[:, 0] = splits
    below = np.nextafter(on_split, np.float32(-np.inf))
    wanted = [turned.predict(each.astype(np.float64)) for each in (on_split, below)]
    found = [read.predict(each.astype(np.float64)) for each in (on_split, below)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert np.mean(wanted[0] != wanted[1]) > 0.2  # most splits are below others
