"""Broadcasting ops of two arguments: arithmetic, comparison, logic, bits, and ``where``."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import ratio
from ixion.op.broadcast import (
    broadcast_shapes,
    elementwise,
    infer_broadcast,
    infer_comparison,
    numpy_broadcast,
    same_dtype,
)
from ixion.op.call import binary_builder, call
from ixion.op.compare import Compare, Exact, Ulp
from ixion.op.define import (
    InferArgs,
    Names,
    OpPattern,
    Reference,
    Symbolic,
    define,
    follows_floats,
)
from ixion.op.rounding import Array
from ixion.op.sample import (
    FLOATS,
    INTS,
    Draw,
    Sample,
    Sampler,
    array,
    binary_sampler,
    broadcastable,
    choice,
    shape,
)
from ixion.op.value import Value, as_objects

NumpyBinary = Callable[[Any, Any], Any]
TeBinary = Callable[[te.Expr, te.Expr], te.Expr]


def on_values(fn: NumpyBinary, on_floats: NumpyBinary | None = None) -> Symbolic:
    """The value of an arithmetic op on small tensors, element by element.

    ``fn`` takes dims, ``on_floats`` what floats may be (see ``ratio``); without it floats are not
    followed.
    """

    def symbolic(args: InferArgs, out: Type, reference: Reference | None) -> Value:
        rule = on_floats if dtypes.is_float(args.tensor(0).dtype) else fn
        if rule is None:
            return None
        a, b = np.broadcast_arrays(as_objects(args.values[0]), as_objects(args.values[1]))
        result = np.empty(a.shape, dtype=object)
        for at in np.ndindex(*a.shape):
            one = rule(a[at], b[at])
            if one is None:
                return None
            result[at] = one
        return result

    return symbolic if on_floats is None else follows_floats(symbolic)


def _guarded(fn: NumpyBinary) -> NumpyBinary:
    """Division of dims; unknown when the divisor is 0."""
    return lambda a, b: None if isinstance(b, int) and b == 0 else fn(a, b)


def _int_split(on_floats: NumpyBinary, on_ints: NumpyBinary) -> NumpyBinary:
    """Integer division by zero gives 0, as in the kernels."""

    def fn(a: Array, b: Array) -> Array:
        if a.dtype.kind not in "iu":
            return np.asarray(on_floats(a, b))
        zero = b == 0
        out = on_ints(a, np.where(zero, np.ones_like(b), b))
        return np.asarray(np.where(zero, np.zeros_like(out), out))

    return fn


def _trunc_divide(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    inexact = np.remainder(a, b) != 0
    return np.asarray(quotient + (inexact & ((a < 0) != (b < 0))).astype(quotient.dtype))


def _float_trunc_divide(a: Array, b: Array) -> Array:
    """The exact quotient truncated: the remainder is taken out before dividing, because a rounded
    quotient may already have reached the next integer (10 // 0.1 is 99).
    """
    return np.asarray(np.where(_finite_division(a, b), np.rint((a - np.fmod(a, b)) / b), a / b))


def _float_floor_divide(a: Array, b: Array) -> Array:
    rest = np.mod(a, b)
    return np.asarray(np.where(_finite_division(a, b), np.rint((a - rest) / b), np.floor(a / b)))


def _finite_division(a: Array, b: Array) -> Array:
    return np.asarray((b != 0) & np.isfinite(a) & np.isfinite(b))


def _te_divide(a: te.Expr, b: te.Expr) -> te.Expr:
    return a / b if dtypes.is_float(a.dtype) else te.binary("truncdiv", a, b)


def _te_exact_quotient(a: te.Expr, b: te.Expr, rest: te.Expr, otherwise: str) -> te.Expr:
    finite = te.logical_and(te.intrinsic("isfinite", a), te.intrinsic("isfinite", b))
    usual = te.logical_and(finite, te.compare("ne", b, 0))
    exact = te.intrinsic("round", (a - rest) / b)
    return te.select(usual, exact, te.intrinsic(otherwise, a / b) if otherwise else a / b)


def _te_trunc_divide(a: te.Expr, b: te.Expr) -> te.Expr:
    if not dtypes.is_float(a.dtype):
        return te.binary("truncdiv", a, b)
    return _te_exact_quotient(a, b, te.intrinsic("fmod", a, b), "")


def _te_floor_divide(a: te.Expr, b: te.Expr) -> te.Expr:
    if not dtypes.is_float(a.dtype):
        return a // b
    return _te_exact_quotient(a, b, _te_floor_mod(a, b), "floor")


def _te_trunc_mod(a: te.Expr, b: te.Expr) -> te.Expr:
    if dtypes.is_float(a.dtype):
        return te.intrinsic("fmod", a, b)
    return te.binary("truncmod", a, b)


def _te_floor_mod(a: te.Expr, b: te.Expr) -> te.Expr:
    if not dtypes.is_float(a.dtype):
        return a % b
    rest = te.intrinsic("fmod", a, b)
    zero = te.const(0.0, a.dtype)
    crosses = te.logical_and(
        te.compare("ne", rest, zero), te.compare("ne", te.compare("lt", rest, zero), b < zero)
    )
    return te.select(crosses, rest + b, rest)


def _te(name: str) -> TeBinary:
    return lambda a, b: te.binary(name, a, b)


def _torch(name: str, onnx: str | tuple[()] = (), *aten: str) -> Names:
    return Names(onnx, aten or (name,), f"torch.{name}")


_TRUNC = _int_split(_float_trunc_divide, _trunc_divide)
_DIVIDE = _int_split(np.true_divide, _trunc_divide)
_FMOD = _int_split(np.fmod, np.fmod)
_FLOOR = _int_split(_float_floor_divide, np.floor_divide)
_MOD = _int_split(np.mod, np.mod)


def _nonnegative_floor(a: Any, b: Any) -> Any:
    """Truncating division of values: floor division, unless a known sign says otherwise."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a // b


def _nonnegative_mod(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        return a - b * _nonnegative_floor(a, b)
    return a % b


# op: (numpy, te, value rule, level, how exact on floats, names abroad)
_ARITHMETIC: dict[
    str, tuple[NumpyBinary, TeBinary, Symbolic | None, int, Compare, Names | None]
] = {
    "add": (
        np.add, _te("add"), on_values(operator.add, ratio.add), 1, Ulp(1), _torch("add", "Add")
    ),
    "subtract": (
        np.subtract, _te("sub"), on_values(operator.sub, ratio.subtract), 1, Ulp(1),
        _torch("sub", "Sub"),
    ),
    "multiply": (
        np.multiply, _te("mul"), on_values(operator.mul, ratio.multiply), 1, Ulp(1),
        _torch("mul", "Mul"),
    ),
    "divide": (
        _DIVIDE, _te_divide, on_values(_guarded(_nonnegative_floor), ratio.divide), 1, Ulp(1),
        Names("Div"),
    ),
    "trunc_divide": (
        _TRUNC, _te_trunc_divide, on_values(_guarded(_nonnegative_floor)), 1, Ulp(1), None
    ),
    "floor_divide": (
        _FLOOR, _te_floor_divide, on_values(_guarded(operator.floordiv)), 1, Ulp(1),
        Names((), (), "torch.floor_divide"),
    ),
    "mod": (_FMOD, _te_trunc_mod, on_values(_guarded(_nonnegative_mod)), 1, Ulp(1), None),
    "trunc_mod": (
        _FMOD, _te_trunc_mod, on_values(_guarded(_nonnegative_mod)), 1, Ulp(1), _torch("fmod")
    ),
    "floor_mod": (
        _MOD, _te_floor_mod, on_values(_guarded(operator.mod)), 1, Ulp(1), _torch("remainder")
    ),
    "maximum": (
        np.maximum, _te("max"), on_values(dims.maximum), 4, Exact(), _torch("maximum")
    ),
    "minimum": (
        np.minimum, _te("min"), on_values(dims.minimum), 4, Exact(), _torch("minimum")
    ),
}  # fmt: skip

_DOCS = {
    "add": "lhs + rhs.",
    "subtract": "lhs - rhs.",
    "multiply": "lhs * rhs.",
    "divide": "lhs / rhs; on integers the quotient is truncated, and 0 when rhs is 0.",
    "trunc_divide": "lhs / rhs rounded toward zero.",
    "floor_divide": "lhs / rhs rounded down.",
    "mod": "Remainder with the sign of lhs (C's fmod and %).",
    "trunc_mod": "Remainder with the sign of lhs.",
    "floor_mod": "Remainder with the sign of rhs (Python's %).",
    "maximum": "The larger; NaN wins.",
    "minimum": "The smaller; NaN wins.",
}


def _no_zero_divisor(draw: Draw) -> Sample:
    """Floats avoid the neighbourhood of 0 on the right; integers may hit it."""
    sample = binary_sampler(-7, 7)(draw)
    a, b = sample.args
    if b.dtype.kind not in "iu":
        b = np.where(np.abs(b) < 0.25, np.asarray(0.5, b.dtype), b)
    return Sample((a, b))


for _name, (_np, _te_fn, _values, _level, _compare, _names) in _ARITHMETIC.items():
    define(
        _name,
        inputs=("lhs", "rhs"),
        pattern=OpPattern.BROADCAST,
        level=_level,
        infer=infer_broadcast,
        reference=numpy_broadcast(_np),
        compute=elementwise(_te_fn),
        compare=_compare,
        symbolic=_values,
        names=_names,
        samples=_no_zero_divisor if "div" in _name or "mod" in _name else binary_sampler(),
        doc=_DOCS[_name],
    )


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return np.asarray(np.power(a, b))
    # A negative exponent leaves an integer only for the bases 1 and -1.
    usable = np.power(a, np.maximum(b, 0))
    tiny = np.where(a == 1, 1, np.where(a == -1, np.where(b % 2 == 0, 1, -1), 0))
    return np.where(b >= 0, usable, tiny).astype(a.dtype)


def _te_power(a: te.Expr, b: te.Expr) -> te.Expr:
    if dtypes.is_float(a.dtype):
        return te.intrinsic("pow", a, b)
    return te.cast(te.intrinsic("pow", te.cast(a, "float64"), te.cast(b, "float64")), a.dtype)


def _power_samples(draw: Draw) -> Sample:
    dtype, full = choice(draw, (*FLOATS, "int32")), shape(draw, 0)
    low, high = (0, 5) if dtypes.is_integer(dtype) else (-3, 3)
    base = array(draw, full, dtype, 0.1 if dtypes.is_float(dtype) else -4, 4)
    return Sample((base, array(draw, broadcastable(draw, full), dtype, low, high)))


define(
    "power",
    inputs=("lhs", "rhs"),
    pattern=OpPattern.BROADCAST,
    level=4,
    infer=infer_broadcast,
    reference=numpy_broadcast(_power),
    compute=elementwise(_te_power),
    compare=Ulp(4),
    names=Names("Pow", "pow", "torch.pow"),
    samples=_power_samples,
    doc="lhs to the power rhs.",
)


def _values_equal(a: Any, b: Any) -> bool | None:
    return dims.same(a, b)


def _values_differ(a: Any, b: Any) -> bool | None:
    same = dims.same(a, b)
    return None if same is None else not same


def _below(a: Any, b: Any) -> bool | None:
    """``a < b`` of dims, None where it depends on the symbols."""
    if isinstance(a, dims.Any) or isinstance(b, dims.Any):
        return None
    least = dims.lower_bound(dims.add(b, dims.multiply(-1, a)))
    if least is not None and least > 0:
        return True
    excess = dims.lower_bound(dims.add(a, dims.multiply(-1, b)))
    return False if excess is not None and excess >= 0 else None


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


# op: (numpy, te, value rule, names abroad)
_COMPARISONS: dict[str, tuple[NumpyBinary, str, NumpyBinary, Names]] = {
    "equal": (np.equal, "eq", _values_equal, _torch("eq", "Equal")),
    "not_equal": (np.not_equal, "ne", _values_differ, _torch("ne")),
    "less": (np.less, "lt", _below, _torch("lt", "Less")),
    "less_equal": (
        np.less_equal, "le", lambda a, b: _not(_below(b, a)), _torch("le", "LessOrEqual")
    ),
    "greater": (np.greater, "gt", lambda a, b: _below(b, a), _torch("gt", "Greater")),
    "greater_equal": (
        np.greater_equal, "ge", lambda a, b: _not(_below(a, b)), _torch("ge", "GreaterOrEqual")
    ),
}  # fmt: skip


def _te_compare(name: str) -> TeBinary:
    return lambda a, b: te.compare(name, a, b)


def _comparison_reference(fn: NumpyBinary) -> Reference:
    return lambda attrs, ins, out: np.asarray(fn(ins[0], ins[1])).astype(bool)


for _name, (_np, _te_name, _value_rule, _names) in _COMPARISONS.items():
    define(
        _name,
        inputs=("lhs", "rhs"),
        pattern=OpPattern.BROADCAST,
        level=4,
        infer=infer_comparison,
        reference=_comparison_reference(_np),
        compute=elementwise(_te_compare(_te_name)),
        symbolic=on_values(_value_rule),
        names=_names,
        samples=binary_sampler(-2, 2),
        doc=f"bool: lhs {_te_name} rhs; false for NaN except not_equal.",
    )


def _truth(fn: NumpyBinary) -> Reference:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        a, b = inputs
        return np.asarray(fn(a != 0, b != 0)).astype(a.dtype)

    return reference


def _te_truth(name: str) -> TeBinary:
    def fn(a: te.Expr, b: te.Expr) -> te.Expr:
        if dtypes.is_bool(a.dtype):
            return te.binary(name, a, b)
        one, two = te.compare("ne", a, 0), te.compare("ne", b, 0)
        return te.cast(te.binary(name, one, two), a.dtype)

    return fn


_LOGIC: dict[str, tuple[NumpyBinary, str, Names]] = {
    "logical_and": (np.logical_and, "and", _torch("logical_and", "And")),
    "logical_or": (np.logical_or, "or", _torch("logical_or", "Or")),
    "logical_xor": (np.logical_xor, "xor", _torch("logical_xor", "Xor")),
}
_BITS: dict[str, tuple[NumpyBinary, str, Names]] = {
    "bitwise_and": (np.bitwise_and, "and", _torch("bitwise_and", "BitwiseAnd")),
    "bitwise_or": (np.bitwise_or, "or", _torch("bitwise_or", "BitwiseOr")),
    "bitwise_xor": (np.bitwise_xor, "xor", _torch("bitwise_xor", "BitwiseXor")),
    "left_shift": (np.left_shift, "shl", _torch("bitwise_left_shift")),
    "right_shift": (np.right_shift, "shr", _torch("bitwise_right_shift")),
}


def _shift_samples(draw: Draw) -> Sample:
    dtype, full = choice(draw, INTS), shape(draw, 0)
    return Sample((array(draw, full, dtype, -9, 100), array(draw, full, dtype, 0, 6)))


def _bit_samples(name: str) -> Sampler:
    return _shift_samples if "shift" in name else binary_sampler(types=(*INTS, "bool"))


for _name, (_np, _te_name, _names) in _LOGIC.items():
    define(
        _name,
        inputs=("lhs", "rhs"),
        pattern=OpPattern.BROADCAST,
        level=4,
        infer=infer_broadcast,
        reference=_truth(_np),
        compute=elementwise(_te_truth(_te_name)),
        names=_names,
        samples=binary_sampler(types=("bool", "bool", "int8")),
        doc=f"{_name.replace('_', ' ')} of truth values.",
    )

for _name, (_np, _te_name, _names) in _BITS.items():
    define(
        _name,
        inputs=("lhs", "rhs"),
        pattern=OpPattern.BROADCAST,
        level=4,
        infer=infer_broadcast,
        reference=numpy_broadcast(_np),
        compute=elementwise(_te(_te_name)),
        names=_names,
        samples=_bit_samples(_name),
        doc=f"{_name.replace('_', ' ')}; right shifts of signed integers keep the sign.",
    )


def _infer_where(args: InferArgs) -> Type:
    condition, x, y = args.tensor(0), args.tensor(1), args.tensor(2)
    dtype = same_dtype(args, x, y)
    return TensorType(broadcast_shapes(args, condition.shape, x.shape, y.shape), dtype)


def _where_value(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    condition = args.ints(0)
    if condition is None or not isinstance(out, TensorType):
        return None
    known = as_objects(args.values[0]).astype(bool)
    return np.where(known, as_objects(args.values[1]), as_objects(args.values[2]))


def _where_samples(draw: Draw) -> Sample:
    dtype, full = choice(draw, (*FLOATS, *INTS)), shape(draw, 0)
    parts = (array(draw, broadcastable(draw, full), t) for t in ("bool", dtype))
    return Sample((*parts, array(draw, full, dtype)))


def _te_where(condition: te.Expr, x: te.Expr, y: te.Expr) -> te.Expr:
    if not dtypes.is_bool(condition.dtype):
        condition = te.compare("ne", condition, 0)
    return te.select(condition, x, y)


define(
    "where",
    inputs=("condition", "x", "y"),
    pattern=OpPattern.BROADCAST,
    level=4,
    infer=_infer_where,
    reference=lambda attrs, ins, out: np.where(ins[0] != 0, ins[1], ins[2]),
    compute=elementwise(_te_where),
    symbolic=_where_value,
    names=Names("Where", "where", "torch.where"),
    samples=_where_samples,
    doc="x where condition holds, else y; all three broadcast.",
)

add, subtract, multiply, divide = map(binary_builder, ("add", "subtract", "multiply", "divide"))
trunc_divide, floor_divide = map(binary_builder, ("trunc_divide", "floor_divide"))
mod, trunc_mod, floor_mod = map(binary_builder, ("mod", "trunc_mod", "floor_mod"))
power, maximum, minimum = map(binary_builder, ("power", "maximum", "minimum"))
equal, not_equal, less, less_equal = map(
    binary_builder, ("equal", "not_equal", "less", "less_equal")
)
greater, greater_equal = map(binary_builder, ("greater", "greater_equal"))
logical_and, logical_or, logical_xor = map(
    binary_builder, ("logical_and", "logical_or", "logical_xor")
)
bitwise_and, bitwise_or, bitwise_xor = map(
    binary_builder, ("bitwise_and", "bitwise_or", "bitwise_xor")
)
left_shift, right_shift = map(binary_builder, ("left_shift", "right_shift"))


def where(condition: Expr, x: Expr, y: Expr) -> Call:
    return call("where", condition, x, y)
