from __future__ import annotations

import numpy as np

import ixion
from ixion import op
from ixion.ir import Constant, Function, TensorType, Var


def test_constants_are_told_apart_by_themselves() -> None:
    """Not by the place of an array in memory, which the next one may have."""
    indices, depth = Var("i", TensorType((3,), "int32")), Var("d", TensorType((), "int32"))
    on, off = (Constant(np.array(v, np.int32)) for v in (7, 2))
    body = op.one_hot(indices, on, off, depth, -1, "int32")
    model = ixion.compile(Function([indices, depth], body))
    got = model(np.array([1, 0, 1], np.int32), np.int32(3))
    np.testing.assert_array_equal(got, np.where(np.eye(3)[[1, 0, 1]] > 0, 7, 2))
