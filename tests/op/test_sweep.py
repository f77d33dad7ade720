"""Every op that can draw sample calls: type relation, reference and compute agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ixion.op  # noqa: F401 - fills the registry
from ixion import te
from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.errors import TypeInferenceError
from ixion.ir.op import Op, get_attr_map
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.compare import Accumulation, mismatch
from ixion.op.define import InferArgs
from ixion.op.extent import NoLoopsError
from ixion.op.sample import RandomDraw, Sample
from ixion.te.evaluate import evaluate

NAMES = sorted(op.name for op in get_attr_map("FSamples"))
EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    database=None,
)


class HypothesisDraw:
    """Choices that hypothesis generates and shrinks."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return int(self._data.draw(st.integers(low, high)))


def type_of(value: Any) -> Type:
    if isinstance(value, tuple):
        return TupleType([type_of(v) for v in value])
    return TensorType(value.shape, dtypes.from_numpy(value.dtype))


def values_of(sample: Sample) -> tuple[Any, ...]:
    def one(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(one(v) for v in value)
        return value if value.dtype.kind in "iub" else None

    return tuple(one(v) for v in sample.args)


def attrs_of(op: Op, sample: Sample) -> Any:
    return op.attrs_type(**sample.attrs) if op.attrs_type is not None else None


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def fields(kind: Type) -> tuple[TensorType, ...]:
    found = kind.fields if isinstance(kind, TupleType) else (kind,)
    assert all(isinstance(t, TensorType) for t in found)
    return found  # type: ignore[return-value]


def check_type(kind: Type, arrays: tuple[np.ndarray[Any, Any], ...]) -> None:
    """Every known dim of the inferred type is the array's."""
    assert len(fields(kind)) == len(arrays)
    for t, x in zip(fields(kind), arrays, strict=True):
        assert t.dtype == dtypes.from_numpy(x.dtype)
        assert len(t.shape) == x.ndim, f"{t} for an array of {x.shape}"
        for d, n in zip(t.shape, x.shape, strict=True):
            assert isinstance(d, dims.Any) or d == n, f"{t} for an array of {x.shape}"


def check_symbolic(op: Op, attrs: Any, sample: Sample, arrays: tuple[Any, ...]) -> None:
    """A type relation over symbols gives dims that evaluate to the true ones."""
    first = type_of(sample.args[0]) if sample.args else None
    if not isinstance(first, TensorType) or not first.shape:
        return
    known = {f"s{i}": n for i, n in enumerate(first.shape)}
    rest = (type_of(v) for v in sample.args[1:])
    types = (TensorType([dims.SymVar(s) for s in known], first.dtype), *rest)
    values = (None, *values_of(sample)[1:])
    try:
        out = op.get_attr("FInfer")(InferArgs(op.name, types, attrs, values))
    except TypeInferenceError:
        return
    if out is None:
        return
    for t, x in zip(fields(out.type), arrays, strict=True):
        for d, n in zip(t.shape, x.shape, strict=True):
            size = n if isinstance(d, dims.Any) else dims.evaluate(d, known)
            # A negative size is how a relation says that its assumption on a bound failed.
            assert size == n or size < 0, f"{t.shape} not {x.shape} for {known}"


def check_value(op: Op, value: Any, arrays: tuple[Any, ...]) -> None:
    if value is None:
        return
    for v, x in zip(as_tuple(value), arrays, strict=True):
        if v is not None and not any(isinstance(d, (dims.Any, dims.SymExpr)) for d in np.ravel(v)):
            np.testing.assert_array_equal(np.asarray(v).astype(x.dtype), x)


def scale_of(op: Op, attrs: Any, sample: Sample, kind: Type) -> Any:
    compare = op.get_attr("TCompare")
    if not isinstance(compare, Accumulation):
        return None
    arrays = sample.flat()
    if compare.scale is not None:
        with np.errstate(all="ignore"):
            return compare.scale(attrs, arrays, kind)
    sizes = tuple(np.abs(a.astype(np.float64)) if a.dtype.kind == "f" else a for a in arrays)
    wide = TensorType((), "float64")
    return op.get_attr("FReference")(attrs, sizes, wide)


def check_compute(op: Op, attrs: Any, sample: Sample, kind: Type, wants: tuple[Any, ...]) -> None:
    compute = op.get_attr("FTVMCompute")
    if compute is None or any(not dims.is_static(t.shape) for t in fields(kind)):
        return
    arrays = sample.flat()
    ins = tuple(te.placeholder(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays)
    try:
        outs = as_tuple(compute(attrs, ins, kind))
    except NoLoopsError:
        return
    gots = evaluate(outs, dict(zip(ins, arrays, strict=True)))
    found = scale_of(op, attrs, sample, kind)
    scales = as_tuple(found) if found is not None else (None,) * len(wants)
    for got, want, t, scale in zip(gots, wants, fields(kind), scales, strict=True):
        assert dtypes.from_numpy(got.dtype) == t.dtype
        problem = mismatch(op.get_attr("TCompare"), got, want, scale)
        assert problem is None, f"{op.name}{sample.attrs}: compute {problem}"


def check(op: Op, sample: Sample) -> None:
    attrs = attrs_of(op, sample)
    types = tuple(type_of(v) for v in sample.args)
    none = tuple(None for _ in sample.args)
    infer, reference = op.get_attr("FInfer"), op.get_attr("FReference")
    blind = infer(InferArgs(op.name, types, attrs, none))
    out = infer(InferArgs(op.name, types, attrs, values_of(sample)))
    assert out is not None
    arrays = as_tuple(reference(attrs, sample.flat(), out.type))
    check_type(out.type, arrays)
    if blind is not None:
        check_type(blind.type, arrays)
    check_value(op, out.value, arrays)
    check_symbolic(op, attrs, sample, arrays)
    check_compute(op, attrs, sample, out.type, arrays)


@pytest.mark.parametrize("name", NAMES)
def test_relation_reference_and_compute_agree(name: str) -> None:
    @EXAMPLES
    @given(st.data())
    def run(data: st.DataObject) -> None:
        op = Op.get(name)
        check(op, op.get_attr("FSamples")(HypothesisDraw(data)))

    run()


def test_samples_need_no_hypothesis() -> None:
    op = Op.get("add")
    check(op, op.get_attr("FSamples")(RandomDraw(1)))
