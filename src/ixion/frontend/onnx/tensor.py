"""TensorProto: a weight, in any of its encodings, decoded when asked for.

Numbers come as raw little-endian bytes (in the message or in another file) or as one of the typed
lists, into which narrow types are widened: float16, bfloat16 and float8 as bit patterns in
`int32_data`, complex numbers as pairs, 4-bit numbers two a byte, low half first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx import schema
from ixion.frontend.onnx.external import external_piece
from ixion.frontend.onnx.schema import decode, numbers
from ixion.frontend.onnx.wire import FileSource, Piece
from ixion.runtime.arena import empty_tensor

#: TensorProto.DataType to Relay's dtype names.
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64",
    15: "complex128", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz",
    19: "float8_e5m2", 20: "float8_e5m2fnuz", 21: "uint4", 22: "int4",
}  # fmt: skip
_NAMES = {8: "string", 23: "float4e2m1", 24: "float8e8m0", 25: "uint2", 26: "int2"}

#: Which typed list holds a dtype that is not in `int32_data`, and the dtype of its items.
_LISTS = {
    "float32": ("float_data", "f4"),
    "complex64": ("float_data", "f4"),
    "float64": ("double_data", "f8"),
    "complex128": ("double_data", "f8"),
    "int64": ("int64_data", "i8"),
    "uint32": ("uint64_data", "u8"),
    "uint64": ("uint64_data", "u8"),
}
_NARROW = ("uint4", "int4")
_MOST_DIMS = 32
_EXTERNAL = 1


@dataclass(slots=True)
class Tensor:
    """A tensor of the file: name, shape, Relay dtype name, and where its numbers are."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    where: str
    folder: Path | None
    fields: dict[str, Any]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    def numpy(self) -> np.ndarray:
        """The numbers as a fresh aligned array; ModelFormatError if their count is not the shape's.

        Nothing is allocated before the file is known to hold enough bytes.
        """
        try:
            return self._numpy()
        except (ValueError, OverflowError, MemoryError) as error:
            raise self._broken(f"the numbers cannot be read: {error}") from error

    def _numpy(self) -> np.ndarray:
        if self.dtype == "string":
            return self._strings()
        if self.fields.get("data_location", 0) == _EXTERNAL:
            return self._external()
        if "raw_data" in self.fields:
            return self._raw(self.fields["raw_data"])
        return self._typed()

    def _external(self) -> np.ndarray:
        entries = [decode(item, schema.ENTRY) for item in self.fields.get("external_data", [])]
        names = {entry.get("key", ""): entry.get("value", "") for entry in entries}
        piece = external_piece(names, self.folder, self.where)
        try:
            return self._raw(piece)
        finally:
            if isinstance(piece.source, FileSource):
                piece.source.close()

    def _raw(self, piece: Piece) -> np.ndarray:
        if self.dtype in _NARROW:
            self._check_count(len(piece), (self.size + 1) // 2, "bytes")
            return self._unpack_halves(np.frombuffer(piece.bytes(), np.uint8))
        storage = dtypes.to_numpy(self.dtype)
        self._check_count(len(piece), self.size * storage.itemsize, "bytes")
        out = empty_tensor(self.shape, storage)
        if out.size:
            piece.source.read_into(piece.start, out.reshape(-1).view(np.uint8).data)
        return out

    def _typed(self) -> np.ndarray:
        key, item = _LISTS.get(self.dtype, ("int32_data", "i8"))
        items = numbers(self.fields.get(key, []), item)
        if self.dtype in _NARROW:
            self._check_count(items.size, (self.size + 1) // 2, "packed bytes")
            return self._unpack_halves((items & 0xFF).astype(np.uint8))
        storage = dtypes.to_numpy(self.dtype)
        if storage.kind == "c":
            self._check_count(items.size, 2 * self.size, "numbers")
            return np.array(items).view(storage).reshape(self.shape)
        self._check_count(items.size, self.size, "numbers")
        if key == "int32_data" and storage.kind not in "iub":
            bits = items.astype(f"u{storage.itemsize}")
            return bits.view(storage).reshape(self.shape)
        return items.astype(storage).reshape(self.shape)

    def _unpack_halves(self, data: np.ndarray) -> np.ndarray:
        halves = np.stack([data & 0xF, data >> 4], axis=-1).reshape(-1)[: self.size]
        if self.dtype == "int4":
            halves = (halves.astype(np.int8) ^ 8) - 8
        return halves.astype(dtypes.to_numpy(self.dtype)).reshape(self.shape)

    def _strings(self) -> np.ndarray:
        items = self.fields.get("string_data", [])
        self._check_count(len(items), self.size, "strings")
        out = np.empty(self.size, object)
        out[:] = items
        return out.reshape(self.shape)

    def _check_count(self, found: int, expected: int, unit: str) -> None:
        if found != expected:
            raise self._broken(
                "the amount of data does not fit the shape",
                expected=f"{expected} {unit} for shape {self.shape} of {self.dtype}",
                found=f"{found} {unit}",
            )

    def _broken(self, message: str, **details: str) -> ModelFormatError:
        return ModelFormatError(f"tensor {self.name!r}: {message}", where=self.where, **details)


def read_tensor(piece: Piece, folder: Path | None) -> Tensor:
    """The tensor of a TensorProto message; ModelFormatError if its type or shape is impossible."""
    fields = decode(piece, schema.TENSOR)
    name = fields.get("name", "")
    if "segment" in fields:
        raise piece.broken(f"tensor {name!r} is stored in segments")
    dims = fields.get("dims", [])
    shape = tuple(numbers(dims, "i8").tolist()) if dims else ()
    if len(shape) > _MOST_DIMS or any(dim < 0 for dim in shape):
        raise piece.broken(f"tensor {name!r} has an impossible shape")
    if math.prod(shape) >= 1 << 62:
        raise piece.broken(f"tensor {name!r} of shape {shape} is too large")
    code = fields.get("data_type", 0)
    dtype = DTYPES.get(code) or _NAMES.get(code)
    if dtype is None:
        raise piece.broken(f"tensor {name!r} has unknown data type {code}")
    return Tensor(name, shape, dtype, f"{piece.source.name}, byte {piece.start}", folder, fields)
