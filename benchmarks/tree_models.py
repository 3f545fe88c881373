"""Boosted trees as a chain, run by NumPy, beside the same trees in onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks import goals
from benchmarks.timing import interleaved, ratio
from cobasis import numeric_features
from cobasis.models.chain import Chain
from cobasis.models.onnx import raw_graph
from cobasis.models.sources import boosted_layers

WIDTH, TREES = 50, 100
ROWS, ROWS_QUICK = 10_000, 2_000
ROUNDS, ROUNDS_QUICK = 7, 3
DEPTHS: dict[str, dict[str, int | None]] = {
    "31 leaves": {},
    "depth 3": {"max_depth": 3},
    "depth 6": {"max_depth": 6, "max_leaf_nodes": None},
    "depth 10": {"max_depth": 10, "max_leaf_nodes": None},
}


def measure(*, quick: bool) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(20_000, WIDTH))
    target = 3 * np.sin(known[:, 0]) + known[:, 1] * known[:, 2] + known[:, 3:8].sum(axis=1)
    target += 0.5 * rng.normal(size=len(target))
    rows = rng.normal(size=(ROWS_QUICK if quick else ROWS, WIDTH))
    inputs = []
    for shape, options in DEPTHS.items():
        fitted = HistGradientBoostingRegressor(max_iter=TREES, **options).fit(known, target)
        layers = tuple(boosted_layers(fitted))
        model = Chain(family="boosted_trees", layers=layers, head="prediction")
        rounds = ROUNDS_QUICK if quick else ROUNDS
        inputs.append({"trees": shape, **beside(model, rows, rounds=rounds)})
    found = [(each["trees"], each["chain / onnxruntime"]["median"]) for each in inputs]
    what = f"{TREES} trees, {len(rows):,} rows, {WIDTH} columns: a chain beside onnxruntime"
    return {"inputs": inputs, "goals": [goals.worst(found, what, most=4.0)]}


def beside(model: Chain, rows: np.ndarray[Any, Any], *, rounds: int) -> dict[str, Any]:
    """Time a chain and its graph, which has one product and some copies more."""
    names = [f"x{column}" for column in range(WIDTH)]
    graph = raw_graph(numeric_features(names), model, map_in=np.eye(WIDTH), classes=())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    given = {name: rows[:, [column]] for column, name in enumerate(names)}
    (wanted,) = session.run(None, given)
    times = interleaved(
        {"chain": lambda: model.predict(rows), "onnxruntime": lambda: session.run(None, given)},
        rounds=rounds,
    )
    return {
        "seconds": times,
        "largest difference": float(np.abs(model.predict(rows) - wanted).max()),
        "chain / onnxruntime": ratio(times, "chain", "onnxruntime"),
    }
