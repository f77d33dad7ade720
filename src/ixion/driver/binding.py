"""Sizes for inputs that a module leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.base.dim import Any, SymVar
from ixion.base.errors import InputError, did_you_mean
from ixion.ir import Call, Expr, IRModule, TensorType, Var, bind, rewrite
from ixion.ir.sizes import attrs_symbols, bound_attrs, match_sizes
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
    if not mapping:
        return module
    body = _with_sizes(bind(function.body, mapping), _sizes(function.params, fresh))
    return _with_main(module, fresh, body)


def _with_main(module: IRModule, params: Sequence[Var], body: Expr) -> IRModule:
    """The module with another ``main``, types inferred anew."""
    function = module["main"]
    result = module.clone()
    var = module.get_global_var("main")
    result.update_func(var, function.copy(params=tuple(params), body=body, ret_type=None))
    return InferType()(result)


def name_open_sizes(module: IRModule) -> IRModule:
    """The module with a symbol for each unknown size of an input: ``x_0`` for axis 0 of ``x``."""
    function = module["main"]
    fresh = [_with_symbols(p) for p in function.params]
    mapping = {old: new for old, new in zip(function.params, fresh, strict=True) if old is not new}
    return _with_main(module, fresh, bind(function.body, mapping)) if mapping else module


def _with_symbols(param: Var) -> Var:
    kind = tensor_type(param)
    if not any(isinstance(d, Any) for d in kind.shape):
        return param
    shape = tuple(
        SymVar(f"{param.name_hint}_{axis}") if isinstance(d, Any) else d
        for axis, d in enumerate(kind.shape)
    )
    return Var(param.name_hint, TensorType(shape, kind.dtype))


def _sizes(old: Sequence[Var], new: Sequence[Var]) -> dict[str, int]:
    """What the new shapes say about symbols of the old ones."""
    values: dict[str, int] = {}
    for before, after in zip(old, new, strict=True):
        if before is not after:
            kind = after.type_annotation
            assert isinstance(kind, TensorType)
            match_sizes(tensor_type(before).shape, kind.concrete_shape, values)
    return values


def _with_sizes(body: Expr, values: Mapping[str, int]) -> Expr:
    """``body`` with numbers for symbols in the attributes of its calls."""

    def settled(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not attrs_symbols(new.attrs):
            return new
        assert new.attrs is not None
        return new.copy(attrs=bound_attrs(new.attrs, values))

    return rewrite(body, settled) if values else body


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
