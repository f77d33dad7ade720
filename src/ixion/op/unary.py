"""Elementwise ops of one argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dtype as dtypes
from ixion.ir.types import TensorType, Type
from ixion.op import special
from ixion.op.broadcast import elementwise, infer_same
from ixion.op.call import unary_builder
from ixion.op.compare import Exact, Ulp
from ixion.op.define import InferArgs, Names, OpPattern, Reference, Symbolic, define, follows_floats
from ixion.op.ratio import whole
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, INTS, Draw, Sample, array, choice, shape, unary_sampler
from ixion.op.value import Value

SIGNED = (*FLOATS, "int32", "int64", "int8")


def _in_float64(fn: Callable[[Array], Any]) -> Reference:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        return narrow(fn(wide(inputs[0])), out_type.dtype)

    return reference


def _intrinsic(name: str) -> Callable[..., te.Tensor]:
    return elementwise(lambda x: te.intrinsic(name, x))


def _torch(name: str, onnx: str | tuple[()] = (), *more: str) -> Names:
    return Names(onnx, name, (f"torch.{name}", *more))


# op: (numpy, te intrinsic, ulps, lowest and highest sample, names abroad)
_MATH: dict[str, tuple[Callable[[Array], Any], str, float, float, float, Names]] = {
    "exp": (np.exp, "exp", 2, -5, 5, _torch("exp", "Exp")),
    "log": (np.log, "log", 2, 0.01, 9, _torch("log", "Log")),
    "log2": (np.log2, "log2", 2, 0.01, 9, _torch("log2")),
    "log10": (np.log10, "log10", 2, 0.01, 9, _torch("log10")),
    "sqrt": (np.sqrt, "sqrt", 1, 0, 9, _torch("sqrt", "Sqrt")),
    "rsqrt": (lambda x: 1.0 / np.sqrt(x), "rsqrt", 2, 0.01, 9, _torch("rsqrt")),
    "tanh": (np.tanh, "tanh", 2, -5, 5, _torch("tanh", "Tanh", "nn.Tanh", "F.tanh")),
    "sigmoid": (
        special.sigmoid, "sigmoid", 2, -9, 9,
        _torch("sigmoid", "Sigmoid", "nn.Sigmoid", "F.sigmoid"),
    ),
    "erf": (special.erf, "erf", 4, -3, 3, _torch("erf", "Erf")),
    "sin": (np.sin, "sin", 2, -6, 6, _torch("sin", "Sin")),
    "cos": (np.cos, "cos", 2, -6, 6, _torch("cos", "Cos")),
    "tan": (np.tan, "tan", 3, -1.4, 1.4, _torch("tan", "Tan")),
    "asin": (np.arcsin, "asin", 3, -1, 1, _torch("asin", "Asin")),
    "acos": (np.arccos, "acos", 3, -1, 1, _torch("acos", "Acos")),
    "atan": (np.arctan, "atan", 3, -4, 4, _torch("atan", "Atan")),
    "sinh": (np.sinh, "sinh", 3, -4, 4, _torch("sinh", "Sinh")),
    "cosh": (np.cosh, "cosh", 3, -4, 4, _torch("cosh", "Cosh")),
    "asinh": (np.arcsinh, "asinh", 3, -4, 4, _torch("asinh", "Asinh")),
    "acosh": (np.arccosh, "acosh", 3, 1, 9, _torch("acosh", "Acosh")),
    "atanh": (np.arctanh, "atanh", 3, -1, 1, _torch("atanh", "Atanh")),
    # Not in Relay, where compositions lose small results: log(1 + x), exp(x) - 1, log(1 + exp(x)).
    "log1p": (np.log1p, "log1p", 2, -0.5, 9, _torch("log1p")),
    "expm1": (np.expm1, "expm1", 2, -5, 5, _torch("expm1")),
    "softplus": (lambda x: np.logaddexp(x, 0.0), "softplus", 2, -40, 40, Names("Softplus")),
    # Relay's fast_* are polynomials that may be coarser; here they are the accurate functions.
    "fast_exp": (np.exp, "exp", 2, -5, 5, Names()),
    "fast_tanh": (np.tanh, "tanh", 2, -5, 5, Names()),
    "fast_erf": (special.erf, "erf", 4, -3, 3, Names()),
}  # fmt: skip

for _name, (_fn, _te, _ulps, _low, _high, _names) in _MATH.items():
    define(
        _name,
        inputs=("data",),
        pattern=OpPattern.ELEMWISE,
        level=10 if _name in ("log1p", "expm1", "softplus") else 1,
        infer=infer_same,
        reference=_in_float64(_fn),
        compute=_intrinsic(_te),
        compare=Ulp(_ulps),
        names=_names,
        samples=unary_sampler(_low, _high),
        doc=f"{_name.removeprefix('fast_')}(x) of every element.",
    )


def _on_floats(fn: Callable[[Array], Any]) -> Reference:
    """Integers are their own floor, ceil, trunc and round."""

    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        x = inputs[0]
        return x if x.dtype.kind in "biu" else narrow(fn(wide(x)), out_type.dtype)

    return reference


def _intrinsic_on_floats(name: str) -> Callable[..., te.Tensor]:
    return elementwise(lambda x: te.intrinsic(name, x) if dtypes.is_float(x.dtype) else x)


# op: (numpy, te intrinsic, doc, names abroad)
_ROUNDING: dict[str, tuple[Callable[[Array], Any], str, str, Names]] = {
    "floor": (np.floor, "floor", "Largest integer not above x.", _torch("floor", "Floor")),
    "ceil": (np.ceil, "ceil", "Smallest integer not below x.", _torch("ceil", "Ceil")),
    "trunc": (np.trunc, "trunc", "Integer part of x.", _torch("trunc")),
    "round": (np.rint, "round", "Nearest integer, ties to even.", _torch("round", "Round")),
}


def _whole_values(rule: str) -> Symbolic:
    """Rounded floats, as far as shapes are followed; integers stay as they are."""

    def symbolic(args: InferArgs, out: Type, reference: Reference | None) -> Value:
        value = args.followed(0)
        if value is None or not dtypes.is_float(args.tensor(0).dtype):
            return value
        return whole(value, rule)

    return follows_floats(symbolic)


for _name, (_fn, _te, _doc, _names) in _ROUNDING.items():
    define(
        _name,
        inputs=("data",),
        pattern=OpPattern.ELEMWISE,
        level=3,
        infer=infer_same,
        reference=_on_floats(_fn),
        compute=_intrinsic_on_floats(_te),
        compare=Exact(),
        symbolic=None if _name == "round" else _whole_values(_name),
        names=_names,
        samples=unary_sampler(types=SIGNED),
        doc=_doc,
    )


def _sign(x: te.Expr) -> te.Expr:
    return te.intrinsic("sign", x)


def _negate_values(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    value = args.value(0)
    return None if value is None else 0 - value


# op: (numpy, te intrinsic, doc, value rule, names abroad)
_SIGNED: dict[str, tuple[Callable[[Array], Any], str, str, Symbolic | None, Names]] = {
    "sign": (np.sign, "sign", "-1, 0 or 1; NaN stays NaN.", None, _torch("sign", "Sign")),
    "abs": (
        np.abs,
        "abs",
        "Magnitude; the least integer stays itself.",
        None,
        _torch("abs", "Abs"),
    ),
    "negative": (np.negative, "neg", "-x.", _negate_values, _torch("neg", "Neg")),
}

for _name, (_fn, _te, _doc, _values, _names) in _SIGNED.items():
    define(
        _name,
        inputs=("data",),
        pattern=OpPattern.ELEMWISE,
        level=3,
        infer=infer_same,
        reference=_in_float64(_fn),
        compute=_intrinsic(_te),
        compare=Exact(),
        symbolic=_values,
        names=_names,
        samples=unary_sampler(types=SIGNED),
        doc=_doc,
    )


def _invert(x: te.Expr) -> te.Expr:
    return te.intrinsic("not", x)


def _logical_not(x: te.Expr) -> te.Expr:
    if dtypes.is_bool(x.dtype):
        return te.intrinsic("not", x)
    return te.cast(te.compare("eq", x, 0), x.dtype)


define(
    "logical_not",
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=4,
    infer=infer_same,
    reference=lambda attrs, ins, out: np.logical_not(ins[0]).astype(ins[0].dtype),
    compute=elementwise(_logical_not),
    names=Names("Not", "logical_not", "torch.logical_not"),
    samples=unary_sampler(types=("bool", "int8")),
    doc="True where x is false or zero.",
)

define(
    "bitwise_not",
    inputs=("data",),
    pattern=OpPattern.ELEMWISE,
    level=4,
    infer=infer_same,
    reference=lambda attrs, ins, out: np.invert(ins[0]),
    compute=elementwise(_invert),
    names=Names("BitwiseNot", "bitwise_not", "torch.bitwise_not"),
    samples=unary_sampler(types=(*INTS, "bool")),
    doc="Every bit flipped.",
)


def _infer_predicate(args: InferArgs) -> Type:
    return TensorType(args.tensor().shape, "bool")


def _special_values(draw: Draw) -> Sample:
    x = array(draw, shape(draw, 0), choice(draw, FLOATS))
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0]).astype(x.dtype)
    pick = array(draw, x.shape, "int32", 0, 9)
    return Sample((np.where(pick < len(odd), odd[np.minimum(pick, len(odd) - 1)], x),))


_PREDICATES: dict[str, tuple[Callable[[Array], Any], str | tuple[()]]] = {
    "isnan": (np.isnan, "IsNaN"),
    "isinf": (np.isinf, "IsInf"),
    "isfinite": (np.isfinite, ()),
}


def _predicate_reference(fn: Callable[[Array], Any]) -> Reference:
    return lambda attrs, ins, out: np.asarray(fn(ins[0])).astype(bool)


def _predicate_compute(name: str) -> Callable[..., te.Tensor]:
    constant = name == "isfinite"
    return elementwise(
        lambda x: te.intrinsic(name, x) if dtypes.is_float(x.dtype) else te.const(constant, "bool")
    )


for _name, (_fn, _onnx) in _PREDICATES.items():
    define(
        _name,
        inputs=("data",),
        pattern=OpPattern.ELEMWISE,
        level=3,
        infer=_infer_predicate,
        reference=_predicate_reference(_fn),
        compute=_predicate_compute(_name),
        names=_torch(_name, _onnx),
        samples=_special_values,
        doc=f"bool: {_name}(x); of integers the constant answer.",
    )


def _filled(value: int) -> tuple[Reference, Callable[..., te.Tensor]]:
    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        return np.full_like(inputs[0], value)

    return reference, elementwise(lambda x: te.const(value, x.dtype))


for _name, _fill in (("zeros_like", 0), ("ones_like", 1)):
    _reference, _compute = _filled(_fill)
    define(
        _name,
        inputs=("data",),
        pattern=OpPattern.ELEMWISE,
        level=4,
        infer=infer_same,
        reference=_reference,
        compute=_compute,
        names=Names((), _name, f"torch.{_name}"),
        samples=unary_sampler(types=(*SIGNED, "bool")),
        doc=f"A tensor like x filled with {_fill}.",
    )


def _same_value(args: InferArgs, out: Type, reference: Reference | None) -> Value:
    return args.values[0]


for _name, _pattern, _level, _names in (
    ("copy", OpPattern.ELEMWISE, 3, Names("Identity", "clone", ("nn.Identity", "torch.clone"))),
    ("annotation.stop_fusion", OpPattern.OPAQUE, 10, Names()),
    ("annotation.checkpoint", OpPattern.OPAQUE, 10, Names()),
):
    define(
        _name,
        inputs=("data",),
        pattern=_pattern,
        level=_level,
        infer=infer_same,
        reference=lambda attrs, ins, out: ins[0],
        compute=elementwise(lambda x: x),
        symbolic=_same_value,
        names=_names,
        samples=unary_sampler(types=(*SIGNED, "bool")),
        doc="The argument itself.",
    )

exp, log, log2, log10 = map(unary_builder, ("exp", "log", "log2", "log10"))
sqrt, rsqrt, tanh, sigmoid = map(unary_builder, ("sqrt", "rsqrt", "tanh", "sigmoid"))
erf, sin, cos, tan = map(unary_builder, ("erf", "sin", "cos", "tan"))
asin, acos, atan, sinh = map(unary_builder, ("asin", "acos", "atan", "sinh"))
cosh, asinh, acosh, atanh = map(unary_builder, ("cosh", "asinh", "acosh", "atanh"))
log1p, expm1, softplus = map(unary_builder, ("log1p", "expm1", "softplus"))
fast_exp, fast_tanh, fast_erf = map(unary_builder, ("fast_exp", "fast_tanh", "fast_erf"))
floor, ceil, trunc, round = map(unary_builder, ("floor", "ceil", "trunc", "round"))
sign, abs, negative = map(unary_builder, ("sign", "abs", "negative"))
logical_not, bitwise_not = map(unary_builder, ("logical_not", "bitwise_not"))
isnan, isinf, isfinite = map(unary_builder, ("isnan", "isinf", "isfinite"))
zeros_like, ones_like, copy = map(unary_builder, ("zeros_like", "ones_like", "copy"))
stop_fusion = unary_builder("annotation.stop_fusion")
checkpoint = unary_builder("annotation.checkpoint")
