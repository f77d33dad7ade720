"""``tvm.relay.testing``: running passes on expressions, and small networks to run them on."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.infer_type import InferType
from ixion.compat.tvm.relay.prelude import Prelude
from ixion.compat.tvm.relay.testing import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    nat,
    resnet,
    squeezenet,
    synthetic,
    temp_op_attr,
    vgg,
)
from ixion.compat.tvm.relay.testing.gradients import check_grad
from ixion.compat.tvm.relay.testing.init import create_workload
from ixion.compat.tvm.relay.testing.nat import count, make_nat_expr, make_nat_value
from ixion.compat.tvm.testing import enabled_targets
from ixion.ir import Call, Expr, Function, IRModule, Op, TensorType, Tuple, const, post_order_visit


def run_opt_pass(expr: Expr, opt_pass: Any, import_prelude: bool = False) -> Expr:
    """What a pass makes of an expression."""
    module = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(module)
    module = opt_pass(InferType()(module))
    entry = module["main"]
    return entry if isinstance(expr, Function) else entry.body  # type: ignore[no-any-return]


def run_infer_type(expr: Expr) -> Expr:
    """An expression with types."""
    return run_opt_pass(expr, InferType())


def rand(dtype: str = "float32", *shape: int) -> Any:
    """A constant of random numbers in [0, 1)."""
    import numpy as np

    return const(np.random.default_rng(0).random(shape), dtype=dtype)


def count_ops(expr: Expr) -> dict[str, int]:
    """How often each operator is called."""
    counts: dict[str, int] = {}

    def count(node: Expr) -> None:
        if isinstance(node, Call) and isinstance(node.op, Op):
            counts[node.op.name] = counts.get(node.op.name, 0) + 1

    post_order_visit(expr, count)
    return counts


__all__ = [
    "Prelude", "TensorType", "Tuple", "check_grad", "count", "count_ops", "create_workload",
    "dcgan", "densenet", "dqn", "enabled_targets", "inception_v3", "init", "layers", "lstm",
    "make_nat_expr", "make_nat_value", "mlp", "mobilenet", "nat", "rand", "resnet",
    "run_infer_type", "run_opt_pass", "squeezenet", "synthetic", "temp_op_attr", "vgg",
]  # fmt: skip
