"""Conversions between dtypes, and between a value's form in a register and in memory."""

from __future__ import annotations

from ixion.base import dtype as dtypes
from ixion.codegen.emit_arith import Arithmetic
from ixion.codegen.emit_types import (
    compute_dtype,
    constant,
    is_small_float,
    memory_type,
    value_type,
    vector,
)
from ixion.codegen.intrinsics import has_half


class Conversions:
    """Emits casts; small floats go through ``expand`` where the target has no instruction."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic, self.expand = arithmetic, arithmetic.expand
        self.pure = arithmetic.pure

    def cast(self, value: str, source: str, to: str, lanes: int) -> str:
        """Te's Cast: integers wrap, floats saturate to integers, anything nonzero is True."""
        if source == to:
            return value
        before, after = value_type(source, lanes), value_type(to, lanes)
        if source == "bool":
            word = "uitofp" if dtypes.is_float(to) else "zext"
            return self.pure(f"{word} {before} {value} to {after}", value)
        if to == "bool":
            return self.arithmetic.compare("ne", value, constant(0, source, lanes), source, lanes)
        if dtypes.is_float(source):
            if dtypes.is_float(to):
                return self._between_floats(value, source, to, lanes)
            return self._to_integer(value, compute_dtype(source), to, lanes)
        if dtypes.is_float(to):
            word = "sitofp" if dtypes.is_signed(source) else "uitofp"
            wide = self.pure(f"{word} {before} {value} to {after}", value)
            return self.rounded(wide, to, lanes)
        return self._between_integers(value, source, to, lanes)

    def _between_integers(self, value: str, source: str, to: str, lanes: int) -> str:
        have, want = dtypes.bits(source), dtypes.bits(to)
        if have == want:
            return value
        extend = "sext" if dtypes.is_signed(source) else "zext"
        word = "trunc" if want < have else extend
        return self.pure(
            f"{word} {value_type(source, lanes)} {value} to {value_type(to, lanes)}", value
        )

    def _between_floats(self, value: str, source: str, to: str, lanes: int) -> str:
        have, want = compute_dtype(source), compute_dtype(to)
        if have != want:
            word = "fpext" if want == "float64" else "fptrunc"
            value = self.pure(
                f"{word} {value_type(have, lanes)} {value} to {value_type(want, lanes)}", value
            )
        return self.rounded(value, to, lanes)

    def _to_integer(self, value: str, source: str, to: str, lanes: int) -> str:
        """Truncates; x86 has no saturating vectors and LLVM would go lane by lane."""
        if lanes > 1 and self.arithmetic.target.is_x86:
            exact = dtypes.bits(to) <= (16 if source == "float32" else 32)
            return (self._clamped if exact else self._chosen)(value, source, to, lanes)
        word = "fptosi.sat" if dtypes.is_signed(to) else "fptoui.sat"
        before, after = value_type(source, lanes), value_type(to, lanes)
        wide = f"v{lanes}" if lanes > 1 else ""
        name = f"llvm.{word}.{wide}i{dtypes.bits(to)}.{wide}f{dtypes.bits(source)}"
        self.arithmetic.writer.declare(after, name, before)
        return self.pure(f"call {after} @{name}({before} {value})", value)

    def _clamped(self, value: str, source: str, to: str, lanes: int) -> str:
        """For bounds that are floats: brought between them first, NaN to 0."""
        least, most = _bounds(to)
        kind, zero = value_type(source, lanes), constant(0.0, source, lanes)
        number = self.pure(f"fcmp ord {kind} {value}, {zero}", value)
        known = self.arithmetic.select(number, value, zero, source, lanes)
        low = self.arithmetic.binary(
            "max", known, constant(float(least), source, lanes), source, lanes
        )
        inside = self.arithmetic.binary(
            "min", low, constant(float(most), source, lanes), source, lanes
        )
        if dtypes.bits(to) == 32:
            return self._truncated(inside, source, to, lanes)
        return self._between_integers(
            self._truncated(inside, source, "int32", lanes), "int32", to, lanes
        )

    def _chosen(self, value: str, source: str, to: str, lanes: int) -> str:
        """For bounds that are not floats: converted where inside, else the bound itself."""
        least, most = _bounds(to)
        arithmetic = self.arithmetic
        beyond = constant(float(most + 1), source, lanes)
        too_large = arithmetic.compare("ge", value, beyond, source, lanes)
        above = arithmetic.compare(
            "gt", value, constant(float(least), source, lanes), source, lanes
        )
        below = arithmetic.compare("lt", value, beyond, source, lanes)
        inside = arithmetic.binary("and", above, below, "bool", lanes)
        known = arithmetic.select(inside, value, constant(0.0, source, lanes), source, lanes)
        result = self._truncated(known, source, to, lanes)
        result = arithmetic.select(too_large, constant(most, to, lanes), result, to, lanes)
        if not least:
            return result
        too_small = arithmetic.compare(
            "le", value, constant(float(least), source, lanes), source, lanes
        )
        return arithmetic.select(too_small, constant(least, to, lanes), result, to, lanes)

    def _truncated(self, value: str, source: str, to: str, lanes: int) -> str:
        word = "fptosi" if dtypes.is_signed(to) else "fptoui"
        return self.pure(
            f"{word} {value_type(source, lanes)} {value} to {value_type(to, lanes)}", value
        )

    # --- small floats -------------------------------------------------------------------------

    def rounded(self, value: str, dtype: str, lanes: int) -> str:
        """A register value that ``dtype`` can hold: the nearest one."""
        if not is_small_float(dtype):
            return value
        return self.from_bits(self.to_bits(value, dtype, lanes), dtype, lanes)

    def to_bits(self, value: str, dtype: str, lanes: int) -> str:
        """Bits in memory of the small float nearest to a float32 register value."""
        small = vector(memory_type(dtype), lanes)
        if dtype == "float16" and has_half(self.arithmetic.target):
            half = vector("half", lanes)
            near = self.pure(f"fptrunc {value_type('float32', lanes)} {value} to {half}", value)
            return self.pure(f"bitcast {half} {near} to {small}", near)
        bits = self.expand(f"bits.{dtype}", lanes, value)
        return self.pure(f"trunc {vector('i32', lanes)} {bits} to {small}", bits)

    def from_bits(self, bits: str, dtype: str, lanes: int) -> str:
        """The float32 register value of a small float's bits."""
        small = vector(memory_type(dtype), lanes)
        if dtype == "float16" and has_half(self.arithmetic.target):
            half = vector("half", lanes)
            value = self.pure(f"bitcast {small} {bits} to {half}", bits)
            return self.pure(f"fpext {half} {value} to {value_type('float32', lanes)}", value)
        wide = self.pure(f"zext {small} {bits} to {vector('i32', lanes)}", bits)
        return self.expand(f"value.{dtype}", lanes, wide)

    # --- memory form --------------------------------------------------------------------------

    def to_memory(self, value: str, dtype: str, lanes: int) -> str:
        if dtype == "bool":
            return self.pure(f"zext {vector('i1', lanes)} {value} to {vector('i8', lanes)}", value)
        return self.to_bits(value, dtype, lanes) if is_small_float(dtype) else value

    def from_memory(self, value: str, dtype: str, lanes: int) -> str:
        if dtype == "bool":
            kind = vector("i8", lanes)
            return self.pure(f"icmp ne {kind} {value}, {constant(0, 'int8', lanes)}", value)
        return self.from_bits(value, dtype, lanes) if is_small_float(dtype) else value

    def bitcast(self, value: str, source: str, to: str, lanes: int) -> str:
        """Te's Bitcast: the memory form read again as another dtype of the same size."""
        bits = self.to_memory(value, source, lanes)
        before, after = vector(memory_type(source), lanes), vector(memory_type(to), lanes)
        if before != after:
            bits = self.pure(f"bitcast {before} {bits} to {after}", bits)
        return self.from_memory(bits, to, lanes)


def _bounds(dtype: str) -> tuple[int, int]:
    bits, signed = dtypes.bits(dtype), dtypes.is_signed(dtype)
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
