"""Scalar and vector expressions: the values that loop nests compute.

One expression language serves two levels.  At *tensor level* an expression reads other tensors by
multi-dimensional index (``Read``) and may reduce (``Reduce``); op computes are written there.  At
*loop level* it loads lanes from flat buffers (``Load``).  Everything else is shared.  Every
expression has a ``dtype`` and a number of ``lanes`` (1 for a scalar); index arithmetic is int64.

Division comes in three kinds because front ends need all of them: ``/`` on floats is true
division, ``//`` and ``%`` floor (the remainder takes the divisor's sign, as in Python), and
``truncdiv``/``truncmod`` round toward zero, as in C.  Integer division by zero gives 0.
``min`` and ``max`` propagate NaN, as numpy does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ixion.te.stmt import Buffer
    from ixion.te.tensor import Tensor

INDEX = "int64"
Number = int | float | bool
ExprLike: TypeAlias = "Expr | int | float | bool"

ARITH_OPS = frozenset(
    "add sub mul div floordiv floormod truncdiv truncmod min max and or xor shl shr lshr".split()
)
COMPARE_OPS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# Intrinsics whose result is bool whatever the argument.
PREDICATES = frozenset(("isnan", "isinf", "isfinite"))
# ``gate(x)`` is ``2 / (1 + 2^x)``: what 1 + tanh and 1 + erf are, of another argument.
UNARY_INTRINSICS = frozenset(
    "exp exp2 expm1 log log1p log2 log10 sqrt rsqrt tanh sigmoid softplus erf gate sin cos tan"
    " asin acos atan sinh cosh asinh acosh atanh floor ceil round trunc abs neg sign not"
    " popcount".split()
)
INTRINSICS = PREDICATES | UNARY_INTRINSICS | frozenset(("pow", "fma", "atan2", "fmod"))


class Expr:
    """Base of all expressions; immutable by convention, compared by identity."""

    __slots__ = ("dtype", "lanes")
    dtype: str
    lanes: int

    def children(self) -> tuple[Expr, ...]:
        return ()

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        """The same node over other children (of the same number)."""
        return self

    def __add__(self, other: ExprLike) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return binary("sub", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return binary("mul", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return binary("mul", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return binary("div", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return binary("div", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return binary("floordiv", other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return binary("floormod", self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return binary("floormod", other, self)

    def __neg__(self) -> Expr:
        return intrinsic("neg", self)

    def __lt__(self, other: ExprLike) -> Expr:
        return compare("lt", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return compare("le", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return compare("gt", self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return compare("ge", self, other)

    def equal(self, other: ExprLike) -> Expr:
        return compare("eq", self, other)

    def not_equal(self, other: ExprLike) -> Expr:
        return compare("ne", self, other)

    def astype(self, dtype: str) -> Expr:
        return cast(self, dtype)

    def __repr__(self) -> str:
        from ixion.te.text import expr_text

        return expr_text(self)


class Const(Expr):
    """A literal of any dtype; with lanes > 1 every lane holds it."""

    __slots__ = ("value",)

    def __init__(self, value: Number, dtype: str, lanes: int = 1) -> None:
        self.value, self.dtype, self.lanes = value, dtype, lanes


class Var(Expr):
    """A loop variable, a let-bound value or a size known at run time; identity is the name."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: str = INDEX, lanes: int = 1) -> None:
        self.name, self.dtype, self.lanes = name, dtype, lanes


class Size(Var):
    """An extent known at run time only, 0 or more: it may be one of several in a longer loop.

    Made by ``size``, so that one name is one object.
    """

    __slots__ = ()


_SIZES: dict[str, Size] = {}


def size(name: str) -> Size:
    """The variable of a symbolic dim."""
    return _SIZES.setdefault(name, Size(name))


class Binary(Expr):
    __slots__ = ("a", "b", "op")

    def __init__(self, op: str, a: Expr, b: Expr) -> None:
        self.op, self.a, self.b = op, a, b
        self.dtype, self.lanes = a.dtype, a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Binary(self.op, children[0], children[1])


