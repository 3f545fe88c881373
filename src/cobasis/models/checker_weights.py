"""Weights of a model file: plain finite numbers of one precision, and of the shape they claim."""

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from cobasis.models.graph_format import (
    ELEMENT_TYPES,
    UINT8_ELEMENT,
    Array,
    Precision,
    little_endian,
)
from cobasis.models.graph_wire import refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

Shape = tuple[int, ...]

_MOST_DIMENSIONS = 2


def read_weights(
    tensors: "Sequence[onnx.TensorProto]", *, precision: Precision
) -> dict[str, Shape]:
    """Check all weights and return their shapes by name."""
    shapes: dict[str, Shape] = {}
    for tensor in tensors:
        if tensor.name in shapes or not tensor.name:
            refuse(f"two of its weights are called {tensor.name[:40]!r}, or one has no name")
        shapes[tensor.name] = read_numbers(tensor, precision).shape
    return shapes


def read_numbers(tensor: "onnx.TensorProto", precision: Precision) -> Array:
    """Return a tensor's numbers, checked to be finite."""
    values = _plain(tensor, ELEMENT_TYPES[precision], little_endian(precision))
    if not np.isfinite(values).all():
        refuse(f"its weights {tensor.name[:40]!r} are not all finite")
    return values


def read_modes(tensor: "onnx.TensorProto") -> Array:
    """Return a tensor of bytes; ModelFileError unless it is one."""
    return _plain(tensor, UINT8_ELEMENT, np.dtype(np.uint8))


def _plain(tensor: "onnx.TensorProto", element: int, dtype: "np.dtype[np.generic]") -> Array:
    """Return numbers of a type, if there are as many as the shape says."""
    shape, name = tuple(tensor.dims), tensor.name[:40]
    if tensor.data_type != element:
        refuse(f"its weights {name!r} are not of type {dtype.name}")
    if len(shape) > _MOST_DIMENSIONS or any(size < 1 for size in shape):
        refuse(f"its weights {name!r} have shape {shape[:4]}, which no step takes")
    if len(tensor.raw_data) != prod(shape) * dtype.itemsize:
        refuse(f"its weights {name!r} are not as many as their shape {shape} says")
    return np.frombuffer(tensor.raw_data, dtype=dtype).reshape(shape)
