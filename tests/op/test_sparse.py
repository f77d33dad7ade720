"""Sparse tensors against what their definitions say, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import evaluate
from ixion.base.dim import Any
from ixion.base.errors import KernelError, TypeInferenceError
from ixion.ir import Call, Function, IRModule, TensorType, const, var
from ixion.transform import InferType


def value_of(expr):
    return evaluate(InferType()(IRModule.from_expr(Function([], expr))))


def ints(values, dtype="int64"):
    return const(np.array(values, dtype))


def filled(rows, values, shape, default):
    """Entries row by row, with one of the default value in each empty row."""
    out = []
    for row in range(shape[0]):
        own = [(list(r), v) for r, v in zip(rows, values, strict=True) if r[0] == row]
        out += own or [([row] + [0] * (len(shape) - 1), default)]
    return [r for r, _ in out], [v for _, v in out]


@pytest.mark.parametrize(
    ("rows", "shape"),
    [
        ([[0, 1], [0, 3], [2, 0], [3, 1]], (5, 6)),
        ([[1, 1, 1], [1, 3, 1], [2, 0, 5]], (7, 7, 7)),
        ([[1], [2]], (5,)),
        ([[0], [1]], (2,)),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_rows_that_were_empty_get_an_entry(rows, shape, dtype):
    values = list(range(5, 5 + len(rows)))
    found = value_of(
        op.sparse_fill_empty_rows(
            ints(rows, dtype), ints(values, dtype), ints(shape), ints([-7], dtype)
        )
    )
    places, entries = filled(rows, values, shape, -7)
    assert found[0].tolist() == places
    assert found[1].tolist() == entries
    assert found[2].tolist() == [row not in {r[0] for r in rows} for row in range(shape[0])]
    assert [part.dtype.name for part in found] == [dtype, dtype, "bool"]


def test_nothing_but_empty_rows():
    none = const(np.zeros((0, 3), "int64"))
    found = value_of(op.sparse_fill_empty_rows(none, ints([]), ints([3, 9, 9]), ints([4])))
    assert found[0].tolist() == [[0, 0, 0], [1, 0, 0], [2, 0, 0]]
    assert found[1].tolist() == [4, 4, 4]


@pytest.mark.parametrize("rows", [[[2, 0], [1, 0]], [[0, 0], [5, 0]], [[-1, 0], [0, 0]]])
def test_rows_out_of_order_or_range(rows):
    with pytest.raises(KernelError, match="sparse_fill_empty_rows"):
        value_of(op.sparse_fill_empty_rows(ints(rows), ints([1, 2]), ints([5, 2]), ints([0])))


@pytest.mark.parametrize("target", [(9, -1), (4, 9), (-1,), (2, 3, 6)])
def test_reshape_moves_what_is_there(target):
    before = (2, 3, 6)
    rows = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 2, 3]])
    dense = np.zeros(before)
    dense[tuple(rows.T)] = [1, 2, 3, 4, 5]
    wanted = dense.reshape(target)
    places, shape = value_of(op.sparse_reshape(const(rows), ints(before), ints(target)).astuple())
    assert shape.tolist() == list(wanted.shape)
    assert wanted[tuple(places.T)].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("target", [(5, -1), (-1, -1), (0, -1), (4, 4), (-2, 18)])
def test_reshape_to_another_size(target):
    with pytest.raises(KernelError, match="sparse_reshape"):
        value_of(op.sparse_reshape(ints([[0, 0]]), ints([6, 6]), ints(target)).astuple())


def test_dense_shape_at_run_time():
    rows, values = ints([[0, 0], [1, 2]]), ints([1, 2])
    shape = var("shape", shape=(2,), dtype="int64")
    mod = InferType()(IRModule.from_expr(op.sparse_to_dense(rows, shape, values, ints(9))))
    assert mod["main"].ret_type == TensorType((Any(), Any()), "int64")
    found = evaluate(mod, [np.array([3, 4])])
    wanted = np.full((3, 4), 9)
    wanted[0, 0], wanted[1, 2] = 1, 2
    assert np.array_equal(found, wanted)
    for bad in ([1, 4], [3, 2], [-3, 4]):
        with pytest.raises(KernelError, match="sparse_to_dense"):
            evaluate(mod, [np.array(bad)])


def test_dense_shape_that_is_known():
    made = op.sparse_to_dense(ints([2]), ints([4]), ints([5]))
    assert isinstance(made, Call)
    assert made.op.name == "sparse_to_dense"
    assert value_of(made).tolist() == [0, 0, 5, 0]


def test_what_the_relations_refuse():
    halves = const(np.array([[0.5]]))
    with pytest.raises(TypeInferenceError, match="indices"):
        value_of(op.sparse_fill_empty_rows(halves, ints([1]), ints([2]), ints([0])))
    with pytest.raises(TypeInferenceError, match="rows of a matrix"):
        value_of(op.sparse_reshape(ints([1]), ints([2]), ints([2])).astuple())
    length = var("shape", shape=(Any(),), dtype="int64")
    with pytest.raises(TypeInferenceError, match="known length"):
        InferType()(IRModule.from_expr(op.sparse_to_dense(ints([0]), length, ints([1]))))
