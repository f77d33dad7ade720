"""Where attention's operands and results lie, asked of the tensor expressions around its products.

Each is an expression in terms of head, row, key and position; transposes and reshapes of the model
turn into strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any, NamedTuple

from ixion.ir import Call
from ixion.kernel.access import Access, Vectorizer, swap
from ixion.kernel.attention import AttentionParts
from ixion.kernel.attention_output import NotAttentionError, output_strides
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN
from ixion.kernel.row_index import unflatten
from ixion.kernel.sizes import as_extent, same_extent, top
from ixion.op.typed import attrs_of, op_name
from ixion.te.expr import Expr, Load, Var, substitute, wrap
from ixion.te.simplify import linear, simplify
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent, Tensor


class Products:
    """The two products and the softmax of a formed attention."""

    def __init__(self, group: Group) -> None:
        products = [c for c in group.calls if op_name(c) == "nn.batch_matmul"]
        softmaxes = [c for c in group.calls if op_name(c) == "nn.softmax"]
        self.ok = len(products) == 2 and len(softmaxes) == 1
        # Weights of rows that have a NaN are taken for 0.
        self.guarded = any(op_name(c) == "isnan" for c in group.calls)
        if self.ok:
            self.scores, self.output = products
            self.softmax = softmaxes[0]


class Sizes(NamedTuple):
    """``heads`` batched products of (rows, depth) x (depth, keys) x (keys, width)."""

    heads: Extent
    rows: Extent
    keys: Extent
    depth: int
    width: int


class Head:
    """The number of a head in terms of variables with ``ranges``; ``at`` gives these.

    Of heads in batches of a size known at run time, each has a variable of its own: what a
    reshape joins and another takes apart then is the variable again.
    """

    def __init__(self, heads: Extent) -> None:
        self.each = 1 if isinstance(heads, int) else _factor(heads)
        self.batch, self.within = Var("b"), Var("within")
        self.ranges: dict[Var, tuple[int, Extent]] = {self.batch: (0, top(heads))}
        self.index: Expr = self.batch
        if self.each > 1:
            batches = as_extent(heads // self.each)
            self.ranges = {self.batch: (0, top(batches)), self.within: (0, self.each - 1)}
            self.index = self.batch * self.each + self.within

    def at(self, head: Expr) -> dict[Var, Expr]:
        if self.each == 1:
            return {self.batch: head}
        return {self.batch: head // self.each, self.within: head % self.each}


def _factor(extent: Expr) -> int:
    """The greatest number that divides an extent for all sizes."""
    form = linear(extent, {})
    return gcd(form.const, *(c for _, c in form.terms.values()))


class Parts:
    """Expressions of the operands in terms of head, row, key and position."""

    def __init__(
        self, group: Group, calls: Products, made: dict[int, Any], access: Access, lanes: int,
        sizes: Sizes,
    ) -> None:
        self.group, self.calls, self.made, self.access, self.lanes = (
            group, calls, made, access, lanes
        )  # fmt: skip
        self.heads, self.rows, self.keys, self.depth, self.width = sizes
        self.head = Head(self.heads)
        self.m, self.n, self.k = Var("m"), Var("n"), Var("k")
        self.score_made: dict[Extent | None, tuple[Expr, Expr]] = {}
        self.d, self.lane, self.raw = Var("d"), Var("lane"), Var("raw", "float32", lanes)
        self.count = Var("count")  # real lanes where that is known at run time only

    def all(self, final: Tensor) -> AttentionParts:
        self.query_expr = self._operand(self.calls.scores, 0, (self.m, self.k), self._ranges())
        return AttentionParts(
            self._query, self._vector(self.calls.scores, 1, self.k, self.n),
            self._vector(self.calls.output, 1, self.n, self.d), self._score, self._placement(final),
            self._key_row(),
        )  # fmt: skip

    def _ranges(self, tail: Extent | None = None) -> dict[Var, tuple[int, Extent]]:
        real = tail if isinstance(tail, int) else self.lanes
        return {
            **self.head.ranges, self.m: (0, top(self.rows)), self.n: (0, top(self.keys)),
            self.k: (0, self.depth - 1), self.d: (0, self.width - 1), self.lane: (0, real - 1),
        }  # fmt: skip

    def check(self) -> None:
        """Builds the expressions that tell whether the form fits."""
        few = isinstance(self.keys, int) and self.keys < self.lanes
        self._score_expr(self.keys if few else None)

    def _operand(
        self, call: Call, i: int, index: tuple[Expr, Expr], ranges: dict[Var, tuple[int, Extent]]
    ) -> Expr:
        tensor = self.made[id(call.args[i])]
        flag = attrs_of(call).transpose_a if i == 0 else attrs_of(call).transpose_b
        pair = (index[1], index[0]) if flag else index
        head = wrap(0) if same_extent(tensor.shape[0], 1) else self.head.index
        return self.access.element(tensor, (head, *pair), ranges)

    def _query(self, b: Expr, m: Expr, k: Expr) -> Expr:
        return substitute(self.query_expr, {**self.head.at(b), self.m: m, self.k: k})

    def _key_row(self) -> Any:
        """Keys as vectors along the depth where these, and only these, lie contiguously."""
        along = self._vector(self.calls.scores, 1, self.n, self.k)
        across = self._vector(self.calls.scores, 1, self.k, self.n)
        zero = wrap(0)
        one, other = along(zero, zero, zero, None), across(zero, zero, zero, None)
        if self.depth < self.lanes or (isinstance(self.keys, int) and self.keys < self.lanes):
            return None
        plain = isinstance(one, Load) and one.stride == 1
        return along if plain and not (isinstance(other, Load) and other.stride == 1) else None

    def _vector(self, call: Call, i: int, outer: Var, inner: Var) -> Any:
        """Vectors of operand ``i`` along its last index."""
        made: dict[Extent | None, Expr] = {}

        def vector(b: Expr, o: Expr, at: Expr, real: Extent | None) -> Expr:
            count = self.count if isinstance(real, Expr) else real
            where = {**self.head.at(b), outer: o, inner: at, self.count: wrap(real or 0)}
            if count not in made:
                ranges = self._start_ranges(inner, count)
                along = inner if count is self.count else inner + self.lane
                # Keys come as (depth, key), values as (key, position).
                pair = (along, outer) if call is self.calls.scores and inner is self.k else (
                    outer, along
                )  # fmt: skip
                element = self._operand(call, i, pair, ranges)
                made[count] = self._widened(element, inner, count, ranges)
            return substitute(made[count], where)

        return vector

    def _extent(self, inner: Var) -> Extent:
        return {self.n: self.keys, self.k: self.depth, self.d: self.width}[inner]

    def _start_ranges(self, inner: Var, count: Extent | None) -> dict[Var, tuple[int, Extent]]:
        """Ranges where vectors along ``inner`` start at it.

        Where lanes are counted at run time, ``inner`` is the position of any that counts.
        """
        ranges, extent = self._ranges(count), self._extent(inner)
        if isinstance(count, Expr):
            return ranges
        if isinstance(extent, int):
            ranges[inner] = (0, max(0, extent - (count or self.lanes)))
        else:  # where a vector fits at all
            ranges[inner] = (0, as_extent(extent - (count or self.lanes)))
        return ranges

    def _widened(
        self, element: Expr, inner: Var, count: Extent | None, ranges: dict[Var, tuple[int, Extent]]
    ) -> Expr:
        """The vector of elements from ``inner`` on."""
        if isinstance(count, Expr):
            element = substitute(element, {inner: inner + self.lane})
        limit = wrap(count) if count is not None else None
        return Vectorizer(self.lane, self.lanes, ranges, limit).expr(element)

    def _score(self, b: Expr, m: Expr, at: Expr, raw: Expr, tail: Extent | None) -> Expr:
        """What the softmax sees of a vector of raw scores."""
        key = self.count if isinstance(tail, Expr) else tail
        if key not in self.score_made:
            self.score_made[key] = self._score_expr(key)
        where = {**self.head.at(b), self.m: m, self.n: at, self.count: wrap(tail or 0)}
        value, marker = self.score_made[key]
        return substitute(swap(value, marker, raw), where)

    def _score_expr(self, tail: Extent | None) -> tuple[Expr, Expr]:
        marker = Buffer("raw", "float32", "register", 1, self.lanes).load(0)
        scores, softmax = self.made[id(self.calls.scores)], self.calls.softmax
        source = self.made[id(softmax.args[0])]
        ranges = self._start_ranges(self.n, tail)
        key = self.n if tail is self.count else self.n + self.lane
        flat = simplify((self.head.index * self.rows + self.m) * self.keys + key, ranges)

        def given(index: tuple[Expr, ...]) -> Expr:
            _check_same(PLAIN.offset(_shape(scores), index), flat, ranges)
            return marker

        self.access.given[scores] = given
        index = _unflatten(self.head.index, self.m, key, _shape(source))
        element = self.access.element(source, index, ranges)
        return self._widened(element, self.n, tail, ranges), marker

    def _placement(self, final: Tensor) -> Any:
        """Where result (head, row, position) goes in the kernel's output."""
        product = self.made[id(self.calls.output)]
        outer, inner, period, row, column = output_strides(final, product)
        split = not isinstance(self.heads, int) or period < self.heads

        def place(b: Expr, m: Expr, d: Expr) -> Expr:
            head = b * inner
            if split:
                head = (b // period) * outer + (b % period) * inner
            return head + m * row + d * column

        return place


def _shape(tensor: Tensor) -> list[Extent]:
    return [as_extent(n) for n in tensor.shape]


def _unflatten(b: Expr, m: Expr, n: Expr, shape: Sequence[Extent]) -> tuple[Expr, ...]:
    """Index into ``shape`` (whose last two dims are rows and keys) of head ``b``."""
    return (*unflatten(b, shape[:-2]), m, n)


def _check_same(offset: Expr, flat: Expr, ranges: Any) -> None:
    difference = linear(offset, ranges).plus(linear(flat, ranges).scaled(-1))
    if difference.terms or difference.const:
        raise NotAttentionError(f"{offset} is not {flat}")
