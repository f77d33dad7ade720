"""Values of small integer tensors in a typed program, as type inference knows them."""

from __future__ import annotations

from typing import Any

from ixion.ir import Expr, Function, IRModule, Let
from ixion.ir.visitor import post_order
from ixion.op.value import Array, as_objects
from ixion.transform.type_inferencer import TypeInferencer

__all__ = ["KnownValues"]


class KnownValues:
    """What is known of the values of a function's expressions; each is found when asked for."""

    def __init__(self, func: Function, mod: IRModule) -> None:
        self._table = TypeInferencer(mod).values
        for node in post_order(func):
            if isinstance(node, Let):
                self._table.bind(node.var, node.value)

    def of(self, expr: Expr) -> Array | None:
        """An object array of numbers and dims; None for a large, other or unknown value."""
        value: Any = self._table.get(expr)
        return None if value is None or isinstance(value, tuple) else as_objects(value)
