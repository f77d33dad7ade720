"""Parameters of functions given as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.base.errors import InputError
from ixion.ir import Constant, Function, bind


def bind_params_by_name(func: Function, params: Mapping[str, Any]) -> Function:
    """``func`` with the named parameters replaced by constants.

    Names that no parameter has are ignored; InputError where two parameters share one of the names.
    """
    named: dict[Any, Constant] = {}
    for param in func.params:
        if param.name_hint in params:
            if any(param.name_hint == other.name_hint for other in named):
                raise InputError(f"Multiple args in the function have name {param.name_hint}")
            named[param] = Constant(params[param.name_hint])
    return bind(func, named)  # type: ignore[return-value]


__all__ = ["bind_params_by_name"]
