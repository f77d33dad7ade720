"""Lanes of a mask as bits, and chosen lanes moved together, native against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.base.dtype import to_numpy
from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.emit import emit_kernel
from ixion.te.expr import Compressed, Const, LaneBits, Var, compare
from ixion.te.stmt import Buffer, Kernel, seq


def choosing(dtype: str, lanes: int, tasks: int) -> Kernel:
    """Per task: the mask's bits, and the lanes of x where y is 0, in order."""
    x, y = Buffer("x", dtype), Buffer("y", "int32")
    bits, out = Buffer("bits", "int64"), Buffer("out", dtype)
    task = Var("t")
    mask = compare("eq", y.load(task * lanes, lanes), Const(0, "int32", lanes))
    body = seq(
        bits.store(task, LaneBits(mask)),
        out.store(task * lanes, Compressed(x.load(task * lanes, lanes), mask)),
    )
    return Kernel("k", (bits, out, x, y), task, tasks, body)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_chosen_lanes(native, target: str, dtype: str, lanes: int) -> None:
    check_chosen(native, target, dtype, lanes)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_chosen_lanes_of_a_whole_register(native, target: str, dtype: str) -> None:
    check_chosen(native, target, dtype, 16)


def check_chosen(native, target: str, dtype: str, lanes: int) -> None:
    rng = np.random.default_rng(lanes)
    tasks = 12
    x = rng.integers(0, 1 << 31, tasks * lanes).astype(to_numpy(dtype))
    y = rng.integers(0, 2, tasks * lanes).astype(np.int32)
    y[:lanes], y[lanes : 2 * lanes] = 0, 1  # all chosen, none chosen
    arrays = [np.full(tasks, -1, np.int64), np.zeros_like(x), x, y]
    native.check(choosing(dtype, lanes, tasks), arrays, target)
    got = [a.copy() for a in arrays]
    native.run(choosing(dtype, lanes, tasks), got, target)
    want = [
        sum(1 << i for i in range(lanes) if row[i] == 0) for row in y.reshape(tasks, lanes).tolist()
    ]
    assert [int(v) & ((1 << 64) - 1) for v in got[0]] == want
    for row, values, out in zip(
        y.reshape(tasks, -1), x.reshape(tasks, -1), got[1].reshape(tasks, -1), strict=True
    ):
        chosen = values[row == 0]
        assert np.array_equal(out, np.concatenate([chosen, np.zeros(lanes - len(chosen), x.dtype)]))


@pytest.mark.parametrize(("dtype", "lanes"), [("int16", 8), ("int64", 16)])
def test_other_lanes_are_refused(dtype: str, lanes: int) -> None:
    with pytest.raises(CodegenError, match="moved together"):
        emit_kernel(choosing(dtype, lanes, 1), Target.parse("generic"))


def test_64_lanes_as_bits(native, target: str) -> None:
    y, bits, task = Buffer("y", "int8"), Buffer("bits", "int64"), Var("t")
    mask = compare("lt", y.load(task * 64, 64), Const(0, "int8", 64))
    kernel = Kernel("k", (bits, y), task, 2, bits.store(task, LaneBits(mask)))
    data = np.tile(np.array([1, 1, -1, 1, -1, -1, 1, 1], np.int8), 16)
    data[64:] = -1
    got = [np.zeros(2, np.int64), data]
    native.run(kernel, got, target)
    assert got[0].tolist() == [int.from_bytes(bytes([0b110100]) * 8, "little"), -1]
