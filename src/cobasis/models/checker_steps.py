"""The steps of a model file, one by one: operator, wiring, and the shape that comes out."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cobasis.models.checker_trees import check_trees
from cobasis.models.checker_weights import Shape
from cobasis.models.graph_format import (
    LABEL,
    LARGEST_WIDTH,
    MOST_NODES,
    PREDICTION,
    ROWS,
    SCORES,
    TREES_DOMAIN,
    GraphTask,
    Precision,
)
from cobasis.models.graph_wire import refuse

if TYPE_CHECKING:
    import onnx

ROW_CARRYING_OPERATORS = frozenset(
    {"SVMClassifier", "SVMRegressor", "CDist", "TopK", "GatherND", "Gather"}
)
"""What converters make of support-vector machines, nearest neighbours and their like."""

_ATTRIBUTES: dict[str, dict[str, int]] = {
    "Softmax": {"axis": 1},
    "ArgMax": {"axis": 1, "keepdims": 0},
}
_WITH_WEIGHTS = frozenset({"MatMul", "Add"})
_TABLE = 2


@dataclass(kw_only=True)
class Values:
    """What the steps so far give: for each name the number of columns, or none.

    Attributes
    ----------
    weights : dict of str to tuple of int
        Shapes of weights by name.
    n_components : int
        Columns of the rows.
    precision : {"float32", "float64"}
        Of all weights.
    columns : dict of str to int or None
        Columns of what each step gave; None is one number for each row.
    made_by : dict of str to (str, str)
        Which operator gave it, from what.
    used : set of str
        What some step has taken.
    """

    weights: dict[str, Shape]
    n_components: int
    precision: Precision
    columns: dict[str, int | None] = field(default_factory=dict)
    made_by: dict[str, tuple[str, str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with the rows."""
        self.columns[ROWS] = self.n_components

    def check_outputs(self, *, task: GraphTask, n_classes: int) -> bool:
        """Refuse outputs that the steps do not give as declared; tell whether scores are likely."""
        wanted = {PREDICTION} if task == "regression" else {SCORES, LABEL}
        missing = sorted(wanted - set(self.made_by))
        idle = sorted({*self.columns, *self.weights} - self.used - wanted)
        if missing or idle:
            refuse(
                f"no step gives {missing[:3]}, or nothing uses {[each[:40] for each in idle[:3]]}"
            )
        if task == "regression":
            if self.columns[PREDICTION] is not None:
                refuse(f"its prediction has {self.columns[PREDICTION]} columns, not one number")
            if self.made_by[PREDICTION][0] == "ArgMax":
                refuse("its prediction is the place of a number, and not a number")
            return False
        by, source = self.made_by[SCORES]
        from_scores = {SCORES, source} if by == "Softmax" else {SCORES}
        chooses, chosen_from = self.made_by[LABEL]
        if (
            chooses != "ArgMax"
            or chosen_from not in from_scores
            or self.columns[SCORES] != n_classes
        ):
            refuse(f"its label is not the largest of {n_classes} scores")
        return by == "Softmax"


def check_steps(
    nodes: "Sequence[onnx.NodeProto]", values: Values, *, operators: Collection[str]
) -> int:
    """Check every step against the operators of its family, and work out its shape."""
    if len(nodes) > MOST_NODES:
        refuse(f"it has {len(nodes)} steps, and {MOST_NODES} are accepted")
    for node in nodes:
        _check_operator(node, operators)
        first = _check_wiring(node, values)
        width = _columns_out(node, values, first)
        if width is not None and width > LARGEST_WIDTH:
            refuse(f"a step has {width} columns, and {LARGEST_WIDTH} are accepted")
        given = node.output[0]
        values.columns[given] = width
        values.made_by[given] = (node.op_type, first)
    return max(width or 1 for width in values.columns.values())


def _check_operator(node: "onnx.NodeProto", operators: Collection[str]) -> None:
    """Refuse operators that are not the family's, and attributes that are not the format's."""
    name = node.op_type
    if name in ROW_CARRYING_OPERATORS:
        refuse(f"its operator {name} works on stored rows, which every party could read")
    domain = TREES_DOMAIN if name == "TreeEnsemble" else ""
    if name not in operators or node.domain != domain:
        refuse(f"its operator {node.domain[:40]}:{name[:40]} is none of {sorted(operators)}")
    if name == "TreeEnsemble":
        return
    given = {each.name: each.i for each in node.attribute if each.type == each.INT}
    if given != _ATTRIBUTES.get(name, {}) or len(given) != len(node.attribute):
        refuse(f"its operator {name} has attributes that the format does not have")
    if any(each.HasField("t") or each.ints for each in node.attribute):
        refuse(f"its operator {name} has attributes that the format does not have")


def _check_wiring(node: "onnx.NodeProto", values: Values) -> str:
    """Refuse inputs that no earlier step gives and outputs that exist; return the first input."""
    operator = node.op_type
    n_inputs = 2 if operator in _WITH_WEIGHTS else 1
    if len(node.input) != n_inputs or len(node.output) != 1:
        refuse(f"a step {operator} has {len(node.input)} inputs and {len(node.output)} outputs")
    first, given = str(node.input[0]), str(node.output[0])
    if first not in values.columns:
        refuse(f"a step {operator} takes {first[:40]!r}, which no step before it gives")
    if n_inputs > 1 and node.input[1] not in values.weights:
        refuse(f"a step {operator} takes {node.input[1][:40]!r}, which is no weight")
    if not given or given in values.columns or given in values.weights:
        refuse(f"two things are called {given[:40]!r}, or one has no name")
    if values.made_by.get(first, ("",))[0] == "ArgMax":
        refuse(f"a step {operator} takes labels for numbers")
    values.used.update(node.input)
    return first


def _columns_out(node: "onnx.NodeProto", values: Values, first: str) -> int | None:
    """Return how many columns a step gives; None is one number for each row."""
    columns, operator = values.columns[first], node.op_type
    if operator in _WITH_WEIGHTS:
        shape = values.weights[node.input[1]]
        own = () if columns is None else (columns,)
        if operator == "Add" and shape == own:
            return columns
        if operator == "MatMul" and columns is not None and shape[:1] == own:
            return shape[1] if len(shape) == _TABLE else None
        given = "one column" if columns is None else f"{columns} columns"
        refuse(f"a step {operator} takes {given} and weights of shape {shape}")
    if columns is None:
        refuse(f"a step {operator} takes single numbers for a table")
    if operator == "TreeEnsemble":
        return check_trees(node, n_columns=columns, precision=values.precision)
    return None if operator == "ArgMax" else columns
