"""Sizes for inputs that a module leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.base.dim import Any, SymVar
from ixion.base.errors import InputError, did_you_mean
from ixion.base.guard import Guard
from ixion.ir import Call, Expr, IRModule, TensorType, Var, bind, rewrite
from ixion.ir.sizes import attrs_symbols, bound_attrs, bound_type, match_sizes
from ixion.op.typed import tensor_type
from ixion.transform.guards import ASSUMED, fixed_sizes, guards_of
from ixion.transform.infer_type import InferType


def bind_inputs(module: IRModule, shapes: Mapping[str, Sequence[int | None]]) -> IRModule:
    """The module with inputs of the given shapes, types inferred anew.

    None in a shape leaves that size open.  A symbol that gets a number has it everywhere.

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
    return _with_params(module, fresh, _sizes(function.params, fresh))


def bind_symbols(module: IRModule, values: Mapping[str, int]) -> IRModule:
    """The module with numbers for symbols, in inputs and attributes, types inferred anew."""
    return _with_params(module, module["main"].params, values)


def bind_fixed_sizes(module: IRModule) -> IRModule:
    """The module with numbers for symbols that can have one value only.

    Exporters leave sizes open that the program then compares with numbers (a batch that a reshape
    fixes): such a size never varies.
    """
    while values := fixed_sizes(guards_of(module)):
        module = bind_symbols(module, values)
    return module


def _with_params(
    module: IRModule, params: Sequence[Var], values: Mapping[str, int] | None = None
) -> IRModule:
    """The module with other parameters in the place of its own, and numbers for symbols.

    It itself where nothing changes.
    """
    function, values = module["main"], values or {}
    fresh = [_bound(p, values) for p in params]
    mapping = {a: b for a, b in zip(function.params, fresh, strict=True) if a is not b}
    if not mapping:
        return module
    body = _with_sizes(bind(function.body, mapping), values)
    return _with_main(_checked(module, values), fresh, body)


def _bound(param: Var, values: Mapping[str, int]) -> Var:
    """A parameter with numbers for symbols; those of a shape given for it have no type yet."""
    kind = param.type_annotation
    assert isinstance(kind, TensorType)
    bound = bound_type(kind, values)
    return param if bound is kind else Var(param.name_hint, bound)


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
    return _with_params(module, [_with_symbols(p) for p in function.params])


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
            known = [
                (a, b) for a, b in zip(tensor_type(before).shape, kind.shape, strict=True)
                if isinstance(b, int)
            ]  # fmt: skip
            match_sizes([a for a, _ in known], [int(b) for _, b in known], values)
    return values


def _checked(module: IRModule, values: Mapping[str, int]) -> IRModule:
    """A copy whose assumptions about sizes are those that the values leave open; InputError for
    one that they break.
    """
    assumed = [Guard.of(plain) for plain in module.get_attr(ASSUMED) or ()]
    for guard in assumed:
        if guard.certain and guard.symbols() <= set(values):
            guard.check(values)
    left = tuple(g.plain() for g in assumed if not g.symbols() <= set(values))
    return module.with_attr(ASSUMED, left) if assumed else module.clone()


def _with_sizes(body: Expr, values: Mapping[str, int]) -> Expr:
    """``body`` with numbers for symbols in the attributes of its calls."""

    def settled(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not attrs_symbols(new.attrs):
            return new
        assert new.attrs is not None
        return new.copy(attrs=bound_attrs(new.attrs, values))

    return rewrite(body, settled) if values else body


def _shaped(param: Var, shape: Sequence[int | None] | None) -> Var:
    """The parameter with a shape, in which None leaves a size as it is."""
    if shape is None:
        return param
    kind = tensor_type(param)
    own = tuple(kind.shape)
    clash = len(own) != len(shape) or any(
        isinstance(d, int) and n is not None and d != n for d, n in zip(own, shape, strict=True)
    )
    if clash:
        raise InputError(
            f"input {param.name_hint!r} cannot have this shape", expected=own, found=tuple(shape)
        )
    wanted = tuple(d if n is None else n for d, n in zip(own, shape, strict=True))
    return param if own == wanted else Var(param.name_hint, TensorType(wanted, kind.dtype))
