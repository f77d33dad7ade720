"""Arithmetic of one dtype and width: binary operations, comparisons, selection, lane folding.

Values are operands (names or literals) whose dtype and lanes the caller knows. Integer division,
shifts and casts have a defined result for every input here, where LLVM's instructions do not.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.base import dtype as dtypes
from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.emit_types import compute_dtype, constant, suffix, value_type, vector
from ixion.codegen.emit_writer import Writer

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_BOOL = {
    "add": "or",
    "mul": "and",
    "min": "and",
    "max": "or",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
_DIVISIONS = frozenset(("floordiv", "floormod", "truncdiv", "truncmod"))
_FLOAT_TEST = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_SIGNED_TEST = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_TEST = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}

# (name of a vmath function, lanes, operands) -> operand
Expand = Callable[..., str]


class Arithmetic:
    """Emits operations through a writer; ``expand`` spells out what has no instruction."""

    def __init__(self, writer: Writer, target: Target, expand: Expand) -> None:
        self.writer, self.target, self.expand = writer, target, expand
        self.pure = writer.pure
        self.called: dict[tuple[str, str, int], tuple[str, str]] = {}

    # --- building blocks ----------------------------------------------------------------------

    def call(self, name: str, dtype: str, lanes: int, *operands: str) -> str:
        """An overloaded LLVM intrinsic whose operands and result have one type."""
        key = (name, dtype, lanes)
        known = self.called.get(key)
        if known is None:
            kind = value_type(dtype, lanes)
            full = f"llvm.{name}.{suffix(dtype, lanes)}"
            self.writer.declare(kind, full, *(kind for _ in operands))
            known = self.called[key] = (kind, f"call {kind} @{full}(")
        kind, head = known
        listed = ", ".join([f"{kind} {o}" for o in operands])
        return self.pure(f"{head}{listed})", *operands)

    def select(self, test: str, a: str, b: str, dtype: str, lanes: int, test_lanes: int = 0) -> str:
        if a == b or test == "true":
            return a
        if test == "false":
            return b
        kind, tests = value_type(dtype, lanes), vector("i1", test_lanes or lanes)
        return self.pure(f"select {tests} {test}, {kind} {a}, {kind} {b}", test, a, b)

    def compare(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        kind = value_type(dtype, lanes)
        if dtypes.is_float(dtype):
            return self.pure(f"fcmp {_FLOAT_TEST[op]} {kind} {a}, {b}", a, b)
        tests = _SIGNED_TEST if dtypes.is_signed(dtype) else _UNSIGNED_TEST
        return self.pure(f"icmp {tests[op]} {kind} {a}, {b}", a, b)

    def splat(self, value: str, dtype: str, lanes: int) -> str:
        """A scalar in every lane."""
        if lanes == 1:
            return value
        if value[0] != "%":
            return f"splat ({value_type(dtype, 1)} {value})"
        one, many = value_type(dtype, 1), value_type(dtype, lanes)
        first = self.pure(f"insertelement {many} poison, {one} {value}, i64 0", value)
        return self.pure(
            f"shufflevector {many} {first}, {many} poison, <{lanes} x i32> zeroinitializer", first
        )

    # --- binary -------------------------------------------------------------------------------

    def binary(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        """``op`` of te's ARITH_OPS. Raises CodegenError where the dtype does not have it."""
        kind = value_type(dtype, lanes)
        if dtype == "bool":
            return self._logic(op, a, b, lanes)
        if dtypes.is_float(dtype):
            if op in _FLOAT:
                return self.pure(f"{_FLOAT[op]} {kind} {a}, {b}", a, b)
            if op in ("min", "max"):
                return self._float_extreme(op, a, b, compute_dtype(dtype), lanes)
            if op in _DIVISIONS:
                return self.expand(f"{op}.{compute_dtype(dtype)}", lanes, a, b)
        elif op in _INTEGER:
            return self.pure(f"{_INTEGER[op]} {kind} {a}, {b}", a, b)
        elif op in ("min", "max"):
            sign = "s" if dtypes.is_signed(dtype) else "u"
            return self.call(f"{sign}{op}", dtype, lanes, a, b)
        elif op in ("shl", "shr", "lshr"):
            return self._shift(op, a, b, dtype, lanes)
        elif op in _DIVISIONS:
            return self._divide(op, a, b, dtype, lanes)
        raise CodegenError(f"no '{op}' on {dtype}", where="codegen")

    def _logic(self, op: str, a: str, b: str, lanes: int) -> str:
        if op not in _BOOL:
            raise CodegenError(f"no '{op}' on bool", where="codegen")
        word, true, false = _BOOL[op], constant(True, "bool", lanes), constant(False, "bool", lanes)
        if word != "xor" and (true in (a, b) or false in (a, b)):
            decided = false if word == "and" else true
            known, other = (a, b) if a in (true, false) else (b, a)
            return decided if known == decided else other
        return self.pure(f"{word} {vector('i1', lanes)} {a}, {b}", a, b)

    def _float_extreme(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        """NaN from either side wins. x86's own min and max return the second operand for NaN."""
        if not self.target.is_x86:
            return self.call("minimum" if op == "min" else "maximum", dtype, lanes, a, b)
        test = "lt" if op == "min" else "gt"
        if _is_number(b):
            a, b = b, a
        best = self.select(self.compare(test, a, b, dtype, lanes), a, b, dtype, lanes)
        if _is_number(a):
            return best
        kind = value_type(dtype, lanes)
        is_nan = self.pure(f"fcmp uno {kind} {a}, {a}", a)
        return self.select(is_nan, a, best, dtype, lanes)

    # --- integers -----------------------------------------------------------------------------

    def _shift(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        """Shifting by the width or more gives 0, or the sign for ``shr`` of a signed value."""
        kind, bits = value_type(dtype, lanes), dtypes.bits(dtype)
        arithmetic = op == "shr" and dtypes.is_signed(dtype)
        word = "shl" if op == "shl" else "ashr" if arithmetic else "lshr"
        amount = literal(b)
        if amount is not None and 0 <= amount < bits:
            return self.pure(f"{word} {kind} {a}, {b}", a, b)
        inside = self.pure(f"icmp ult {kind} {b}, {constant(bits, dtype, lanes)}", b)
        most = constant(bits - 1, dtype, lanes)
        near = self.select(inside, b, most, dtype, lanes)
        shifted = self.pure(f"{word} {kind} {a}, {near}", a, near)
        if arithmetic:
            return shifted
        return self.select(inside, shifted, constant(0, dtype, lanes), dtype, lanes)

    def _divide(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        divisor = literal(b)
        if divisor == 0:
            return constant(0, dtype, lanes)
        signed = dtypes.is_signed(dtype)
        if divisor is None or divisor < 0:
            return self._divide_by_any(op, a, b, dtype, lanes)
        if not signed:
            word = "udiv" if op.endswith("div") else "urem"
            return self.pure(f"{word} {value_type(dtype, lanes)} {a}, {b}", a, b)
        if op.startswith("trunc"):
            word = "sdiv" if op == "truncdiv" else "srem"
            return self.pure(f"{word} {value_type(dtype, lanes)} {a}, {b}", a, b)
        return self._floor_by_literal(op, a, divisor, dtype, lanes)

    def _floor_by_literal(self, op: str, a: str, divisor: int, dtype: str, lanes: int) -> str:
        """Flooring by a positive constant: shift and mask, or divide ~a where a is negative."""
        kind = value_type(dtype, lanes)
        if divisor & (divisor - 1) == 0:
            if op == "floormod":
                return self.pure(f"and {kind} {a}, {constant(divisor - 1, dtype, lanes)}", a)
            shift = constant(divisor.bit_length() - 1, dtype, lanes)
            return self.pure(f"ashr {kind} {a}, {shift}", a)
        by = constant(divisor, dtype, lanes)
        sign = self.pure(f"ashr {kind} {a}, {constant(dtypes.bits(dtype) - 1, dtype, lanes)}", a)
        flipped = self.pure(f"xor {kind} {a}, {sign}", a, sign)
        quotient = self.pure(f"udiv {kind} {flipped}, {by}", flipped)
        floor = self.pure(f"xor {kind} {quotient}, {sign}", quotient, sign)
        if op == "floordiv":
            return floor
        product = self.pure(f"mul {kind} {floor}, {by}", floor)
        return self.pure(f"sub {kind} {a}, {product}", a, product)

    def _divide_by_any(self, op: str, a: str, b: str, dtype: str, lanes: int) -> str:
        """Division that is defined for 0 (gives 0) and for the smallest number by -1 (wraps)."""
        kind, signed = value_type(dtype, lanes), dtypes.is_signed(dtype)
        zero, one = constant(0, dtype, lanes), constant(1, dtype, lanes)
        none = self.compare("eq", b, zero, dtype, lanes)
        safe = self.select(none, one, b, dtype, lanes)
        if signed:
            minus = self.compare("eq", b, constant(-1, dtype, lanes), dtype, lanes)
            safe = self.select(minus, one, safe, dtype, lanes)
        quotient = self.pure(f"{'sdiv' if signed else 'udiv'} {kind} {a}, {safe}", a, safe)
        if signed:
            negated = self.pure(f"sub {kind} {zero}, {a}", a)
            quotient = self.select(minus, negated, quotient, dtype, lanes)
        product = self.pure(f"mul {kind} {quotient}, {b}", quotient, b)
        rest = self.pure(f"sub {kind} {a}, {product}", a, product)
        if signed and op.startswith("floor"):
            quotient, rest = self._floored(quotient, rest, b, dtype, lanes)
        return self.select(none, zero, quotient if op.endswith("div") else rest, dtype, lanes)

    def _floored(self, quotient: str, rest: str, b: str, dtype: str, lanes: int) -> tuple[str, str]:
        """One less, and one divisor more, where the rest has the other sign than the divisor."""
        kind, zero = value_type(dtype, lanes), constant(0, dtype, lanes)
        mixed = self.pure(f"xor {kind} {rest}, {b}", rest, b)
        opposite = self.compare("lt", mixed, zero, dtype, lanes)
        some = self.compare("ne", rest, zero, dtype, lanes)
        wrong = self.pure(f"and {vector('i1', lanes)} {opposite}, {some}", opposite, some)
        less = self.pure(f"add {kind} {quotient}, {constant(-1, dtype, lanes)}", quotient)
        more = self.pure(f"add {kind} {rest}, {b}", rest, b)
        return (
            self.select(wrong, less, quotient, dtype, lanes),
            self.select(wrong, more, rest, dtype, lanes),
        )

    # --- lanes --------------------------------------------------------------------------------

    def ramp(self, base: str, stride: int, dtype: str, lanes: int) -> str:
        kind, one = value_type(dtype, lanes), value_type(dtype, 1)
        if lanes == 1:
            return base
        if dtypes.is_float(dtype):
            steps = ", ".join(f"{one} {constant(float(i * stride), dtype)}" for i in range(lanes))
        else:
            steps = ", ".join(f"{one} {constant(i * stride, dtype)}" for i in range(lanes))
        start = self.splat(base, dtype, lanes)
        word = "fadd" if dtypes.is_float(dtype) else "add"
        return self.pure(f"{word} {kind} {start}, <{steps}>", start)

    def gathered(self, scalars: list[str], dtype: str) -> str:
        """A vector of scalars, one per lane."""
        lanes = len(scalars)
        if lanes == 1:
            return scalars[0]
        kind, one, result = value_type(dtype, lanes), value_type(dtype, 1), "poison"
        for lane, scalar in enumerate(scalars):
            result = self.pure(
                f"insertelement {kind} {result}, {one} {scalar}, i64 {lane}", result, scalar
            )
        return result

    def fold_lanes(self, op: str, value: str, dtype: str, lanes: int) -> str:
        """Halves combined until one lane is left. Raises CodegenError unless lanes is 2^n."""
        if lanes & (lanes - 1):
            raise CodegenError(
                f"cannot fold {lanes} lanes", where="codegen", expected="a power of two"
            )
        while lanes > 1:
            half = lanes // 2
            low = self.slice(value, dtype, lanes, 0, half)
            high = self.slice(value, dtype, lanes, half, half)
            value, lanes = self.binary(op, low, high, dtype, half), half
        return value

    def lane_bits(self, value: str, lanes: int) -> str:
        """Lanes of a bool vector as the low bits of an int64."""
        bits = self.pure(f"bitcast {vector('i1', lanes)} {value} to i{lanes}", value)
        return bits if lanes == 64 else self.pure(f"zext i{lanes} {bits} to i64", bits)

    def compressed(self, value: str, mask: str, dtype: str, lanes: int) -> str:
        """Chosen lanes at the front. Raises CodegenError for what vectors cannot do it with.

        LLVM 22 splits no vector that is wider than a register here.
        """
        wide = dtypes.bits(dtype) * lanes > 512
        if wide or not dtypes.is_integer(dtype) or dtypes.bits(dtype) < 32:
            raise CodegenError(f"lanes of {dtype} cannot be moved together", where="codegen")
        kind, tests = value_type(dtype, lanes), vector("i1", lanes)
        name = f"llvm.experimental.vector.compress.{suffix(dtype, lanes)}"
        self.writer.declare(kind, name, kind, tests, kind)
        code = f"call {kind} @{name}({kind} {value}, {tests} {mask}, {kind} zeroinitializer)"
        return self.pure(code, value, mask)

    def slice(self, value: str, dtype: str, lanes: int, start: int, count: int) -> str:
        """``count`` neighbouring lanes; a scalar when count is 1."""
        if lanes == 1:
            return value
        kind = value_type(dtype, lanes)
        if count == 1:
            return self.pure(f"extractelement {kind} {value}, i64 {start}", value)
        picks = ", ".join(f"i32 {i}" for i in range(start, start + count))
        return self.pure(
            f"shufflevector {kind} {value}, {kind} poison, <{count} x i32> <{picks}>", value
        )


def literal(operand: str) -> int | None:
    """The value of an integer literal operand (scalar or splat), None for a name."""
    if operand[0] == "%":
        return None
    text = operand[operand.rindex(" ") + 1 : -1] if operand.startswith("splat") else operand
    try:
        return int(text)
    except ValueError:
        return None


def _is_number(operand: str) -> bool:
    """A float literal that is not NaN."""
    at = operand.find("0x")
    if operand[0] == "%" or at < 0:
        return False
    bits = int(operand[at : at + 18], 16) & 0x7FFFFFFFFFFFFFFF
    return bits <= 0x7FF0000000000000