class Compare(Expr):
    __slots__ = ("a", "b", "op")

    def __init__(self, op: str, a: Expr, b: Expr) -> None:
        self.op, self.a, self.b = op, a, b
        self.dtype, self.lanes = "bool", a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Compare(self.op, children[0], children[1])


class Select(Expr):
    """``a`` where ``cond`` holds, else ``b``; both sides are evaluated."""

    __slots__ = ("a", "b", "cond")

    def __init__(self, cond: Expr, a: Expr, b: Expr) -> None:
        self.cond, self.a, self.b = cond, a, b
        self.dtype, self.lanes = a.dtype, a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.cond, self.a, self.b)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Select(children[0], children[1], children[2])


class Cast(Expr):
    """Value conversion; float to integer truncates and saturates, NaN becomes 0."""

    __slots__ = ("a",)

    def __init__(self, a: Expr, dtype: str) -> None:
        self.a = a
        self.dtype, self.lanes = dtype, a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Cast(children[0], self.dtype)


class Bitcast(Expr):
    """The same bits under another dtype of the same width."""

    __slots__ = ("a",)

    def __init__(self, a: Expr, dtype: str) -> None:
        self.a = a
        self.dtype, self.lanes = dtype, a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Bitcast(children[0], self.dtype)


class Intrinsic(Expr):
    """A named scalar function applied lane by lane (see ``INTRINSICS``)."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Expr, ...]) -> None:
        self.name, self.args = name, args
        self.dtype = "bool" if name in PREDICATES else args[0].dtype
        self.lanes = args[0].lanes

    def children(self) -> tuple[Expr, ...]:
        return self.args

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Intrinsic(self.name, tuple(children))


class Broadcast(Expr):
    """A scalar in every lane; raises TypeError for a vector."""

    __slots__ = ("a",)

    def __init__(self, a: Expr, lanes: int) -> None:
        if a.lanes != 1:
            raise TypeError(f"te: a broadcast takes a scalar, not {a.lanes} lanes")
        self.a = a
        self.dtype, self.lanes = a.dtype, lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Broadcast(children[0], self.lanes)


class Ramp(Expr):
    """``base + stride * (0, 1, ..., lanes - 1)``."""

    __slots__ = ("base", "stride")

    def __init__(self, base: Expr, lanes: int, stride: int = 1) -> None:
        self.base, self.stride = base, stride
        self.dtype, self.lanes = base.dtype, lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.base,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Ramp(children[0], self.lanes, self.stride)


class Lanes(Expr):
    """A vector put together from scalars, one per lane; for accesses of no regular stride."""

    __slots__ = ("args",)

    def __init__(self, args: tuple[Expr, ...]) -> None:
        self.args = args
        self.dtype, self.lanes = args[0].dtype, len(args)

    def children(self) -> tuple[Expr, ...]:
        return self.args

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Lanes(tuple(children))


class Shuffle(Expr):
    """Lanes picked from two vectors of one length: lane ``i`` is lane ``picks[i]`` of ``a + b``.

    Picks count through the lanes of ``a``, then those of ``b``.
    """

    __slots__ = ("a", "b", "picks")

    def __init__(self, a: Expr, b: Expr, picks: tuple[int, ...]) -> None:
        self.a, self.b, self.picks = a, b, picks
        self.dtype, self.lanes = a.dtype, len(picks)

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.b)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Shuffle(children[0], children[1], self.picks)


class HorizontalReduce(Expr):
    """All lanes of a vector folded into one scalar by ``kind`` (add, mul, min, max, and, or).

    Lanes are folded pairwise (halves, then quarters, ...), the same on every target.
    """

    __slots__ = ("a", "kind")

    def __init__(self, kind: str, a: Expr) -> None:
        self.kind, self.a = kind, a
        self.dtype, self.lanes = a.dtype, 1

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return HorizontalReduce(self.kind, children[0])


class LaneBits(Expr):
    """The lanes of a bool vector (at most 64) as the bits of an int64, lane 0 the lowest."""

    __slots__ = ("a",)

    def __init__(self, a: Expr) -> None:
        self.a = a
        self.dtype, self.lanes = INDEX, 1

    def children(self) -> tuple[Expr, ...]:
        return (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return LaneBits(children[0])


class Compressed(Expr):
    """The lanes of ``a`` (32- or 64-bit integers) where ``mask`` holds, in order, then zeros."""

    __slots__ = ("a", "mask")

    def __init__(self, a: Expr, mask: Expr) -> None:
        self.a, self.mask = a, mask
        self.dtype, self.lanes = a.dtype, a.lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.mask)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Compressed(children[0], children[1])


class Load(Expr):
    """``lanes`` elements of a buffer from element ``index`` on, ``stride`` elements apart.

    With ``count`` (a scalar int64) only the first ``count`` lanes are read, the others are 0; no
    byte outside them is touched.  A *register* buffer is indexed by vector, with constant indices.
    """

    __slots__ = ("buffer", "count", "index", "stride")

    def __init__(
        self,
        buffer: Buffer,
        index: Expr,
        lanes: int = 1,
        stride: int = 1,
        count: Expr | None = None,
    ) -> None:
        self.buffer, self.index, self.stride, self.count = buffer, index, stride, count
        self.dtype, self.lanes = buffer.dtype, lanes

    def children(self) -> tuple[Expr, ...]:
        return (self.index,) if self.count is None else (self.index, self.count)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        count = children[1] if self.count is not None else None
        return Load(self.buffer, children[0], self.lanes, self.stride, count)


class Checked(Expr):
    """A scalar index that must lie in ``[0, extent)``; the kernel ends with a fault where not.

    For indices that are data: whatever they are, no access built on them leaves its buffer.
    """

    __slots__ = ("a", "extent")

    def __init__(self, a: Expr, extent: int | Expr) -> None:
        self.a, self.extent = a, extent
        self.dtype, self.lanes = a.dtype, 1

    def children(self) -> tuple[Expr, ...]:
        return (self.a, self.extent) if isinstance(self.extent, Expr) else (self.a,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Checked(children[0], children[1] if len(children) > 1 else self.extent)


class Read(Expr):
    """Tensor level: one element of a tensor at a multi-dimensional index."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Tensor, indices: tuple[Expr, ...]) -> None:
        self.tensor, self.indices = tensor, indices
        self.dtype, self.lanes = tensor.dtype, 1

    def children(self) -> tuple[Expr, ...]:
        return self.indices

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Read(self.tensor, tuple(children))


