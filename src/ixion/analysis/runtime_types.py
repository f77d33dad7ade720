"""Types at run time: what sizes that were unknown have become, and whether they fit.

Type inference accepts what it cannot refute. Where a size was unknown, the operator's type relation
is asked again once the arguments have their shapes (and, if it needs them, their values): it gives
the exact result type, or says which shapes do not go together. Relay's shape functions do this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dtype import from_numpy
from ixion.base.errors import InputError, TypeInferenceError
from ixion.ir import Call, Expr, Op, TensorType, TupleType, Type, Var
from ixion.ir.op import get_attr_map
from ixion.op.define import VALUE_LIMIT, InferArgs, Inferred

__all__ = ["check_binding", "concrete_type", "is_static_type"]

_FINFER = get_attr_map("FInfer")
# Operators whose rule at run time is not their type relation.
_FSHAPE = get_attr_map("FShapeFunc")
_INT = frozenset({int})


def is_static_type(kind: Type | None) -> bool:
    """A tensor whose sizes are all ints, or a tuple of such tensors."""
    if type(kind) is TensorType:
        return _INT.issuperset(map(type, kind.shape))
    return type(kind) is TupleType and all(map(is_static_type, kind.fields))


def concrete_type(call: Call, args: Sequence[Any], attrs: Any = None) -> Type:
    """The result type of an operator call on these values, as exact as the relation can say it.

    ``attrs`` take the place of the call's. Sizes that depend on data stay unknown. Raises
    InputError where the values do not fit together or contradict the type that inference gave.
    """
    declared: Type = call.checked_type
    if is_static_type(declared) and all(map(_was_known, call.args)):
        return declared
    op = call.op
    assert isinstance(op, Op)
    infer = _FSHAPE.get(op) or _FINFER.get(op)
    if infer is None:
        return declared
    types = tuple(_type_of(arg) for arg in args)
    attrs = call.attrs if attrs is None else attrs
    try:
        found = _result(infer(InferArgs(op.name, types, attrs)))
        if not is_static_type(found):
            values = tuple(map(_known, args))
            found = _result(infer(InferArgs(op.name, types, attrs, values))) or found
    except TypeInferenceError as error:
        raise InputError(
            error.message, where=error.where, expected=error.expected, found=error.found,
            hint=error.hint,
        ) from error  # fmt: skip
    if found is None:
        return declared
    if not _agree(declared, found):
        raise InputError(
            f"{op.name}: the result does not have the shape of its type", expected=declared,
            found=found,
        )  # fmt: skip
    return found


def _was_known(arg: Expr) -> bool:
    """Whether inference knew every size; an argument without a type is a pass's own constant."""
    kind = getattr(arg, "_checked_type", None)
    return kind is None or is_static_type(kind)


def _result(found: Type | Inferred | None) -> Type | None:
    return found.type if isinstance(found, Inferred) else found


def _type_of(value: Any) -> Type:
    if isinstance(value, tuple):
        return TupleType(tuple(_type_of(item) for item in value))
    return TensorType(value.shape, from_numpy(value.dtype))


def _known(value: Any) -> Any:
    """A value that a relation may ask for: a small tensor of ints or bools."""
    if isinstance(value, tuple):
        return tuple(_known(item) for item in value)
    return value if value.dtype.kind in "iub" and value.size <= VALUE_LIMIT else None


def _agree(declared: Type, found: Type) -> bool:
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        return len(declared.fields) == len(found.fields) and all(
            map(_agree, declared.fields, found.fields)
        )
    if isinstance(declared, TensorType) and isinstance(found, TensorType):
        return len(declared.shape) == len(found.shape) and not any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(declared.shape, found.shape, strict=True)
        )
    return True


def check_binding(var: Var, value: Any) -> None:
    """Raises InputError where a tensor has not the sizes that a variable's annotation states."""
    kind = var.type_annotation
    if type(kind) is not TensorType or not isinstance(value, np.ndarray):
        return
    if kind.shape == value.shape:
        return
    fits = len(kind.shape) == value.ndim and not any(
        dims.same(want, have) is False for want, have in zip(kind.shape, value.shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"the value of variable %{var.name_hint} does not have the shape of its type",
            where=var.span, expected=str(kind), found=str(value.shape),
        )  # fmt: skip
