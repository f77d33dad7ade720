from __future__ import annotations

from typing import Any

import numpy as np

from ixion import op
from ixion.base.target import Target
from ixion.ir import Function, IRModule, Tuple, const, var
from ixion.lower.assemble import assemble
from ixion.transform.form_kernels import FormKernels
from ixion.transform.pass_infra import Sequential
from ixion.transform.plan_layouts import PlanLayouts


def lowered(params: list[Any], body: Any) -> Any:
    module = IRModule.from_expr(Function(params, body))
    module = Sequential([FormKernels(), PlanLayouts(target="avx2")])(module)
    names = [p.name_hint for p in params]
    outputs = ["y", "z"][: len(body.fields) if isinstance(body, Tuple) else 1]
    return assemble(module["main"], Target.parse("avx2"), names, outputs)


def root(outline: Any, number: int) -> int:
    while outline.rooms[number].parent >= 0:
        number = outline.rooms[number].parent
    return number


def product(x: Any, size: int) -> Any:
    rows = x.type_annotation.shape[1] if hasattr(x, "type_annotation") else 8
    return op.call("nn.dense", x, const(np.ones((size, rows), np.float32)))


def test_a_chain_waits_at_every_step() -> None:
    x = var("x", shape=(4, 8))
    made = lowered([x], op.call("nn.softmax", product(product(x, 8), 8)))
    assert all(step.barrier for step in made.outline.program({}).steps)


def test_branches_run_side_by_side() -> None:
    x = var("x", shape=(4, 8))
    body = Tuple([op.call("nn.softmax", product(x, 8)), op.call("nn.softmax", product(x, 8))])
    outline = lowered([x], body).outline
    steps = outline.program({}).steps
    for before, after, made in zip(outline.steps, outline.steps[1:], steps, strict=False):
        written = {root(outline, n) for n, w in zip(before.rooms, before.written, strict=True) if w}
        if written & {root(outline, n) for n in after.rooms}:
            assert made.barrier
    assert not all(step.barrier for step in steps)


def test_parts_of_a_concatenation_run_side_by_side() -> None:
    x, y = var("x", shape=(1, 8, 4, 4)), var("y", shape=(1, 8, 4, 4))
    joined = op.call("concatenate", Tuple([x, y]), axis=1)
    made = lowered([x, y], op.call("nn.relu", joined))
    assert [step.barrier for step in made.outline.program({}).steps][:-1] == [False] * (
        len(made.outline.program({}).steps) - 1
    )


def test_memory_that_is_reused_is_waited_for() -> None:
    x = var("x", shape=(4, 8))
    made = lowered([x], op.call("nn.softmax", product(op.call("nn.softmax", product(x, 8)), 8)))
    steps = made.outline.program({}).steps
    places = [{slot for slot in step.slots if slot.kind == "arena"} for step in steps]
    for i, step in enumerate(steps[:-1]):
        assert step.barrier or not places[i] & places[i + 1]
