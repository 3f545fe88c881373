"""The graph a party keeps for itself: raw columns in, prediction out, without cobasis.

It encodes as the features say, multiplies by ``F_i G_i``, and goes on with the model. So it is
as secret as the party's basis, and more: ``F_i G_i`` is a secret of the whole consortium.
"""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cobasis.errors import ShapeError
from cobasis.features.category import CategoryFeature
from cobasis.features.columns import encoded_columns
from cobasis.features.numeric import NumericFeature
from cobasis.features.refusals import LARGEST
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.models.graph_format import (
    BATCH,
    BOOL_ELEMENT,
    ELEMENT_TYPES,
    FAMILY_KEY,
    FORMAT_KEY,
    INT64_ELEMENT,
    LABEL,
    PREDICTION,
    RAW_FORMAT,
    ROWS,
    SCORES,
    STRING_ELEMENT,
    TASK_KEY,
    Precision,
)
from cobasis.models.graph_model import GraphModel
from cobasis.models.graph_nodes import Sheet, described, finished

if TYPE_CHECKING:
    import onnx

CLASSES_KEY, SECRET_KEY = "cobasis.classes", "cobasis.secret"
MARK = "holds F_i G_i, with which rows of every party can be read: keep it as you keep the basis"

_LARGEST_FLOAT32 = 1e30
_FLOAT64 = ELEMENT_TYPES["float64"]
_OUTPUTS = (SCORES, LABEL, PREDICTION)


def raw_graph(
    features: Sequence[NumericFeature | CategoryFeature],
    model: GraphModel,
    *,
    map_in: Matrix,
    precision: Precision = "float64",
) -> bytes:
    """Write one ONNX graph of raw columns, encoding, ``F_i G_i`` and model."""
    table = as_matrix(map_in, name="the map into the aligned rows")
    columns = encoded_columns(features)
    if table.shape != (len(columns), model.n_components):
        raise ShapeError(
            f"the map into the aligned rows has shape {table.shape}, the features have "
            f"{len(columns)} encoded columns and the model {model.n_components}. Use the basis "
            "and the return of this agreement."
        )
    sheet = Sheet(precision=precision, prefix="cobasis.")
    names = _input_names(features)
    encoded, refused = _write_encoding(sheet, features, names)
    numbers_first = sorted(range(len(columns)), key=lambda place: columns[place].level is not None)
    rows = sheet.put("MatMul", encoded, sheet.weight(table[numbers_first]))
    _write_model(sheet, model, rows)
    _write_outputs(sheet, model, refused)
    return _finished(sheet, model, features, names)


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
    sheet: Sheet, features: Sequence[NumericFeature | CategoryFeature], names: Sequence[str]
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
    sheet: Sheet, features: Sequence[NumericFeature], names: Sequence[str]
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
    bad = sheet.put("Cast", sheet.put("Not", good), to=ELEMENT_TYPES[sheet.precision])
    block = sheet.put("Cast", kept, to=ELEMENT_TYPES[sheet.precision])
    return block, _row_sum(sheet, bad)


def _write_category(sheet: Sheet, feature: CategoryFeature, name: str) -> tuple[str, list[str]]:
    """Write a column of zeros and ones for each level; return what a row may not have, too."""
    kind = ELEMENT_TYPES[sheet.precision]

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


def _row_sum(sheet: Sheet, name: str, *, keepdims: int = 0) -> str:
    """Sum each row."""
    along = sheet.weight(np.array([1], dtype=np.int64))
    return sheet.put("ReduceSum", name, along, keepdims=keepdims)


def _write_model(sheet: Sheet, model: GraphModel, rows: str) -> None:
    """Copy the model's steps and weights in the sheet's precision, under names of their own."""
    import onnx

    graph = onnx.ModelProto.FromString(model.data).graph
    names = {ROWS: rows}
    for tensor in graph.initializer:
        names[tensor.name] = sheet.weight(onnx.numpy_helper.to_array(tensor))
    for node in graph.node:
        attributes = {each.name: _in_precision(each, sheet.precision) for each in node.attribute}
        inputs = [names[each] for each in node.input]
        given = f"cobasis.model.{node.output[0]}"
        names[node.output[0]] = sheet.put(
            node.op_type, *inputs, gives=given, domain=node.domain, **attributes
        )


def _in_precision(attribute: "onnx.AttributeProto", precision: Precision) -> object:
    """Return an attribute's value; splits and leaves in another precision."""
    import onnx

    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type != attribute.TENSOR:
        return value
    numbers = onnx.numpy_helper.to_array(value)
    return onnx.numpy_helper.from_array(
        numbers.astype(precision) if numbers.dtype.kind == "f" else numbers
    )


def _write_outputs(sheet: Sheet, model: GraphModel, refused: str) -> None:
    """Write the model's outputs, with NaN and -1 in rows that the agreement refuses."""
    bad = sheet.put("Cast", refused, to=BOOL_ELEMENT)
    nan = sheet.weight(np.array(np.nan))
    if model.checked.task == "regression":
        sheet.put("Where", bad, nan, f"cobasis.model.{PREDICTION}", gives=PREDICTION)
        return
    along = sheet.weight(np.array([1], dtype=np.int64))
    column = sheet.put("Unsqueeze", bad, along)
    sheet.put("Where", column, nan, f"cobasis.model.{SCORES}", gives=SCORES)
    nothing = sheet.weight(np.array(-1, dtype=np.int64))
    sheet.put("Where", bad, nothing, f"cobasis.model.{LABEL}", gives=LABEL)


def _finished(
    sheet: Sheet,
    model: GraphModel,
    features: Sequence[NumericFeature | CategoryFeature],
    names: Sequence[str],
) -> bytes:
    """Put inputs, outputs and metadata around the sheet."""
    import onnx

    kind = ELEMENT_TYPES[sheet.precision]
    inputs = [
        described(
            name, kind if isinstance(feature, NumericFeature) else STRING_ELEMENT, shape=[BATCH, 1]
        )
        for feature, name in zip(features, names, strict=True)
    ]
    outputs = [described(PREDICTION, kind, shape=[BATCH])]
    if model.checked.task == "classification":
        outputs = [
            described(SCORES, kind, shape=[BATCH, len(model.classes)]),
            described(LABEL, INT64_ELEMENT, shape=[BATCH]),
        ]
    graph = onnx.helper.make_graph(
        sheet.nodes, "raw-model", inputs, outputs, initializer=sheet.weights
    )
    told = {
        FORMAT_KEY: RAW_FORMAT,
        FAMILY_KEY: model.checked.family,
        TASK_KEY: model.checked.task,
        CLASSES_KEY: json.dumps(model.classes),
        SECRET_KEY: MARK,
    }
    return finished(graph, told, trees=model.checked.family == "boosted_trees")
