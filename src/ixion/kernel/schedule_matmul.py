"""The schedule for matrix products whose operands both are known at run time only."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ixion.base.target import Target
from ixion.ir import Call
from ixion.kernel.access import Access, Operand, Vectorizer
from ixion.kernel.dense import chunk_rows, dense_tile
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.matmul import MatmulNest, Vector
from ixion.kernel.row_index import unflatten
from ixion.kernel.schedule import Lowered, Place, Schedule, layout_pack, register_schedule
from ixion.op.typed import attrs_of, dtype_of, op_name, shape_of
from ixion.te.expr import Expr, Load, Var, substitute, wrap
from ixion.te.stmt import Buffer

DEEPEST = 1 << 14  # a group of packed columns must stay in the cache


@register_schedule("nn.batch_matmul", "nn.matmul", "nn.dense")
class Matmul(Schedule):
    """Plain operands, plain result."""

    rank = 20

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or any(group.operand(call, i) is None for i in range(2)):
            return False
        tensors = (*call.args, call)
        floats = all(dtype_of(t) == "float32" for t in tensors)
        sizes = _Sizes(call)
        plain = op_name(call) == "nn.dense" or all(len(shape_of(a)) <= 3 for a in call.args)
        return (
            floats and plain and all(prod(shape_of(t)) > 0 for t in tensors)
            and sizes.depth <= DEEPEST
        )  # fmt: skip

    def wanted(self, i: int) -> Layout | None:
        assert self.group.head is not None
        operands = [self.group.operand(self.group.head, n) for n in range(2)]
        return PLAIN if i in operands else None

    def result(self) -> Layout | None:
        return PLAIN

    def lower(self, name: str, inputs: Sequence[Layout], out: Layout) -> Lowered:
        head = self.group.head
        assert head is not None
        outputs, anchor = self.group.tensors(opaque=head)
        assert anchor is not None
        sizes, lanes = _Sizes(head), self.target.lanes("float32")
        blocks = -(-sizes.columns // lanes)
        tile = dense_tile(self.target, lanes, sizes.each, blocks, sizes.depth)
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            layout = PLAIN if self.group.constant[i] else inputs[i]
            access.operands[t] = Operand(buffers[-1], layout)
        place = Operand(Buffer("out", outputs[0].dtype), out)
        operands = _Operands(self.group, head, sizes, access, lanes)
        nest = MatmulNest(
            sizes.batches * sizes.each, sizes.depth, sizes.columns, lanes, tile, buffers[0],
            buffers[0], outputs[0], place, access, anchor, chunk_rows(sizes.each, tile),
            sizes.batches, sizes.each, operands.left, operands.across, operands.row(),
        )  # fmt: skip
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        kernel = nest.kernel(name, (place.buffer, *buffers))
        places = (Place("out", 0), *(Place("in", i) for i in range(len(buffers))))
        return Lowered([(kernel, places)], packs)


class _Sizes:
    """``batches`` products of ``(each, depth)`` and ``(depth, columns)``."""

    def __init__(self, call: Call) -> None:
        shape, left = shape_of(call), shape_of(call.args[0])
        self.columns = shape[-1]
        if op_name(call) == "nn.dense":
            self.batches, self.each, self.depth = 1, prod(shape[:-1]), left[-1]
            self.flags = (False, True)
            return
        self.batches, self.each = prod(shape[:-2]), shape[-2]
        self.flags = (bool(attrs_of(call).transpose_a), bool(attrs_of(call).transpose_b))
        self.depth = left[-2] if self.flags[0] else left[-1]


class _Operands:
    """Elements and vectors of both operands by product, row or depth, and column."""

    def __init__(
        self, group: Group, call: Call, sizes: _Sizes, access: Access, lanes: int
    ) -> None:
        self.sizes, self.access, self.lanes = sizes, access, lanes
        self.tensors = [group.inputs[group.operand(call, i) or 0] for i in range(2)]
        self.b, self.m, self.n, self.k = Var("b"), Var("m"), Var("n"), Var("k")
        self.lane = Var("lane")
        self.ranges = {
            self.b: (0, sizes.batches - 1), self.m: (0, sizes.each - 1),
            self.n: (0, sizes.columns - 1), self.k: (0, sizes.depth - 1),
        }  # fmt: skip
        self.left_value = self._element(0, self.m, self.k, self.ranges)

    def _element(self, i: int, row: Expr, column: Expr, ranges: dict[Var, tuple[int, int]]) -> Expr:
        tensor = self.tensors[i]
        shape = [int(n) for n in tensor.shape]  # type: ignore[arg-type]
        pair = (column, row) if self.sizes.flags[i] else (row, column)
        if i == 0 and self.sizes.batches == 1 and not self.sizes.flags[0]:
            index: tuple[Expr, ...] = (*unflatten(row, shape[:-1]), column)
        elif len(shape) == 3:
            index = (self.b if shape[0] > 1 else wrap(0), *pair)
        else:
            index = pair
        return self.access.element(tensor, index, ranges)

    def left(self, b: Expr, m: Expr, k: Expr) -> Expr:
        return substitute(self.left_value, {self.b: b, self.m: m, self.k: k})

    def across(self, b: Expr, k: Expr, n: Expr, count: int | None) -> Expr:
        """A vector of the right operand along the columns."""
        return self._vector(self.k, self.n, count, {self.b: b, self.k: k, self.n: n})

    def along(self, b: Expr, n: Expr, k: Expr, count: int | None) -> Expr:
        """A vector of the right operand along the depth."""
        return self._vector(self.n, self.k, count, {self.b: b, self.k: k, self.n: n})

    def _vector(self, still: Var, inner: Var, count: int | None, at: dict[Var, Expr]) -> Expr:
        extent = self.ranges[inner][1] + 1
        ranges = dict(self.ranges)
        ranges[inner] = (0, max(0, extent - (count or self.lanes)))
        ranges[self.lane] = (0, (count or self.lanes) - 1)
        moved = inner + self.lane
        row, column = (moved, still) if inner is self.k else (still, moved)
        element = self._element(1, row, column, ranges)
        limit = wrap(count) if count is not None else None
        vector = Vectorizer(self.lane, self.lanes, ranges, limit).expr(element)
        return substitute(vector, at)

    def row(self) -> Vector | None:
        """``along`` where the right operand is contiguous that way only."""
        if self.sizes.depth < self.lanes or self.sizes.columns < self.lanes:
            return None
        zero = wrap(0)
        way, other = self.along(zero, zero, zero, None), self.across(zero, zero, zero, None)
        plain = isinstance(way, Load) and way.stride == 1
        return self.along if plain and not (isinstance(other, Load) and other.stride == 1) else None
