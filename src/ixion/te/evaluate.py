"""Numpy evaluation of tensor expressions and of loop nests: the oracle for code generation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ixion.base import abi
from ixion.base.dtype import to_numpy
from ixion.te.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Checked,
    Compare,
    Compressed,
    Const,
    Expr,
    HorizontalReduce,
    Intrinsic,
    LaneBits,
    Lanes,
    Load,
    Ramp,
    Read,
    Reduce,
    Select,
    Shuffle,
    Var,
)
from ixion.te.stmt import Buffer, Fault, For, If, Kernel, Let, Seq, Stmt, Store
from ixion.te.tensor import Tensor

Array = np.ndarray[Any, np.dtype[Any]]
Env = dict[Var, Array]


INDEX_FAULT = int(abi.Fault.INDEX)


class KernelFault(Exception):
    """A ``Fault`` statement was reached; ``code`` and ``index`` as the kernel gave them."""

    def __init__(self, code: int, index: int) -> None:
        super().__init__(f"fault {code} at {index}")
        self.code, self.index = code, index


def _safe_div(fn: Callable[[Any, Any], Any]) -> Callable[[Array, Array], Array]:
    def divide(a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return np.asarray(fn(a, b))
        safe = np.where(b == 0, np.ones_like(b), b)
        return np.where(b == 0, np.zeros_like(a), fn(a, safe)).astype(a.dtype)

    return divide


def _truncdiv(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.trunc(a / b))
    floor = a // b
    return np.asarray(floor + ((a - floor * b != 0) & ((a < 0) != (b < 0))).astype(a.dtype))


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.true_divide,
    "floordiv": _safe_div(np.floor_divide), "floormod": _safe_div(np.mod),
    "truncdiv": _safe_div(_truncdiv), "truncmod": _safe_div(np.fmod),
    "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": np.left_shift, "shr": np.right_shift,
    "lshr": lambda a, b: (a.view(f"u{a.dtype.itemsize}") >> b.astype(f"u{a.dtype.itemsize}"))
    .view(a.dtype),
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_REDUCE: dict[str, Callable[..., Any]] = {
    "add": np.add.reduce, "mul": np.multiply.reduce, "min": np.minimum.reduce,
    "max": np.maximum.reduce, "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce,
}  # fmt: skip


def _erf(x: Array) -> Array:
    import math

    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, 0.0))


_INTRINSIC: dict[str, Callable[..., Any]] = {
    **{n: getattr(np, n) for n in (
        "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sqrt", "tanh", "sin", "cos",
        "tan", "sinh", "cosh", "floor", "ceil", "trunc", "abs", "sign", "isnan", "isinf",
        "isfinite", "fmod")},
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "round": np.rint,
    "neg": np.negative, "not": np.invert, "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)), "softplus": _softplus, "erf": _erf,
    "gate": lambda x: 2.0 / (1.0 + np.exp2(x)), "pow": np.power, "fma": lambda a, b, c: a * b + c,
    "popcount": lambda a: np.bitwise_count(a.view(f"u{a.dtype.itemsize}")),
}  # fmt: skip
# Exact on their own dtype; every other intrinsic is computed in float64 and rounded once.
_EXACT = frozenset(("abs", "neg", "not", "sign", "floor", "ceil", "trunc", "round", "popcount"))

_ROUNDING = frozenset(("floor", "ceil", "trunc", "round"))


def apply_intrinsic(name: str, args: Sequence[Array]) -> Array:
    """One intrinsic on numpy arrays: float64 inside, rounded to the argument's dtype."""
    dtype = args[0].dtype
    if dtype.kind in "iub" and name in _ROUNDING:
        return args[0]
    with np.errstate(all="ignore"):
        if name in _EXACT or dtype.kind in "iub":
            out = np.asarray(_INTRINSIC[name](*args))
        else:
            out = np.asarray(_INTRINSIC[name](*(a.astype(np.float64) for a in args)))
    return out if out.dtype == bool else out.astype(dtype)


