"""Matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def batch_matmul(
    x: Array, y: Array, out_dtype: Any = None, trans_x: bool = False, trans_y: bool = True
) -> Array:
    """Products of two stacks of matrices, (batch, m, k) by (batch, n, k) by default."""
    left = np.swapaxes(x, -1, -2) if trans_x else x
    right = np.swapaxes(y, -1, -2) if trans_y else y
    return np.asarray(np.matmul(left, right, dtype=out_dtype or np.result_type(x, y)))


def dense(
    x: Array, y: Array, bias: Array | None = None, use_bias: bool = False,
    use_relu: bool = False, out_dtype: Any = None,
) -> Array:  # fmt: skip
    """(m, k) by (n, k), with a bias and a rectifier if asked for."""
    product = np.matmul(x, y.T, dtype=out_dtype or np.result_type(x, y))
    if use_bias and bias is not None:
        product = product + bias
    return np.asarray(np.maximum(product, 0) if use_relu else product)
