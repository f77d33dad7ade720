"""Sparse tensors as index rows and values: made dense, given rows they lack, reshaped."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.errors import KernelError
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr, Tuple, TupleWrapper, const
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.axes import shape_text
from ixion.op.call import call, known_ints
from ixion.op.compare import Exact
from ixion.op.conversion import cast, cast_like
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.index import check_integer, check_range
from ixion.op.rounding import Array
from ixion.op.sample import Draw, Sample, array


@register_attrs("relay.attrs.SparseToDenseAttrs")
class SparseToDenseAttrs(Attrs):
    output_shape: tuple[int, ...] = attr(doc="shape of the dense tensor")


def _dense_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    indices, values, default = inputs[:3]
    shape = [int(n) for n in (attrs.output_shape if len(inputs) == 3 else inputs[3])]
    if min(shape, default=0) < 0:
        raise KernelError(f"sparse_to_dense: a size below zero in {tuple(shape)}")
    out = np.full(shape, default, dtype=values.dtype)
    rows = indices.reshape(-1, len(shape)) if indices.ndim < 2 else indices
    where = tuple(check_range("sparse_to_dense", r, n) for r, n in zip(rows.T, shape, strict=True))
    out[where] = values
    return out


def _dense_sample(draw: Draw) -> tuple[Array, Array, Array]:
    return np.array([[0, 1], [2, 3]], np.int64), array(draw, (2,)), array(draw, ())


define(
    "sparse_to_dense",
    attrs=SparseToDenseAttrs,
    inputs=("sparse_indices", "sparse_values", "default_value"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=lambda args: TensorType(args.attrs.output_shape, args.tensor(1).dtype),
    reference=_dense_reference,
    compare=Exact(),
    samples=lambda draw: Sample(_dense_sample(draw), {"output_shape": (3, 4)}),
    doc="Values at index rows of a tensor otherwise filled with a default.",
)


def _vector_length(args: InferArgs, position: int) -> int:
    """Known length of a vector argument; raises TypeInferenceError."""
    shape = args.tensor(position).shape
    if len(shape) != 1 or not isinstance(shape[0], int):
        args.fail(f"argument {position} must be a vector of known length", found=shape_text(shape))
    return shape[0]


def _infer_dyn_dense(args: InferArgs) -> Type:
    check_integer(args, 0, 3)
    sizes = args.ints(3)
    rank = _vector_length(args, 3)
    return TensorType(sizes or (dims.Any(),) * rank, args.tensor(1).dtype)


define(
    "dyn.sparse_to_dense",
    inputs=("sparse_indices", "sparse_values", "default_value", "output_shape"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_dyn_dense,
    reference=_dense_reference,
    compare=Exact(),
    samples=lambda draw: Sample((*_dense_sample(draw), np.array([3, 4], np.int64))),
    doc="sparse_to_dense to a shape computed at run time.",
)


def _infer_fill(args: InferArgs) -> Type:
    indices = args.tensor(0)
    check_integer(args, 0, 2)
    if len(indices.shape) != 2:
        args.fail("indices are rows of a matrix", found=shape_text(indices.shape))
    count = dims.Any()
    return TupleType(
        (
            TensorType((count, indices.shape[1]), "int64"),
            TensorType((count,), "int64"),
            TensorType((count,), "int64"),
        )
    )


def _fill_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> tuple[Array, ...]:
    indices, values, shape, default = inputs
    count = int(shape[0]) if shape.size else 0
    taken = check_range("sparse_fill_empty_rows", indices[:, 0].astype(np.int64), max(count, 0))
    if np.any(np.diff(taken) < 0):
        raise KernelError("sparse_fill_empty_rows: the rows of the indices must rise")
    empty = np.setdiff1d(np.arange(count), taken)
    added = np.zeros((len(empty), indices.shape[1]), np.int64)
    added[:, 0] = empty
    rows = np.concatenate([indices.astype(np.int64), added])
    filled = np.concatenate([values.astype(np.int64), np.full(len(empty), default.ravel()[0])])
    order = np.argsort(rows[:, 0], kind="stable")
    lacking = np.zeros(count, np.int64)
    lacking[empty] = 1
    return rows[order], filled[order].astype(np.int64), lacking


define(
    "sparse_fill_empty_rows",
    inputs=("sparse_indices", "sparse_values", "dense_shape", "default_value"),
    pattern=OpPattern.OPAQUE,
    level=3,
    infer=_infer_fill,
    reference=_fill_reference,
    compare=Exact(),
    num_outputs=3,
    samples=lambda draw: Sample(
        (
            np.array([[0, 1], [0, 3], [2, 0], [3, 1]], np.int64),
            array(draw, (4,), "int64", -9, 9),
            np.array([draw.integer(4, 6), 6], np.int64),
            array(draw, (1,), "int64", -9, 9),
        )
    ),
    doc="A sparse tensor with an entry in each row that had none; entries, values, which rows.",
)


def _infer_reshape(args: InferArgs) -> Type:
    check_integer(args, 0, 1, 2)
    indices, target = args.tensor(0), args.tensor(2)
    if len(indices.shape) != 2 or len(target.shape) != 1:
        args.fail(
            "indices are rows of a matrix, the new shape a vector",
            expected="2 and 1 dims", found=f"{indices} and {target}",
        )  # fmt: skip
    return TupleType(
        (
            TensorType((indices.shape[0], target.shape[0]), indices.dtype),
            TensorType(target.shape, target.dtype),
        )
    )


def _reshape_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> tuple[Array, ...]:
    indices, before, after = inputs[0], inputs[1].astype(np.int64), inputs[2].astype(np.int64)
    total, hole = int(np.prod(before)), after == -1
    given = int(np.prod(after[~hole]))
    if hole.sum() > 1 or np.any(after < -1) or (hole.any() and (given == 0 or total % given)):
        raise KernelError(f"sparse_reshape: {before} cannot take the shape {after}")
    after = np.where(hole, total // max(given, 1), after)
    if int(np.prod(after)) != total:
        raise KernelError(f"sparse_reshape: {before} and {after} have different sizes")
    for column, size in zip(indices.T, before, strict=True):
        check_range("sparse_reshape", column, int(size))
    flat = np.ravel_multi_index(tuple(indices.T.astype(np.int64)), tuple(before))
    places = np.stack(np.unravel_index(flat, tuple(after)), axis=1)
    return places.astype(indices.dtype), after.astype(inputs[2].dtype)


define(
    "sparse_reshape",
    inputs=("sparse_indices", "prev_shape", "new_shape"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_reshape,
    reference=_reshape_reference,
    compare=Exact(),
    num_outputs=2,
    samples=lambda draw: Sample(
        (
            np.array([[0, 0, 0], [0, 1, 0], [1, 2, 3]], np.int64),
            np.array([2, 3, 6], np.int64),
            np.array([(9, -1), (4, 9), (-1, 36)][draw.integer(0, 2)], np.int64),
        )
    ),
    doc="The index rows of a sparse tensor in another shape, and that shape without its -1.",
)


def sparse_to_dense(
    sparse_indices: Expr, output_shape: Any, sparse_values: Expr, default_value: Any = 0
) -> Call:
    """Relay's builder; a shape given as an expression makes the dynamic op."""
    default = default_value if isinstance(default_value, Expr) else const(default_value)
    sizes = known_ints(output_shape)
    if isinstance(sizes, Expr):
        return call("dyn.sparse_to_dense", sparse_indices, sparse_values, default, sizes)
    return call("sparse_to_dense", sparse_indices, sparse_values, default, output_shape=sizes)


def sparse_fill_empty_rows(
    sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr
) -> Tuple:
    """Relay's builder: indices and values in the dtypes given, which rows were empty as bools."""
    made = TupleWrapper(
        call("sparse_fill_empty_rows", sparse_indices, sparse_values, dense_shape, default_value), 3
    )
    indices, values = cast_like(made[0], sparse_indices), cast_like(made[1], sparse_values)
    return Tuple((indices, values, cast(made[2], "bool")))


def sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> TupleWrapper:
    return TupleWrapper(call("sparse_reshape", sparse_indices, prev_shape, new_shape), 2)
