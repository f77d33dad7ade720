from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ixion.analysis.dataflow import dataflow_order
from ixion.analysis.evaluate import evaluate
from ixion.base.dim import evaluate as evaluated
from ixion.base.target import Target
from ixion.ir import Call, Constant, Expr, Function, IRModule, Var
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN, Layout
from ixion.kernel.schedule import (
    Lowered,
    Pack,
    Place,
    Schedule,
    channel_block,
    layout_pack,
    schedule_for,
)
from ixion.kernel.sizes import dim_of
from ixion.op.typed import dims_of, dtype_of
from ixion.runtime.program import TensorSpec
from ixion.runtime.sizes import sizes_of
from ixion.te.evaluate import run_kernel
from ixion.te.sized import bind_sizes
from ixion.transform.form_kernels import FormKernels
from ixion.transform.pass_infra import Sequential

Array = np.ndarray[Any, Any]


def formed(params: list[Var], body: Expr) -> Call:
    """The single formed kernel of a function."""
    module = Sequential([FormKernels()])(IRModule.from_expr(Function(params, body)))
    kernels = [
        n for n in dataflow_order(module["main"].body)
        if isinstance(n, Call) and isinstance(n.op, Function)
    ]  # fmt: skip
    assert len(kernels) == 1
    return kernels[0]


def unpack(flat: Array, layout: Layout, shape: tuple[int, ...]) -> Array:
    """The logical array that lies in memory order in ``flat``."""
    if layout.axis is None:
        return flat.reshape(shape)
    moved = np.moveaxis(flat.reshape(layout.physical(shape)), -1, layout.axis + 1)
    dims = list(shape)
    dims[layout.axis] = -1
    whole = moved.reshape(dims)
    return whole[tuple(slice(n) for n in shape)]


