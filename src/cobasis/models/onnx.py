"""The graph that a party keeps for itself: raw columns in, prediction out, without cobasis.

It encodes and maps as is agreed, multiplies by ``F_i G_i``, and goes on with the model. So it is
as secret as the party's basis, and more: ``F_i G_i`` is a secret of the whole consortium. ONNX is
an extra, and nothing here reads such a graph.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from cobasis.errors import OptionError
from cobasis.features.contract import CategoryFeature, Feature, NumericFeature
from cobasis.features.encoder import LARGEST, encoded_columns
from cobasis.features.maps import Turn
from cobasis.linalg.arrays import Array, Matrix
from cobasis.models.chain import Affine, Chain, Layer, Trees, layers_of

RAW_FORMAT = "cobasis/raw-model/1"
MARK = "holds F_i G_i, with which rows of every party can be read: keep it as you keep the basis"

_FLOAT64, _INT64, _STRING, _BOOL = 11, 7, 8, 9

_TREES_DOMAIN = "ai.onnx.ml"
_OUTPUTS = _SCORES, _LABEL, _PREDICTION = "scores", "label", "prediction"


class _Sheet:
    """A graph while it is written: nodes and weights, with names that count up."""

    def __init__(self) -> None:
        self.nodes, self.weights = list[onnx.NodeProto](), list[onnx.TensorProto]()
        self.inputs, self.outputs = list[onnx.ValueInfoProto](), list[onnx.ValueInfoProto]()
        self.faults = list[str]()  # columns that are not zero in rows which the agreement refuses

    def weight(self, values: Array | list[Any]) -> str:
        name = f"cobasis.weight_{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def put(self, operator: str, *inputs: str, gives: str = "", **more: Any) -> str:  # noqa: ANN401 -- whatever the operator has
        name = gives or f"cobasis.step_{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name], **more))
        return name

    def give(self, name: str, values: str, *, width: int = 0, kind: int = _FLOAT64) -> None:
        """Add an output, with NaN or -1 in rows that are refused; without a width it is flat."""
        bad = self.put("Cast", self.put("Sum", *self.faults), to=_BOOL)
        filler = self.weight([[-1 if kind == _INT64 else np.nan]])
        whole = self.put("Where", bad, filler, values, gives=name if width else "")
        if not width:
            self.put("Squeeze", whole, self.weight([1]), gives=name)
        shape: tuple[str | int, ...] = ("n", width) if width else ("n",)
        self.outputs.append(onnx.helper.make_tensor_value_info(name, kind, shape))


def raw_graph(
    features: Sequence[Feature],
    model: Chain,
    *,
    map_in: Matrix,
    classes: Sequence[str] | Sequence[int],
    turn: Turn | None = None,
) -> bytes:
    """Write one ONNX graph of raw columns, encoding, map, ``F_i G_i`` and model."""
    columns = encoded_columns(features)
    sheet = _Sheet()
    encoded = _write_encoding(sheet, features)
    order = sorted(range(len(columns)), key=lambda at: columns[at].level is not None)
    if turn is not None:
        in_turn = sheet.put("Gather", encoded, sheet.weight(np.argsort(order)), axis=1)
        encoded = _write_layers(sheet, layers_of(turn), in_turn)
        map_in, order = turn.factor[:, np.newaxis] * map_in, [*range(len(map_in))]
    rows = sheet.put("MatMul", encoded, sheet.weight(map_in[order]))
    _write_model(sheet, model, rows)
    graph = sheet.nodes, "raw-model", sheet.inputs, sheet.outputs, sheet.weights
    made = onnx.helper.make_model(
        onnx.helper.make_graph(*graph),
        opset_imports=[onnx.helper.make_opsetid(*each) for each in (("", 19), (_TREES_DOMAIN, 5))],
        ir_version=9,
        producer_name="cobasis",
    )
    told = {"format": RAW_FORMAT, "family": model.family, "task": model.task, "secret": MARK}
    told["classes"] = json.dumps(classes)
    onnx.helper.set_model_props(made, {f"cobasis.{name}": each for name, each in told.items()})
    return bytes(made.SerializeToString(deterministic=True))


def _write_encoding(sheet: _Sheet, features: Sequence[Feature]) -> str:
    """Write inputs and their encoding: numbers, then the levels of words."""
    for each in features:
        bent = each.kind == "interaction" or (each.kind == "number" and each.knots)
        if bent or each.name in _OUTPUTS or each.name.startswith("cobasis."):
            raise OptionError(
                f"a graph has no place for '{each.name}': it holds neither splines nor "
                f"interactions, and {', '.join(_OUTPUTS)} and 'cobasis.' are names of its own. "
                "Predict these rows with cobasis."
            )
        kind = _FLOAT64 if each.kind == "number" else _STRING
        sheet.inputs.append(onnx.helper.make_tensor_value_info(each.name, kind, ["n", 1]))
    lines = [each for each in features if each.kind == "number"]
    words = [each for each in features if each.kind == "category"]
    blocks = [_write_lines(sheet, lines)] if lines else []
    blocks += [_write_category(sheet, each) for each in words]
    whole = sheet.put("Concat", *blocks, axis=1)
    good = sheet.put("LessOrEqual", sheet.put("Abs", whole), sheet.weight([[LARGEST]]))
    sheet.faults.append(_row_sum(sheet, sheet.put("Not", good)))
    return sheet.put("Where", good, whole, sheet.weight([[0.0]]))


def _row_sum(sheet: _Sheet, table: str) -> str:
    numbers = sheet.put("Cast", table, to=_FLOAT64)
    return sheet.put("ReduceSum", numbers, sheet.weight([1]), keepdims=1)


def _write_lines(sheet: _Sheet, lines: Sequence[NumericFeature]) -> str:
    fills = [np.nan if each.fill is None else each.fill for each in lines]
    wide = sheet.put("Concat", *(each.name for each in lines), axis=1)
    filled = sheet.put("Where", sheet.put("IsNaN", wide), sheet.weight([fills]), wide)
    centre = sheet.weight([[each.centre for each in lines]])
    scale = sheet.weight([[each.scale for each in lines]])
    return sheet.put("Div", sheet.put("Sub", filled, centre), scale)


def _write_category(sheet: _Sheet, feature: CategoryFeature) -> str:
    def ones_where(*words: str) -> str:
        known = sheet.weight(np.array([words], dtype=object))
        return sheet.put("Cast", sheet.put("Equal", feature.name, known), to=_FLOAT64)

    agreed, empty = ones_where(*feature.values), ones_where("")
    told = sheet.put("Sum", _row_sum(sheet, agreed), empty)
    other = sheet.put("Sub", sheet.weight([[1.0]]), told)
    refused = {other: feature.unknown == "refuse", empty: feature.missing == "refuse"}
    levels = [column for column, never in refused.items() if not never]
    if feature.base is not None:
        agreed = ones_where(*(word for word in feature.values if word != feature.base))
    sheet.faults += [column for column, never in refused.items() if never]
    return sheet.put("Concat", agreed, *levels, axis=1)


def _write_layers(sheet: _Sheet, layers: Sequence[Layer], name: str) -> str:
    for layer in layers:
        if isinstance(layer, Trees):
            name = _write_trees(sheet, layer, name)
        elif isinstance(layer, Affine):
            product = sheet.put("MatMul", name, sheet.weight(layer.weights))
            name = sheet.put("Add", product, sheet.weight(layer.offset))
        elif layer == "Square":
            name = sheet.put("Mul", name, name)
        elif layer == "LogSumExp":
            name = sheet.put("ReduceLogSumExp", name, sheet.weight([1]), keepdims=1)
        else:
            name = sheet.put(layer, name)
    return name


def _write_trees(sheet: _Sheet, trees: Trees, name: str) -> str:
    """Write all trees as one node; mode 0 goes to the true side where a value is not above."""
    numbers = onnx.numpy_helper.from_array
    is_node, first = trees.is_node, trees.first_children
    ids = np.where(is_node, np.cumsum(is_node), np.cumsum(~is_node)) - 1
    modes = np.zeros(len(first), dtype=np.uint8)
    owners = [np.arange(trees.n_trees)]
    while len(owners[-1]):
        level = slice(sum(map(len, owners[:-1])), sum(map(len, owners)))
        owners.append(np.repeat(owners[-1][is_node[level]], 2))
    return sheet.put(
        "TreeEnsemble",
        name,
        domain=_TREES_DOMAIN,
        aggregate_function=1,
        post_transform=0,
        n_targets=trees.n_out,
        tree_roots=list(range(trees.n_trees)),
        nodes_featureids=trees.columns[is_node].tolist(),
        nodes_modes=numbers(modes),
        nodes_splits=numbers(trees.numbers[is_node]),
        nodes_truenodeids=ids[first].tolist(),
        nodes_trueleafs=(1 - is_node[first]).tolist(),
        nodes_falsenodeids=ids[first + 1].tolist(),
        nodes_falseleafs=(1 - is_node[first + 1]).tolist(),
        leaf_targetids=(np.concatenate(owners)[~is_node] % trees.n_out).tolist(),
        leaf_weights=numbers(trees.numbers[~is_node]),
    )


def _write_model(sheet: _Sheet, model: Chain, rows: str) -> None:
    last = _write_layers(sheet, model.layers, rows)
    if model.task == "regression":
        sheet.give(_PREDICTION, sheet.put(model.link, last) if model.link else last)
        return
    scores = sheet.put("Softmax", last, axis=1) if model.likely else last
    sheet.give(_SCORES, scores, width=model.widths[-1])
    sheet.give(_LABEL, sheet.put("ArgMax", last, axis=1, keepdims=1), kind=_INT64)
