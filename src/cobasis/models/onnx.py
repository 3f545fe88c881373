"""The graph that a party keeps for itself: raw columns in, prediction out, without cobasis.

It encodes as the features say, multiplies by ``F_i G_i``, and goes on with the model. So it is
as secret as the party's basis, and more: ``F_i G_i`` is a secret of the whole consortium. ONNX is
an extra, and nothing here reads such a graph.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cobasis.errors import MissingExtraError, ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.encoder import LARGEST, encoded_columns
from cobasis.features.numeric import NumericFeature
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.models.chain import Affine, Array, Chain, Trees

if TYPE_CHECKING:
    import onnx

Precision = Literal["float32", "float64"]

RAW_FORMAT = "cobasis/raw-model/1"
MARK = "holds F_i G_i, with which rows of every party can be read: keep it as you keep the basis"

_ELEMENTS: dict[Precision, int] = {"float32": 1, "float64": 11}
_FLOAT64, _INT64, _STRING, _BOOL = 11, 7, 8, 9
"""ONNX's numbers for types."""

_IR_VERSION = 9
_TREES_DOMAIN = "ai.onnx.ml"
_OPSETS = {"": 19, _TREES_DOMAIN: 5}
_BATCH = "n"
_SCORES, _LABEL, _PREDICTION = "scores", "label", "prediction"
_OUTPUTS = (_SCORES, _LABEL, _PREDICTION)
_LARGEST_FLOAT32 = 1e30


@dataclass(kw_only=True)
class _Sheet:
    """A graph while it is written: nodes and weights, with names that count up."""

    precision: Precision
    nodes: "list[onnx.NodeProto]" = field(default_factory=list)
    weights: "list[onnx.TensorProto]" = field(default_factory=list)

    def weight(self, values: Array, *, exact: bool = False) -> str:
        """Store numbers in the sheet's precision, unless exact, and text; return the name."""
        import onnx

        if values.dtype.kind == "f" and not exact:
            values = values.astype(self.precision)
        name = f"cobasis.weight_{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def put(
        self,
        operator: str,
        *inputs: str,
        gives: str = "",
        domain: str = "",
        **attributes: Any,  # noqa: ANN401 -- whatever the operator has
    ) -> str:
        """Add a node; return the name of what it gives."""
        import onnx

        name = gives or f"cobasis.step_{len(self.nodes)}"
        node = onnx.helper.make_node(operator, inputs, [name], domain=domain or None, **attributes)
        self.nodes.append(node)
        return name


def raw_graph(
    features: Sequence[NumericFeature | CategoryFeature],
    model: Chain,
    *,
    map_in: Matrix,
    classes: Sequence[str] | Sequence[int],
    precision: Precision = "float64",
) -> bytes:
    """Write one ONNX graph of raw columns, encoding, ``F_i G_i`` and model."""
    _require_onnx()
    table = as_matrix(map_in, name="the map into the aligned rows")
    columns = encoded_columns(features)
    if table.shape != (len(columns), model.widths[0]):
        raise ShapeError(
            f"the map into the aligned rows has shape {table.shape}, the features have "
            f"{len(columns)} encoded columns and the model {model.widths[0]}. Use the basis "
            "and the return of this agreement."
        )
    sheet = _Sheet(precision=precision)
    names = _input_names(features)
    encoded, refused = _write_encoding(sheet, features, names)
    numbers_first = sorted(range(len(columns)), key=lambda place: columns[place].level is not None)
    rows = sheet.put("MatMul", encoded, sheet.weight(table[numbers_first]))
    _write_outputs(sheet, model, last=_write_layers(sheet, model, rows), refused=refused)
    told = {
        "cobasis.format": RAW_FORMAT,
        "cobasis.family": model.family,
        "cobasis.task": model.task,
        "cobasis.classes": json.dumps(classes),
        "cobasis.secret": MARK,
    }
    return _finished(sheet, model, _described_inputs(features, names, precision), told)


def _require_onnx() -> None:
    """Raise MissingExtraError where ONNX is not installed."""
    try:
        import onnx  # noqa: F401 -- only whether it is there
    except ImportError as error:
        raise MissingExtraError(
            "this needs the package onnx, which is not installed. Install it with: "
            "pip install 'cobasis[onnx]'"
        ) from error


