"""Numbers below the normal range: zero inside a run, untouched outside it."""

from __future__ import annotations

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base import dtype as dtypes
from ixion.ir import Function, const, var

TINY = np.float32(1e-40)


def compiled(x, body, **options):
    return ixion.compile(Function([x], body), **options)


@pytest.mark.parametrize("target", ["native", "generic"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_takes_denormals_for_zero_and_leaves_the_callers_mode(target, threads) -> None:
    x = var("x", shape=(1 << 16,))
    exe = compiled(x, op.call("multiply", x, const(np.float32(4))), target=target, threads=threads)
    given = np.full(1 << 16, TINY)
    given[::2] = 3
    (found,) = exe.run_flat([given])
    np.testing.assert_array_equal(found[::2], 12)
    np.testing.assert_array_equal(found[1::2], 0)
    assert (given[1::2] * np.float32(4) > 0).all()


@pytest.mark.parametrize("target", ["native", "avx2", "generic"])
@pytest.mark.parametrize(
    ("dtype", "beyond"), [("float16", 0x7C00), ("float8_e5m2", 0x7C), ("float8_e4m3fn", 0x7F)]
)
def test_denormals_of_small_floats_are_values(target, dtype, beyond) -> None:
    storage = dtypes.to_numpy(dtype)
    bits = np.arange(beyond).astype(f"u{storage.itemsize}")
    values = bits.view(storage)
    x = var("x", shape=values.shape, dtype=dtype)
    (found,) = compiled(x, op.call("cast", x, dtype="float32"), target=target).run_flat([values])
    np.testing.assert_array_equal(found, values.astype(np.float32))
    y = var("y", shape=values.shape)
    (back,) = compiled(y, op.call("cast", y, dtype=dtype), target=target).run_flat([found])
    np.testing.assert_array_equal(back.view(bits.dtype), bits)
