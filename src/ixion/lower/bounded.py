"""A call whose result sizes depend on data, as a function that can be lowered.

Its results are the buffers and the ``extents`` of ``ixion.op.bounds``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.errors import CodegenError
from ixion.ir import Call, Constant, Function, Op, TensorType, TupleType, Var
from ixion.kernel.layout import PLAIN
from ixion.op.bounds import bounded_type
from ixion.op.define import InferArgs
from ixion.op.typed import dtype_of, op_name, tensor_type
from ixion.transform.form_kernels import has_compute


def open_arguments(call: Call) -> list[int]:
    """Arguments that are given at run time: all but constants."""
    return [i for i, arg in enumerate(call.args) if not isinstance(arg, Constant)]


def bounded_function(call: Call, shapes: Sequence[tuple[int, ...]]) -> Function:
    """A function of the call's open arguments, which have static ``shapes``, as one formed kernel.

    Raises RegistryError for an op without a bound, CodegenError for one that no kernel does.
    """
    op = call.op
    assert isinstance(op, Op)
    kinds = [tensor_type(arg) for arg in call.args]
    for i, shape in zip(open_arguments(call), shapes, strict=True):
        kinds[i] = TensorType(shape, dtype_of(call.args[i]))
    result = _result(call, op, kinds)
    inner = [Var(f"p{i}", kind) for i, kind in enumerate(kinds)]
    body = call.copy(args=tuple(inner))
    body._set_checked_type(result)
    for var, kind in zip(inner, kinds, strict=True):
        var._set_checked_type(kind)
    if not has_compute(body):
        raise CodegenError(f"no kernel does {op.name} of these types", where=call.span)
    attrs = {
        "Primitive": 1, "kernel": op_name(call), "out_layout": PLAIN.text(0),
        "in_layouts": tuple(PLAIN.text(len(kind.shape)) for kind in kinds),
    }  # fmt: skip
    formed = Function(inner, body, result, attrs=attrs)
    return _applied(call, formed, kinds, result)


def _result(call: Call, op: Op, kinds: Sequence[TensorType]) -> TupleType:
    values = tuple(
        a.data if isinstance(a, Constant) and a.data.dtype.kind in "iub" else None
        for a in call.args
    )
    args = InferArgs(op.name, tuple(kinds), call.attrs, values)
    found = op.get_attr("FInfer")(args)
    if found is None:
        raise CodegenError(f"the result type of {op.name} is not known", where=call.span)
    return bounded_type(op, args, found.type)


def _applied(
    call: Call, formed: Function, kinds: Sequence[TensorType], result: TupleType
) -> Function:
    """The function of the open arguments that calls the formed kernel."""
    params = {i: Var(f"x{i}", kinds[i]) for i in open_arguments(call)}
    args = tuple(params.get(i, arg) for i, arg in enumerate(call.args))
    outer = Call(formed, args, span=call.span)
    outer._set_checked_type(result)
    for i, var in params.items():
        var._set_checked_type(kinds[i])
    return Function(list(params.values()), outer, result)


def result_names(function: Function) -> list[str]:
    """Names for the buffers and the extents."""
    kind = function.body.checked_type
    assert isinstance(kind, TupleType)
    return [*(f"buffer{i}" for i in range(len(kind.fields) - 1)), "extents"]