def _input_names(features: Iterable[NumericFeature | CategoryFeature]) -> list[str]:
    """Return the columns' names, with ``column.`` before one that the graph needs itself."""
    taken = {feature.name for feature in features}
    names = []
    for feature in features:
        name = feature.name
        if name in _OUTPUTS or name.startswith("cobasis."):
            while name in taken or name in _OUTPUTS:
                name = f"column.{name}"
            taken.add(name)
        names.append(name)
    return names


def _write_encoding(
    sheet: _Sheet, features: Sequence[NumericFeature | CategoryFeature], names: Sequence[str]
) -> tuple[str, str]:
    """Write all encoding, numbers first; return the table and how much of each row is refused."""
    blocks, faults = [], []
    numbers = [
        (feature, name)
        for feature, name in zip(features, names, strict=True)
        if isinstance(feature, NumericFeature)
    ]
    if numbers:
        block, fault = _write_numbers(
            sheet, [feature for feature, _ in numbers], [name for _, name in numbers]
        )
        blocks.append(block)
        faults.append(fault)
    for feature, name in zip(features, names, strict=True):
        if isinstance(feature, CategoryFeature):
            block, more = _write_category(sheet, feature, name)
            blocks.append(block)
            faults += more
    never = sheet.weight(np.zeros(1))
    return sheet.put("Concat", *blocks, axis=1), sheet.put("Sum", never, *faults)


def _write_numbers(
    sheet: _Sheet, features: Sequence[NumericFeature], names: Sequence[str]
) -> tuple[str, str]:
    """Write ``(value - centre) / scale`` for all numbers at once, in float64."""
    fills = np.array([np.nan if each.fill is None else each.fill for each in features])
    limit = LARGEST if sheet.precision == "float64" else _LARGEST_FLOAT32
    wide = sheet.put("Cast", sheet.put("Concat", *names, axis=1), to=_FLOAT64)
    filled = sheet.put(
        "Where", sheet.put("IsNaN", wide), sheet.weight(fills[None], exact=True), wide
    )
    centre = sheet.weight(np.array([[each.centre for each in features]]), exact=True)
    scale = sheet.weight(np.array([[each.scale for each in features]]), exact=True)
    scaled = sheet.put("Div", sheet.put("Sub", filled, centre), scale)
    size = sheet.put("Abs", scaled)
    good = sheet.put("LessOrEqual", size, sheet.weight(np.array([[limit]]), exact=True))
    kept = sheet.put("Where", good, scaled, sheet.weight(np.zeros((1, 1)), exact=True))
    bad = sheet.put("Cast", sheet.put("Not", good), to=_ELEMENTS[sheet.precision])
    block = sheet.put("Cast", kept, to=_ELEMENTS[sheet.precision])
    return block, _row_sum(sheet, bad)


def _write_category(sheet: _Sheet, feature: CategoryFeature, name: str) -> tuple[str, list[str]]:
    """Write a column of zeros and ones for each level; return what a row may not have, too."""
    kind = _ELEMENTS[sheet.precision]

    def ones_where(*words: str) -> str:
        known = sheet.weight(np.array([words], dtype=object))
        return sheet.put("Cast", sheet.put("Equal", name, known), to=kind)

    blocks, faults = [ones_where(*feature.values)], []
    empty = ones_where("")
    known = _row_sum(sheet, blocks[0], keepdims=1)
    told = sheet.put("Sum", known, empty)
    other = sheet.put("Sub", sheet.weight(np.ones((1, 1))), told)
    for column, refused in (
        (other, feature.unknown == "refuse"),
        (empty, feature.missing == "refuse"),
    ):
        if refused:
            faults.append(_row_sum(sheet, column))
        else:
            blocks.append(column)
    return sheet.put("Concat", *blocks, axis=1), faults


def _row_sum(sheet: _Sheet, name: str, *, keepdims: int = 0) -> str:
    """Sum each row."""
    along = sheet.weight(np.array([1], dtype=np.int64))
    return sheet.put("ReduceSum", name, along, keepdims=keepdims)


