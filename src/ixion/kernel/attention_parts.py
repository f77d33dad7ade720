"""Where attention's operands and results lie, asked of the tensor expressions around its products.

Each is an expression in terms of head, row, key and position; transposes and reshapes of the model
turn into strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ixion import te
from ixion.ir import Call
from ixion.kernel.access import Access, Vectorizer
from ixion.kernel.attention import AttentionParts
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN
from ixion.op.typed import attrs_of, op_name
from ixion.te.evaluate import evaluate
from ixion.te.expr import Expr, Load, Var, substitute, wrap
from ixion.te.simplify import linear, simplify
from ixion.te.stmt import Buffer
from ixion.te.tensor import Tensor


class Products:
    """The two products and the softmax of a formed attention."""

    def __init__(self, group: Group) -> None:
        products = [c for c in group.calls if op_name(c) == "nn.batch_matmul"]
        softmaxes = [c for c in group.calls if op_name(c) == "nn.softmax"]
        self.ok = len(products) == 2 and len(softmaxes) == 1
        if self.ok:
            self.scores, self.output = products
            self.softmax = softmaxes[0]


class Parts:
    """Expressions of the operands in terms of head, row, key and position."""

    def __init__(
        self, group: Group, calls: Products, made: dict[int, Any], access: Access, lanes: int,
        sizes: tuple[int, int, int, int, int],
    ) -> None:
        self.group, self.calls, self.made, self.access, self.lanes = (
            group, calls, made, access, lanes
        )  # fmt: skip
        self.heads, self.rows, self.keys, self.depth, self.width = sizes
        self.b, self.m, self.n, self.k = Var("b"), Var("m"), Var("n"), Var("k")
        self.d, self.lane, self.raw = Var("d"), Var("lane"), Var("raw", "float32", lanes)

    def all(self, final: Tensor) -> AttentionParts:
        self.query_expr = self._operand(self.calls.scores, 0, (self.m, self.k), self._ranges())
        return AttentionParts(
            self._query, self._vector(self.calls.scores, 1, self.k, self.n),
            self._vector(self.calls.output, 1, self.n, self.d), self._score, self._placement(final),
            self._key_row(),
        )  # fmt: skip

    def _ranges(self, tail: int | None = None) -> dict[Var, tuple[int, int]]:
        return {
            self.b: (0, self.heads - 1), self.m: (0, self.rows - 1), self.n: (0, self.keys - 1),
            self.k: (0, self.depth - 1), self.d: (0, self.width - 1),
            self.lane: (0, (tail or self.lanes) - 1),
        }  # fmt: skip

    def check(self) -> None:
        """Builds the expressions that tell whether the form fits."""
        self._score_expr(self.keys if self.keys < self.lanes else None)

    def _operand(
        self, call: Call, i: int, index: tuple[Expr, Expr], ranges: dict[Var, tuple[int, int]]
    ) -> Expr:
        tensor = self.made[id(call.args[i])]
        flag = attrs_of(call).transpose_a if i == 0 else attrs_of(call).transpose_b
        pair = (index[1], index[0]) if flag else index
        head = self.b if int(tensor.shape[0]) != 1 else wrap(0)
        return self.access.element(tensor, (head, *pair), ranges)

    def _query(self, b: Expr, m: Expr, k: Expr) -> Expr:
        return substitute(self.query_expr, {self.b: b, self.m: m, self.k: k})

    def _key_row(self) -> Any:
        """Keys as vectors along the depth where these, and only these, lie contiguously."""
        along = self._vector(self.calls.scores, 1, self.n, self.k)
        across = self._vector(self.calls.scores, 1, self.k, self.n)
        zero = wrap(0)
        one, other = along(zero, zero, zero, None), across(zero, zero, zero, None)
        if self.depth < self.lanes or self.keys < self.lanes:
            return None
        plain = isinstance(one, Load) and one.stride == 1
        return along if plain and not (isinstance(other, Load) and other.stride == 1) else None

    def _vector(self, call: Call, i: int, outer: Var, inner: Var) -> Any:
        """Vectors of operand ``i`` along its last index."""
        made: dict[int | None, Expr] = {}

        def vector(b: Expr, o: Expr, at: Expr, count: int | None) -> Expr:
            if count not in made:
                ranges = self._start_ranges(inner, count)
                along = inner + self.lane
                # Keys come as (depth, key), values as (key, position).
                pair = (along, outer) if call is self.calls.scores and inner is self.k else (
                    outer, along
                )  # fmt: skip
                element = self._operand(call, i, pair, ranges)
                limit = wrap(count) if count is not None else None
                made[count] = Vectorizer(self.lane, self.lanes, ranges, limit).expr(element)
            return substitute(made[count], {self.b: b, outer: o, inner: at})

        return vector

    def _extent(self, inner: Var) -> int:
        return {self.n: self.keys, self.k: self.depth, self.d: self.width}[inner]

    def _start_ranges(self, inner: Var, count: int | None) -> dict[Var, tuple[int, int]]:
        ranges = self._ranges(count)
        ranges[inner] = (0, max(0, self._extent(inner) - (count or self.lanes)))
        return ranges

    def _score(self, b: Expr, m: Expr, at: Expr, raw: Expr, tail: int | None) -> Expr:
        """What the softmax sees of a vector of raw scores."""
        from ixion.kernel.access import swap

        if tail not in self.score_made:
            self.score_made[tail] = self._score_expr(tail)
        where = {self.b: b, self.m: m, self.n: at}
        value, marker = self.score_made[tail]
        return substitute(swap(value, marker, raw), where)

    @property
    def score_made(self) -> dict[int | None, tuple[Expr, Expr]]:
        if not hasattr(self, "_score_made"):
            self._score_made: dict[int | None, tuple[Expr, Expr]] = {}
        return self._score_made

    def _score_expr(self, tail: int | None) -> tuple[Expr, Expr]:
        marker = Buffer("raw", "float32", "register", 1, self.lanes).load(0)
        scores, softmax = self.made[id(self.calls.scores)], self.calls.softmax
        source = self.made[id(softmax.args[0])]
        ranges = self._start_ranges(self.n, tail)
        key = self.n + self.lane
        flat = simplify((self.b * self.rows + self.m) * self.keys + key, ranges)

        def given(index: tuple[Expr, ...]) -> Expr:
            _check_same(PLAIN.offset(_shape(scores), index), flat, ranges)
            return marker

        self.access.given[scores] = given
        index = _unflatten(self.b, self.m, key, _shape(source))
        element = self.access.element(source, index, ranges)
        limit = wrap(tail) if tail is not None else None
        return Vectorizer(self.lane, self.lanes, ranges, limit).expr(element), marker

    def _placement(self, final: Tensor) -> Any:
        """Where result (head, row, position) goes in the kernel's output."""
        strides = output_strides(final, self.made[id(self.calls.output)])
        outer, inner, period, row, column = strides

        def place(b: Expr, m: Expr, d: Expr) -> Expr:
            head = b * inner
            if period < self.heads:
                head = (b // period) * outer + (b % period) * inner
            return head + m * row + d * column

        return place


def _shape(tensor: Tensor) -> list[int]:
    return [int(n) for n in tensor.shape]  # type: ignore[arg-type]


def _unflatten(b: Expr, m: Expr, n: Expr, shape: Sequence[int]) -> tuple[Expr, ...]:
    """Index into ``shape`` (whose last two dims are rows and keys) of head ``b``."""
    lead = shape[:-2]
    index: list[Expr] = []
    for d, size in enumerate(lead):
        part = b // prod(lead[d + 1 :])
        index.append(part % size if d else part)
    return (*index, m, n)


def _check_same(offset: Expr, flat: Expr, ranges: Any) -> None:
    difference = linear(offset, ranges).plus(linear(flat, ranges).scaled(-1))
    if difference.terms or difference.const:
        raise NotAttentionError(f"{offset} is not {flat}")


class NotAttentionError(Exception):
    """The expressions around the products are not what the kernel can do."""


def output_strides(final: Tensor, product: Tensor) -> tuple[int, int, int, int, int]:
    """``(outer, inner, period, row, column)``: element (b, m, d) of the product is element
    ``(b // period) * outer + (b % period) * inner + m * row + d * column`` of the result.

    Found by pushing positions through the expressions; NotAttentionError where there is no such
    form.
    """
    shape = _shape(product)
    positions = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    probe = te.placeholder(shape, "int32", "probe")
    moved = evaluate([_retyped(final, product, probe)], {probe: positions})[0].reshape(-1)
    where = np.empty(moved.size, np.int64)
    where[moved] = np.arange(moved.size)
    table = where.reshape(shape)
    row = int(table[0, 1, 0] - table[0, 0, 0]) if shape[1] > 1 else 0
    column = int(table[0, 0, 1] - table[0, 0, 0]) if shape[2] > 1 else 1
    heads = table[:, 0, 0]
    for period in range(1, shape[0] + 1):
        if shape[0] % period:
            continue
        inner = int(heads[1] - heads[0]) if period > 1 else 0
        outer = int(heads[period]) if period < shape[0] else 0
        b, m, d = np.ogrid[: shape[0], : shape[1], : shape[2]]
        guess = (b // period) * outer + (b % period) * inner + m * row + d * column
        if np.array_equal(guess, table):
            return outer, inner, period, row, column
    raise NotAttentionError("results go to irregular places")


def _retyped(final: Tensor, product: Tensor, probe: Tensor) -> Tensor:
    """``final`` over ``probe`` in place of ``product``; only data movement lies between."""
    made: dict[Tensor, Tensor] = {product: probe}

    def rebuilt(tensor: Tensor) -> Tensor:
        if tensor not in made:
            assert tensor.body is not None
            body = _reread(tensor.body, rebuilt)
            made[tensor] = Tensor(tensor.shape, "int32", tensor.name, tensor.axes, body)
        return made[tensor]

    return rebuilt(final)


def _reread(expr: Expr, rebuilt: Any) -> Expr:
    from ixion.te.expr import Read

    if isinstance(expr, Read):
        indices = tuple(_reread(i, rebuilt) for i in expr.indices)
        return Read(rebuilt(expr.tensor), indices)
    children = expr.children()
    return expr.rebuild([_reread(c, rebuilt) for c in children]) if children else expr
