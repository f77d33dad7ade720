"""``tvm.relay.op.op``: the registry."""

from __future__ import annotations

from typing import Any

import ixion.op  # noqa: F401 - fills the registry
from ixion.ir import Op
from ixion.ir.op import register_op, register_op_attr, register_relation
from ixion.op.broadcast import infer_broadcast, infer_same

get = Op.get

# The relations that programs name when they give an operator of their own a type.
for _name, _infer in (("Identity", infer_same), ("Broadcast", infer_broadcast)):
    register_relation(_name, _infer)


class OpPattern:
    """How an operator may be fused."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


def register(op_name: str, describe: str = "") -> Op:
    """A new operator, or the one there is, with a description."""
    return register_op(op_name).describe(describe)


def _attribute(key: str) -> Any:
    def enter(op_name: str, value: Any = None, level: int = 10) -> Any:
        return register_op_attr(op_name, key, value, level)

    return enter


register_pattern = _attribute("TOpPattern")
register_stateful = _attribute("TOpIsStateful")
register_gradient = _attribute("FPrimalGradient")
register_legalize = _attribute("FTVMLegalize")
register_alter_op_layout = _attribute("FTVMAlterOpLayout")
register_convert_op_layout = _attribute("FTVMConvertOpLayout")
register_infer_correct_layout = _attribute("FInferCorrectLayout")

__all__ = [
    "Op",
    "OpPattern",
    "get",
    "register",
    "register_alter_op_layout",
    "register_convert_op_layout",
    "register_gradient",
    "register_infer_correct_layout",
    "register_legalize",
    "register_op_attr",
    "register_pattern",
    "register_stateful",
]
