"""The first look at a model file's bytes, before anything parses them.

ONNX is far wider than the model format. A closed list of fields keeps the rest away (files
beside the file, graphs inside graphs, functions, sparse numbers), and a count of parts keeps
away files that are small on the wire and huge in memory.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from cobasis.errors import ModelFileError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

MOST_NUMBERS = 5_000_000
MOST_PARTS = 2_000
LONGEST_NAME = 1_000

FIELDS: dict[str, str] = {
    "ModelProto": "ir_version producer_name graph opset_import* metadata_props*",
    "OperatorSetIdProto": "domain version",
    "StringStringEntryProto": "key value",
    "GraphProto": "name node* initializer* input* output*",
    "NodeProto": "op_type domain name input* output* attribute*",
    "AttributeProto": "name type i t ints*",
    "TensorProto": "name data_type raw_data dims*",
    "ValueInfoProto": "name type",
    "TypeProto": "tensor_type",
    "Tensor": "elem_type shape",
    "TensorShapeProto": "dim*",
    "Dimension": "dim_value dim_param",
}
"""All that a model file may hold; a star marks what may stand there more than once."""

_WORDS = {
    "external_data": "numbers in another file",
    "data_location": "numbers in another file",
    "functions": "functions of its own",
    "g": "a graph inside the graph",
    "graphs": "graphs inside the graph",
    "sparse_initializer": "sparse numbers",
    "sparse_tensor": "sparse numbers",
    "sparse_tensors": "sparse numbers",
}
_VARINT, _BYTES = 0, 2
_MORE, _LOW = 0x80, 0x7F
_LONGEST_VARINT = 10
_NUMBER = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"


def refuse(reason: str) -> NoReturn:
    """Raise ModelFileError."""
    raise ModelFileError(
        f"the model file cannot be used: {reason}. Nothing in it was run. Ask the analyst for the "
        "file that cobasis wrote; if it is that one, for the version of cobasis that wrote it."
    )


@dataclass(kw_only=True)
class _Count:
    """How much of the file's allowance is used."""

    parts: int = 0
    numbers: int = 0


def check_wire(data: bytes) -> None:
    """Refuse bytes with any field that the model format does not have, or with too many."""
    import onnx

    _walk(data, (0, len(data)), onnx.ModelProto.DESCRIPTOR, _Count())


def _walk(data: bytes, span: tuple[int, int], kind: "Descriptor", count: _Count) -> None:
    """Check the fields of one message, and of those inside it."""
    allowed = FIELDS[kind.name].split()
    seen: set[int] = set()
    place, end = span
    while place < end:
        tag, place = _varint(data, place, end)
        number = tag >> 3
        found = kind.fields_by_number.get(number)
        if number not in seen:
            _refuse_field(found, number, allowed)
        elif f"{found.name}*" not in allowed:
            refuse(f"its field {found.name} stands there twice")
        seen.add(number)
        if tag & 7 != _wire_type(found):
            refuse(f"its field {found.name} is damaged")
        if tag & 7 == _VARINT:
            _, place = _varint(data, place, end)
            place, more = _run(data, place, end=end, tag=tag)
            count.numbers += 1 + more
        else:
            size, start = _varint(data, place, end)
            place = start + size
            if place > end:
                refuse("it is truncated or damaged")
            count.parts += 1
            _look_inside(data, (start, place), found, count)
        if count.parts > MOST_PARTS or count.numbers > MOST_NUMBERS:
            refuse(f"it has more than {MOST_PARTS} parts or {MOST_NUMBERS} single numbers")


def _look_inside(
    data: bytes, span: tuple[int, int], field: "FieldDescriptor", count: _Count
) -> None:
    """Check what a field of bytes holds: a message, a name, or weights, which may be anything."""
    if field.message_type is not None:
        _walk(data, span, field.message_type, count)
    elif field.type == field.TYPE_STRING or field.name != "raw_data":
        if span[1] - span[0] > LONGEST_NAME:
            refuse(f"a name in it is longer than {LONGEST_NAME} bytes")
        try:
            data[span[0] : span[1]].decode()
        except UnicodeDecodeError:
            refuse("a name in it is no text")


def _refuse_field(found: "FieldDescriptor | None", number: int, allowed: list[str]) -> None:
    """Refuse a field that is not on the list."""
    if found is None:
        refuse(f"field {number} is no part of ONNX, or damaged")
    if not {found.name, f"{found.name}*"} & set(allowed):
        refuse(f"it has {_WORDS.get(found.name, f'a field {found.name}')}")


def _wire_type(field: "FieldDescriptor") -> int:
    """Return how a field of the list is written."""
    is_bytes = field.type in {field.TYPE_STRING, field.TYPE_BYTES, field.TYPE_MESSAGE}
    return _BYTES if is_bytes else _VARINT


def _run(data: bytes, place: int, *, end: int, tag: int) -> tuple[int, int]:
    """Step over more numbers of the same field; return where they end, and how many they are.

    Trees are long lists of them: one search steps over a million in a hundredth of the time.
    """
    more = re.compile(b"(?:" + re.escape(bytes([tag & 0xFF])) + _NUMBER + b")++")
    found = more.match(data, place, end) if tag <= _LOW else None
    if found is None:
        return place, 0
    ends = np.frombuffer(data, dtype=np.uint8, count=found.end() - place, offset=place) <= _LOW
    return found.end(), int(np.count_nonzero(ends)) // 2


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and where it ends."""
    value = 0
    for index in range(_LONGEST_VARINT):
        if place >= end:
            break
        byte = data[place]
        place += 1
        value |= (byte & _LOW) << (7 * index)
        if byte < _MORE:
            return value, place
    return refuse("it is truncated or damaged")
