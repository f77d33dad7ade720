"""A formed kernel seen by schedules: its head call, parameters, and tensor expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion import te
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    TensorType,
    Tuple,
    Type,
    Var,
    post_order_visit,
)
from ixion.ir.sizes import attrs_symbols
from ixion.kernel.sizes import is_static
from ixion.op.define import OpPattern
from ixion.op.extent import extents
from ixion.op.typed import dtype_of, field_types, function_attr, op_attr, op_name, tensor_type
from ixion.te.tensor import Extent, Tensor


class Group:
    """One formed kernel; its sizes may be known at run time only.

    ``params[i]`` has tensor ``inputs[i]``; ``constant[i]`` says that its argument is known at
    compile time.  ``head`` is the call that decides the schedule, ``head_tensor`` its result;
    ``outputs`` are the results (several where the head gives a tuple).
    """

    def __init__(self, function: Function, constant: Sequence[bool]) -> None:
        self.function = function
        self.kind = str(function_attr(function, "kernel"))
        self.params: tuple[Var, ...] = tuple(function.params)
        self.constant = tuple(constant)
        self.calls: list[Call] = []
        post_order_visit(function.body, self._note)
        self.head = next((c for c in self.calls if op_name(c) == self.kind), None)
        self.position = {id(p): i for i, p in enumerate(self.params)}
        self.inputs = [te.placeholder(extents_of(p), dtype_of(p), p.name_hint) for p in self.params]
        self._tensors: dict[int, Any] = {}

    def _note(self, node: Expr) -> None:
        if isinstance(node, Call):
            self.calls.append(node)

    @property
    def is_open(self) -> bool:
        """Whether a size is known at run time only."""
        shapes = [*(t.shape for t in self.inputs), *(extents_of(kind) for kind in self.out_types)]
        return not all(is_static(*shape) for shape in shapes) or any(
            attrs_symbols(call.attrs) for call in self.calls
        )

    @property
    def out_types(self) -> tuple[TensorType, ...]:
        return field_types(self.function.body)

    @property
    def out_type(self) -> TensorType:
        return self.out_types[0]

    def operand(self, call: Call, i: int) -> int | None:
        """Which parameter argument ``i`` of a call is, if it is one."""
        return self.position.get(id(call.args[i]))

    def fields(self, call: Call) -> list[int | None]:
        """Which parameters the fields of a call's tuple argument are."""
        tuple_ = call.args[0]
        assert isinstance(tuple_, Tuple)
        return [self.position.get(id(f)) for f in tuple_.fields]

    def tensors(self, opaque: Call | None = None) -> tuple[list[Tensor], Tensor | None]:
        """The results as tensor expressions; ``opaque``'s result becomes a placeholder."""
        made: dict[int, Any] = {id(p): t for p, t in zip(self.params, self.inputs, strict=True)}
        head: Tensor | None = None
        for call in self.calls:
            if call is opaque:
                head = te.placeholder(extents_of(call), dtype_of(call), "head")
                made[id(call)] = head
            else:
                made[id(call)] = _computed(call, made)
        out = made[id(self.function.body)]
        return list(out) if isinstance(out, (tuple, list)) else [out], head

    def all_tensors(self, opaque: Sequence[Call]) -> dict[int, Any]:
        """Tensors by the id of their expression; results of ``opaque`` calls are placeholders."""
        made: dict[int, Any] = {id(p): t for p, t in zip(self.params, self.inputs, strict=True)}
        for call in self.calls:
            if any(call is o for o in opaque):
                made[id(call)] = te.placeholder(extents_of(call), dtype_of(call), "opaque")
            else:
                made[id(call)] = _computed(call, made)
        return made

    def elementwise_only(self) -> bool:
        """Whether every call works element by element (broadcasts included)."""
        return all((op_attr(c, "TOpPattern") or 0) <= OpPattern.BROADCAST for c in self.calls)


def extents_of(node: Expr | Type) -> tuple[Extent, ...]:
    """The shape of a tensor as extents of tensor expressions."""
    return extents(tensor_type(node))


def _computed(call: Call, made: dict[int, Any]) -> Any:
    inputs: list[Tensor] = []
    for arg in call.args:
        parts = arg.fields if isinstance(arg, Tuple) else (arg,)
        inputs += [constant_tensor(x) if isinstance(x, Constant) else made[id(x)] for x in parts]
    return op_attr(call, "FTVMCompute")(call.attrs, tuple(inputs), call.checked_type)


def constant_tensor(node: Constant) -> Tensor:
    """A tensor that has a constant's first element everywhere."""
    data = node.data
    value, dtype = data.reshape(-1)[0].item(), str(data.dtype)
    return te.compute(data.shape, lambda *_: te.const(value, dtype), "const")
