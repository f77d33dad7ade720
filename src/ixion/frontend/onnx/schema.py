"""The messages of onnx.proto that the importer reads, as tables of field numbers.

The numbers are those of onnx.proto3 (IR version 3 to current); a field that is not listed is
skipped, as protobuf does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ixion.frontend.onnx.wire import FIXED32, FIXED64, LEN, VARINT, Piece, packed_varints


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `kind` is int, uint, float, double, text, bytes or message."""

    name: str
    kind: str
    repeated: bool = False


Schema = dict[int, Field]

#: No real model repeats a field so often; a file of empty items would fill the memory.
_MOST_ITEMS = 1 << 22

_SCALAR_WIRE = {"int": VARINT, "uint": VARINT, "float": FIXED32, "double": FIXED64}
_PACKED_DTYPE = {"float": "<f4", "double": "<f8"}


def _many(name: str, kind: str) -> Field:
    return Field(name, kind, repeated=True)


MODEL: Schema = {
    1: Field("ir_version", "int"),
    2: Field("producer_name", "text"),
    3: Field("producer_version", "text"),
    7: Field("graph", "message"),
    8: _many("opsets", "message"),
    25: _many("functions", "message"),
}
OPSET: Schema = {1: Field("domain", "text"), 2: Field("version", "int")}
GRAPH: Schema = {
    1: _many("nodes", "message"),
    2: Field("name", "text"),
    5: _many("initializers", "message"),
    11: _many("inputs", "message"),
    12: _many("outputs", "message"),
    13: _many("values", "message"),
    15: _many("sparse", "message"),
}
NODE: Schema = {
    1: _many("inputs", "text"),
    2: _many("outputs", "text"),
    3: Field("name", "text"),
    4: Field("op_type", "text"),
    5: _many("attributes", "message"),
    7: Field("domain", "text"),
    8: Field("overload", "text"),
}
ATTRIBUTE: Schema = {
    1: Field("name", "text"),
    2: Field("f", "float"),
    3: Field("i", "int"),
    4: Field("s", "bytes"),
    5: Field("t", "message"),
    6: Field("g", "message"),
    7: _many("floats", "float"),
    8: _many("ints", "int"),
    9: _many("strings", "bytes"),
    10: _many("tensors", "message"),
    11: _many("graphs", "message"),
    20: Field("type", "int"),
    21: Field("reference", "text"),
    22: Field("sparse_tensor", "message"),
}
TENSOR: Schema = {
    1: _many("dims", "int"),
    2: Field("data_type", "int"),
    3: Field("segment", "message"),
    4: _many("float_data", "float"),
    5: _many("int32_data", "int"),
    6: _many("string_data", "bytes"),
    7: _many("int64_data", "int"),
    8: Field("name", "text"),
    9: Field("raw_data", "message"),
    10: _many("double_data", "double"),
    11: _many("uint64_data", "uint"),
    13: _many("external_data", "message"),
    14: Field("data_location", "int"),
}
SPARSE_TENSOR: Schema = {
    1: Field("values", "message"),
    2: Field("indices", "message"),
    3: _many("dims", "int"),
}
ENTRY: Schema = {1: Field("key", "text"), 2: Field("value", "text")}
VALUE_INFO: Schema = {1: Field("name", "text"), 2: Field("type", "message")}
TYPE: Schema = {
    1: Field("tensor", "message"),
    4: Field("sequence", "message"),
    5: Field("map", "message"),
    8: Field("sparse", "message"),
    9: Field("optional", "message"),
}
TENSOR_TYPE: Schema = {1: Field("elem_type", "int"), 2: Field("shape", "message")}
SHAPE: Schema = {1: _many("dims", "message")}
DIMENSION: Schema = {1: Field("value", "int"), 2: Field("param", "text")}
FUNCTION: Schema = {
    1: Field("name", "text"),
    4: _many("inputs", "text"),
    5: _many("outputs", "text"),
    6: _many("attributes", "text"),
    7: _many("nodes", "message"),
    9: _many("opsets", "message"),
    10: Field("domain", "text"),
    11: _many("defaults", "message"),
    13: Field("overload", "text"),
}


def decode(piece: Piece, schema: Schema) -> dict[str, Any]:
    """The listed fields of one message by name; a field that is absent has no key.

    Of a single field given twice the last counts. A repeated number field is a list whose items
    are numbers (unpacked) or arrays (packed): `numbers` joins them. ModelFormatError if a field
    has the wrong wire type.
    """
    out: dict[str, Any] = {}
    for number, wire, payload in piece.fields():
        field = schema.get(number)
        if field is None:
            continue
        value = _value(piece, field, wire, payload)
        if field.repeated:
            items = out.setdefault(field.name, [])
            items.append(value)
            if len(items) > _MOST_ITEMS:
                raise piece.broken(f"more than {_MOST_ITEMS} items in field {field.name!r}")
        else:
            out[field.name] = value
    return out


def _value(piece: Piece, field: Field, wire: int, payload: int | Piece) -> Any:
    kind = field.kind
    if isinstance(payload, Piece):
        if kind == "message":
            return payload
        if kind == "text":
            return payload.text()
        if kind == "bytes":
            return payload.bytes()
        if field.repeated:
            return _packed(payload, kind)
    elif wire == _SCALAR_WIRE.get(kind, LEN):
        return _scalar(payload, kind)
    raise piece.broken(f"field {field.name!r} has wire type {wire}, which is not of kind {kind}")


def _scalar(bits: int, kind: str) -> int | float:
    if kind == "int":
        return bits - (1 << 64) if bits >= 1 << 63 else bits
    if kind == "float":
        return float(struct.unpack("<f", bits.to_bytes(4, "little"))[0])
    if kind == "double":
        return float(struct.unpack("<d", bits.to_bytes(8, "little"))[0])
    return bits


def _packed(piece: Piece, kind: str) -> np.ndarray:
    if kind in _PACKED_DTYPE:
        dtype = np.dtype(_PACKED_DTYPE[kind])
        if len(piece) % dtype.itemsize:
            raise piece.broken("a packed list ends inside a number")
        return np.frombuffer(piece.bytes(), dtype)
    values = packed_varints(piece)
    return values.view(np.uint64) if kind == "uint" else values


def numbers(items: list[Any], dtype: str) -> np.ndarray:
    """One 1-D array of the given numpy dtype out of a repeated field's packed and single items."""
    if len(items) == 1 and isinstance(items[0], np.ndarray):
        return items[0].astype(dtype, copy=False)
    if any(isinstance(item, np.ndarray) for item in items):
        return np.concatenate([np.atleast_1d(item) for item in items]).astype(dtype)
    return np.array(items, dtype)
