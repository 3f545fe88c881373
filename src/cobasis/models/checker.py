"""Is this file a model of the format, and nothing else? Asked before anything runs it.

The file comes from another organisation, and the library that runs it has a history of
advisories. So whatever is not on a list is refused: fields, operators, attributes, names, and
shapes, which are worked out here step by step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from cobasis.models.checker_steps import Values, check_steps
from cobasis.models.checker_weights import read_weights
from cobasis.models.families import FAMILIES, Task
from cobasis.models.graph_format import (
    BATCH,
    ELEMENT_TYPES,
    FAMILY_KEY,
    FORMAT_KEY,
    INT64_ELEMENT,
    IR_VERSION,
    LABEL,
    LARGEST_FILE,
    LARGEST_WIDTH,
    MODEL_FORMAT,
    OPSETS,
    PRECISIONS,
    PREDICTION,
    ROWS,
    SCORES,
    TASK_KEY,
    Classes,
    GraphFamily,
    GraphTask,
    Precision,
)
from cobasis.models.graph_wire import check_wire, refuse

if TYPE_CHECKING:
    import onnx

_End: TypeAlias = tuple[str, int, list[str | int]]

_DENSE = ("MatMul", "Add", "ArgMax")

OPERATORS: dict[GraphFamily, frozenset[str]] = {
    "linear": frozenset(_DENSE),
    "logistic": frozenset({*_DENSE, "Softmax"}),
    "mlp": frozenset({*_DENSE, "Softmax", "Relu", "Tanh", "Sigmoid"}),
    "rff": frozenset({*_DENSE, "Softmax", "Relu", "Tanh", "Sigmoid", "Cos"}),
    "boosted_trees": frozenset({*_DENSE, "Softmax", "TreeEnsemble"}),
}
"""What each family is made of; nothing that stores rows is among them."""


@dataclass(frozen=True, kw_only=True)
class CheckedGraph:
    """What the checker found out about a file that it let through.

    Attributes
    ----------
    data : bytes
        The file.
    family, task, precision : str
        As the file says, and as it is.
    n_components, n_classes : int
        Columns in, and classes out; no classes for regression.
    likely : bool
        Whether scores are likelihoods.
    widest : int
        The most columns that any step has.
    """

    data: bytes = field(repr=False)
    family: GraphFamily
    task: GraphTask
    precision: Precision
    n_components: int
    n_classes: int
    likely: bool
    widest: int


def check_graph(
    data: bytes,
    *,
    n_components: int,
    task: Task,
    classes: Classes,
    largest: int = LARGEST_FILE,
) -> CheckedGraph:
    """Refuse a file that is not a model of the format for this round."""
    if len(data) > largest:
        refuse(f"it has {len(data)} bytes, and {largest} are accepted")
    check_wire(data)
    model = _parsed(data)
    told = _metadata(model.metadata_props)
    family = _family(told, task)
    _check_versions(model)
    graph = model.graph
    precision = _precision(graph.input)
    kind = ELEMENT_TYPES[precision]
    _check_ends(graph.input, [(ROWS, kind, [BATCH, n_components])], what="inputs")
    if n_components > LARGEST_WIDTH:
        refuse(f"{n_components} columns are above {LARGEST_WIDTH}")
    outputs: list[_End] = [(PREDICTION, kind, [BATCH])]
    if task == "classification":
        outputs = [(SCORES, kind, [BATCH, len(classes)]), (LABEL, INT64_ELEMENT, [BATCH])]
    _check_ends(graph.output, outputs, what="outputs")
    weights = read_weights(graph.initializer, precision=precision)
    values = Values(weights=weights, n_components=n_components, precision=precision)
    widest = check_steps(graph.node, values, operators=OPERATORS[family])
    return CheckedGraph(
        data=data,
        family=family,
        task=cast("GraphTask", task),
        precision=precision,
        n_components=n_components,
        n_classes=len(classes),
        likely=values.check_outputs(task=cast("GraphTask", task), n_classes=len(classes)),
        widest=widest,
    )


def _parsed(data: bytes) -> "onnx.ModelProto":
    """Parse bytes whose fields are known."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        parsed: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except DecodeError:
        refuse("it is truncated or damaged")
    return parsed


def _metadata(entries: "Sequence[onnx.StringStringEntryProto]") -> dict[str, str]:
    """Return the metadata, which is three entries of known names."""
    told = {entry.key: entry.value for entry in entries}
    if len(told) != len(entries) or set(told) != {FORMAT_KEY, FAMILY_KEY, TASK_KEY}:
        refuse("its metadata are not those of a model that cobasis wrote")
    if told[FORMAT_KEY] != MODEL_FORMAT:
        refuse(f"it is of format {told[FORMAT_KEY][:40]!r}, not {MODEL_FORMAT!r}")
    return told


def _family(told: dict[str, str], task: Task) -> GraphFamily:
    """Return the family, if it is one that carries no rows, and the task is the agreement's."""
    name = told[FAMILY_KEY]
    if any(name == each and row.carries_rows for each, row in FAMILIES.items()):
        refuse(f"its family {name!r} stores training rows, which every party could read")
    if name not in OPERATORS:
        refuse(f"its family {name[:40]!r} is none of {', '.join(OPERATORS)}")
    if told[TASK_KEY] != task or task == "representation":
        refuse(f"it is for {told[TASK_KEY][:40]!r}, the agreement is for {task!r}")
    return name


def _check_versions(model: "onnx.ModelProto") -> None:
    """Refuse other versions of ONNX and of its operators than the format's."""
    given = {each.domain: each.version for each in model.opset_import}
    same = all(OPSETS.get(domain) == version for domain, version in given.items())
    if model.ir_version != IR_VERSION or "" not in given or not same:
        named = ", ".join(f"{name[:40] or 'ai.onnx'} {number}" for name, number in given.items())
        refuse(f"it uses versions that the format does not have ({named}, IR {model.ir_version})")
    if len(given) != len(model.opset_import):
        refuse("it names one set of operators twice")


def _precision(inputs: "Sequence[onnx.ValueInfoProto]") -> Precision:
    """Return the precision of the input; what else is wrong with it is found later."""
    given = [each.type.tensor_type.elem_type for each in inputs[:1]]
    for precision in PRECISIONS:
        if given == [ELEMENT_TYPES[precision]]:
            return precision
    return refuse("its input is not of type float32 or float64")


def _check_ends(
    given: "Sequence[onnx.ValueInfoProto]",
    agreed: Sequence[_End],
    *,
    what: str,
) -> None:
    """Refuse inputs or outputs of other names, types or shapes than agreed."""
    found = []
    for each in given:
        tensor = each.type.tensor_type
        shape = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]
        found.append((each.name, tensor.elem_type, shape))
    if found != list(agreed):
        told = ", ".join(f"{name[:40]!r} {shape[:4]}" for name, _, shape in found[:4])
        wanted = ", ".join(f"{name!r} {shape}" for name, _, shape in agreed)
        refuse(f"its {what} are {told or 'none'} where this round has {wanted}")