def _write_layers(sheet: _Sheet, model: Chain, name: str) -> str:
    """Write all layers; return the name of what the last one gives."""
    for layer in model.layers:
        if isinstance(layer, Trees):
            name = _write_trees(sheet, layer, name)
        elif isinstance(layer, Affine):
            product = sheet.put("MatMul", name, sheet.weight(layer.weights))
            name = sheet.put("Add", product, sheet.weight(layer.offset))
        else:
            name = sheet.put(layer, name)
    return name


def _write_trees(sheet: _Sheet, trees: Trees, name: str) -> str:
    """Write all trees as one node; mode 0 goes to the true side where a value is not above."""
    import onnx

    def numbers(values: Matrix) -> "onnx.TensorProto":
        return onnx.numpy_helper.from_array(values.astype(sheet.precision))

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
        nodes_modes=onnx.numpy_helper.from_array(modes),
        nodes_splits=numbers(trees.numbers[is_node]),
        nodes_truenodeids=ids[first].tolist(),
        nodes_trueleafs=(1 - is_node[first]).tolist(),
        nodes_falsenodeids=ids[first + 1].tolist(),
        nodes_falseleafs=(1 - is_node[first + 1]).tolist(),
        leaf_targetids=(np.concatenate(owners)[~is_node] % trees.n_out).tolist(),
        leaf_weights=numbers(trees.numbers[~is_node]),
    )


def _write_outputs(sheet: _Sheet, model: Chain, *, last: str, refused: str) -> None:
    """Write the model's outputs, with NaN and -1 in rows that the agreement refuses."""
    bad = sheet.put("Cast", refused, to=_BOOL)
    nan = sheet.weight(np.array(np.nan))
    along = sheet.weight(np.array([1], dtype=np.int64))
    if model.task == "regression":
        sheet.put("Where", bad, nan, sheet.put("Squeeze", last, along), gives=_PREDICTION)
        return
    scores = sheet.put("Softmax", last, axis=1) if model.likely else last
    sheet.put("Where", sheet.put("Unsqueeze", bad, along), nan, scores, gives=_SCORES)
    nothing = sheet.weight(np.array(-1, dtype=np.int64))
    label = sheet.put("ArgMax", last, axis=1, keepdims=0)
    sheet.put("Where", bad, nothing, label, gives=_LABEL)


def _described(name: str, kind: int, *, shape: list[str | int]) -> "onnx.ValueInfoProto":
    """Describe an input or output of a graph."""
    import onnx

    return onnx.helper.make_tensor_value_info(name, kind, shape)


def _described_inputs(
    features: Sequence[NumericFeature | CategoryFeature],
    names: Sequence[str],
    precision: Precision,
) -> "list[onnx.ValueInfoProto]":
    """Describe one input for each raw column."""
    kinds = {True: _ELEMENTS[precision], False: _STRING}
    return [
        _described(name, kinds[isinstance(feature, NumericFeature)], shape=[_BATCH, 1])
        for feature, name in zip(features, names, strict=True)
    ]


def _finished(
    sheet: _Sheet, model: Chain, inputs: "list[onnx.ValueInfoProto]", told: dict[str, str]
) -> bytes:
    """Put inputs, outputs and metadata around the sheet, and all of it into bytes."""
    import onnx

    kind = _ELEMENTS[sheet.precision]
    outputs = [_described(_PREDICTION, kind, shape=[_BATCH])]
    if model.task == "classification":
        outputs = [
            _described(_SCORES, kind, shape=[_BATCH, model.widths[-1]]),
            _described(_LABEL, _INT64, shape=[_BATCH]),
        ]
    graph = onnx.helper.make_graph(
        sheet.nodes, "raw-model", inputs, outputs, initializer=sheet.weights
    )
    trees = any(isinstance(layer, Trees) for layer in model.layers)
    used = [domain for domain in _OPSETS if trees or domain != _TREES_DOMAIN]
    made = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(domain, _OPSETS[domain]) for domain in used],
        ir_version=_IR_VERSION,
        producer_name="cobasis",
    )
    onnx.helper.set_model_props(made, told)
    written: bytes = made.SerializeToString(deterministic=True)
    return written
