"""A model that came as a file: checked, then run by onnxruntime, one thread, block by block."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cobasis.errors import NotFiniteError, OptionError
from cobasis.linalg.arrays import Matrix, as_matrix
from cobasis.models.checker import CheckedGraph, check_graph
from cobasis.models.families import Task
from cobasis.models.graph import to_graph
from cobasis.models.graph_format import (
    LABEL,
    PREDICTION,
    ROWS,
    SCORES,
    Array,
    Classes,
    Precision,
)
from cobasis.models.graph_wire import refuse
from cobasis.models.training import TrainedModel

_MOST_NUMBERS_AT_ONCE = 4_000_000
_TWO = 2


@dataclass(frozen=True, kw_only=True)
class GraphModel:
    """A model file, and what `TrainedModel` does: labels or numbers for aligned rows.

    Attributes
    ----------
    data : bytes
        A file of the model format, as `to_graph` writes it.
    n_components : int
        l, the columns of the aligned rows.
    task : {"classification", "regression"}
        The agreement's.
    classes : tuple of str or of int
        The agreement's; the model gives positions in them.
    """

    data: bytes = field(repr=False)
    n_components: int
    task: Task
    classes: Classes
    checked: CheckedGraph = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Let the checker look at the file before anything else does."""
        found = check_graph(
            self.data, n_components=self.n_components, task=self.task, classes=self.classes
        )
        object.__setattr__(self, "checked", found)

    def predict(self, rows: Matrix) -> npt.NDArray[Any]:
        """Predict for aligned rows."""
        if self.checked.task == "regression":
            return self._run(rows, PREDICTION)
        return self._run(rows, LABEL)

    def scores(self, rows: Matrix, *, method: str) -> npt.NDArray[Any]:
        """Score aligned rows for each class, in the shape that scikit-learn has."""
        kinds = {"classification": "predict_proba" if self.checked.likely else "decision_function"}
        kind = kinds.get(self.checked.task, "predict")
        if method != kind or kind == "predict":
            raise OptionError(
                f"this model has no {method}: it is of family {self.checked.family}. Use {kind}."
            )
        scored = self._run(rows, SCORES)
        alone = kind == "decision_function" and len(self.classes) == _TWO
        return scored[:, 1] if alone else scored

    @property
    def n_bytes(self) -> int:
        """What the file weighs."""
        return len(self.data)

    @cached_property
    def _session(self) -> Any:  # noqa: ANN401 -- onnxruntime is untyped
        """The runtime, with the graph exactly as it was checked."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong is raised, not written
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(self.data, options, providers=["CPUExecutionProvider"])

    def _run(self, rows: Matrix, output: str) -> npt.NDArray[Any]:
        """Return one output for all rows, computed in blocks."""
        table = as_matrix(rows, name="the aligned rows", columns=self.n_components)
        with np.errstate(over="ignore"):
            given = np.ascontiguousarray(table, dtype=self.checked.precision)
        if not np.isfinite(given).all():
            raise NotFiniteError(
                "aligned rows are too large for a model of float32. Ask the analyst for one of "
                "float64, or agree on scales that suit the units."
            )
        step = max(1, _MOST_NUMBERS_AT_ONCE // self.checked.widest)
        blocks = [self._block(given[at : at + step], output) for at in range(0, len(given), step)]
        found = np.concatenate(blocks)
        return found if output == LABEL else found.astype(np.float64)

    def _block(self, rows: Array, output: str) -> Array:
        """Return one output for some rows, after looking whether the numbers are finite."""
        other = SCORES if output == LABEL else output
        names = sorted({output, other})
        try:
            given = self._session.run(names, {ROWS: rows})
        except Exception as error:  # noqa: BLE001 -- the runtime's errors have no common class
            refuse(f"the runtime cannot run it ({type(error).__name__})")
        found = dict(zip(names, given, strict=True))
        if not np.isfinite(found[other]).all():
            refuse("it gives numbers that are not finite")
        return cast("Array", found[output])


def as_graph_model(
    trained: TrainedModel, *, task: Task, classes: Classes, precision: Precision = "float64"
) -> GraphModel:
    """Write a trained model as a file and read it back: what a return carries."""
    n_components = trained.n_components
    data = to_graph(
        trained, n_components=n_components, task=task, classes=classes, precision=precision
    )
    return GraphModel(data=data, n_components=n_components, task=task, classes=classes)
