"""Every op that can draw sample calls, with sizes as symbols: types, guards and loops hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import SymVar
from ixion.base.errors import TypeInferenceError
from ixion.base.guard import Guard
from ixion.ir.op import Op, get_attr_map
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.compare import Accumulation, mismatch
from ixion.op.define import InferArgs
from ixion.op.extent import NoLoopsError, extents
from ixion.op.sample import RandomDraw, Sample
from ixion.te.evaluate import evaluate

NAMES = sorted(op.name for op in get_attr_map("FSamples"))
SAMPLES = 8
# Ops whose calls cannot have a symbolic size anywhere, and why.
CLOSED = {
    "sizes": "no operands",
    "iota": "no operands",
    "zeros": "no operands",
    "ones": "no operands",
    "full": "one scalar operand",
    "dyn.zeros": "its operand is a shape",
    "dyn.ones": "its operand is a shape",
}
Shapes = list[Any]


def parts(args: tuple[Any, ...]) -> list[np.ndarray[Any, Any]]:
    return [x for a in args for x in (a if isinstance(a, tuple) else (a,))]


def named_by_size(sample: Sample) -> Shapes:
    """Sizes beyond 1 are symbols, equal sizes one symbol."""
    return [tuple(SymVar(f"s{n}") if n > 1 else n for n in x.shape) for x in parts(sample.args)]


def one_axis(sample: Sample) -> Iterator[Shapes]:
    """Each size in turn is a symbol, wherever it occurs."""
    for size in sorted({n for x in parts(sample.args) for n in x.shape if n > 1}):
        yield [
            tuple(SymVar(f"s{n}") if n == size else n for n in x.shape)
            for x in parts(sample.args)
        ]


def first_alone(sample: Sample) -> Shapes:
    """Every axis of the first tensor has a symbol of its own."""
    first, *rest = parts(sample.args)
    names = {f"d{i}": n for i, n in enumerate(first.shape)}
    return [tuple(map(SymVar, names)), *(x.shape for x in rest)]


def sizes_of(sample: Sample, shapes: Shapes) -> dict[str, int]:
    found: dict[str, int] = {}
    for x, shape in zip(parts(sample.args), shapes, strict=True):
        found |= {str(d): n for d, n in zip(shape, x.shape, strict=True) if not isinstance(d, int)}
    return found


def typed(sample: Sample, shapes: Shapes) -> tuple[list[Type], list[Any]]:
    """Types with these shapes, and the values of integer tensors that have no symbol."""
    left = iter(shapes)

    def one(x: Any) -> tuple[Type, Any]:
        if isinstance(x, tuple):
            inner = [one(part) for part in x]
            values = tuple(value for _, value in inner)
            known = None if any(v is None for v in values) else values
            return TupleType([kind for kind, _ in inner]), known
        shape = next(left)
        known = x if x.dtype.kind in "iub" and dims.is_static(shape) else None
        return TensorType(shape, dtypes.from_numpy(x.dtype)), known

    pairs = [one(x) for x in sample.args]
    return [kind for kind, _ in pairs], [value for _, value in pairs]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def fields(kind: Any) -> tuple[TensorType, ...]:
    return tuple(kind.fields) if isinstance(kind, TupleType) else (kind,)


def scale_of(op: Op, attrs: Any, sample: Sample, kind: Type) -> tuple[Any, ...] | None:
    compare = op.get_attr("TCompare")
    if not isinstance(compare, Accumulation):
        return None
    if compare.scale is not None:
        with np.errstate(all="ignore"):
            return as_tuple(compare.scale(attrs, sample.flat(), kind))
    sizes = tuple(np.abs(a.astype(np.float64)) if a.dtype.kind == "f" else a for a in sample.flat())
    return as_tuple(op.get_attr("FReference")(attrs, sizes, TensorType((), "float64")))


class Outcome:
    """How often each thing happened to an op."""

    def __init__(self) -> None:
        self.typed = self.looped = 0
        self.refused: list[str] = []


def check(op: Op, sample: Sample, shapes: Shapes, outcome: Outcome) -> None:
    attrs = op.attrs_type(**sample.attrs) if op.attrs_type is not None else None
    kinds, values = typed(sample, shapes)
    guards: list[Guard] = []
    try:
        out = op.get_attr("FInfer")(InferArgs(op.name, tuple(kinds), attrs, tuple(values), guards))
    except TypeInferenceError as error:
        outcome.refused.append(error.message)
        return
    if out is None:
        return
    sizes = sizes_of(sample, shapes)
    if not all(guard.holds(sizes) for guard in guards):
        # What the sample does is more than a program of open sizes may take for granted.
        return
    static = op.get_attr("FInfer")(
        InferArgs(op.name, tuple(typed(sample, [x.shape for x in parts(sample.args)])[0]), attrs,
                  tuple(typed(sample, [x.shape for x in parts(sample.args)])[1]))
    )  # fmt: skip
    wants = as_tuple(op.get_attr("FReference")(attrs, sample.flat(), static.type))
    check_types(out.type, wants, sizes)
    outcome.typed += 1
    check_loops(op, attrs, sample, shapes, out.type, wants, sizes, outcome)


def check_types(kind: Type, wants: tuple[Any, ...], sizes: dict[str, int]) -> None:
    for t, x in zip(fields(kind), wants, strict=True):
        assert len(t.shape) == x.ndim, f"{t} for an array of {x.shape}"
        for d, n in zip(t.shape, x.shape, strict=True):
            assert isinstance(d, dims.Any) or dims.evaluate(d, sizes) == n, f"{t}: {x.shape}"


def check_loops(
    op: Op, attrs: Any, sample: Sample, shapes: Shapes, kind: Type, wants: tuple[Any, ...],
    sizes: dict[str, int], outcome: Outcome,
) -> None:  # fmt: skip
    compute = op.get_attr("FTVMCompute")
    open_sizes = any(isinstance(d, dims.Any) for t in fields(kind) for d in t.shape)
    if compute is None or open_sizes:
        return
    arrays = sample.flat()
    ins = tuple(
        te.placeholder(extents(TensorType(shape)), dtypes.from_numpy(a.dtype))
        for a, shape in zip(arrays, shapes, strict=True)
    )
    try:
        outs = as_tuple(compute(attrs, ins, kind))
    except NoLoopsError as error:
        outcome.refused.append(error.message)
        return
    gots = evaluate(outs, dict(zip(ins, arrays, strict=True)), sizes)
    scales = scale_of(op, attrs, sample, kind) or (None,) * len(wants)
    for got, want, scale in zip(gots, wants, scales, strict=True):
        assert got.shape == want.shape
        problem = mismatch(op.get_attr("TCompare"), got, want, scale)
        assert problem is None, f"{op.name}{sample.attrs} {shapes}: {problem}"
    outcome.looped += 1


def swept(name: str) -> Outcome:
    op, outcome = Op.get(name), Outcome()
    for seed in range(SAMPLES):
        sample = op.get_attr("FSamples")(RandomDraw(seed))
        if not parts(sample.args):
            continue
        check(op, sample, named_by_size(sample), outcome)
        check(op, sample, first_alone(sample), outcome)
        for shapes in one_axis(sample):
            check(op, sample, shapes, outcome)
    return outcome


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CLOSED])
def test_open_sizes(name: str) -> None:
    outcome = swept(name)
    assert outcome.typed, f"no call of {name} has a type: {set(outcome.refused)}"
    if Op.get(name).get_attr("FTVMCompute") is not None and not name.startswith("dyn."):
        assert outcome.looped, f"no call of {name} has loops: {set(outcome.refused)}"
