"""Named functions of te: by instruction where the target has one, else spelled out by ``vmath``."""

from __future__ import annotations

from ixion.base import dtype as dtypes
from ixion.base.errors import CodegenError
from ixion.codegen.emit_arith import Arithmetic
from ixion.codegen.emit_convert import Conversions
from ixion.codegen.emit_types import compute_dtype, constant, value_type
from ixion.codegen.intrinsics import ROUNDING, float_intrinsics
from ixion.codegen.vmath_loops import FUNCTIONS


class Intrinsics:
    def __init__(self, arithmetic: Arithmetic, convert: Conversions) -> None:
        self.arithmetic, self.expand, self.convert = arithmetic, arithmetic.expand, convert
        self.pure = arithmetic.pure

    def emit(self, name: str, operands: list[str], dtype: str, lanes: int) -> str:
        """``name`` of operands of ``dtype``. Raises CodegenError where it has no meaning."""
        if dtypes.is_float(dtype):
            return self._float(name, operands, compute_dtype(dtype), lanes)
        return self._integer(name, operands, dtype, lanes)

    def _float(self, name: str, operands: list[str], dtype: str, lanes: int) -> str:
        a, kind = operands[0], value_type(dtype, lanes)
        native = float_intrinsics(self.arithmetic.target).get(name)
        if native is not None:
            return self.arithmetic.call(native, dtype, lanes, a)
        if name == "neg":
            return self.pure(f"fneg {kind} {a}", a)
        if name == "fma":
            return self._fma(operands, dtype, lanes)
        if name == "isnan":
            return self.pure(f"fcmp uno {kind} {a}, {a}", a)
        if name in ("isinf", "isfinite"):
            magnitude = self.arithmetic.call("fabs", dtype, lanes, a)
            infinity = constant(float("inf"), dtype, lanes)
            test = "eq" if name == "isinf" else "lt"
            return self.arithmetic.compare(test, magnitude, infinity, dtype, lanes)
        if name == "fmod":
            return self._lane_by_lane("ixion.fmod", operands, dtype, "float64", lanes)
        return self.expand(f"{name}.{dtype}", lanes, *operands)

    def _fma(self, operands: list[str], dtype: str, lanes: int) -> str:
        """Rounded once where the target can; a product and a sum where it cannot."""
        if self.arithmetic.target.fma:
            return self.arithmetic.call("fma", dtype, lanes, *operands)
        product = self.arithmetic.binary("mul", operands[0], operands[1], dtype, lanes)
        return self.arithmetic.binary("add", product, operands[2], dtype, lanes)

    def _lane_by_lane(
        self, function: str, operands: list[str], dtype: str, wide: str, lanes: int
    ) -> str:
        """A function of ``vmath_loops`` on each lane, in the wider dtype it is written for."""
        self.arithmetic.writer.functions[function] = FUNCTIONS[function]
        cast, one = self.convert.cast, value_type(wide, 1)
        results = []
        for lane in range(lanes):
            arguments = [
                cast(self.arithmetic.slice(o, dtype, lanes, lane, 1), dtype, wide, 1)
                for o in operands
            ]
            listed = ", ".join(f"{one} {a}" for a in arguments)
            value = self.pure(f"call {one} @{function}({listed})", *arguments)
            results.append(cast(value, wide, dtype, 1))
        return self.arithmetic.gathered(results, dtype)

    def _integer(self, name: str, operands: list[str], dtype: str, lanes: int) -> str:
        a, kind = operands[0], value_type(dtype, lanes)
        if name in ROUNDING:
            return a
        if name in ("isnan", "isinf", "isfinite"):
            return constant(name == "isfinite", "bool", lanes)
        if name == "not":
            ones = constant(True, "bool", lanes) if dtype == "bool" else constant(-1, dtype, lanes)
            return self.pure(f"xor {kind} {a}, {ones}", a)
        if dtype == "bool":
            raise CodegenError(f"no '{name}' on bool", where="codegen")
        if name == "neg":
            return self.pure(f"sub {kind} {constant(0, dtype, lanes)}, {a}", a)
        if name == "popcount":
            return self.arithmetic.call("ctpop", dtype, lanes, a)
        if name == "abs":
            return self._magnitude(a, dtype, lanes)
        if name == "sign":
            return self._sign(a, dtype, lanes)
        if name == "fma":
            product = self.arithmetic.binary("mul", a, operands[1], dtype, lanes)
            return self.arithmetic.binary("add", product, operands[2], dtype, lanes)
        if name == "fmod":
            return self.arithmetic.binary("truncmod", a, operands[1], dtype, lanes)
        if name == "pow":
            return self._lane_by_lane("ixion.ipow", operands, dtype, "int64", lanes)
        raise CodegenError(f"no '{name}' on {dtype}", where="codegen")

    def _magnitude(self, a: str, dtype: str, lanes: int) -> str:
        if not dtypes.is_signed(dtype):
            return a
        kind, bits = value_type(dtype, lanes), dtypes.bits(dtype)
        sign = self.pure(f"ashr {kind} {a}, {constant(bits - 1, dtype, lanes)}", a)
        flipped = self.pure(f"xor {kind} {a}, {sign}", a, sign)
        return self.pure(f"sub {kind} {flipped}, {sign}", flipped, sign)

    def _sign(self, a: str, dtype: str, lanes: int) -> str:
        zero, one = constant(0, dtype, lanes), constant(1, dtype, lanes)
        positive = self.arithmetic.compare("gt", a, zero, dtype, lanes)
        result = self.arithmetic.select(positive, one, zero, dtype, lanes)
        if dtypes.is_signed(dtype):
            negative = self.arithmetic.compare("lt", a, zero, dtype, lanes)
            result = self.arithmetic.select(
                negative, constant(-1, dtype, lanes), result, dtype, lanes
            )
        return result
