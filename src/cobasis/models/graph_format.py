"""The words and limits of the model format, ``cobasis/model/1``; builders and checker share them.

A format never changes: another operator set, or another layout, is another format.
"""

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

MODEL_FORMAT = "cobasis/model/1"
RAW_FORMAT = "cobasis/raw-model/1"

Precision = Literal["float32", "float64"]
GraphFamily = Literal["linear", "logistic", "mlp", "rff", "boosted_trees"]
GraphTask = Literal["classification", "regression"]
Classes = tuple[str, ...] | tuple[int, ...]
Array = npt.NDArray[Any]

PRECISIONS: tuple[Precision, ...] = get_args(Precision)

FAMILY_KEY, FORMAT_KEY, TASK_KEY = "cobasis.family", "cobasis.format", "cobasis.task"

IR_VERSION = 9
TREES_DOMAIN = "ai.onnx.ml"
OPSETS = {"": 19, TREES_DOMAIN: 5}

BATCH = "n"
"""What the graph calls its number of rows."""

ROWS, SCORES, LABEL, PREDICTION = "rows", "scores", "label", "prediction"

LARGEST_FILE = 256 * 2**20
LARGEST_WIDTH = 65_536
LARGEST_DEPTH = 64
MOST_NODES = 64

ELEMENT_TYPES: dict[Precision, int] = {"float32": 1, "float64": 11}
"""ONNX's numbers for element types."""

INT64_ELEMENT, UINT8_ELEMENT, STRING_ELEMENT, BOOL_ELEMENT = 7, 2, 8, 9

ABSENT = -1e30
"""Logit of a class that no training row had: its likelihood is exactly zero."""


def little_endian(precision: Precision) -> "np.dtype[Any]":
    """Return the type in which the file holds numbers."""
    return np.dtype(precision).newbyteorder("<")