def apply_cast(a: Array, dtype: str) -> Array:
    """Conversion with the meaning of ``te.Cast``: truncating, saturating, NaN to 0."""
    target = to_numpy(dtype)
    if a.dtype.kind not in "fV" or target.kind not in "iu":  # V: ml_dtypes
        with np.errstate(all="ignore"):
            return a.astype(target)
    info: Any = np.iinfo(target.name)
    wide = np.nan_to_num(a.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    low, high = wide <= float(info.min), wide >= float(info.max)
    inside = np.where(low | high, 0.0, np.trunc(wide)).astype(target)
    return np.where(low, info.min, np.where(high, info.max, inside)).astype(target)


def _checked(index: int, extent: int) -> Array:
    if not 0 <= index < extent:
        raise KernelFault(INDEX_FAULT, index)
    return np.asarray(index)


def _node(expr: Expr, args: Sequence[Array]) -> Array:
    """The value of an expression node whose children are known; shared by both levels."""
    with np.errstate(all="ignore"):
        if isinstance(expr, Binary):
            return np.asarray(_BINARY[expr.op](args[0], args[1]))
        if isinstance(expr, Compare):
            return np.asarray(_COMPARE[expr.op](args[0], args[1]))
    if isinstance(expr, Checked):
        extent = expr.extent if isinstance(expr.extent, int) else int(args[1])
        return _checked(int(args[0]), extent)
    if isinstance(expr, Select):
        return np.where(args[0], args[1], args[2])
    if isinstance(expr, Cast):
        return apply_cast(args[0], expr.dtype)
    if isinstance(expr, Bitcast):
        return np.ascontiguousarray(args[0]).view(to_numpy(expr.dtype))
    if isinstance(expr, Intrinsic):
        return apply_intrinsic(expr.name, args)
    raise TypeError(f"te: cannot evaluate {type(expr).__name__}")


class _TensorEvaluator:
    """Evaluates bodies over the whole index grid at once; reductions add trailing grid axes."""

    def __init__(self, feeds: Mapping[Tensor, Array], sizes: Mapping[str, int]) -> None:
        self.values: dict[Tensor, Array] = dict(feeds)
        self.sizes = sizes

    def tensor(self, t: Tensor) -> Array:
        if t not in self.values:
            if t.body is None:
                raise KeyError(f"te: no value for placeholder {t.name}")
            shape = tuple(int(self.expr(_as_expr(d), {}, ())) for d in t.shape)
            env = {
                v: np.arange(n, dtype=np.int64).reshape(
                    [-1 if i == d else 1 for i in range(len(shape))]
                )
                for d, (v, n) in enumerate(zip(t.axes, shape, strict=True))
            }
            value = np.broadcast_to(self.expr(t.body, env, shape), shape)
            self.values[t] = np.array(value, dtype=to_numpy(t.dtype), order="C")
        return self.values[t]

    def expr(self, expr: Expr, env: Env, grid: tuple[int, ...]) -> Array:
        if isinstance(expr, Const):
            return np.asarray(expr.value).astype(to_numpy(expr.dtype))
        if isinstance(expr, Var):
            return env[expr] if expr in env else np.asarray(self.sizes[expr.name], np.int64)
        if isinstance(expr, Reduce):
            return self.reduction(expr, env, grid)
        args = [self.expr(c, env, grid) for c in expr.children()]
        if isinstance(expr, Read):
            source = self.tensor(expr.tensor)
            # A read that its select does not choose may point outside: any element will do.
            index = tuple(
                np.clip(a, 0, max(n - 1, 0)) for a, n in zip(args, source.shape, strict=True)
            )
            if 0 in source.shape:
                return np.zeros(np.broadcast_shapes(*(i.shape for i in index)), source.dtype)
            return np.asarray(source[index])
        return _node(expr, args)

    def reduction(self, expr: Reduce, env: Env, grid: tuple[int, ...]) -> Array:
        extents = tuple(int(self.expr(e, env, grid)) for _, e in expr.axes)
        k = len(extents)
        inner: Env = {v: a.reshape(a.shape + (1,) * k) if a.ndim else a for v, a in env.items()}
        for d, ((v, _), n) in enumerate(zip(expr.axes, extents, strict=True)):
            shape = (1,) * len(grid) + tuple(-1 if i == d else 1 for i in range(k))
            inner[v] = np.arange(n, dtype=np.int64).reshape(shape)
        body = np.broadcast_to(self.expr(expr.body, inner, grid + extents), grid + extents)
        axes = tuple(range(len(grid), len(grid) + k))
        if 0 in extents and expr.kind in ("min", "max"):
            return np.full(grid, identity(expr.kind, expr.dtype))
        return np.asarray(
            _REDUCE[expr.kind](body, axis=axes, dtype=body.dtype)
            if expr.kind in ("add", "mul")
            else _REDUCE[expr.kind](body, axis=axes)
        )


def identity(kind: str, dtype: str) -> Any:
    """The neutral element of a reduction kind, as a numpy scalar of ``dtype``."""
    np_dtype = to_numpy(dtype)
    if kind in ("add", "or"):
        return np_dtype.type(0)
    if kind == "mul":
        return np_dtype.type(1)
    if kind == "and":
        return np_dtype.type(True if dtype == "bool" else -1)
    if np_dtype.kind in "iu":
        info: Any = np.iinfo(np_dtype.name)
        return np_dtype.type(info.max if kind == "min" else info.min)
    if dtype == "bool":
        return np_dtype.type(kind == "min")
    return np_dtype.type(np.inf if kind == "min" else -np.inf)


def _as_expr(extent: int | Expr) -> Expr:
    return extent if isinstance(extent, Expr) else Const(extent, "int64")


def evaluate(
    outputs: Sequence[Tensor],
    feeds: Mapping[Tensor, Array],
    sizes: Mapping[str, int] | None = None,
) -> list[Array]:
    """Values of ``outputs`` given arrays for the placeholders they read.

    ``sizes`` gives numbers to the variables in symbolic extents, by name.
    """
    evaluator = _TensorEvaluator(feeds, sizes or {})
    return [evaluator.tensor(t) for t in outputs]


class _KernelEvaluator:
    """Runs a nest statement by statement; slow and obvious.  Index errors raise IndexError."""

    def __init__(self, kernel: Kernel, memory: dict[Buffer, Array]) -> None:
        self.kernel, self.memory = kernel, memory

    def expr(self, expr: Expr, env: Env) -> Array:
        return self.node(expr, env, {})

    def node(self, expr: Expr, env: Env, known: dict[int, Array]) -> Array:
        """A node used twice is evaluated once: expressions may share parts without bound."""
        value = known.get(id(expr))
        if value is None:
            args = [self.node(c, env, known) for c in expr.children()]
            value = known[id(expr)] = self.compute(expr, env, args)
        return value

    def compute(self, expr: Expr, env: Env, args: Sequence[Array]) -> Array:
        if isinstance(expr, Const):
            one = np.asarray(expr.value).astype(to_numpy(expr.dtype))
            return np.full(expr.lanes, one) if expr.lanes > 1 else one
        if isinstance(expr, Var):
            return env[expr]
        if isinstance(expr, Broadcast):
            return np.full(expr.lanes, args[0])
        if isinstance(expr, Ramp):
            return np.asarray(args[0] + expr.stride * np.arange(expr.lanes))
        if isinstance(expr, Lanes):
            return np.asarray(args)
        if isinstance(expr, Shuffle):
            return np.concatenate(args)[list(expr.picks)]
        if isinstance(expr, HorizontalReduce):
            return _fold_lanes(expr.kind, args[0])
        if isinstance(expr, LaneBits):
            chosen = sum(1 << i for i in np.flatnonzero(args[0]).tolist())
            return np.asarray(chosen, np.uint64).astype(np.int64)
        if isinstance(expr, Compressed):
            out = np.zeros_like(args[0])
            out[: np.count_nonzero(args[1])] = args[0][args[1]]
            return out
        if isinstance(expr, Load):
            count = int(args[1]) if expr.count is not None else expr.lanes
            return self.load(expr, int(args[0]), count)
        return _node(expr, args)

    def load(self, expr: Load, index: int, count: int) -> Array:
        data = self.memory[expr.buffer]
        if expr.buffer.scope == "register":
            return np.array(data[index])  # a value, not a view that later stores change
        self.check(expr.buffer, index, count, expr.stride)
        if expr.lanes == 1:
            return np.asarray(data[index])
        out = np.zeros(expr.lanes, data.dtype)
        out[:count] = data[index + expr.stride * np.arange(count)]
        return out

    def check(self, buffer: Buffer, index: int, count: int, stride: int = 1) -> None:
        last = index + (count - 1) * stride
        if count > 0 and (min(index, last) < 0 or max(index, last) >= len(self.memory[buffer])):
            raise IndexError(f"{buffer.name}[{index}..{last}] of {len(self.memory[buffer])}")

    def run(self, stmt: Stmt, env: Env) -> None:
        if isinstance(stmt, Seq):
            for s in stmt.body:
                self.run(s, env)
        elif isinstance(stmt, For):
            for i in range(int(self.expr(stmt.lo, env)), int(self.expr(stmt.hi, env)), stmt.step):
                self.run(stmt.body, {**env, stmt.var: np.int64(i)})  # type: ignore[dict-item]
        elif isinstance(stmt, Let):
            self.run(stmt.body, {**env, stmt.var: self.expr(stmt.value, env)})
        elif isinstance(stmt, Store):
            self.store(stmt, env)
        elif isinstance(stmt, If):
            if bool(self.expr(stmt.cond, env)):
                self.run(stmt.then, env)
            elif stmt.orelse is not None:
                self.run(stmt.orelse, env)
        elif isinstance(stmt, Fault):
            raise KernelFault(stmt.code, int(self.expr(stmt.index, env)))

    def store(self, stmt: Store, env: Env) -> None:
        index, value = int(self.expr(stmt.index, env)), self.expr(stmt.value, env)
        data = self.memory[stmt.buffer]
        if stmt.buffer.scope == "register" or value.ndim == 0:
            if stmt.buffer.scope != "register":
                self.check(stmt.buffer, index, 1)
            data[index] = value
            return
        count = len(value) if stmt.count is None else int(self.expr(stmt.count, env))
        self.check(stmt.buffer, index, count)
        data[index : index + count] = value[:count]


def _fold_lanes(kind: str, lanes: Array) -> Array:
    lanes = np.atleast_1d(lanes)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = np.asarray(
            _BINARY[{"add": "add", "mul": "mul"}.get(kind, kind)](lanes[:half], lanes[half:])
        )
    return np.asarray(lanes[0])


def run_kernel(
    kernel: Kernel,
    arrays: Sequence[Array],
    scalars: Sequence[int] = (),
    tasks: range | None = None,
) -> None:
    """Runs the tasks of a kernel on flat arrays (one per param, written in place).

    Raises IndexError on any access outside an array and ``KernelFault`` on a fault.
    """
    memory = dict(zip(kernel.params, arrays, strict=True))
    evaluator = _KernelEvaluator(kernel, memory)
    env: Env = {v: np.asarray(s) for v, s in zip(kernel.scalars, scalars, strict=True)}

    def number(value: int | Expr) -> int:
        return int(evaluator.expr(value, env)) if isinstance(value, Expr) else value

    for b in kernel.locals:
        size = number(b.size)
        shape: tuple[int, ...] = (size, b.lanes) if b.scope == "register" else (size,)
        memory[b] = np.zeros(shape if b.lanes > 1 else (size,), to_numpy(b.dtype))
    for task in tasks if tasks is not None else range(number(kernel.tasks)):
        evaluator.run(kernel.body, {**env, kernel.task: np.asarray(task)})
