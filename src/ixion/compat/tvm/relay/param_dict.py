"""``tvm.relay.param_dict``: weights by name as bytes, in TVM's file format."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ixion.base.dtype import bits, from_numpy, to_numpy
from ixion.base.errors import ModelFormatError
from ixion.compat.tvm.nd import NDArray

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_CODES = {"i": 0, "u": 1, "f": 2}
_LETTERS = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """The weights as bytes that ``load_param_dict`` and TVM read."""
    names = list(params)
    parts = [struct.pack("<QQQ", _LIST_MAGIC, 0, len(names))]
    for name in names:
        raw = name.encode()
        parts += (struct.pack("<Q", len(raw)), raw)
    parts.append(struct.pack("<Q", len(names)))
    parts.extend(_array_bytes(np.asarray(params[name])) for name in names)
    return b"".join(parts)


def _array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    name = from_numpy(array.dtype)
    code = 4 if name == "bfloat16" else _CODES["u" if name == "bool" else array.dtype.kind]
    head = struct.pack("<QQiiiBBH", _ARRAY_MAGIC, 0, 1, 0, array.ndim, code, bits(name), 1)
    data = np.ascontiguousarray(array).tobytes()
    shape = struct.pack(f"<{array.ndim}q", *array.shape)
    return head + shape + struct.pack("<q", len(data)) + data


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        """The next values of a struct layout."""
        raw = self.bytes(struct.calcsize("<" + layout))
        return struct.unpack("<" + layout, raw)

    def bytes(self, count: int) -> bytes:
        """The next bytes; ModelFormatError where there are not as many."""
        if count < 0 or count > len(self.data) - self.at:
            raise ModelFormatError("the parameter file is truncated", where=f"byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The weights in a parameter file; ModelFormatError for anything else."""
    reader = _Reader(bytes(param_bytes))
    magic, _, count = reader.take("QQQ")
    if magic != _LIST_MAGIC:
        raise ModelFormatError("this is not a parameter file", found=hex(magic))
    if count > len(param_bytes):
        raise ModelFormatError("the parameter file is truncated")
    names = [reader.bytes(reader.take("Q")[0]).decode() for _ in range(count)]
    if reader.take("Q")[0] != count:
        raise ModelFormatError("the parameter file has more names than arrays")
    return {name: _read_array(reader) for name in names}


def _read_array(reader: _Reader) -> NDArray:
    magic, _, _, _, ndim, code, width, lanes = reader.take("QQiiiBBH")
    if magic != _ARRAY_MAGIC or lanes != 1 or code not in _LETTERS or not 0 <= ndim <= 64:
        raise ModelFormatError("a tensor in the parameter file is malformed")
    shape = reader.take(f"{ndim}q")
    data = reader.bytes(reader.take("q")[0])
    name = "bool" if (code, width) == (1, 1) else f"{_LETTERS[code]}{width}"
    try:
        return np.frombuffer(data, to_numpy(name)).reshape(shape).copy().view(NDArray)
    except ValueError as error:
        raise ModelFormatError("a tensor in the parameter file is malformed") from error


__all__ = ["load_param_dict", "save_param_dict"]
