"""The schedule for matrix products whose operands both are known at run time only."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.target import Target
from ixion.ir import Call
from ixion.kernel.access import Access, Operand, Vectorizer
from ixion.kernel.dense import CHUNK_ROWS, chunk_rows, dense_tile
from ixion.kernel.dense_open import open_tile
from ixion.kernel.group import Group, extents_of
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.matmul import MatmulNest, Vector
from ixion.kernel.matmul_open import OpenMatmul
from ixion.kernel.open_rows import MANY
from ixion.kernel.row_index import RowIndex
from ixion.kernel.schedule import Lowered, Place, Schedule, layout_pack, register_schedule
from ixion.kernel.sizes import as_extent, ceil_div, product, same_extent, top, typical
from ixion.kernel.tile import TileShape
from ixion.op.typed import attrs_of, dims_of, dtype_of, op_name
from ixion.te.expr import Expr, Load, Var, substitute, wrap
from ixion.te.stmt import Buffer
from ixion.te.tensor import Extent

When = tuple[Expr, int, int]
DEEPEST = 1 << 14  # a group of packed columns must stay in the cache


@register_schedule("nn.batch_matmul", "nn.matmul", "nn.dense")
class Matmul(Schedule):
    """Plain operands, plain result."""

    rank = 20
    open_sizes = True

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        call = group.head
        if call is None or any(group.operand(call, i) is None for i in range(2)):
            return False
        tensors = (*call.args, call)
        floats = all(dtype_of(t) == "float32" for t in tensors)
        depth = _Sizes(call).depth
        plain = op_name(call) == "nn.dense" or all(len(dims_of(a)) <= 3 for a in call.args)
        return (
            floats and plain and not any(0 in dims_of(t) for t in tensors)
            and (not isinstance(depth, int) or depth <= DEEPEST)
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
        access, buffers = Access(), []
        for i, t in enumerate(self.group.inputs):
            buffers.append(Buffer(f"in{i}", t.dtype))
            layout = PLAIN if self.group.constant[i] else inputs[i]
            access.operands[t] = Operand(buffers[-1], layout)
        place = Operand(Buffer("out", outputs[0].dtype), out)
        operands = _Operands(self.group, head, sizes, access, lanes)
        packs = {i: layout_pack(PLAIN) for i, c in enumerate(self.group.constant) if c}
        places = (Place("out", 0), *(Place("in", i) for i in range(len(buffers))))
        lowered = Lowered([], packs)
        for number, (tile, when) in enumerate(self._tiles(sizes, lanes)):
            kind = OpenMatmul if self.group.is_open else MatmulNest
            nest = kind(
                as_extent(sizes.batches * sizes.each), sizes.depth, sizes.columns, lanes, tile,
                buffers[0], buffers[0], outputs[0], place, access, anchor,
                self._chunk(sizes, tile), sizes.batches, sizes.each, operands.left,
                operands.across, operands.row(), batched=sizes.batched,
            )  # fmt: skip
            kernel = nest.kernel(name if when is None else f"{name}_{number}", (
                place.buffer, *buffers
            ))  # fmt: skip
            kernel.when = when
            lowered.kernels.append((kernel, places))
        return lowered

    def _tiles(self, sizes: _Sizes, lanes: int) -> list[tuple[TileShape, When | None]]:
        """The tile, or two and when each is taken: whose vectors fit the columns better."""
        columns, each, depth = sizes.columns, sizes.each, sizes.depth
        if not self.group.is_open:
            assert isinstance(columns, int)
            assert isinstance(each, int)
            assert isinstance(depth, int)
            return [(dense_tile(self.target, lanes, each, -(-columns // lanes), depth), None)]
        blocks = -(-columns // lanes) if isinstance(columns, int) else MANY
        wide = open_tile(self.target, lanes, blocks, typical(depth))
        if isinstance(each, int):
            wide = TileShape(min(wide.pixels, each), wide.blocks)
        if isinstance(columns, int) or wide.blocks == 1:
            return [(wide, None)]
        narrow = TileShape(wide.pixels, wide.blocks - 1)
        vectors = ceil_div(columns, lanes)
        more = wrap(as_extent(
            ceil_div(vectors, wide.blocks) * wide.blocks
            - ceil_div(vectors, narrow.blocks) * narrow.blocks
        ))  # fmt: skip
        return [(wide, (more, -MANY, 0)), (narrow, (more, 1, MANY))]

    def _chunk(self, sizes: _Sizes, tile: TileShape) -> Extent:
        """Rows of a task."""
        each = sizes.each
        if not self.group.is_open:
            assert isinstance(each, int)
            return chunk_rows(each, tile)
        return ceil_div(each, ceil_div(each, CHUNK_ROWS))


class _Sizes:
    """``batches`` products of ``(each, depth)`` and ``(depth, columns)``."""

    def __init__(self, call: Call) -> None:
        shape, left = extents_of(call), extents_of(call.args[0])
        self.columns = as_extent(shape[-1])
        self.batched = op_name(call) != "nn.dense"
        self.batches: Extent = 1
        if not self.batched:
            self.each, self.depth = product(shape[:-1]), as_extent(left[-1])
            self.flags = (False, True)
            return
        self.batches, self.each = product(shape[:-2]), as_extent(shape[-2])
        self.flags = (bool(attrs_of(call).transpose_a), bool(attrs_of(call).transpose_b))
        self.depth = as_extent(left[-2] if self.flags[0] else left[-1])


class _Operands:
    """Elements and vectors of both operands by product, row or depth, and column."""

    def __init__(
        self, group: Group, call: Call, sizes: _Sizes, access: Access, lanes: int
    ) -> None:
        self.sizes, self.access, self.lanes = sizes, access, lanes
        self.tensors = [group.inputs[group.operand(call, i) or 0] for i in range(2)]
        self.b, self.n, self.k = Var("b"), Var("n"), Var("k")
        self.lane, self.count = Var("lane"), Var("count")
        self.rows = self._row_index()
        self.ranges = {
            self.b: (0, top(sizes.batches)), **self.rows.ranges, self.n: (0, top(sizes.columns)),
            self.k: (0, top(sizes.depth)),
        }  # fmt: skip
        self.left_value = self._left()

    def _row_index(self) -> RowIndex:
        """Where a row of one product is in the left operand."""
        if self._joins_rows():
            return RowIndex(self.tensors[0].shape[:-1])
        return RowIndex([self.sizes.each])

    def _joins_rows(self) -> bool:
        return same_extent(self.sizes.batches, 1) and not self.sizes.flags[0]

    def _left(self) -> Expr:
        if self._joins_rows():
            index = (*self.rows.index, self.k)
            return self.access.element(self.tensors[0], index, self.ranges)
        return self._element(0, self.rows.index[0], self.k, self.ranges)

    def _element(
        self, i: int, row: Expr, column: Expr, ranges: dict[Var, tuple[int, Extent]]
    ) -> Expr:
        tensor = self.tensors[i]
        pair = (column, row) if self.sizes.flags[i] else (row, column)
        index: tuple[Expr, ...] = pair
        if tensor.ndim == 3:
            index = (wrap(0) if same_extent(tensor.shape[0], 1) else self.b, *pair)
        return self.access.element(tensor, index, ranges)

    def left(self, b: Expr, m: Expr, k: Expr) -> Expr:
        return substitute(self.left_value, {self.b: b, **self.rows.at(m), self.k: k})

    def across(self, b: Expr, k: Expr, n: Expr, count: Extent | None) -> Expr:
        """A vector of the right operand along the columns."""
        return self._vector(self.k, self.n, count, {self.b: b, self.k: k, self.n: n})

    def along(self, b: Expr, n: Expr, k: Expr, count: Extent | None) -> Expr:
        """A vector of the right operand along the depth."""
        return self._vector(self.n, self.k, count, {self.b: b, self.k: k, self.n: n})

    def _vector(
        self, still: Var, inner: Var, count: Extent | None, at: dict[Var, Expr]
    ) -> Expr:
        """``count`` real lanes; in terms of a variable where they are counted at run time."""
        real = count if isinstance(count, int) else self.lanes
        ranges: dict[Var, tuple[int, Extent]] = dict(self.ranges)
        ranges[self.lane] = (0, real - 1)
        moved: Expr = inner + self.lane
        if not isinstance(count, Expr):  # where a vector fits at all
            last = as_extent(top(self._extent(inner)) + 1 - real)
            ranges[inner] = (0, max(0, last) if isinstance(last, int) else last)
        along = inner if isinstance(count, Expr) else moved
        row, column = (along, still) if inner is self.k else (still, along)
        element = self._element(1, row, column, ranges)
        if isinstance(count, Expr):
            element = substitute(element, {inner: moved})
        limit = wrap(count) if count is not None else None
        vector = Vectorizer(self.lane, self.lanes, ranges, limit).expr(element)
        return substitute(vector, at)

    def _extent(self, inner: Var) -> Extent:
        return self.sizes.depth if inner is self.k else self.sizes.columns

    def row(self) -> Vector | None:
        """``along`` where the right operand is contiguous that way only."""
        sizes = (self.sizes.depth, self.sizes.columns)
        if any(isinstance(n, int) and n < self.lanes for n in sizes):
            return None
        zero = wrap(0)
        way, other = self.along(zero, zero, zero, None), self.across(zero, zero, zero, None)
        plain = isinstance(way, Load) and way.stride == 1
        return self.along if plain and not (isinstance(other, Load) and other.stride == 1) else None
