"""Passes by name: for required passes, disabled passes and the command line.

Built-in passes live one to a file and register themselves when their file is imported;
``_BUILTIN`` says which file that is, so that looking a pass up imports no other.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ixion.base.errors import RegistryError, nearest

if TYPE_CHECKING:
    from ixion.transform.pass_infra import Pass

__all__ = ["get_pass", "list_passes", "make_pass", "pass_options", "register_pass"]

Factory = TypeVar("Factory", bound=Callable[..., Any])

_PASSES: dict[str, Callable[..., Pass]] = {}
_BUILTIN: dict[str, str] = {
    "InferType": "infer_type",
    "SimplifyInference": "simplify_inference",
    "FoldConstant": "fold_constant",
    "BackwardFoldScaleAxis": "fold_scale_axis",
    "ForwardFoldScaleAxis": "fold_scale_axis",
    "FoldScaleAxis": "fold_scale_axis",
    "FoldChannelScale": "fold_channel_scale",
    "EliminateCommonSubexpr": "eliminate_common_subexpr",
    "DeadCodeElimination": "dead_code_elimination",
    "SimplifyExpr": "simplify_expr",
    "SimplifyExprPostAlterOp": "simplify_expr",
    "CanonicalizeOps": "canonicalize_ops",
    "FuseOps": "fuse_ops",
    "DefuseOps": "defuse_ops",
    "ToANormalForm": "to_a_normal_form",
    "ToBasicBlockNormalForm": "to_a_normal_form",
    "ToGraphNormalForm": "to_graph_normal_form",
    "FoldExplicitPadding": "fold_explicit_padding",
    "InlineGlobals": "inline_globals",
    "RemoveUnusedFunctions": "remove_unused_functions",
    "PrintIR": "print_ir",
    "FormKernels": "form_kernels",
    "PlanLayouts": "plan_layouts",
    "SplitToSlices": "split_to_slices",
    "FindLayerNorm": "find_layer_norm",
    "SettleSizes": "settle_sizes",
    "DynamicToStatic": "dynamic_to_static",
    "OutlineControl": "outline_control",
}


def register_pass(name: str) -> Callable[[Factory], Factory]:
    """Decorator: make a pass class, or a function returning a pass, known as ``name``.

    Registering a name again replaces it, so that a user's module may be reloaded.
    """

    def decorate(factory: Factory) -> Factory:
        _PASSES[name] = factory
        return factory

    return decorate


def list_passes() -> list[str]:
    """Names of every pass that can be made, sorted."""
    return sorted(set(_PASSES) | set(_BUILTIN))


def get_pass(name: str) -> Callable[..., Pass]:
    """What makes the pass called ``name``. Raises :class:`RegistryError` for an unknown name."""
    if name not in _PASSES and name in _BUILTIN:
        importlib.import_module(f"ixion.transform.{_BUILTIN[name]}")
    if name not in _PASSES:
        close = nearest(name, list_passes())
        raise RegistryError(
            f"Cannot use {name} to create the pass: no pass of that name is registered",
            hint=f"did you mean {close}?" if close else None,
        )
    return _PASSES[name]


def pass_options(name: str) -> list[dataclasses.Field[Any]]:
    """The option fields of a pass; empty for one that is not a dataclass."""
    factory = get_pass(name)
    return list(dataclasses.fields(factory)) if dataclasses.is_dataclass(factory) else []


def make_pass(name: str, options: Mapping[str, Any] | None = None) -> Pass:
    """A pass from its name and options; text values are read by the option's default's type.

    Raises :class:`RegistryError` for an unknown pass or option, or a value that does not read.
    """
    factory = get_pass(name)
    if not options:
        return factory()
    fields = {field.name: field for field in pass_options(name)}
    return factory(**{key: _read_option(name, fields, key, options[key]) for key in options})


def _read_option(
    name: str, fields: Mapping[str, dataclasses.Field[Any]], key: str, value: Any
) -> Any:
    if key not in fields:
        close = nearest(key, fields)
        raise RegistryError(
            f"pass {name} has no option '{key}'",
            expected=", ".join(fields) or "no options",
            hint=f"did you mean '{close}'?" if close else None,
        )
    if not isinstance(value, str):
        return value
    try:
        return _from_text(value, fields[key].default)
    except ValueError as error:
        raise RegistryError(f"pass {name}, option '{key}': {error}", found=value) from error


def _from_text(text: str, default: Any) -> Any:
    if isinstance(default, bool):
        if text.lower() in ("1", "true", "yes", "on"):
            return True
        if text.lower() in ("0", "false", "no", "off"):
            return False
        raise ValueError("expected true or false")
    if isinstance(default, int):
        return int(text)
    if isinstance(default, float):
        return float(text)
    if isinstance(default, tuple):
        return tuple(part for part in text.split(",") if part)
    return text
