"""The register tile: ``pixels x blocks`` accumulators fed by broadcasts and packed vectors.

Dense layers, pointwise and direct convolutions share one inner loop.  For each reduction element
``k`` it loads ``blocks`` vectors of packed weights and multiplies them with the broadcast input
element of each pixel: ``acc[p][b] += x[p, k] * w[k][b]``.  The tile is chosen so that all
accumulators, the weight vectors and one spare fit the register file: 14x2 with 32 registers and
6x2 with 16; 14 pixels because network widths are multiples of 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ixion.base.target import Target
from ixion.te.expr import Const, Expr, broadcast, intrinsic
from ixion.te.stmt import Buffer, Stmt, seq
from ixion.te.tensor import Extent

NEARLY = 0.004  # in time per product: as good as equal
LONGEST = 16  # pixels of a tile of a row whose length is not known: its last tile has any size


@dataclass(frozen=True)
class TileShape:
    """Accumulators of one tile: ``pixels`` rows of ``blocks`` vectors."""

    pixels: int
    blocks: int


def vector_registers(target: Target, lanes: int, dtype_bits: int = 32) -> int:
    """How many vectors of ``lanes`` elements the register file holds."""
    per_vector = max(1, lanes * dtype_bits // target.vector_bits)
    return target.vector_registers // per_vector


def choose_tile(target: Target, lanes: int, length: int, blocks: int) -> TileShape:
    """The tile for rows of ``length`` pixels and ``blocks`` output vectors.

    Among block counts that divide ``blocks`` it takes the one with the least time per useful
    product: cycles are the larger of multiply-adds and loads, and partial tiles count as whole.
    """
    registers = vector_registers(target, lanes)
    best: tuple[float, TileShape] | None = None
    for b in range(1, min(blocks, 8) + 1):
        if blocks % b and not (b <= 2 and blocks > 8):
            continue
        most = (registers - b - 1) // b
        if most < 1:
            continue
        pixels = even_tiles(length, most)[0]
        score = _cost(length, pixels, blocks, b)
        if best is None or score < best[0] - 1e-9:
            best = (score, TileShape(pixels, b))
    assert best is not None
    return best[1]


def row_tile(target: Target, lanes: int, length: Extent, blocks: int) -> TileShape:
    """``choose_tile``, also for rows whose length is known at run time only: a long one's tile."""
    if isinstance(length, int):
        return choose_tile(target, lanes, length, blocks)
    return usual_tile(target, lanes, (), blocks)


def usual_tile(
    target: Target, lanes: int, lengths: Sequence[int], blocks: int
) -> TileShape:
    """The tile for rows whose length is known at run time only, and usually one of ``lengths``.

    Rows are cut into full tiles and a rest, so what counts is the time per product of a full tile
    where no lengths are given.  Of equals it takes the one with more blocks, which reads rows less
    often.
    """
    registers = vector_registers(target, lanes)
    best: tuple[float, TileShape] | None = None
    for b in range(1, min(blocks, 8) + 1):
        pixels = min((registers - b - 1) // b, LONGEST)
        if pixels < 1 or (blocks % b and not (b <= 2 and blocks > 8)):
            continue
        tried = [(n, even_tiles(n, pixels)[0]) for n in lengths] or [(pixels, pixels)]
        score = sum(_cost(n, most, blocks, b) for n, most in tried) / len(tried)
        if best is None or score < best[0] + NEARLY:
            best = (score, TileShape(pixels, b))
    assert best is not None
    return best[1]


def _cost(length: int, pixels: int, blocks: int, b: int) -> float:
    tiles = -(-length // pixels)
    groups = -(-blocks // b)
    # Latency 4 needs four independent chains; a load of weights per step costs as one product.
    per_step = max(pixels * b, 4) + 0.45 * b + 0.15 * pixels
    return tiles * groups * per_step / (length * blocks)


def even_tiles(length: int, most: int) -> list[int]:
    """``length`` cut into the fewest pieces of at most ``most``, of nearly equal size."""
    pieces = -(-length // most)
    small, extra = divmod(length, pieces)
    return [small + 1] * extra + [small] * (pieces - extra)


@dataclass(eq=False)
class Accumulators:
    """The register buffer of a tile; element (p, b) is at ``p * blocks + b``."""

    buffer: Buffer
    shape: TileShape
    lanes: int

    @classmethod
    def make(cls, name: str, shape: TileShape, lanes: int, dtype: str) -> Accumulators:
        size = shape.pixels * shape.blocks
        return cls(Buffer(name, dtype, "register", size, lanes), shape, lanes)

    def get(self, pixel: int, block: int) -> Expr:
        return self.buffer.load(pixel * self.shape.blocks + block)

    def set(self, pixel: int, block: int, value: Expr) -> Stmt:
        return self.buffer.store(pixel * self.shape.blocks + block, value)

    def clear(self) -> Stmt:
        zero = Const(0, self.buffer.dtype, self.lanes)
        return seq(*(self.buffer.store(i, zero) for i in range(self.buffer.size)))


def multiply_step(
    acc: Accumulators,
    pixels: Sequence[int],
    blocks: int,
    weight: Callable[[int], Expr],
    source: Callable[[int], Expr],
) -> Stmt:
    """One reduction element: ``acc[p][b] += source(p) * weight(b)`` for the given pixels."""
    vectors = [weight(b) for b in range(blocks)]
    steps: list[Stmt] = []
    for p in pixels:
        spread = broadcast(source(p), acc.lanes)
        for b, vector in enumerate(vectors):
            product = intrinsic("fma", spread, vector, acc.get(p, b))
            steps.append(acc.set(p, b, product))
    return seq(*steps)
