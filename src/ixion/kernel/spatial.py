"""What convolutions and poolings share: walking output rows in register tiles.

An output row is cut into tiles of neighbouring pixels.  Runs of equal tiles whose windows lie
inside the image become one loop; a tile at the left or right border is separate code that knows
which of its pixels each kernel column reaches.  Kernel rows outside the image are left out by
the bounds of the loop over rows.  Outputs are NCHWc; the finished accumulators go through the
kernel's epilogue on their way to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ixion.kernel.access import Access, Operand, Vectorizer, swap
from ixion.kernel.loops import decode
from ixion.kernel.open_columns import OpenColumns
from ixion.kernel.scalars import Scalars, largest, pieces, times
from ixion.kernel.sizes import as_extent, ceil_div, is_static, product, top
from ixion.kernel.taps import Taps
from ixion.kernel.tile import Accumulators, TileShape, even_tiles
from ixion.te.expr import (
    INDEX,
    Const,
    Expr,
    Intrinsic,
    Load,
    Var,
    logical_and,
    minimum,
    substitute,
    wrap,
)
from ixion.te.simplify import linear, multiplied, simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq
from ixion.te.symbolic import coefficient
from ixion.te.tensor import Extent, Tensor

# Functions of a few instructions; the code of all others is long.
EASY = frozenset("fma abs neg not sqrt floor ceil round trunc isnan isinf isfinite".split())
# Per kernel column, the pixels of a tile that it reaches: None for all, "careful" if it is known at
# run time only.
Valid = list[list[int]] | None | Literal["careful"]


@dataclass(eq=False)
class SpatialNest:
    """A nest over (batch, row chunk, column chunk, channel parts), rows, and tiles of a row.

    ``flat`` says that the image is seen as one row.  Subclasses give the channel parts, the block
    of a tile's vector and the work that fills the accumulators.

    Images, rows and columns may be known at run time only.  ``chunk_cols`` counts pixels, but tiles
    where the length of a row is not known; None is the whole row.
    """

    batch: Extent
    rows: Taps
    cols: Taps
    block: int
    blocks: int
    tile: TileShape
    out: Tensor
    place: Operand
    access: Access
    anchor: Tensor
    chunk_rows: Extent
    chunk_cols: Extent | None
    flat: bool
    raw_offset: Extent = field(default=0, kw_only=True)  # where private memory is free
    scalars: Scalars = field(default_factory=Scalars, kw_only=True)

    def __post_init__(self) -> None:
        self.acc = Accumulators.make("acc", self.tile, self.block, self.anchor.dtype)
        dtype, size = self.anchor.dtype, self.acc.buffer.size * self.block
        self.raw = Buffer("raw", dtype, "scratch", size, offset=self.raw_offset)
        self.n, self.row = Var("n"), Var("row")
        self.row_chunk, self.col_chunk = Var("rc"), Var("cc")
        self.lo, self.hi = Var("t_lo"), Var("t_hi")
        # Which tile of its row is being done, counted over the whole row, and how many there are.
        self.number: Expr = wrap(0)
        chunks = pieces(self.rows.count, self.chunk_rows)
        self.row_chunks = self.scalars.named("row_chunks", chunks)
        self.col_chunks = self._count_tiles()
        self._prepare_epilogue()

    def _count_tiles(self) -> Extent:
        """Notes how many tiles a row has; its chunks."""
        count, size = self.cols.count, self.chunk_cols
        if isinstance(count, int) and isinstance(size, int):
            starts = range(0, count, size)
            lengths = [min(size, count - start) for start in starts]
            self.tiles_of_row: Extent = sum(len(even_tiles(n, self.tile.pixels)) for n in lengths)
            return len(starts)
        self.tiles_of_row = ceil_div(count, self.tile.pixels)
        if size is None:
            return 1
        return self.scalars.named("col_chunks", pieces(self.tiles_of_row, size))

    # What a subclass says.

    def channel_parts(self) -> list[tuple[Var, Extent]]:
        """Task coordinates along channels; they vary fastest."""
        raise TypeError(type(self).__name__)

    def first_block(self) -> Expr:
        """Number of the output block that accumulator block 0 belongs to."""
        raise TypeError(type(self).__name__)

    def clear(self) -> Stmt:
        return self.acc.clear()

    def accumulate(self, col: Expr, size: int, valid: Valid) -> Stmt:
        """Folds everything that ``size`` pixels from output column ``col`` on depend on."""
        raise TypeError(type(self).__name__)

    def result(self) -> Expr:
        """The anchor's value of accumulator (``pixel``, ``part``)."""
        return self.accumulator

    def blocks_left(self) -> Expr | None:
        """How many of the tile's blocks are real, where that is not all of them."""
        return None

    # Tasks.

    def pixel_parts(self) -> list[tuple[Var, Extent]]:
        """Task coordinates along images, rows and columns."""
        return [
            (self.n, self.batch), (self.row_chunk, self.row_chunks),
            (self.col_chunk, self.col_chunks),
        ]  # fmt: skip

    def parts(self) -> list[tuple[Var, Extent]]:
        """Task coordinates, outermost first; tasks that share an input are neighbours."""
        return [*self.pixel_parts(), *self.channel_parts()]

    def tasks(self) -> Extent:
        """How many there are, in terms of sizes."""
        return times(self.scalars.value(n) for _, n in self.parts())

    def decoded(self, task: Var) -> Stmt:
        """The work of one task, given its number."""
        return decode(task, self.parts(), self.body())

    def body(self) -> Stmt:
        """The work of one task, given its coordinates."""
        first = self.row_chunk * self.chunk_rows
        end = first + self.chunk_rows
        count, size = self.rows.count, self.chunk_rows
        if not isinstance(count, int) or not isinstance(size, int) or count % size:
            end = minimum(end, wrap(count))
        return self.lines(first, end)

    def lines(self, first: Expr, end: Expr) -> Stmt:
        """All columns of the task's chunk in the rows from ``first`` up to ``end``."""
        lo, hi = self.rows.bounds(self.row)
        line = Let(self.lo, lo, Let(self.hi, hi, seq(*self._column_chunks())))
        return For(self.row, first, end, line)

    def stretch(self, first: Expr, length: Expr) -> Stmt:
        """``length`` pixels from ``first`` on of an image that is seen as one row."""
        line = OpenColumns(self, origin=first, length=length).line()
        taps = wrap(self.rows.taps)
        return Let(self.row, wrap(0), Let(self.lo, wrap(0), Let(self.hi, taps, line)))

    # Tiles of a row.

    def _column_chunks(self) -> Iterator[Stmt]:
        if self.cols.is_open:
            yield self._open_columns().line()
        else:
            yield from self._known_columns()

    def _open_columns(self) -> OpenColumns:
        if self.chunk_cols is None:
            return OpenColumns(self)
        first = self.col_chunk * self.chunk_cols
        return OpenColumns(self, first, first + self.chunk_cols)

    def _known_columns(self) -> Iterator[Stmt]:
        width, size = self.cols.count, self.chunk_cols
        assert isinstance(width, int)
        assert isinstance(size, int)
        if self.col_chunks == 1:
            yield from self._segments(0, width, wrap(0))
            return
        whole = width // size
        if self.cols.all_interior:
            shift = self.col_chunk * size
            same = seq(*self._segments(0, size, shift))
            if width % size == 0:
                yield same
                return
            last = seq(*self._segments(whole * size, width, wrap(0)))
            yield If(self.col_chunk < whole, same, last)
            return
        for i, start in enumerate(range(0, width, size)):
            stop = min(start + size, width)
            yield If(self.col_chunk.equal(i), seq(*self._segments(start, stop, wrap(0))))

    def _segments(self, start: int, stop: int, shift: Expr) -> Iterator[Stmt]:
        """Runs of equal interior tiles become loops, tiles at a border stand alone."""
        tiles: list[tuple[int, int, bool]] = []
        at = start
        assert isinstance(self.chunk_cols, int)
        before = self.col_chunk * len(even_tiles(self.chunk_cols, self.tile.pixels))
        for size in even_tiles(stop - start, self.tile.pixels):
            inside = self.cols.all_interior or (
                self.cols.interior(at) and self.cols.interior(at + size - 1)
            )
            tiles.append((at, size, inside))
            at += size
        i = 0
        while i < len(tiles):
            at, size, inside = tiles[i]
            run = 1
            while inside and i + run < len(tiles) and tiles[i + run][1:] == (size, True):
                run += 1
            self.number = wrap(i) if self.col_chunks == 1 else simplify(before + i)
            yield self._run(at, size, run, inside, shift)
            i += run

    def _run(self, at: int, size: int, run: int, inside: bool, shift: Expr) -> Stmt:
        if run > 1:
            i = Var("tile")
            self.number = self.number + i
            loop = self.one_tile(simplify(shift + (i * size + at)), size, None)
            return For(i, 0, run, loop)
        valid = (
            None
            if inside
            else [
                [p for p in range(size) if self.cols.valid(at + p, t)]
                for t in range(self.cols.taps)
            ]
        )
        return self.one_tile(simplify(shift + at), size, valid)

    def one_tile(self, col: Expr, size: int, valid: Valid) -> Stmt:
        """``size`` pixels from output column ``col`` on, from nothing to their results."""
        return seq(self.clear(), self.accumulate(col, size, valid), self._finish(col, size))

    def reached(
        self, col: Expr, tap: Expr, size: int, cells: Callable[[Sequence[int]], Stmt]
    ) -> Stmt:
        """``cells`` for the pixels of a tile that a kernel column reaches, found at run time."""
        step, extent = self.cols.step, wrap(self.cols.extent)
        at = simplify(col * step + self.cols.first + tap * self.cols.delta)
        whole = logical_and(at >= 0, at + (size - 1) * step < extent)
        if size == 1:
            return If(whole, cells([0]))
        some = (
            If(logical_and(at + p * step >= 0, at + p * step < extent), cells([p]))
            for p in range(size)
        )
        return If(whole, cells(range(size)), seq(*some))

    # The epilogue.

    def _prepare_epilogue(self) -> None:
        """The output element in terms of block, row and column variables, widened once."""
        self.ob, self.orow, self.ocol, lane = Var("ob"), Var("orow"), Var("ocol"), Var("lane")
        self.pixel, self.part = Var("pixel"), Var("part")
        shape = [as_extent(d) for d in self.out.shape]
        self.long = self.flat and not is_static(*shape[2:])
        row = product(shape[2:]) if self.flat and not self.long else shape[-1]
        ranges: dict[Var, tuple[int, Extent]] = {
            self.n: (0, top(self.batch)), self.ob: (0, self.blocks - 1), lane: (0, self.block - 1),
            self.orow: (0, top(shape[2])), self.ocol: (0, top(row)),
        }  # fmt: skip
        self.accumulator = self.acc.buffer.load(self.pixel * self.tile.blocks + self.part)
        value = self.result()
        self.access.given[self.anchor] = lambda index: value
        index = (self.n, self.ob * self.block + lane, *self._spatial(shape))
        element = self.access.element(self.out, index, ranges)
        self.value = Vectorizer(lane, self.block, ranges).expr(element)
        self.laborious = laborious(self.value)
        if self.laborious:
            self.value = swap(self.value, self.accumulator, self._raw_at(self.pixel, self.part))
        start = [substitute(i, {lane: wrap(0)}) for i in index]
        self.at = simplify(self.place.layout.offset(shape, start), ranges)
        if self.long:
            self.value = along_row(self.value, self.orow, self.ocol, shape[3])
            self.at = one_row(self.at, self.orow, self.ocol, shape[3])

    def _spatial(self, shape: list[Extent]) -> tuple[Expr, ...]:
        """Logical spatial indices of the output variables."""
        if len(shape) == 3:
            return (self.ocol,)
        if self.flat and not self.long:
            return self.ocol // shape[3], self.ocol % shape[3]
        return self.orow, self.ocol

    def _finish(self, col: Expr, size: int) -> Stmt:
        where = {
            self.ob: self.first_block() + self.part,
            self.orow: self.row * self.rows.stride + self.rows.start,
            self.ocol: (col + self.pixel) * self.cols.stride + self.cols.start,
        }
        value = readdressed(substitute(self.value, where))
        store: Stmt = self.place.buffer.store(simplify(substitute(self.at, where)), value)
        left = self.blocks_left()
        if self.laborious:
            return self._finish_in_loops(size, store, left)
        if left is not None:
            store = If(self.part < left, store)
        pixels = For(self.pixel, 0, size, store, unrolled=True)
        return For(self.part, 0, self.tile.blocks, pixels, unrolled=True)

    def _raw_at(self, pixel: Expr, part: Expr) -> Expr:
        at = (part * self.tile.pixels + pixel) * self.block
        return Load(self.raw, at, self.block)

    def _finish_in_loops(self, size: int, store: Stmt, left: Expr | None) -> Stmt:
        """Accumulators through memory: one copy of a long epilogue instead of one for each."""
        blocks, pixels = self.tile.blocks, self.tile.pixels
        spill = seq(
            *(
                self.raw.store((b * pixels + p) * self.block, self.acc.get(p, b))
                for b in range(blocks)
                for p in range(size)
            )
        )
        count = wrap(blocks) if left is None else minimum(left, blocks)
        return seq(spill, For(self.part, 0, count, For(self.pixel, 0, size, store)))

    @property
    def private(self) -> list[Buffer]:
        """Registers and private memory."""
        return [self.acc.buffer, self.raw] if self.laborious else [self.acc.buffer]

    @property
    def scratch(self) -> Extent:
        """Bytes of private memory."""
        return self.raw_offset + 4 * self.raw.size if self.laborious else 0