def run_lowered(lowered: Lowered, inputs: list[Array], out_size: int) -> Array:
    """Runs the nests in numpy on flat inputs; padding and temporaries start as NaN."""
    memory = {("out", 0): np.full(out_size, np.nan, np.float32)}
    memory |= {("in", i): a for i, a in enumerate(inputs)}
    memory |= {
        ("temp", i): np.full(n // 4, np.nan, np.float32) for i, n in enumerate(lowered.temps)
    }
    for kernel, places in lowered.kernels:
        run_kernel(kernel, [_part(memory[p.kind, p.index], p) for p in places])
    return memory["out", 0]


def _part(array: Array, place: Place) -> Array:
    end = None if place.length is None else place.start + place.length
    return array[place.start : end]


def check_schedule(
    params: list[Var],
    body: Expr,
    values: list[Array],
    target: str | Target,
    *,
    expect: type[Schedule],
    blocked: bool = True,
    tolerance: float = 2e-5,
) -> None:
    """The formed kernel, scheduled and evaluated in numpy, against the reference interpreter."""
    call = formed(params, body)
    group = Group(call.op, [isinstance(a, Constant) for a in call.args])
    schedule = schedule_for(group, Target.parse(target))
    assert isinstance(schedule, expect)
    free = channel_block(Target.parse(target)) if blocked else PLAIN
    out = schedule.result()
    out = free if out is None else out
    fed = {id(p): v for p, v in zip(params, values, strict=True)}
    layouts, arrays = [], []
    for i, arg in enumerate(call.args):
        known = isinstance(arg, Constant)
        rank = len(arg.checked_type.shape)
        wanted = schedule.wanted(i)
        given = free if rank >= 3 else PLAIN
        layout = PLAIN if known else given if wanted is None else wanted
        layouts.append(layout)
        arrays.append(arg.data if known else fed[id(_param(params, arg))])
    lowered = schedule.lower("k", layouts, out)
    flat = []
    for i, (array, layout) in enumerate(zip(arrays, layouts, strict=True)):
        known = isinstance(call.args[i], Constant)
        pack = lowered.packs.get(i, layout_pack(layout))
        flat.append(
            pack.apply(array) if known else _poisoned(layout.pack(array), layout, array.shape)
        )
    shape = tuple(call.checked_type.shape)
    got = unpack(run_lowered(lowered, flat, out.size(shape)), out, shape)
    want = evaluate(Function(params, body), values)
    scale = max(1.0, float(np.nanmax(np.abs(want), initial=0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale)


def _param(params: list[Var], arg: Expr) -> Var:
    return next(p for p in params if isinstance(arg, Var) and p.name_hint == arg.name_hint)


def _poisoned(flat: Array, layout: Layout, shape: tuple[int, ...]) -> Array:
    """Padding lanes hold NaN: no kernel may let them into a result."""
    if layout.axis is None:
        return flat
    inside = layout.pack(np.ones(shape, np.float32))
    return np.where(inside == 1, flat, np.float32(np.nan)).astype(np.float32)


@pytest.fixture(params=["avx512", "generic"])
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check_open(
    params: list[Var],
    body: Expr,
    shapes: list[list[tuple[int, ...]]],
    target: str | Target,
    *,
    expect: type[Schedule],
    tolerance: float = 2e-5,
) -> None:
    """One kernel for sizes known at run time, evaluated in numpy at each list of input shapes.

    The reference interpreter says what is right.
    """
    call = formed(params, body)
    group = Group(call.op, [isinstance(a, Constant) for a in call.args])
    assert group.is_open
    schedule = schedule_for(group, Target.parse(target))
    assert isinstance(schedule, expect), schedule
    free = channel_block(Target.parse(target))
    out = free if schedule.result() is None else schedule.result()
    assert out is not None
    layouts = [_given_layout(schedule, i, arg, free) for i, arg in enumerate(call.args)]
    lowered = schedule.lower("k", layouts, out)
    for kernel, _ in lowered.kernels:
        bind_sizes(kernel)
    rng = np.random.default_rng(3)
    for given in shapes:
        values = [rng.standard_normal(s).astype(np.float32) for s in given]
        sizes = sizes_of([TensorSpec("x", dims_of(p), dtype_of(p)) for p in params], given, [])
        fed = {p.name_hint: v for p, v in zip(params, values, strict=True)}
        flat = [
            _flat(arg, layout, lowered.packs.get(i, layout_pack(layout)), fed)
            for i, (arg, layout) in enumerate(zip(call.args, layouts, strict=True))
        ]
        want = evaluate(Function(params, body), values)
        shape = tuple(evaluated(d, sizes) for d in dims_of(call))
        assert want.shape == shape
        got = unpack(_run_open(lowered, flat, out.size(shape), sizes), out, shape)
        scale = max(1.0, float(np.nanmax(np.abs(want), initial=0)))
        np.testing.assert_allclose(
            got, want, rtol=tolerance, atol=tolerance * scale, err_msg=str(given)
        )


def _given_layout(schedule: Schedule, i: int, arg: Expr, free: Layout) -> Layout:
    wanted = schedule.wanted(i)
    if isinstance(arg, Constant):
        return PLAIN
    return (free if len(dims_of(arg)) >= 3 else PLAIN) if wanted is None else wanted


def _flat(arg: Expr, layout: Layout, pack: Pack, fed: dict[str, Array]) -> Array:
    if isinstance(arg, Constant):
        return pack.apply(arg.data)
    assert isinstance(arg, Var)
    array = fed[arg.name_hint]
    return _poisoned(layout.pack(array), layout, array.shape)


def _run_open(
    lowered: Lowered, inputs: list[Array], out_size: int, sizes: dict[str, int]
) -> Array:
    """Runs the nests for these sizes; as ``run_lowered``."""
    number = lambda extent: evaluated(dim_of(extent), sizes)
    memory = {("out", 0): np.full(out_size, np.nan, np.float32)}
    memory |= {("in", i): a for i, a in enumerate(inputs)}
    memory |= {
        ("temp", i): np.full(number(n) // 4, np.nan, np.float32)
        for i, n in enumerate(lowered.temps)
    }
    for kernel, places in lowered.kernels:
        if kernel.when is not None:
            extent, least, most = kernel.when
            if not least <= number(extent) <= most:
                continue
        arrays = [memory[p.kind, p.index] for p in places]
        run_kernel(kernel, arrays, [number(v) for v in kernel.values])
    return memory["out", 0]
