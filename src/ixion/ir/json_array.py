"""Arrays inside JSON: base64 of TVM's binary array format.

magic u64, reserved u64, device (type i32, id i32), ndim i32, dtype (code u8, bits u8, lanes u16),
extents i64 each, byte size i64, data in C order, all little-endian.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from typing import Any

import numpy as np

from ixion.base.dtype import from_numpy, to_numpy
from ixion.base.errors import ModelFormatError

_MAGIC = 0xDD5E40F096B4A13F
_HEAD = struct.Struct("<QQiiiBBH")
_MAX_NDIM = 64

# DLPack's type codes; bool is one unsigned bit, as TVM has it.
_CODES: dict[str, tuple[int, int]] = {
    "bool": (1, 1),
    **{f"int{n}": (0, n) for n in (4, 8, 16, 32, 64)},
    **{f"uint{n}": (1, n) for n in (4, 8, 16, 32, 64)},
    **{f"float{n}": (2, n) for n in (16, 32, 64)},
    "bfloat16": (4, 16),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
}
_NAMES = {code: name for name, code in _CODES.items()}


def encode_array(array: np.ndarray[Any, Any]) -> str:
    """An array of any dtype and rank as base64 text."""
    code, bits = _CODES[from_numpy(array.dtype)]
    data = np.asarray(array, order="C").tobytes()
    head = _HEAD.pack(_MAGIC, 0, 1, 0, array.ndim, code, bits, 1)
    shape = struct.pack(f"<{array.ndim}qq", *array.shape, len(data))
    return base64.b64encode(head + shape + data).decode("ascii")


def decode_array(text: Any) -> np.ndarray[Any, Any]:
    """A read-only array from its base64 text; ModelFormatError where that is damaged."""
    try:
        raw = base64.b64decode(text, validate=True)
        magic, _, _, _, ndim, code, bits, lanes = _HEAD.unpack_from(raw)
        if magic != _MAGIC or not 0 <= ndim <= _MAX_NDIM or lanes != 1:
            raise ModelFormatError("an array in the JSON graph has a bad header")
        *shape, size = struct.unpack_from(f"<{ndim}qq", raw, _HEAD.size)
        dtype = to_numpy(_NAMES[code, bits])
    except (TypeError, binascii.Error, struct.error, KeyError) as error:
        raise ModelFormatError(f"an array in the JSON graph is damaged: {error}") from error
    start = _HEAD.size + 8 * (ndim + 1)
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or wanted != size or len(raw) - start != size:
        raise ModelFormatError("an array in the JSON graph has the wrong size")
    return np.frombuffer(raw, dtype, offset=start).reshape(shape)


__all__ = ["decode_array", "encode_array"]
