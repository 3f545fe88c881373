"""xgboost's trees, from training out of core, as arrays of the model format.

xgboost compares in float32, and strictly: a row whose value is below the split goes left. The
format goes left where it is not above. So a split moves down by a little less than half of
float32's step: to the same side of every row, whether rows come as float32 or as float64.
"""

import json
from typing import Any

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Affine, Layer
from cobasis.models.families import Estimator
from cobasis.models.graph_trees import Tree, joined_trees, renumbered

_BELOW_HALF = 0.49


def xgboost_layers(estimator: Estimator) -> tuple[Layer, ...]:
    """Return the layers of boosted trees that were fitted out of core."""
    told = json.loads(bytes(estimator.booster.save_raw("json")))["learner"]
    trees = told["gradient_booster"]["model"]["trees"]
    start = np.array(json.loads(told["learner_model_param"]["base_score"]), dtype=np.float64)
    if told["objective"]["name"] == "binary:logistic":
        start = np.log(start) - np.log1p(-start)
    n_in = int(told["learner_model_param"]["num_feature"])
    joined = joined_trees([_tree(each) for each in trees], n_in=n_in, n_out=len(start))
    return joined, Affine(weights=np.eye(len(start)), offset=start)


def _tree(told: dict[str, Any]) -> Tree:
    """Read one tree, its entries in an order in which parents come first."""
    sides = np.array([told["left_children"], told["right_children"]], dtype=np.int64).T
    order = [0]
    for entry in order:
        order += [side for side in sides[entry].tolist() if side >= 0]
    place = np.zeros(len(sides), dtype=np.int64)
    place[order] = np.arange(len(order))
    conditions = np.array(told["split_conditions"], dtype=np.float32)[order]
    return renumbered(
        place[sides[order]],
        is_leaf=sides[order, 0] < 0,
        columns=np.array(told["split_indices"], dtype=np.int64)[order],
        splits=_not_above(conditions),
        values=conditions.astype(np.float64),
    )


def _not_above(splits: "np.ndarray[Any, np.dtype[np.float32]]") -> Matrix:
    """Return numbers that float32 rounds to the one below each split, and float64 holds."""
    below = np.nextafter(splits, np.float32(-np.inf)).astype(np.float64)
    found: Matrix = below + _BELOW_HALF * (splits.astype(np.float64) - below)
    return found
