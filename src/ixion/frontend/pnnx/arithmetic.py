"""The functions of expressions on tensors, numbers and sizes, with torch's rules."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.errors import ModelFormatError
from ixion.frontend.build import activation
from ixion.frontend.emitter import Emitter
from ixion.frontend.pnnx.expression import LIST, SIZE, Tree, fold
from ixion.frontend.pnnx.promote import Item, as_term, cast, promoted, torch_dtype
from ixion.frontend.pnnx.value import Value
from ixion.frontend.term import Term

Unary = Callable[[Emitter, Term], Term]
Binary = Callable[[Emitter, Term, Term], Term]

#: Functions that make floats of integers, by Relay operator.
_FLOATING = {
    name: name
    for name in (
        "acos acosh asin asinh atan atanh cos cosh erf exp log log10 log2 rsqrt sigmoid sin sinh "
        "sqrt tan tanh"
    ).split()
}
#: Functions that keep integers.
_KEEPING = {"abs": "abs", "neg": "negative", "sign": "sign"}
_ROUNDING = ("ceil", "floor", "round", "trunc")

_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "max": "maximum", "maximum": "maximum",
    "min": "minimum", "minimum": "minimum", "remainder": "floor_mod", "fmod": "trunc_mod",
}  # fmt: skip
_LOGIC = {"and": "logical_and", "or": "logical_or", "xor": "logical_xor"}
_BITS = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_SHIFTS = {"lshift": "left_shift", "rshift": "right_shift"}

_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "pow": operator.pow,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "fmod": math.fmod,
    "div": operator.truediv, "neg": operator.neg, "abs": abs, "max": max, "min": min,
    "maximum": max, "minimum": min, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "lshift": operator.lshift, "rshift": operator.rshift,
    "int": int, "trunc": math.trunc, "round": round, "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / math.sqrt(x), "atan2": math.atan2,
    "sign": lambda x: (x > 0) - (x < 0), "log1p": math.log1p, "expm1": math.expm1,
    "floor": math.floor, "ceil": math.ceil, "logaddexp": lambda a, b: math.log(
        math.exp(a) + math.exp(b)),
}  # fmt: skip
_DIMS: dict[str, Callable[..., Any]] = {
    "add": dims.add, "mul": dims.multiply, "floor_divide": dims.floordiv, "remainder": dims.mod,
    "sub": lambda a, b: dims.add(a, dims.multiply(-1, b)), "neg": lambda a: dims.multiply(-1, a),
    "max": dims.maximum, "maximum": dims.maximum, "min": dims.minimum, "minimum": dims.minimum,
    "int": lambda a: a, "floor": lambda a: a, "ceil": lambda a: a, "trunc": lambda a: a,
    "round": lambda a: a,
}  # fmt: skip
#: A power of numbers beyond this is a hostile file, not a model.
_LARGEST_EXPONENT = 1024


def evaluate(emit: Emitter, tree: Tree, operands: list[Item]) -> Item:
    """The value of an expression: a tensor, a number, a size, a word, None, or a list of these."""

    def operand(index: int) -> Item:
        if index >= len(operands):
            raise ModelFormatError(f"the expression uses @{index} of {len(operands)} operands")
        return operands[index]

    def literal(value: Value) -> Item:
        return float(value) if value in ("inf", "-inf", "nan") else value

    return fold(tree, operand, literal, lambda name, args: apply(emit, name, args))


def apply(emit: Emitter, name: str, args: tuple[Item, ...]) -> Item:
    """One function of the language on evaluated arguments."""
    if name == LIST:
        return list(args)
    if name == SIZE:
        return _size(args)
    if name.startswith("torch."):
        return _converted(emit, args[0], name)
    if any(isinstance(arg, Term) for arg in args):
        return unary(emit, name, args[0]) if len(args) == 1 else binary(emit, name, *args)
    return _on_numbers(name, args)


def _size(args: tuple[Item, ...]) -> Item:
    if not isinstance(args[0], Term):
        raise ModelFormatError("size() of what is no tensor", found=repr(args[0]))
    shape = args[0].shape
    if len(args) == 1:
        return list(shape)
    if not isinstance(args[1], int) or not -len(shape) <= args[1] < len(shape):
        raise ModelFormatError(f"size() of axis {args[1]}", found=f"rank {len(shape)}")
    return shape[args[1]]


def _converted(emit: Emitter, item: Item, name: str) -> Item:
    dtype = torch_dtype(name)
    if isinstance(item, Term):
        return cast(emit, item, dtype)
    if isinstance(item, dims.SymExpr):
        return item
    if dtype == "bool":
        return bool(item)
    return float(item) if dtypes.is_float(dtype) else int(item)


def _on_numbers(name: str, args: tuple[Item, ...]) -> Item:
    if any(isinstance(arg, dims.SymExpr) for arg in args):
        if name not in _DIMS:
            raise ModelFormatError(
                f"{name}() of a size that is not known",
                hint="give the input's shape: load(path, shapes={name: shape})",
            )
        return _DIMS[name](*args)
    if name == "pow" and abs(args[1]) > _LARGEST_EXPONENT:
        raise ModelFormatError("a power of numbers that is too large", found=str(args))
    if "shift" in name and not 0 <= args[1] < 64:
        raise ModelFormatError("a shift of a number by too many bits", found=str(args))
    function = _NUMBERS.get(name) or getattr(math, name, None)
    if function is None:
        raise ModelFormatError(f"unknown function {name!r} in an expression")
    return function(*args)


def unary(emit: Emitter, name: str, x: Term) -> Term:
    """A function of one tensor; integers become float32 where torch makes floats of them."""
    if name == "int":
        return cast(emit, x, "int64")
    if name in _KEEPING:
        return _magnitude(emit, x) if _complex_abs(name, x) else emit.call(_KEEPING[name], x)
    if name == "square":
        return emit.call("multiply", x, x)
    if name in _ROUNDING:
        return emit.call(name, x) if dtypes.is_float(x.dtype) else x
    (x,) = promoted(emit, [x], floating=True)
    if name in _FLOATING:
        return emit.call(_FLOATING[name], x)
    if name == "reciprocal":
        return emit.call("divide", emit.constant(1.0, x.dtype), x)
    if name in ("expm1", "log1p"):
        return activation.expm1(emit, x) if name == "expm1" else activation.log1p(emit, x)
    raise ModelFormatError(f"unknown function {name!r} in an expression")


def _complex_abs(name: str, x: Term) -> bool:
    return name == "abs" and dtypes.is_complex(x.dtype)


def _magnitude(emit: Emitter, x: Term) -> Term:
    return emit.call("abs", x)


def binary(emit: Emitter, name: str, a: Item, b: Item) -> Term:
    """A function of two items, at least one of them a tensor."""
    if name in _LOGIC:
        x, y = promoted(emit, [a, b])
        return emit.call((_LOGIC if x.dtype == "bool" else _BITS)[name], x, y)
    if name in _SHIFTS:
        return emit.call(_SHIFTS[name], *promoted(emit, [a, b]))
    if name == "div":
        x, y = promoted(emit, [a, b], floating=True)
        return emit.call("divide", x, y)
    if name == "pow":
        return power(emit, a, b)
    if name == "floor_divide":
        return floor_divide(emit, *promoted(emit, [a, b]))
    if name in ("atan2", "logaddexp"):
        x, y = promoted(emit, [a, b], floating=True)
        return atan2(emit, x, y) if name == "atan2" else log_add_exp(emit, x, y)
    if name not in _BINARY:
        raise ModelFormatError(f"unknown function {name!r} in an expression")
    x, y = promoted(emit, [a, b])
    if x.dtype == "bool" and name in ("add", "mul"):
        return emit.call("logical_or" if name == "add" else "logical_and", x, y)
    return emit.call(_BINARY[name], x, y)


def power(emit: Emitter, a: Item, b: Item) -> Term:
    """Raise a to b; the exponents 2, 3, 0.5 and -1 are taken apart, as torch does."""
    if isinstance(a, Term) and isinstance(b, (int, float)) and not isinstance(b, bool):
        (x,) = promoted(emit, [a], floating=isinstance(b, float))
        if b == 2:
            return emit.call("multiply", x, x)
        if b == 3:
            return emit.call("multiply", emit.call("multiply", x, x), x)
        if b == 0.5:
            return emit.call("sqrt", x)
        if b == -1 and dtypes.is_float(x.dtype):
            return emit.call("divide", emit.constant(1.0, x.dtype), x)
    x, y = promoted(emit, [a, b])
    return emit.call("power", x, y)


def floor_divide(emit: Emitter, a: Term, b: Term) -> Term:
    """As torch's `a // b`: on floats (a - a % b) / b rounded, so 10 // 0.1 is 99 as in Python."""
    if not dtypes.is_float(a.dtype):
        return emit.call("floor_divide", a, b)
    rest = emit.call("floor_mod", a, b)
    whole = emit.call("round", emit.call("divide", emit.call("subtract", a, rest), b))
    zero = emit.call("equal", b, 0.0)
    return emit.call("where", zero, emit.call("divide", a, b), whole)


