"""Typed looks at calls and types: what passes and schedules ask about formed, typed dataflow."""

from __future__ import annotations

from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import CodegenError
from ixion.ir import Call, Expr, Function, Op, TensorType, TupleType, Type


def op_name(call: Call) -> str:
    """Name of the operator that is called; empty for a call of anything else."""
    return call.op.name if isinstance(call.op, Op) else ""


def op_attr(call: Call, key: str) -> Any:
    """A registry attribute of the operator that is called; None where it has none."""
    return call.op.get_attr(key) if isinstance(call.op, Op) else None


def attrs_of(call: Call) -> Any:
    """The call's attributes, whose class the caller knows by the op."""
    return call.attrs


def callee(call: Call) -> Function:
    """The function that is called; TypeError for a call of anything else."""
    if not isinstance(call.op, Function):
        raise TypeError(f"a call of {type(call.op).__name__} is not one of a function")
    return call.op


def function_attr(function: Function, key: str) -> Any:
    """An attribute of a function; None where it has none."""
    return None if function.attrs is None else function.attrs.get(key)


def tensor_type(node: Expr | Type) -> TensorType:
    """The tensor type of an expression, or the type itself; TypeError for other types."""
    kind = node.checked_type if isinstance(node, Expr) else node
    if not isinstance(kind, TensorType):
        raise TypeError(f"expected a tensor, found {kind}")
    return kind


def field_types(node: Expr) -> tuple[TensorType, ...]:
    """The tensors that an expression gives: one, or the fields of a tuple."""
    kind = node.checked_type
    if isinstance(kind, TupleType):
        return tuple(tensor_type(f) for f in kind.fields)
    return (tensor_type(kind),)


def dtype_of(node: Expr | Type) -> str:
    return tensor_type(node).dtype


def dims_of(node: Expr | Type) -> tuple[Dim, ...]:
    """The shape, symbolic sizes included."""
    return tuple(tensor_type(node).shape)


def same_shape(a: Expr | Type, b: Expr | Type) -> bool:
    """Whether two tensors have equal shapes whatever the symbols stand for."""
    left, right = dims_of(a), dims_of(b)
    return len(left) == len(right) and all(map(dims.same, left, right))


def never_larger(a: Expr | Type, b: Expr | Type) -> bool:
    """Whether a tensor has at most as many elements as another, whatever the symbols stand for."""
    room = dims.add(dims.prod(dims_of(b)), dims.multiply(-1, dims.prod(dims_of(a))))
    least = None if isinstance(room, dims.Any) else dims.lower_bound(room)
    return least is not None and least >= 0


def shape_of(node: Expr | Type) -> tuple[int, ...]:
    """The static shape; CodegenError for a size that is known at run time only."""
    shape = tensor_type(node).shape
    sizes = tuple(d for d in shape if isinstance(d, int))
    if len(sizes) != len(shape):
        raise CodegenError(
            "a size that depends on data has no compiled form yet",
            where=getattr(node, "span", None),
            found=f"shape {tuple(map(str, shape))}",
            hint='use executor="reference"',
        )
    return sizes


def known_dims(node: Expr | Type) -> tuple[Dim, ...]:
    """The shape, symbolic sizes allowed; CodegenError for a size that only data tells."""
    shape = tensor_type(node).shape
    if any(isinstance(d, dims.Any) for d in shape):
        raise CodegenError(
            "a size that depends on data has no compiled form here",
            where=getattr(node, "span", None),
            found=f"shape {tuple(map(str, shape))}",
        )
    return tuple(shape)
