"""``tvm.script.tir``: ``T.int32(10)`` and its like."""

from __future__ import annotations

from functools import partial

from ixion.compat.tvm.tir.expr import Any, FloatImm, IntImm

int8, int16, int32, int64 = (partial(IntImm, f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (partial(IntImm, f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float32, float64 = (partial(FloatImm, f"float{bits}") for bits in (16, 32, 64))

__all__ = [
    "Any", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
    "uint32", "uint64",
]  # fmt: skip
