"""``tvm.relay.param_dict``: weights by name as bytes, in TVM's file format.

magic u64, reserved u64, count u64, the names (length u64, bytes), count again, the arrays.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ixion.base.errors import ModelFormatError
from ixion.compat.tvm.nd import NDArray
from ixion.ir.json_array import decode_array, encode_array

_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_HEAD = 32
_MAX_NDIM = 64


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """The weights as bytes that ``load_param_dict`` and TVM read."""
    parts = [struct.pack("<QQQ", _MAGIC, 0, len(params))]
    for name in params:
        raw = name.encode()
        parts += (struct.pack("<Q", len(raw)), raw)
    parts.append(struct.pack("<Q", len(params)))
    parts += (base64.b64decode(encode_array(np.asarray(value))) for value in params.values())
    return b"".join(parts)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        """The next unsigned number of 64 bits."""
        return int.from_bytes(self.bytes(8), "little")

    def bytes(self, count: int) -> bytes:
        """The next bytes; ModelFormatError where there are not as many."""
        if not 0 <= count <= len(self.data) - self.at:
            raise ModelFormatError("the parameter file is truncated", where=f"byte {self.at}")
        self.at += count
        return self.data[self.at - count : self.at]

    def array(self) -> NDArray:
        """The next array."""
        head = self.bytes(_ARRAY_HEAD)
        (ndim,) = struct.unpack_from("<i", head, 24)
        if not 0 <= ndim <= _MAX_NDIM:
            raise ModelFormatError("an array in the parameter file has a bad header")
        shape = self.bytes(8 * ndim)
        size = self.number()
        raw = head + shape + struct.pack("<Q", size) + self.bytes(size)
        return np.array(decode_array(base64.b64encode(raw).decode("ascii"))).view(NDArray)


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """The weights in a parameter file; ModelFormatError for anything else."""
    reader = _Reader(bytes(param_bytes))
    if reader.number() != _MAGIC:
        raise ModelFormatError("this is not a parameter file")
    reader.number()
    count = reader.number()
    if count > len(param_bytes):
        raise ModelFormatError("the parameter file is truncated")
    names = [reader.bytes(reader.number()).decode() for _ in range(count)]
    if reader.number() != count:
        raise ModelFormatError("the parameter file has not as many arrays as names")
    return {name: reader.array() for name in names}


__all__ = ["load_param_dict", "save_param_dict"]
