"""The chain of layers as ONNX nodes and weights; its inputs and outputs have fixed names."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cobasis.linalg.arrays import Matrix
from cobasis.models.chain import Affine, Chain, Trees
from cobasis.models.graph_format import (
    BATCH,
    ELEMENT_TYPES,
    FAMILY_KEY,
    FORMAT_KEY,
    INT64_ELEMENT,
    IR_VERSION,
    LABEL,
    MODEL_FORMAT,
    OPSETS,
    PREDICTION,
    ROWS,
    SCORES,
    TASK_KEY,
    TREES_DOMAIN,
    Array,
    GraphTask,
    Precision,
    little_endian,
)

if TYPE_CHECKING:
    import onnx


@dataclass(kw_only=True)
class Sheet:
    """A graph while it is written: nodes and weights, with names that count up.

    Attributes
    ----------
    precision : {"float32", "float64"}
        Of all weights.
    prefix : str
        Before every name that the sheet gives.
    """

    precision: Precision
    prefix: str = ""
    nodes: "list[onnx.NodeProto]" = field(default_factory=list)
    weights: "list[onnx.TensorProto]" = field(default_factory=list)

    def weight(self, values: Array, *, exact: bool = False) -> str:
        """Store numbers in the sheet's precision, unless exact, and text; return the name."""
        import onnx

        if values.dtype.kind == "f" and not exact:
            values = values.astype(self.precision)
        name = f"{self.prefix}weight_{len(self.weights)}"
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

        name = gives or f"{self.prefix}step_{len(self.nodes)}"
        node = onnx.helper.make_node(operator, inputs, [name], domain=domain or None, **attributes)
        self.nodes.append(node)
        return name


def write_graph(chain: Chain, *, task: GraphTask, precision: Precision) -> bytes:
    """Write a chain as a file of the model format."""
    import onnx

    sheet = Sheet(precision=precision)
    n_components, n_out = _write_layers(sheet, chain)
    kind = ELEMENT_TYPES[precision]
    if task == "regression":
        outputs = [described(PREDICTION, kind, shape=[BATCH])]
    else:
        outputs = [
            described(SCORES, kind, shape=[BATCH, n_out]),
            described(LABEL, INT64_ELEMENT, shape=[BATCH]),
        ]
    graph = onnx.helper.make_graph(
        sheet.nodes,
        "model",
        [described(ROWS, kind, shape=[BATCH, n_components])],
        outputs,
        initializer=sheet.weights,
    )
    told = {FORMAT_KEY: MODEL_FORMAT, FAMILY_KEY: chain.family, TASK_KEY: task}
    return finished(graph, told, trees=chain.family == "boosted_trees")


def finished(graph: "onnx.GraphProto", told: dict[str, str], *, trees: bool) -> bytes:
    """Put a graph into a model of the format's versions, with its metadata, and into bytes."""
    import onnx

    used = [domain for domain in OPSETS if trees or domain != TREES_DOMAIN]
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid(domain, OPSETS[domain]) for domain in used],
        ir_version=IR_VERSION,
        producer_name="cobasis",
    )
    onnx.helper.set_model_props(model, told)
    written: bytes = model.SerializeToString(deterministic=True)
    return written


def described(name: str, kind: int, *, shape: list[str | int]) -> "onnx.ValueInfoProto":
    """Describe an input or output of a graph."""
    import onnx

    return onnx.helper.make_tensor_value_info(name, kind, shape)


def _write_layers(sheet: Sheet, chain: Chain) -> tuple[int, int]:
    """Write all layers and the head; return how many columns go in and come out."""
    last, name = len(chain.layers) - 1, ROWS
    n_components = n_out = 0
    for place, layer in enumerate(chain.layers):
        if isinstance(layer, Trees):
            name = _write_trees(sheet, layer, name)
        elif isinstance(layer, Affine):
            n_components = n_components or len(layer.weights)
            n_out = layer.weights.shape[1]
            name = _write_affine(sheet, layer, name, head=chain.head if place == last else None)
        else:
            name = sheet.put(layer, name)
    if chain.head == "probabilities":
        sheet.put("Softmax", name, gives=SCORES, axis=1)
    if chain.head != "prediction":
        sheet.put("ArgMax", name, gives=LABEL, axis=1, keepdims=0)
    return n_components, n_out


def _write_affine(sheet: Sheet, layer: Affine, name: str, *, head: str | None) -> str:
    """Write a product and a sum; the last one of a regression gives one number for a row."""
    weights, offset = layer.weights, layer.offset
    if head == "prediction":
        weights, offset = weights[:, 0], offset[:1].reshape(())
    gives = {"prediction": PREDICTION, "decision": SCORES}.get(head or "", "")
    product = sheet.put("MatMul", name, sheet.weight(weights))
    return sheet.put("Add", product, sheet.weight(offset), gives=gives)


def _write_trees(sheet: Sheet, trees: Trees, name: str) -> str:
    """Write all trees as one node."""
    import onnx

    def numbers(values: Matrix) -> "onnx.TensorProto":
        kept = values.astype(little_endian(sheet.precision))
        return onnx.numpy_helper.from_array(kept)

    return sheet.put(
        "TreeEnsemble",
        name,
        domain=TREES_DOMAIN,
        aggregate_function=1,
        post_transform=0,
        n_targets=trees.n_out,
        tree_roots=trees.roots.tolist(),
        nodes_featureids=trees.columns.tolist(),
        nodes_modes=onnx.numpy_helper.from_array(np.zeros(len(trees.columns), dtype=np.uint8)),
        nodes_splits=numbers(trees.splits),
        nodes_truenodeids=trees.true_ids.tolist(),
        nodes_trueleafs=trees.true_leaves.tolist(),
        nodes_falsenodeids=trees.false_ids.tolist(),
        nodes_falseleafs=trees.false_leaves.tolist(),
        leaf_targetids=trees.targets.tolist(),
        leaf_weights=numbers(trees.leaves),
    )
