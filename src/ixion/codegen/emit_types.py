"""How te's dtypes appear in LLVM text: in registers, in memory, and as constants.

Small floats are computed in float32: a bfloat16, float16 or float8 value is a ``float`` in a
register and its own bits in memory. A bool is ``i1`` in a register and one byte in memory.
"""

from __future__ import annotations

import functools
import struct

from ixion.base import dtype as dtypes
from ixion.base.errors import CodegenError
from ixion.te.expr import Number

_REGISTER = {"float32": "float", "float64": "double", "bool": "i1"}


def is_small_float(dtype: str) -> bool:
    """Stored in 8 or 16 bits, computed in float32."""
    return dtypes.is_float(dtype) and dtypes.bits(dtype) < 32


@functools.cache
def compute_dtype(dtype: str) -> str:
    """The dtype a value of ``dtype`` has in a register."""
    return "float32" if is_small_float(dtype) else dtype


@functools.cache
def scalar_type(dtype: str) -> str:
    """LLVM type of one value in a register. Raises CodegenError for complex numbers and handles."""
    dtype = compute_dtype(dtype)
    if dtype in _REGISTER:
        return _REGISTER[dtype]
    if not dtypes.is_integer(dtype) or dtypes.bits(dtype) < 8:
        raise CodegenError(f"no machine type for dtype '{dtype}'", where="codegen")
    return f"i{dtypes.bits(dtype)}"


@functools.cache
def value_type(dtype: str, lanes: int) -> str:
    """LLVM type of ``lanes`` values in a register."""
    return vector(scalar_type(dtype), lanes)


@functools.cache
def memory_type(dtype: str) -> str:
    """LLVM type of one element in memory; small floats are integers there."""
    if dtype == "bool":
        return "i8"
    return f"i{dtypes.bits(dtype)}" if is_small_float(dtype) else scalar_type(dtype)


def vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


@functools.cache
def suffix(dtype: str, lanes: int) -> str:
    """The overload suffix of an LLVM intrinsic: ``v16f32``, ``i64``."""
    dtype = compute_dtype(dtype)
    one = f"f{dtypes.bits(dtype)}" if dtypes.is_float(dtype) else f"i{dtypes.bits(dtype)}"
    return one if lanes == 1 else f"v{lanes}{one}"


def constant(value: Number, dtype: str, lanes: int = 1) -> str:
    """A literal of ``dtype`` (rounded or wrapped to it), the same in every lane."""
    return _constant(repr(value), value, dtype, lanes)


@functools.lru_cache(maxsize=4096)
def _constant(_: str, value: Number, dtype: str, lanes: int) -> str:
    # The text is part of the key because 0.0 == -0.0 and 1 == 1.0 == True.
    one = _scalar_constant(value, dtype)
    return one if lanes == 1 else f"splat ({scalar_type(dtype)} {one})"


def _scalar_constant(value: Number, dtype: str) -> str:
    if dtype == "bool":
        return "true" if value else "false"
    if dtypes.is_float(dtype):
        return _float_constant(float(value), dtype)
    bits = dtypes.bits(dtype)
    wrapped = int(value) & ((1 << bits) - 1)
    if dtypes.is_signed(dtype) and wrapped >> (bits - 1):
        wrapped -= 1 << bits
    return str(wrapped)


def _float_constant(value: float, dtype: str) -> str:
    """LLVM writes float and double literals as the bits of a double."""
    if dtype != "float64":
        import numpy as np

        with np.errstate(all="ignore"):
            value = float(np.asarray(value).astype(dtypes.to_numpy(dtype)))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def zero(dtype: str, lanes: int) -> str:
    return constant(0, dtype, lanes)
