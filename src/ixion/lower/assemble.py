"""From planned steps to the runtime's program: slots, host steps, kernels to compile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from ixion.base.target import Target
from ixion.ir import Call, Function
from ixion.lower.account import account
from ixion.lower.barriers import needed_barriers, spread_lifetimes
from ixion.lower.join import join_copies, join_results, lifetimes
from ixion.lower.lower import Lowering, PlannedStep
from ixion.lower.memory import plan
from ixion.lower.storage import Storage, Value
from ixion.op.typed import attrs_of, dtype_of, op_name, shape_of
from ixion.runtime.program import HostStep, Program, Slot, Step, TensorSpec
from ixion.te.stmt import Kernel
from ixion.te.text import kernel_key


@dataclass(eq=False)
class Assembled:
    """A program without machine code, and the kernels it needs by symbol."""

    program: Program
    kernels: dict[str, Kernel]
    lowering: Lowering


def assemble(
    func: Function,
    target: Target,
    input_names: Sequence[str],
    output_names: Sequence[str],
    *,
    consume: bool = False,
) -> Assembled:
    """Lowers ``func`` (formed kernels with layouts, static types) for ``target``.

    With ``consume`` the function's constants are freed as they are packed: nobody may look at it
    or at the module that it came from again.  Raises CodegenError for what has no compiled form.
    """
    lowering = Lowering(target, consume=consume)
    lowering.run(func)
    places = _output_places(lowering)
    lowering.steps = join_copies(lowering.steps, lowering.results)
    lifetimes(lowering.steps, lowering.results)
    join_results(lowering.steps)
    spread_lifetimes(lowering.steps)
    arena = plan(lowering.storages)
    kernels, symbols = _named_kernels(lowering.steps)
    steps: list[Step] = []
    hosts: list[HostStep] = []
    for planned, barrier in zip(lowering.steps, needed_barriers(lowering.steps), strict=True):
        steps.append(_step(planned, barrier, symbols, hosts))
    outputs = [
        TensorSpec(n, v.shape, v.dtype) for n, v in zip(output_names, lowering.results, strict=True)
    ]
    inputs = [
        TensorSpec(n, shape_of(p), dtype_of(p))
        for n, p in zip(input_names, func.params, strict=True)
    ]
    scratch = max((k.scratch for k in kernels.values()), default=0)
    program = Program(
        steps, lowering.constants.arrays, arena, scratch, inputs, outputs, target.key(), [], hosts,
        output_places=[None if p is None else _slot(p) for p in places],
        meta={"account": account(lowering.steps)},
    )  # fmt: skip
    return Assembled(program, kernels, lowering)


def _output_places(lowering: Lowering) -> list[Storage | None]:
    """Results that a kernel writes straight into the caller's array give None."""
    places: list[Storage | None] = []
    written = {v.storage.root()[0] for step in lowering.steps for v in step.writes}
    storages = [v.storage for v in lowering.results]
    for number, value in enumerate(lowering.results):
        storage = value.storage
        if storages.count(storage) > 1:
            places.append(storage)
        elif storage in written and storage.kind == "arena" and storage.nbytes == value.nbytes:
            storage.kind, storage.index = "output", number
            places.append(None)
        else:
            places.append(storage)
    return places


def _slot(storage: Storage) -> Slot:
    root, at = storage.root()
    if root.kind == "arena":
        # A tensor without elements is never written and has no place of its own.
        return Slot("arena", 0, (root.offset if root.nbytes else 0) + at)
    return Slot(root.kind, root.index, at)


def _named_kernels(steps: Sequence[PlannedStep]) -> tuple[dict[str, Kernel], dict[int, str]]:
    """Kernels by symbol, equal ones once, and the symbol of each by its id."""
    kernels: dict[str, Kernel] = {}
    symbols: dict[int, str] = {}
    for step in steps:
        kernel = step.kernel
        if kernel is not None and id(kernel) not in symbols:
            symbols[id(kernel)] = symbol = f"ix_{kernel_key(kernel)[:32]}"
            kernels.setdefault(symbol, kernel)
    return kernels, symbols


def _step(
    planned: PlannedStep, barrier: bool, symbols: dict[int, str], hosts: list[HostStep]
) -> Step:
    slots = tuple(_slot(s) for s in planned.places)
    if planned.host is not None:
        hosts.append(_host_step(planned.host, planned.reads, planned.writes))
        return Step("host", slots=slots, label=planned.label, host=len(hosts) - 1)
    assert planned.kernel is not None
    symbol, tasks = symbols[id(planned.kernel)], planned.kernel.tasks
    return Step("call", symbol, slots, tasks, barrier, planned.label, _cost(planned))


def _cost(planned: PlannedStep) -> float:
    """Expected nanoseconds on one thread: arithmetic at 100 GFLOP/s, memory at 20 GB/s."""
    moved = sum(v.nbytes for v in (*planned.reads, *planned.writes))
    return max(2 * planned.products / 100.0, moved / 20.0, prod((1,)))


def _host_step(call: Call, reads: Sequence[Value], writes: Sequence[Value]) -> HostStep:
    attrs: dict[str, Any] = {}
    if call.attrs is not None:
        attrs = {k: _jsonable(v) for k, v in attrs_of(call).items()}
    return HostStep(
        op_name(call), attrs,
        tuple(TensorSpec(f"in{i}", v.shape, v.dtype) for i, v in enumerate(reads)),
        tuple(TensorSpec(f"out{i}", v.shape, v.dtype) for i, v in enumerate(writes)),
    )  # fmt: skip


def _jsonable(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_jsonable(v) for v in value]
    return value
