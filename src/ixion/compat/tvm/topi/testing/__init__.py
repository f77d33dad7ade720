"""``tvm.topi.testing``: operators in plain numpy, for comparison."""

from __future__ import annotations

from ixion.compat.tvm.topi.testing.indexing import (
    gather_python,
    one_hot,
    searchsorted_ref,
    strided_slice_python,
)
from ixion.compat.tvm.topi.testing.products import batch_matmul, dense
from ixion.compat.tvm.topi.testing.resizing import (
    resize1d_python,
    resize2d_python,
    resize3d_python,
)

__all__ = [
    "batch_matmul",
    "dense",
    "gather_python",
    "one_hot",
    "resize1d_python",
    "resize2d_python",
    "resize3d_python",
    "searchsorted_ref",
    "strided_slice_python",
]
