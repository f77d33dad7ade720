from __future__ import annotations

import numpy as np
import pytest

from ixion import te
from ixion.kernel.access import Access, Operand
from ixion.kernel.reduce import generic_reduce
from ixion.te.evaluate import run_kernel
from ixion.te.stmt import Buffer


@pytest.mark.parametrize("columns", [16, 37])
def test_a_fold_that_every_lane_shares(columns: int) -> None:
    x = te.placeholder((3, 5), name="x")
    k = te.reduce_axis(5)
    spread = te.compute((3, columns), lambda i, j: te.sum(x(i, k.var), [k]) / 5.0)
    source, out = Buffer("in0", "float32"), Buffer("out", "float32")
    kernel = generic_reduce(
        "k", spread, Operand(out), Access({x: Operand(source)}), 16, (out, source)
    )
    data = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    got = np.zeros(3 * columns, np.float32)
    run_kernel(kernel, [got, data.reshape(-1)])
    want = np.repeat(data.mean(1), columns)
    np.testing.assert_allclose(got, want, rtol=1e-6)
