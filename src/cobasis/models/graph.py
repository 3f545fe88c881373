"""A trained model as an ONNX graph: what a return carries, and nothing runs by being read.

Our own builders, one small chain of layers for all families: a converter would be one more
package between scikit-learn and ONNX that has to keep up with both.
"""

from cobasis.errors import ModelFileError, OptionError, ShapeError
from cobasis.models.checker import check_graph
from cobasis.models.families import Task
from cobasis.models.graph_format import Classes, Precision
from cobasis.models.graph_nodes import write_graph
from cobasis.models.graph_sources import read_chain
from cobasis.models.training import TrainedModel


def to_graph(
    trained: TrainedModel,
    *,
    n_components: int,
    task: Task,
    classes: Classes,
    precision: Precision = "float64",
) -> bytes:
    """Write a trained model as a file of the model format: aligned rows in, prediction out."""
    if task == "representation":
        raise OptionError("a round for a representation trains no model. Agree on another task.")
    if trained.n_components != n_components:
        raise ShapeError(
            f"the model is for {trained.n_components} aligned columns, not for {n_components}. "
            "Train it on this round's rows."
        )
    chain = read_chain(trained, task=task, n_classes=len(classes))
    data = write_graph(chain, task=task, precision=precision)
    try:
        check_graph(data, n_components=n_components, task=task, classes=classes)
    except ModelFileError as error:
        raise OptionError(
            f"the model is more than the model format takes: every party would refuse the file. "
            f"Train a smaller one. The party's message: {error}"
        ) from error
    return data
