"""What each target's instructions offer, as data: which operations LLVM maps to an instruction.

An operation that is not native would become a call into the C library, and objects must not need
any. So whatever is missing here is spelled out from simpler operations (``vmath``).
"""

from __future__ import annotations

import functools

from ixion.base.target import Target

# te intrinsic -> LLVM intrinsic, where the meaning is the same for every float input.
ROUNDING = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round": "roundeven"}
ALWAYS = {"sqrt": "sqrt", "abs": "fabs"}

# x86-64 levels whose CPUs have rounding instructions (SSE4.1) and half conversion (F16C).
_X86_ROUNDING = frozenset(("x86-64-v2", "x86-64-v3", "x86-64-v4"))
_X86_HALF = frozenset(("x86-64-v3", "x86-64-v4"))


@functools.cache
def float_intrinsics(target: Target) -> dict[str, str]:
    """Intrinsics of one float argument that are one instruction (or a few) on the target."""
    native = dict(ALWAYS)
    if not target.is_x86 or target.cpu in _X86_ROUNDING:
        native.update(ROUNDING)
    return native


@functools.cache
def has_half(target: Target) -> bool:
    """float16 converts to and from float32 by instruction."""
    return not target.is_x86 or target.cpu in _X86_HALF


@functools.cache
def has_masked_access(target: Target, bits: int) -> bool:
    """There are vector loads and stores under a mask for elements of this size."""
    if not target.is_x86 or target.vector_bits < 256:
        return False
    return bits >= 32 or target.vector_bits >= 512