def along_row(
    value: Expr, row: Var, col: Var, width: Extent, memo: dict[int, Expr] | None = None
) -> Expr:
    """A value of pixel (``row``, ``col``) where ``col`` counts through all rows instead."""
    memo = {} if memo is None else memo
    if id(value) not in memo:
        if value.dtype == INDEX and value.lanes == 1:
            memo[id(value)] = one_row(value, row, col, width)
        else:
            children = value.children()
            new = [along_row(c, row, col, width, memo) for c in children]
            same = all(a is b for a, b in zip(children, new, strict=True))
            memo[id(value)] = value if same else value.rebuild(new)
    return memo[id(value)]


def one_row(index: Expr, row: Var, col: Var, width: Extent) -> Expr:
    """An index of pixel (``row``, ``col``) where ``col`` counts through all rows instead."""
    form = linear(index, {})
    down, rest = coefficient(form, row)
    across, _ = coefficient(form, col)
    if down is not None and rest is not None and across is not None:
        apart = down.plus(multiplied(across, linear(wrap(width), {})).scaled(-1))
        if not apart.terms and apart.const == 0:
            return rest.expr()
    return substitute(index, {row: col // width, col: col % width})


def laborious(value: Expr) -> bool:
    """Whether computing a value takes many instructions."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Intrinsic) and node.name not in EASY:
            return True
        stack.extend(node.children())
    return False


def readdressed(value: Expr, memo: dict[int, Expr] | None = None) -> Expr:
    """The value with the addresses of its memory loads in linear form; sharing is kept."""
    memo = {} if memo is None else memo
    if id(value) not in memo:
        children = value.children()
        if isinstance(value, Load):
            in_memory = value.buffer.scope != "register"
            new = value.rebuild([simplify(c) for c in children]) if in_memory else value
        elif children:
            new = value.rebuild([readdressed(c, memo) for c in children])
        else:
            new = value
        memo[id(value)] = new
    return memo[id(value)]


def spatial_kernel(name: str, nests: list[SpatialNest], params: tuple[Buffer, ...]) -> Kernel:
    """One kernel over one or more nests (the phases of a transposed convolution)."""
    task = Var("task")
    counts = [nest.tasks() for nest in nests]
    total = everything = sum(counts)
    body: Stmt | None = None
    for nest, count in zip(reversed(nests), reversed(counts), strict=True):
        before = total - count
        local = Var("local")
        part: Stmt = Let(local, task - before, nest.decoded(local))
        body = part if body is None else If(task < total, part, body)
        total = before
    assert body is not None
    private = tuple(b for n in nests for b in n.private)
    given = {v: x for n in nests for v, x in n.scalars.values.items()}
    return Kernel(
        name, params, task, everything, body, tuple(given), max_scratch(nests), private,
        tuple(given.values()),
    )  # fmt: skip


def max_scratch(nests: Sequence[SpatialNest]) -> Extent:
    """Bytes of private memory that the nests need one after another."""
    return largest([n.scratch for n in nests])


def splat(value: float, dtype: str, lanes: int) -> Expr:
    return Const(value, dtype, lanes)
