"""A typed module as a machine program: instructions, and functions for its segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.ir import Call, IRModule, TensorType, TupleType
from ixion.ir.json import save_json
from ixion.op.typed import field_types, op_name
from ixion.runtime.machine import leaf_kinds
from ixion.runtime.machine_program import HostOp, MachineProgram, Segment
from ixion.runtime.value_kind import TensorKind
from ixion.vm.build import Builder
from ixion.vm.emit import CheckTable, emitted
from ixion.vm.kinds import constructor_specs, kind_of
from ixion.vm.native import NativeFunctions
from ixion.vm.prepare import normalised
from ixion.vm.segments import SegmentDraft, SegmentTable

__all__ = ["Compiled", "compile_module"]


@dataclass(eq=False)
class Compiled:
    """A program whose segments wait for compilation: segment i is the main of ``modules[i]``.

    ``bounded[i]``: the one call in it, where data decides the sizes of its results.
    """

    program: MachineProgram
    modules: list[IRModule]
    bounded: list[Call | None]


def compile_module(module: IRModule, output_names: Sequence[str] = ()) -> Compiled:
    """The machine program of a typed module's ``main``.

    ``output_names`` name the leaves of the result. Raises CodegenError for what has no compiled
    form.
    """
    native = NativeFunctions(module)
    module = normalised(module)
    builder = Builder(module, native)
    entry = builder.build()
    segments, checks = SegmentTable(), CheckTable()
    functions = [emitted(scope, segments, checks) for scope in builder.scopes]
    main = module["main"]
    inputs = [(p.name_hint, kind_of(p.checked_type)) for p in main.params]
    output = kind_of(main.body.checked_type)
    types = [*(p.checked_type for p in main.params), main.body.checked_type]
    names = list(output_names) or [f"out{i}" for i in range(len(leaf_kinds(output)))]
    program = MachineProgram(
        functions, entry.number, [c.data for c in builder.arrays],
        constructor_specs(module, builder.constructors, types),
        [_segment(draft) for draft in segments.drafts],
        [_host(call) for call in builder.host_calls],
        list(checks.rows), inputs, output, names,
    )  # fmt: skip
    modules = [native.around(draft.function) for draft in segments.drafts]
    return Compiled(program, modules, [draft.bounded for draft in segments.drafts])


def _segment(draft: SegmentDraft) -> Segment:
    return Segment(draft.name, draft.inputs, draft.outputs)


def _host(call: Call) -> HostOp:
    groups = tuple(
        len(a.checked_type.fields) if isinstance(a.checked_type, TupleType) else -1
        for a in call.args
    )
    outputs = tuple(_tensor_kind(kind) for kind in field_types(call))
    attrs = "" if call.attrs is None else save_json(call.attrs)
    return HostOp(op_name(call), attrs, groups, outputs)


def _tensor_kind(kind: TensorType) -> TensorKind:
    found = kind_of(kind)
    assert isinstance(found, TensorKind)
    return found
