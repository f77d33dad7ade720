"""What each step stands for: nodes of the model, operations, bytes. For profiles, not for runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ixion.analysis.cost import cost_of_call
from ixion.base.dim import Dim
from ixion.op.typed import op_name

if TYPE_CHECKING:
    from ixion.ir import Call
    from ixion.lower.step import PlannedStep


def account(steps: Sequence[PlannedStep]) -> list[dict[str, Any]]:
    """One JSON-able record per formed kernel, in program order.

    `steps`: how many steps it takes; `ops`, `nodes`: operators and the model's nodes behind it;
    `flops`: two a multiply-add of matrix-like operators, one an output element of any other, once
    for all its steps (Winograd does fewer); `moved` and `weights`: per step, bytes of activations
    (temporaries included) and of constants that it reads or writes, each counted once.
    """
    records: list[dict[str, Any]] = []
    last: object = None
    for step in steps:
        if not records or step.calls is not last:
            records.append(_record(step.calls))
            last = step.calls
        record = records[-1]
        record["steps"] += 1
        moved, weights = _traffic(step)
        record["moved"].append(moved)
        record["weights"].append(weights)
    return records


def _record(calls: Sequence[Call]) -> dict[str, Any]:
    flops = sum(cost_of_call(call).flops for call in calls)
    ops = [op_name(call) for call in calls]
    return {
        "steps": 0, "ops": ops, "nodes": list(_nodes(calls)), "flops": flops, "moved": [],
        "weights": [],
    }  # fmt: skip


def _nodes(calls: Iterable[Call]) -> Iterable[str]:
    """Names of the nodes, each once, without the name of the file."""
    names: dict[str, None] = {}
    for call in calls:
        source = getattr(call.span, "source_name", None)
        if source is not None:
            _, mark, node = source.name.partition(":")
            names[node if mark else source.name] = None
    return names


def _traffic(step: PlannedStep) -> tuple[int, int]:
    """Bytes of activations and of constants."""
    if [op_name(call) for call in step.calls] == ["concatenate"]:
        # Each step writes only its own operand's part of the result.
        return 2 * sum(_known(v.nbytes) for v in step.reads), 0
    sizes = {v.storage: _known(v.nbytes) for v in (*step.reads, *step.writes)}
    moved = weights = 0
    for storage in dict.fromkeys((*step.places, *sizes)):
        if storage.root()[0].kind == "const":
            weights += _known(storage.nbytes)
        else:
            moved += sizes[storage] if storage in sizes else _known(storage.nbytes)
    return moved, weights


def _known(nbytes: Dim) -> int:
    assert isinstance(nbytes, int)  # only programs whose sizes are all known are accounted for
    return nbytes