class Reduce(Expr):
    """Tensor level: ``body`` folded by ``kind`` over ``axes`` (pairs of variable and extent).

    ``kind`` is add, mul, min, max, and, or.  An empty range gives the identity of the kind.
    """

    __slots__ = ("axes", "body", "kind")

    def __init__(self, kind: str, axes: tuple[tuple[Var, Expr], ...], body: Expr) -> None:
        self.kind, self.axes, self.body = kind, axes, body
        self.dtype, self.lanes = body.dtype, 1

    def children(self) -> tuple[Expr, ...]:
        return (self.body,)

    def rebuild(self, children: Sequence[Expr]) -> Expr:
        return Reduce(self.kind, self.axes, children[0])


def wrap(value: ExprLike, dtype: str = INDEX) -> Expr:
    """A Python number as a constant of ``dtype``; an expression as it is."""
    return value if isinstance(value, Expr) else Const(value, dtype)


def _pair(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    dtype = a.dtype if isinstance(a, Expr) else b.dtype if isinstance(b, Expr) else INDEX
    x, y = wrap(a, dtype), wrap(b, dtype)
    if x.lanes != y.lanes:
        if x.lanes == 1:
            x = broadcast(x, y.lanes)
        elif y.lanes == 1:
            y = broadcast(y, x.lanes)
    if x.dtype != y.dtype or x.lanes != y.lanes:
        raise TypeError(
            f"te: operands differ: {x.dtype}x{x.lanes} and {y.dtype}x{y.lanes}; cast one of them"
        )
    return x, y


def binary(op: str, a: ExprLike, b: ExprLike) -> Expr:
    """``op`` of ``ARITH_OPS``; index arithmetic on constants folds at once.

    Raises TypeError when the dtypes differ.
    """
    x, y = _pair(a, b)
    if x.dtype == INDEX:
        from ixion.te.simplify import fold_index

        return fold_index(op, x, y)
    return Binary(op, x, y)


def compare(op: str, a: ExprLike, b: ExprLike) -> Expr:
    x, y = _pair(a, b)
    return Compare(op, x, y)


def select(cond: Expr, a: ExprLike, b: ExprLike) -> Expr:
    x, y = _pair(a, b)
    return Select(cond, x, y)


def cast(a: Expr, dtype: str) -> Expr:
    if a.dtype == dtype:
        return a
    return Cast(a, dtype)


def intrinsic(name: str, *args: ExprLike) -> Expr:
    """An intrinsic of ``INTRINSICS``; raises KeyError for any other name."""
    if name not in INTRINSICS:
        raise KeyError(f"te: no intrinsic {name!r}")
    first = next(a for a in args if isinstance(a, Expr))
    lanes = max(a.lanes for a in args if isinstance(a, Expr))
    operands = tuple(broadcast(wrap(a, first.dtype), lanes) for a in args)
    if name == "neg" and first.dtype == INDEX and first.lanes == 1:
        return binary("mul", operands[0], -1)
    return Intrinsic(name, operands)


def broadcast(a: Expr, lanes: int) -> Expr:
    if a.lanes == lanes:
        return a
    if isinstance(a, Const):
        return Const(a.value, a.dtype, lanes)
    return Broadcast(a, lanes)


def minimum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("min", a, b)


def maximum(a: ExprLike, b: ExprLike) -> Expr:
    return binary("max", a, b)


def logical_and(a: Expr, b: Expr) -> Expr:
    return Binary("and", *_pair(a, b))


def logical_or(a: Expr, b: Expr) -> Expr:
    return Binary("or", *_pair(a, b))


def transposed(rows: Sequence[Expr]) -> list[Expr]:
    """``n`` vectors of ``n`` lanes (a power of two) as a matrix, transposed: ``n log2 n`` shuffles.

    Halves, then quarters, and so on of the off-diagonal blocks are exchanged (Eklundh, A fast
    computer method for matrix transposing, 1972).
    """
    n, out = len(rows), list(rows)
    half = n // 2
    while half:
        first = tuple(i if not i & half else n + i - half for i in range(n))
        second = tuple(i + half if not i & half else n + i for i in range(n))
        for i in range(n):
            if not i & half:
                a, b = out[i], out[i + half]
                out[i], out[i + half] = Shuffle(a, b, first), Shuffle(a, b, second)
        half //= 2
    return out


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of a tree, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.children()))


def substitute(expr: Expr, mapping: dict[Var, Expr], memo: dict[int, Expr] | None = None) -> Expr:
    """``expr`` with variables replaced; index arithmetic is folded again on the way up.

    Sharing is kept: an object that occurs twice is replaced once.
    """
    if isinstance(expr, Var):
        return mapping.get(expr, expr)
    old = expr.children()
    if not old:
        return expr
    memo = {} if memo is None else memo
    if id(expr) not in memo:
        memo[id(expr)] = _substituted(expr, [substitute(c, mapping, memo) for c in old])
    return memo[id(expr)]


def _substituted(expr: Expr, new: list[Expr]) -> Expr:
    if all(a is b for a, b in zip(expr.children(), new, strict=True)):
        return expr
    if isinstance(expr, Binary):
        return binary(expr.op, new[0], new[1])
    return expr.rebuild(new)
