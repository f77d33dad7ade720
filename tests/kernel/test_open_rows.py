"""Dense layers, products and norms over rows that are counted at run time only."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernel.conftest import check_open

from ixion import op
from ixion.base import dim as dims
from ixion.base.dim import SymVar
from ixion.base.target import Target
from ixion.ir import TensorType, Var, const
from ixion.kernel.dense_open import open_chunk, open_tile
from ixion.kernel.open_rows import by_size, in_some_tiles, in_tiles, tall_tiles
from ixion.kernel.schedule_dense import Dense
from ixion.kernel.schedule_layer_norm import LayerNorm
from ixion.kernel.schedule_matmul import Matmul
from ixion.kernel.schedule_softmax import Softmax
from ixion.kernel.sizes import ceil_div, dim_of
from ixion.kernel.tile import vector_registers
from ixion.te.evaluate import run_kernel
from ixion.te.expr import Expr, Load, size, wrap
from ixion.te.expr import Var as Number
from ixion.te.stmt import Buffer, For, Kernel, Let, Stmt
from ixion.te.tensor import Extent

RNG = np.random.default_rng(11)
B, S, T = SymVar("B"), SymVar("S"), SymVar("T")
PAIRS = [(1, 1), (1, 2), (3, 1), (1, 7), (2, 5), (1, 17)]


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def tensor(name: str, *shape: object) -> Var:
    return Var(name, TensorType(shape, "float32"))


# How rows are cut.


SEEN = Buffer("seen", "int64")


def marks(row: Expr, height: int) -> Stmt:
    """One more for each of ``height`` rows from ``row`` on."""
    i = Number("i")
    return For(i, 0, height, SEEN.store(row + i, Load(SEEN, row + i) + 1))


@pytest.mark.parametrize("most", [1, 3, 8])
def test_tiles_cover_every_row_once(most: int) -> None:
    count, tiles = Number("count"), Number("tiles")
    def tile(row: Expr, height: Expr, _: Expr) -> Stmt:
        return by_size(height, range(1, most + 1), lambda n: marks(row, n))

    body = Let(tiles, wrap(ceil_div(count, most)), in_tiles(wrap(5), count, tiles, tile))
    kernel = Kernel("k", (SEEN,), Number("task"), 1, body, scalars=(count,))
    for n in range(40):
        seen = np.zeros(60, np.int64)
        run_kernel(kernel, [seen], [n])
        assert (seen[5 : 5 + n] == 1).all()
        assert seen.sum() == n


def test_some_heights_cover_every_row_once() -> None:
    count = Number("count")

    def tile(row: Expr, height: Expr) -> Stmt:
        return by_size(height, (1, 2, 4, 9), lambda n: marks(row, n))

    body = in_some_tiles(wrap(2), count, (9, 4, 2, 1), tile)
    kernel = Kernel("k", (SEEN,), Number("task"), 1, body, scalars=(count,))
    for n in range(40):
        seen = np.zeros(60, np.int64)
        run_kernel(kernel, [seen], [n])
        assert (seen[2 : 2 + n] == 1).all()
        assert seen.sum() == n


def test_tiles_fit_the_registers() -> None:
    for name in ("avx512", "avx2", "generic"):
        target = Target.parse(name)
        registers = vector_registers(target, target.lanes("float32"))
        for shape in tall_tiles(registers, 4):
            assert shape.pixels * shape.blocks + shape.blocks < registers
        assert open_tile(target, target.lanes("float32"), 24, 384) in set(tall_tiles(registers, 4))


def test_chunks_of_open_rows_are_those_of_known_ones() -> None:
    target = Target.parse("avx512")
    rows = size("rows")
    for groups, depth in ((1, 64), (8, 384), (40, 4096)):
        chunk = open_chunk(target, rows, depth, groups)
        for n in (1, 100, 128, 129, 1000, 5000):
            found = _at(chunk, n)
            assert found == open_chunk(target, n, depth, groups)
            assert 1 <= found <= n


def _at(extent: Extent, n: int) -> int:
    return dims.evaluate(dim_of(extent), {"rows": n})


# Kernels, in numpy.


def activated(x):
    """The exact GELU."""
    half = op.call("multiply", x, const(np.float32(0.5)))
    inner = op.call("erf", op.call("multiply", x, const(np.float32(2**-0.5))))
    return op.call("multiply", half, op.call("add", inner, const(np.float32(1))))


@pytest.mark.parametrize(("depth", "columns"), [(6, 20), (9, 3), (4, 70)])
@pytest.mark.parametrize("after", ["bias", "residual", "gelu"])
def test_dense(target, depth, columns, after) -> None:
    x, y = tensor("x", B, S, depth), tensor("y", B, S, columns)
    dense = op.call("nn.dense", x, const(normal(columns, depth)))
    body = op.call("add", dense, const(normal(columns)))
    params, shapes = [x], [[(b, s, depth)] for b, s in PAIRS]
    if after == "residual":
        body, params = op.call("add", body, y), [x, y]
        shapes = [[(b, s, depth), (b, s, columns)] for b, s in PAIRS]
    if after == "gelu":
        body = activated(body)
    check_open(params, body, shapes, target, expect=Dense)


def test_dense_rows_that_are_never_one(target) -> None:
    x = tensor("x", S, 3, 5)
    body = op.call("nn.dense", x, const(normal(18, 5)))
    check_open([x], body, [[(s, 3, 5)] for s in (1, 2, 6)], target, expect=Dense)


def test_dense_whose_columns_become_channels(target) -> None:
    x = tensor("x", B, S, T, 5)
    dense = op.call("nn.dense", x, const(normal(20, 5)))
    body = op.call("transpose", dense, axes=(0, 3, 1, 2))
    sizes = [(1, 1, 1), (2, 3, 1), (1, 2, 4)]
    check_open([x], body, [[(*s, 5)] for s in sizes], target, expect=Dense)


@pytest.mark.parametrize("width", [3, 16, 37])
def test_layer_norm(target, width) -> None:
    x, y = tensor("x", B, S, width), tensor("y", B, S, width)
    total = op.call("add", x, y)
    body = op.call("nn.layer_norm", total, const(normal(width)), const(normal(width)), axis=-1)
    shapes = [[(b, s, width)] * 2 for b, s in PAIRS]
    check_open([x, y], body, shapes, target, expect=LayerNorm)


@pytest.mark.parametrize("name", ["nn.softmax", "nn.log_softmax"])
@pytest.mark.parametrize("shape", [(B, 3, S), (S, 20)])
def test_softmax(target, name, shape) -> None:
    x = tensor("x", *shape)
    known = lambda b, s: tuple({"B": b, "S": s}.get(str(d), d) for d in shape)
    shapes = [[known(b, s)] for b, s in [*PAIRS, (1, 40)]]
    check_open([x], op.call(name, x, axis=-1), shapes, target, expect=Softmax)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("closed", ["", "S", "T", "K"])
def test_products(target, transpose_a, transpose_b, closed) -> None:
    named: dict[str, object] = {n: SymVar(n) for n in "BSTK"}
    fixed = {"S": 5, "T": 18, "K": 20}
    if closed:
        named[closed] = fixed[closed]
    left, right = ("B", "S", "K"), ("B", "K", "T")
    left = (left[0], left[2], left[1]) if transpose_a else left
    right = (right[0], right[2], right[1]) if transpose_b else right
    x, y = tensor("x", *(named[d] for d in left)), tensor("y", *(named[d] for d in right))
    body = op.call("nn.batch_matmul", x, y, transpose_a=transpose_a, transpose_b=transpose_b)
    shapes = []
    for numbers in ((1, 1, 1, 1), (2, 3, 5, 2), (1, 9, 17, 19), (1, 2, 33, 5), (2, 1, 4, 21)):
        given = dict(zip("BSTK", numbers, strict=True))
        if closed:
            given[closed] = fixed[closed]
        shapes.append([tuple(given[d] for d in left), tuple(given[d] for d in right)])
    check_open([x, y], body, shapes, target, expect=Matmul)


def test_a_product_with_a_weight_known_late(target) -> None:
    x, w = tensor("x", B, S, 6), tensor("w", T, 6)
    r = tensor("r", B, S, T)
    body = op.call("add", op.call("nn.dense", x, w), r)
    shapes = [
        [(b, s, 6), (t, 6), (b, s, t)] for b, s in ((1, 1), (2, 3), (1, 9)) for t in (1, 18)
    ]
    check_open([x, w, r], body, shapes, target, expect=Matmul)
