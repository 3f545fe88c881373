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
    """Write a trained model as a file of the model format: aligned rows in, prediction out.

    Parameters
    ----------
    trained : TrainedModel
        Of a family that carries no rows, or a pipeline of scalers and such a model.
    n_components : int
        l, the columns of the aligned rows.
    task : {"classification", "regression"}
        What it was trained for.
    classes : tuple of str or of int
        The agreement's; only their number goes into the file, which gives positions in them.
    precision : {"float32", "float64"}
        Of input, weights and scores.

    Returns
    -------
    bytes
        An ONNX model. For classification its outputs are ``scores`` of shape (n_rows, n_classes)
        and ``label`` of shape (n_rows,), for regression ``prediction`` of shape (n_rows,).

    Raises
    ------
    RowCarryingError
        The model stores training rows.
    OptionError
        The task has no model, the format has no form for this one, or it is too large.
    ShapeError
        The model is for rows of another width.
    LabelError
        Its labels are no positions in the classes.

    Notes
    -----
    **Who sees what.** Every party gets the file; it holds what the trained model holds.

    **Cost.** A few products of weights. A file of float32 is half as large, and its scores agree
    with scikit-learn's to about 1e-6 of their size, those of float64 to about 1e-14.
    """
    if task == "representation":
        msg = "a round for a representation trains no model. Agree on another task."
        raise OptionError(msg)
    if trained.n_components != n_components:
        msg = (
            f"the model is for {trained.n_components} aligned columns, not for {n_components}. "
            "Train it on this round's rows."
        )
        raise ShapeError(msg)
    chain = read_chain(trained, task=task, n_classes=len(classes))
    data = write_graph(chain, task=task, precision=precision)
    try:
        check_graph(data, n_components=n_components, task=task, classes=classes)
    except ModelFileError as error:
        msg = "the model is more than the model format takes: every party would refuse the file"
        raise OptionError(f"{msg}. Train a smaller one. The party's message: {error}") from error
    return data
