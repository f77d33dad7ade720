"""Sizes for inputs that a module leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.base.dim import Any, SymVar
from ixion.base.errors import InputError, did_you_mean
from ixion.ir import IRModule, TensorType, Var, bind
from ixion.op.typed import tensor_type
from ixion.transform.infer_type import InferType


def bind_inputs(module: IRModule, shapes: Mapping[str, Sequence[int]]) -> IRModule:
    """The module with inputs of the given static shapes, types inferred anew.

    Raises InputError for an unknown name or a shape that contradicts a fixed size.
    """
    function = module["main"]
    known = {p.name_hint: p for p in function.params}
    for name in shapes:
        if name not in known:
            raise InputError(
                f"the model has no input {name!r}", expected=", ".join(known),
                hint=did_you_mean(name, known),
            )  # fmt: skip
    fresh = [_shaped(p, shapes.get(p.name_hint)) for p in function.params]
    mapping = {old: new for old, new in zip(function.params, fresh, strict=True) if old is not new}
    return _rebound(module, mapping, fresh) if mapping else module


def _rebound(module: IRModule, mapping: dict[Var, Var], fresh: Sequence[Var]) -> IRModule:
    """The module whose ``main`` has other parameters, types inferred anew."""
    function = module["main"]
    body = bind(function.body, mapping)
    result = module.clone()
    var = module.get_global_var("main")
    result.update_func(var, function.copy(params=tuple(fresh), body=body, ret_type=None))
    return InferType()(result)


def name_open_sizes(module: IRModule) -> IRModule:
    """The module with a symbol for each unknown size of an input: ``x_0`` for axis 0 of ``x``."""
    function = module["main"]
    fresh = [_with_symbols(p) for p in function.params]
    mapping = {old: new for old, new in zip(function.params, fresh, strict=True) if old is not new}
    return _rebound(module, mapping, fresh) if mapping else module


def _with_symbols(param: Var) -> Var:
    kind = tensor_type(param)
    if not any(isinstance(d, Any) for d in kind.shape):
        return param
    shape = tuple(
        SymVar(f"{param.name_hint}_{axis}") if isinstance(d, Any) else d
        for axis, d in enumerate(kind.shape)
    )
    return Var(param.name_hint, TensorType(shape, kind.dtype))


def _shaped(param: Var, shape: Sequence[int] | None) -> Var:
    if shape is None:
        return param
    kind = tensor_type(param)
    own = tuple(kind.shape)
    clash = len(own) != len(shape) or any(
        isinstance(d, int) and d != n for d, n in zip(own, shape, strict=True)
    )
    if clash:
        raise InputError(
            f"input {param.name_hint!r} cannot have this shape", expected=own, found=tuple(shape)
        )
    if own == tuple(shape):
        return param
    return Var(param.name_hint, TensorType(tuple(shape), kind.dtype))
