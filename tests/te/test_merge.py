"""Kernels done in turn by one kernel, and how much a kernel does."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.te.effort import effort
from ixion.te.evaluate import KernelFault, run_kernel
from ixion.te.expr import Checked, Var, minimum, wrap
from ixion.te.merge import merged
from ixion.te.stmt import Buffer, For, If, Kernel, Let, seq


def plus(amount: float, size: int, tasks: int = 1) -> Kernel:
    """out[i] = in[i] + amount, a piece of ``size`` a task."""
    out, source, task, i = Buffer("out", "float32"), Buffer("in", "float32"), Var("t"), Var("i")
    at = task * size + i
    body = For(i, 0, size, out.store(at, source.load(at) + amount))
    return Kernel("plus", (out, source), task, tasks, body)


def twice_by_scratch(size: int) -> Kernel:
    """out[i] = 2 * in[i], by way of memory of its own."""
    out, source = Buffer("out", "float32"), Buffer("in", "float32")
    held = Buffer("held", "float32", "scratch", size)
    task, i, j = Var("t"), Var("i"), Var("j")
    body = seq(
        For(i, 0, size, held.store(i, source.load(i) + source.load(i))),
        For(j, 0, size, out.store(j, held.load(j))),
    )
    return Kernel("twice", (out, source), task, 1, body, scratch=4 * size, locals=(held,))


def test_kernels_run_one_after_the_other_and_tasks_too():
    first, second = plus(1.0, 4, tasks=3), twice_by_scratch(12)
    whole, places = merged("both", [(first, ["y", "x"]), (second, ["z", "y"])])
    assert (whole.tasks, whole.scratch, len(whole.params)) == (1, 48, 3)
    assert places == [0, 1, 2]
    x = np.arange(12, dtype=np.float32)
    y, z = np.zeros(12, np.float32), np.zeros(12, np.float32)
    run_kernel(whole, [y, x, z])
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, 2 * x + 2)


def test_a_kernel_twice_on_the_same_and_on_other_memory():
    kernel = plus(1.0, 5)
    whole, places = merged("three", [(kernel, ["a", "a"]), (kernel, ["b", "a"]), (kernel, "bb")])
    assert places == [0, 2]
    a, b = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    run_kernel(whole, [a, b])
    np.testing.assert_array_equal(a, np.arange(5) + 1)
    np.testing.assert_array_equal(b, np.arange(5) + 3)


def test_one_memory_seen_as_two_dtypes_stays_two_parameters():
    number, flag, task = Buffer("n", "int8"), Buffer("f", "bool"), Var("t")
    writes = Kernel("writes", (number,), task, 1, number.store(wrap(0), wrap(1).astype("int8")))
    reads = Kernel("reads", (flag,), Var("u"), 1, flag.store(wrap(0), flag.load(0)))
    whole, places = merged("both", [(writes, ["m"]), (reads, ["m"])])
    assert [b.dtype for b in whole.params] == ["int8", "bool"]
    assert places == [0, 1]


def test_branches_lets_and_faults_are_kept():
    index, out, task, at = Buffer("i", "int64"), Buffer("o", "float32"), Var("t"), Var("at")
    one, zero = wrap(1.0).astype("float32"), out.load(at) * 0.0
    write = If(at < 2, out.store(at, one), out.store(at, zero))
    kernel = Kernel("put", (out, index), task, 1, Let(at, Checked(index.load(0), 3), write))
    whole, _ = merged("two", [(kernel, ["o", "i"]), (kernel, ["o", "j"])])
    out_ = np.full(3, 5, np.float32)
    run_kernel(whole, [out_, np.array([1]), np.array([2])])
    np.testing.assert_array_equal(out_, [5, 1, 0])
    with pytest.raises(KernelFault):
        run_kernel(whole, [out_, np.array([0]), np.array([3])])


def test_effort_counts_stores_and_loads():
    assert effort(plus(1.0, 10)) == 20
    assert effort(twice_by_scratch(4)) == 4 * 3 + 4 * 2
    out, task, row = Buffer("o", "float32"), Var("t"), Var("r")
    some = For(row, task * 8, minimum((task + 1) * 8, 20), out.store(row, out.load(row)))
    assert effort(Kernel("rows", (out,), task, 3, some)) == 16
