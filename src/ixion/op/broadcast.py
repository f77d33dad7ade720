"""Numpy broadcasting over dims that may be unknown, and the matching tensor expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ixion import te
from ixion.base import dim as dims
from ixion.ir.types import TensorType, Type
from ixion.op.axes import shape_text
from ixion.op.extent import Extent, extents, same_extent

if TYPE_CHECKING:
    from ixion.base.dim import Dim
    from ixion.op.define import InferArgs


def join_dims(a: Dim, b: Dim) -> Dim | None:
    """The broadcast of two dims, None when they cannot agree.

    A known size wins over an unknown one; two unknown sizes that may differ give their maximum,
    which is right whenever one of them turns out to be 1 or both to be equal.
    """
    if isinstance(a, int) and isinstance(b, int):
        return b if a == 1 else a if b in (1, a) else None
    if dims.same(a, b) or (isinstance(b, int) and b == 1):
        return a
    if isinstance(a, int):
        return b if a == 1 else a
    if isinstance(b, int):
        return b
    if isinstance(a, dims.Any) or isinstance(b, dims.Any):
        return dims.Any()
    return dims.maximum(a, b)


def joined_dim(args: InferArgs, a: Dim, b: Dim) -> Dim | None:
    """As ``join_dims``; that two sizes agree is guarded where it is not known."""
    out = join_dims(a, b)
    sure = dims.same(a, b) or (isinstance(a, int) and a == 1) or (isinstance(b, int) and b == 1)
    if out is not None and not sure:
        args.guard("broadcast", a, b, "Invalid broadcast shapes")
    return out


def broadcast_shapes(args: InferArgs, *shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Numpy's rule; raises TypeInferenceError naming the shapes that do not fit."""
    out: tuple[Dim, ...] = ()
    for shape in shapes:
        rank = max(len(out), len(shape))
        left = (1,) * (rank - len(out)) + out
        right = (1,) * (rank - len(shape)) + tuple(shape)
        joined = [joined_dim(args, a, b) for a, b in zip(left, right, strict=True)]
        if any(d is None for d in joined):
            args.fail(
                "Invalid broadcast shapes (numpy's rule: trailing dims are equal or 1)",
                expected=shape_text(out),
                found=shape_text(shape),
            )
        out = tuple(d for d in joined if d is not None)
    return out


def same_dtype(args: InferArgs, *types: TensorType) -> str:
    """The common dtype; raises TypeInferenceError when they differ."""
    for t in types[1:]:
        if t.dtype != types[0].dtype:
            args.fail("dtypes must match", expected=types[0].dtype, found=t.dtype)
    return types[0].dtype


def infer_same(args: InferArgs) -> Type:
    """The type of the first argument."""
    return args.tensor(0)


def infer_broadcast(args: InferArgs) -> Type:
    """Two tensors of one dtype, numpy broadcasting."""
    a, b = args.tensor(0), args.tensor(1)
    return TensorType(broadcast_shapes(args, a.shape, b.shape), same_dtype(args, a, b))


def infer_comparison(args: InferArgs) -> Type:
    """Two tensors of one dtype, numpy broadcasting, bool out."""
    a, b = args.tensor(0), args.tensor(1)
    same_dtype(args, a, b)
    return TensorType(broadcast_shapes(args, a.shape, b.shape), "bool")


def read_broadcast(x: te.Tensor, index: Sequence[te.Expr], shape: Sequence[Extent]) -> te.Expr:
    """The element of ``x``, broadcast to ``shape``, at ``index``.

    A size-1 dim reads element 0.  A run-time size that is not the output's own reads element 0
    when it turns out to be 1.
    """
    skip = len(shape) - x.ndim
    at = []
    for own, i, full in zip(x.shape, index[skip:], shape[skip:], strict=True):
        if isinstance(own, int):
            at.append(te.const(0, "int64") if own == 1 and full != 1 else i)
        elif same_extent(own, full):
            at.append(i)
        else:
            at.append(te.select(te.compare("eq", own, 1), te.const(0, "int64"), i))
    return x(*at)


def elementwise(fn: Callable[..., te.Expr]) -> Callable[..., te.Tensor]:
    """A compute applying ``fn`` to broadcast elements of all inputs."""

    def compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
        shape = extents(out_type)
        return te.compute(shape, lambda *i: fn(*(read_broadcast(x, i, shape) for x in ins)))

    return compute


def numpy_broadcast(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A reference applying numpy ``fn`` in float64 and rounding once."""
    from ixion.op.rounding import narrow, wide

    def reference(attrs: Any, inputs: tuple[Any, ...], out_type: Any) -> Any:
        return narrow(fn(*(wide(x) for x in inputs)), out_type.dtype)

    return reference
