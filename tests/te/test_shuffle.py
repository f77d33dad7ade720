from __future__ import annotations

import numpy as np
import pytest

from ixion.te.evaluate import run_kernel
from ixion.te.expr import Shuffle, Var, transposed
from ixion.te.stmt import Buffer, Kernel, seq
from ixion.te.text import kernel_key


def shuffled(picks: tuple[int, ...]) -> Kernel:
    source, out = Buffer("x", "float32"), Buffer("y", "float32")
    pair = Shuffle(source.load(0, 4), source.load(4, 4), picks)
    return Kernel("k", (out, source), Var("task"), 1, out.store(0, pair))


def test_picks_count_through_both_vectors() -> None:
    out = np.zeros(4, np.float32)
    run_kernel(shuffled((7, 0, 4, 3)), [out, np.arange(8, dtype=np.float32)])
    np.testing.assert_array_equal(out, [7, 0, 4, 3])


def test_picks_are_part_of_a_kernels_identity() -> None:
    assert kernel_key(shuffled((7, 0, 4, 3))) != kernel_key(shuffled((7, 0, 4, 2)))


@pytest.mark.parametrize("n", [2, 4, 8, 16])
def test_transposed_square(n) -> None:
    source, out = Buffer("x", "float32"), Buffer("y", "float32")
    columns = transposed([source.load(i * n, n) for i in range(n)])
    body = seq(*(out.store(i * n, c) for i, c in enumerate(columns)))
    x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    y = np.zeros(n * n, np.float32)
    run_kernel(Kernel("k", (out, source), Var("task"), 1, body), [y, x.reshape(-1)])
    np.testing.assert_array_equal(y.reshape(n, n), x.T)