def atan2(emit: Emitter, y: Term, x: Term) -> Term:
    """The angle of (x, y) in (-pi, pi], by the arc tangent of y / x and the quadrant."""
    angle = emit.call("atan", emit.call("divide", y, x))
    below = emit.call("less", y, 0.0)
    half_turn = emit.call(
        "where", below, emit.constant(-math.pi, y.dtype), emit.constant(math.pi, y.dtype)
    )
    zero = emit.constant(0.0, y.dtype)
    left = emit.call("less", x, 0.0)
    turned = emit.call("add", angle, emit.call("where", left, half_turn, zero))
    nowhere = emit.call("logical_and", emit.call("equal", x, 0.0), emit.call("equal", y, 0.0))
    return emit.call("where", nowhere, zero, turned)


def log_add_exp(emit: Emitter, a: Term, b: Term) -> Term:
    """log(exp(a) + exp(b)), as the larger plus softplus of minus the difference."""
    top = emit.call("maximum", a, b)
    gap = emit.call("negative", emit.call("abs", emit.call("subtract", a, b)))
    tail = emit.call("exp", gap)
    ratio = emit.call("divide", tail, emit.call("add", tail, 2.0))
    return emit.call("add", top, emit.call("multiply", emit.call("atanh", ratio), 2.0))


def compare(emit: Emitter, name: str, a: Item, b: Item) -> Term:
    """A comparison operator on items, in their common dtype."""
    x, y = promoted(emit, [a, b])
    return emit.call(name, x, y)


def number(item: Item, default: float | None = None) -> float:
    """A Python number of a parameter: `inf` is a word in the file; ModelFormatError for others."""
    if item is None and default is not None:
        return default
    if isinstance(item, str) and item in ("inf", "-inf", "nan"):
        return float(item)
    if isinstance(item, (int, float)):
        return item
    raise ModelFormatError("a number is needed here", found=repr(item))


def as_outputs(emit: Emitter, item: Item) -> Term:
    """A number as a tensor, for what must be one."""
    return as_term(emit, item)
