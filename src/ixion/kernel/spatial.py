"""What convolutions and poolings share: walking output rows in register tiles.

An output row is cut into tiles of neighbouring pixels.  Runs of equal tiles whose windows lie
inside the image become one loop; a tile at the left or right border is separate code that knows
which of its pixels each kernel column reaches.  Kernel rows outside the image are left out by
the bounds of the loop over rows.  Outputs are NCHWc; the finished accumulators go through the
kernel's epilogue on their way to memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from ixion.kernel.access import Access, Operand, Vectorizer, swap
from ixion.kernel.loops import decode
from ixion.kernel.tile import Accumulators, TileShape, even_tiles
from ixion.te.expr import (
    Const,
    Expr,
    Intrinsic,
    Load,
    Var,
    maximum,
    minimum,
    substitute,
    wrap,
)
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, If, Kernel, Let, Stmt, seq
from ixion.te.tensor import Tensor

# Functions of a few instructions; the code of all others is long.
EASY = frozenset("fma abs neg not sqrt floor ceil round trunc isnan isinf isfinite".split())
Valid = list[list[int]] | None  # per kernel column, the pixels of a tile that it reaches


@dataclass(frozen=True)
class Taps:
    """One spatial axis: output ``q`` reads inputs ``q * step + first + t * delta``, t < taps.

    Reads outside ``[0, extent)`` are padding.  Output ``q`` lands at ``start + q * stride``.
    """

    count: int
    step: int
    first: int
    delta: int
    taps: int
    extent: int
    start: int = 0
    stride: int = 1

    def valid(self, q: int, t: int) -> bool:
        return 0 <= q * self.step + self.first + t * self.delta < self.extent

    def interior(self, q: int) -> bool:
        return self.valid(q, 0) and self.valid(q, self.taps - 1)

    @property
    def all_interior(self) -> bool:
        return self.interior(0) and self.interior(self.count - 1)

    def bounds(self, q: Expr) -> tuple[Expr, Expr]:
        """First tap inside the image and one past the last, for output ``q``."""
        if self.all_interior:
            return wrap(0), wrap(self.taps)
        origin = q * self.step + self.first
        lo = maximum((wrap(self.delta - 1) - origin) // self.delta, 0)
        hi = minimum((wrap(self.extent - 1 + self.delta) - origin) // self.delta, self.taps)
        return lo, hi


@dataclass(eq=False)
class SpatialNest:
    """A nest over (batch, row chunk, column chunk, channel parts), rows, and tiles of a row.

    ``flat`` says that the image is seen as one row.  Subclasses give the channel parts, the block
    of a tile's vector and the work that fills the accumulators.
    """

    batch: int
    rows: Taps
    cols: Taps
    block: int
    blocks: int
    tile: TileShape
    out: Tensor
    place: Operand
    access: Access
    anchor: Tensor
    chunk_rows: int
    chunk_cols: int
    flat: bool
    raw_offset: int = field(default=0, kw_only=True)  # where private memory is free

    def __post_init__(self) -> None:
        self.acc = Accumulators.make("acc", self.tile, self.block, self.anchor.dtype)
        dtype, size = self.anchor.dtype, self.acc.buffer.size * self.block
        self.raw = Buffer("raw", dtype, "scratch", size, offset=self.raw_offset)
        self.n, self.row = Var("n"), Var("row")
        self.row_chunk, self.col_chunk = Var("rc"), Var("cc")
        self.lo, self.hi = Var("t_lo"), Var("t_hi")
        self.row_chunks = -(-self.rows.count // self.chunk_rows)
        self.col_chunks = -(-self.cols.count // self.chunk_cols)
        # Which tile of its row is being done, counted over the whole row, and how many there are.
        self.number: Expr = wrap(0)
        size = self.chunk_cols
        lengths = [min(size, self.cols.count - i * size) for i in range(self.col_chunks)]
        self.tiles_of_row = sum(len(even_tiles(n, self.tile.pixels)) for n in lengths)
        self._prepare_epilogue()

    # What a subclass says.

    def channel_parts(self) -> list[tuple[Var, int]]:
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

    def parts(self) -> list[tuple[Var, int]]:
        """Task coordinates, outermost first; tasks that share an input are neighbours."""
        return [
            (self.n, self.batch), (self.row_chunk, self.row_chunks),
            (self.col_chunk, self.col_chunks), *self.channel_parts(),
        ]  # fmt: skip

    def tasks(self) -> int:
        return prod(n for _, n in self.parts())

    def body(self) -> Stmt:
        """The work of one task, given its coordinates."""
        first = self.row_chunk * self.chunk_rows
        end = first + self.chunk_rows
        if self.rows.count % self.chunk_rows:
            end = minimum(end, self.rows.count)
        return self.lines(first, end)

    def lines(self, first: Expr, end: Expr) -> Stmt:
        """All columns of the task's chunk in the rows from ``first`` up to ``end``."""
        lo, hi = self.rows.bounds(self.row)
        line = Let(self.lo, lo, Let(self.hi, hi, seq(*self._column_chunks())))
        return For(self.row, first, end, line)

    # Tiles of a row.

    def _column_chunks(self) -> Iterator[Stmt]:
        width = self.cols.count
        if self.col_chunks == 1:
            yield from self._segments(0, width, wrap(0))
            return
        whole = width // self.chunk_cols
        if self.cols.all_interior:
            shift = self.col_chunk * self.chunk_cols
            same = seq(*self._segments(0, self.chunk_cols, shift))
            if width % self.chunk_cols == 0:
                yield same
                return
            last = seq(*self._segments(whole * self.chunk_cols, width, wrap(0)))
            yield If(self.col_chunk < whole, same, last)
            return
        for i in range(self.col_chunks):
            start = i * self.chunk_cols
            stop = min(start + self.chunk_cols, width)
            yield If(self.col_chunk.equal(i), seq(*self._segments(start, stop, wrap(0))))

    def _segments(self, start: int, stop: int, shift: Expr) -> Iterator[Stmt]:
        """Runs of equal interior tiles become loops, tiles at a border stand alone."""
        tiles: list[tuple[int, int, bool]] = []
        at = start
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
            self.number = simplify(before + i) if self.col_chunks > 1 else wrap(i)
            yield self._run(at, size, run, inside, shift)
            i += run

    def _run(self, at: int, size: int, run: int, inside: bool, shift: Expr) -> Stmt:
        if run > 1:
            i = Var("tile")
            self.number = self.number + i
            loop = self._tile(simplify(shift + (i * size + at)), size, None)
            return For(i, 0, run, loop)
        valid = (
            None
            if inside
            else [
                [p for p in range(size) if self.cols.valid(at + p, t)]
                for t in range(self.cols.taps)
            ]
        )
        return self._tile(simplify(shift + at), size, valid)

    def _tile(self, col: Expr, size: int, valid: Valid) -> Stmt:
        return seq(self.clear(), self.accumulate(col, size, valid), self._finish(col, size))

    # The epilogue.

    def _prepare_epilogue(self) -> None:
        """The output element in terms of block, row and column variables, widened once."""
        self.ob, self.orow, self.ocol, lane = Var("ob"), Var("orow"), Var("ocol"), Var("lane")
        self.pixel, self.part = Var("pixel"), Var("part")
        shape = [int(d) for d in self.out.shape]  # type: ignore[arg-type]
        spatial = prod(shape[2:])
        ranges = {
            self.n: (0, self.batch - 1), self.ob: (0, self.blocks - 1), lane: (0, self.block - 1),
            self.orow: (0, shape[2] - 1), self.ocol: (0, (spatial if self.flat else shape[-1]) - 1),
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

    def _spatial(self, shape: list[int]) -> tuple[Expr, ...]:
        """Logical spatial indices of the output variables."""
        if len(shape) == 3:
            return (self.ocol,)
        if self.flat:
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
    def scratch(self) -> int:
        """Bytes of private memory."""
        return self.raw_offset + 4 * self.raw.size if self.laborious else 0


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
    total = sum(nest.tasks() for nest in nests)
    body: Stmt | None = None
    for nest in reversed(nests):
        total -= nest.tasks()
        local = Var("local")
        part: Stmt = Let(local, task - total, decode(local, nest.parts(), nest.body()))
        body = part if body is None else If(task < total + nest.tasks(), part, body)
    assert body is not None
    private = tuple(b for n in nests for b in n.private)
    return Kernel(
        name, params, task, sum(n.tasks() for n in nests), body, locals=private,
        scratch=max(n.scratch for n in nests),
    )  # fmt: skip


def splat(value: float, dtype: str, lanes: int) -> Expr:
    return Const(value, dtype, lanes)
