import numpy as np

from ixion import te
from ixion.te.evaluate import evaluate


def test_convolution_by_its_definition() -> None:
    rng = np.random.default_rng(0)
    x, w = te.placeholder((2, 3, 6, 5)), te.placeholder((4, 3, 3, 2))
    c, i, j = (te.reduce_axis(n) for n in (3, 3, 2))
    conv = te.compute(
        (2, 4, 4, 4),
        lambda n, o, h, v: te.sum(
            x(n, c.var, h + i.var, v + j.var) * w(o, c.var, i.var, j.var), [c, i, j]
        ),
    )
    data = rng.standard_normal((2, 3, 6, 5)).astype(np.float32)
    weight = rng.standard_normal((4, 3, 3, 2)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(data, (3, 2), (2, 3))
    want = np.einsum("nchwij,ocij->nohw", windows, weight)
    (got,) = evaluate([conv], {x: data, w: weight})
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_reads_that_a_select_leaves_out_may_point_outside() -> None:
    x = te.placeholder((4,))
    padded = te.compute((8,), lambda i: te.select(te.logical_and(i >= 2, i < 6), x(i - 2), 0.0))
    (got,) = evaluate([padded], {x: np.arange(1, 5, dtype=np.float32)})
    assert got.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]


def test_maximum_keeps_nan_and_integer_division_by_zero_is_zero() -> None:
    x = te.placeholder((2,))
    top = te.compute((2,), lambda i: te.maximum(x(i), 0.0))
    k = te.placeholder((2,), "int32")
    quotient = te.compute((2,), lambda i: k(i) // te.const(0, "int32"))
    feeds = {x: np.array([np.nan, -1], np.float32), k: np.array([3, -3], np.int32)}
    got, zero = evaluate([top, quotient], feeds)
    assert np.isnan(got[0])
    assert got[1] == 0
    assert zero.tolist() == [0, 0]
