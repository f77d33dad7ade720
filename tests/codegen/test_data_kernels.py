"""Kernels of operators that follow their data, whatever it is, next to pages nobody may touch.

Native code runs in another process, every buffer right before or behind a forbidden page. Results
are those of the reference; an index or a k that is out of range ends the kernel with a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.analysis.dataflow import dataflow_order
from ixion.base import dtype as dtypes
from ixion.base.abi import Fault
from ixion.base.dtype import to_numpy
from ixion.base.errors import KernelError
from ixion.base.target import Target
from ixion.ir import Call, Constant, Function, IRModule, Op, TensorType, Var, const
from ixion.kernel.group import Group
from ixion.kernel.layout import PLAIN
from ixion.kernel.schedule import Lowered, Place, schedule_for
from ixion.lower.bounded import bounded_function, open_arguments
from ixion.op.bounds import is_bounded
from ixion.op.call import call as make_call
from ixion.op.typed import field_types, shape_of
from ixion.runtime.bounded import cut
from ixion.te.evaluate import KernelFault, run_kernel
from ixion.transform.form_kernels import FormKernels
from ixion.transform.infer_type import InferType
from ixion.transform.pass_infra import Sequential

Array = np.ndarray[Any, Any]
INT64 = np.iinfo(np.int64)


@dataclass
class Case:
    """A call of an operator; ``fixed`` are the arguments known at compile time."""

    op: str
    arrays: list[Array]
    attrs: dict[str, Any] = field(default_factory=dict)
    fixed: tuple[int, ...] = ()


def typed(case: Case) -> Call:
    kinds = [TensorType(a.shape, dtypes.from_numpy(a.dtype)) for a in case.arrays]
    params = {i: Var(f"x{i}", k) for i, k in enumerate(kinds) if i not in case.fixed}
    args = [params.get(i) or const(a) for i, a in enumerate(case.arrays)]
    function = Function(list(params.values()), make_call(case.op, *args, **case.attrs))
    return InferType()(IRModule.from_expr(function))["main"].body


def sized_by_data(call: Call) -> bool:
    known = all(isinstance(n, int) for t in field_types(call) for n in t.shape)
    return is_bounded(call) and not known


def formed(call: Call, arrays: list[Array]) -> Call:
    if sized_by_data(call):
        shapes = [arrays[i].shape for i in open_arguments(call)]
        return bounded_function(call, shapes).body
    params = [a for a in call.args if isinstance(a, Var)]
    module = Sequential([FormKernels()])(IRModule.from_expr(Function(params, call)))
    return next(
        n for n in dataflow_order(module["main"].body)
        if isinstance(n, Call) and isinstance(n.op, Function)
    )  # fmt: skip


class Memory:
    """Buffers of a formed kernel by place; what nobody has written yet is garbage."""

    def __init__(self, kernel: Call, lowered: Lowered, case: Case, call: Call) -> None:
        opened = dict(zip(open_arguments(call), [a for i, a in enumerate(case.arrays)
                                                 if i not in case.fixed], strict=True))  # fmt: skip
        feeds = iter(opened.values())
        self.kinds = field_types(kernel)
        self.held: dict[tuple[str, int], Array] = {}
        for i, arg in enumerate(kernel.args):
            array = arg.data if isinstance(arg, Constant) else next(feeds)
            self.held["in", i] = _bytes(np.ascontiguousarray(array))
        for i, kind in enumerate(self.kinds):
            size = int(np.prod(shape_of(kind))) * dtypes.itemsize(kind.dtype)
            self.held["out", i] = np.full(size, 0xA5, np.uint8)
        for i, size in enumerate(lowered.temps):
            self.held["temp", i] = np.full(size, 0x5A, np.uint8)

    def of(self, places: tuple[Place, ...]) -> list[Array]:
        return [self.held[p.kind, p.index] for p in places]

    def results(self, bounded: bool) -> list[Array]:
        made = [
            self.held["out", i].view(to_numpy(k.dtype)).reshape(shape_of(k))
            for i, k in enumerate(self.kinds)
        ]
        return cut(made[:-1], made[-1]) if bounded else made


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8).copy()


def prepared(case: Case, target: str) -> tuple[Lowered, Memory, bool]:
    call = typed(case)
    kernel = formed(call, case.arrays)
    group = Group(kernel.op, [isinstance(a, Constant) for a in kernel.args])
    lowered = schedule_for(group, Target.parse(target)).lower(
        "k", [PLAIN] * len(kernel.args), PLAIN
    )
    return lowered, Memory(kernel, lowered, case, call), sized_by_data(call)


def wanted(case: Case) -> list[Array] | None:
    """The reference's results, None where it refuses the data."""
    op, call = Op.get(case.op), typed(case)
    try:
        out = op.get_attr("FReference")(call.attrs, tuple(case.arrays), call.checked_type)
    except (KernelError, IndexError):
        return None
    return list(out) if isinstance(out, tuple) else [out]


def check(case: Case, results: list[Array], want: list[Array]) -> None:
    assert len(results) == len(want)
    for got, expected in zip(results, want, strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        if got.dtype.kind == "f" and case.op in ("cumsum", "cumprod", "scatter_elements"):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(got, expected)


def run_native(native, case: Case, target: str) -> None:
    lowered, memory, bounded = prepared(case, target)
    for kernel, places in lowered.kernels:
        arrays = memory.of(places)
        reply = native.run(kernel, arrays, target)
        for place, array in zip(places, arrays, strict=True):
            memory.held[place.kind, place.index] = array
        if reply["code"]:
            assert reply["code"] in (Fault.INDEX, Fault.VALUE)
            assert wanted(case) is None
            return
    want = wanted(case)
    assert want is not None
    check(case, memory.results(bounded), want)


def run_numpy(case: Case) -> None:
    """The nest itself: the evaluator raises for any access outside of a buffer."""
    lowered, memory, bounded = prepared(case, "generic")
    want = wanted(case)
    try:
        for kernel, places in lowered.kernels:
            pairs = zip(kernel.params, memory.of(places), strict=True)
            run_kernel(kernel, [array.view(to_numpy(b.dtype)) for b, array in pairs])
    except KernelFault:
        assert want is None
        return
    assert want is not None
    check(case, memory.results(bounded), want)


# Data.


def wild(rng: Any, dtype: str, *shape: int) -> Array:
    """Any bits at all for floats; for integers a few values and the ends of the range."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.4
    raw = rng.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind).reshape(shape)
    if kind.kind == "f":
        special = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, 1, 2], kind)
        # Kernels take what is below the normal range for zero, the reference does not.
        raw = np.where(np.abs(raw) < np.finfo(kind).tiny, kind.type(0), raw)
        return np.where(rng.random(shape) < 0.5, rng.choice(special, shape), raw)
    return np.where(rng.random(shape) < 0.7, raw % 5, raw)


def places(rng: Any, size: int, *shape: int) -> Array:
    """Indices within ``size``, or now and then one that is anywhere."""
    found = rng.integers(-size, size, shape)
    if rng.random() < 0.5 and found.size:
        far = [INT64.min, INT64.max, size, -size - 1, 1 << 31]
        found.ravel()[rng.integers(0, found.size)] = rng.choice(far)
    return found


def number(value: Any, dtype: Any = np.int64) -> Array:
    return np.array(value, dtype)


def boxes(rng: Any, *lead: int) -> Array:
    found = rng.integers(0, 5, (*lead, 4)).astype(np.float32)
    found.ravel()[rng.random(found.size) < 0.05] = np.nan
    return found


Maker = Callable[[Any], Case]


def limits(rng: Any) -> list[Array]:
    return [
        number([rng.choice([-1, 0, 2, 50, INT64.max, INT64.min])]),
        number([rng.choice([0, 0.3, 1, np.nan])], np.float32),
        number([rng.choice([-9, 0.1, np.nan])], np.float32),
    ]


def k_of(rng: Any, size: int) -> Array:
    return number(rng.choice([0, 1, size // 2, size, size + 1, -1, INT64.max, INT64.min]))


def detections(rng: Any, count: int) -> list[Array]:
    labels = rng.integers(-1, 2, (1, count, 1)).astype(np.float32)
    rows = np.concatenate([labels, wild(rng, "float32", 1, count, 1), boxes(rng, 1, count)], 2)
    return [
        rows, number([rng.choice([-(2**31), 0, count // 2, count, 2**31 - 1])], np.int32),
        np.arange(count, dtype=np.int32)[None], number(rng.choice([-1, 0, 3]), np.int32),
        number(rng.choice([0, 0.5]), np.float32),
    ]  # fmt: skip


MAKERS: dict[str, Maker] = {
    "short sort": lambda rng: Case("sort", [wild(rng, "float32", 3, 21)], {"axis": 1}),
    "long sort": lambda rng: Case("argsort", [wild(rng, "float32", 130)], {"is_ascend": False}),
    "sort of bytes": lambda rng: Case("argsort", [wild(rng, "int8", 2, 130, 3)], {"axis": 1}),
    "sort of doubles": lambda rng: Case("sort", [wild(rng, "float64", 120)], {"axis": 0}),
    "topk": lambda rng: Case("topk", [wild(rng, "float32", 2, 300)], {"k": 7}),
    "topk of halves": lambda rng: Case("topk", [wild(rng, "float16", 200, 2)], {"k": 9, "axis": 0}),
    "best along": lambda rng: Case("topk", [wild(rng, "float32", 4, 37)], {"k": 1}),
    "best across": lambda rng: Case("topk", [wild(rng, "int16", 5, 40)], {"k": 1, "axis": 0}),
    "top_k": lambda rng: Case("top_k", [wild(rng, "float32", 2, 150), k_of(rng, 150)]),
    "top_k of few": lambda rng: Case(
        "top_k", [wild(rng, "uint8", 3, 5), k_of(rng, 3)], {"axis": 0}
    ),
    "dyn.topk": lambda rng: Case("dyn.topk", [wild(rng, "int64", 120), k_of(rng, 120)]),
    "argwhere": lambda rng: Case("argwhere", [wild(rng, "float32", 5, 7, 3)]),
    "nonzero": lambda rng: Case("nonzero", [wild(rng, "bool", 9, 1000)]),
    "compress": lambda rng: Case("compress", [wild(rng, "float32", 50), wild(rng, "bool", 47)]),
    "compress rows": lambda rng: Case(
        "compress", [wild(rng, "int8", 3, 40), wild(rng, "bool", 45)], {"axis": 1}
    ),
    "compress slices": lambda rng: Case(
        "compress", [wild(rng, "float64", 2, 70, 5), wild(rng, "bool", 70)], {"axis": 1}
    ),
    "unique": lambda rng: Case(
        "unique", [wild(rng, "float32", 90)], {"sorted": False, "return_counts": True}
    ),
    "unique rows": lambda rng: Case("unique_slices", [wild(rng, "int8", 30, 2, 2)], {"axis": 0}),
    "cumsum along": lambda rng: Case("cumsum", [wild(rng, "int32", 2, 75)], {"axis": 1}),
    "cumsum across": lambda rng: Case(
        "cumsum", [wild(rng, "int64", 3, 4, 70)], {"axis": 1, "exclusive": True}
    ),
    "cumprod": lambda rng: Case("cumprod", [wild(rng, "uint8", 5, 9)], {"axis": 0}),
    "scatter_elements": lambda rng: Case(
        "scatter_elements",
        [wild(rng, "int32", 4, 9), places(rng, 9, 4, 20), wild(rng, "int32", 4, 20)],
        {"axis": 1, "reduction": rng.choice(["update", "add", "max"])},
    ),
    "scatter_nd": lambda rng: Case(
        "scatter_nd",
        [wild(rng, "int32", 6, 5, 20), places(rng, 5, 2, 7), wild(rng, "int32", 7, 20)],
        {"mode": rng.choice(["update", "add", "min"])},
    ),
    "mean": lambda rng: Case(
        "scatter_elements", [wild(rng, "int32", 5), places(rng, 5, 8), wild(rng, "int32", 8)],
        {"reduction": "mean"},
    ),
    "searchsorted": lambda rng: Case(
        "searchsorted", [np.sort(wild(rng, "float32", 13)), wild(rng, "float32", 40)]
    ),
    "slice": lambda rng: Case(
        "dyn.strided_slice",
        [wild(rng, "float32", 4, 6, 7), *(
            rng.choice([INT64.min, -3, 0, 2, 5, INT64.max], 2) for _ in range(2)
        ), rng.choice([INT64.min, -2, 1, 1, 3, INT64.max], 2)],
    ),
    "select_boxes": lambda rng: Case(
        "vision.select_boxes", [boxes(rng, 1, 40), wild(rng, "float32", 1, 2, 40), *limits(rng)]
    ),
    "select few boxes": lambda rng: Case(
        "vision.select_boxes",
        [boxes(rng, 2, 9), wild(rng, "float32", 2, 1, 9), number([3]), *limits(rng)[1:]],
        {"center_point_box": True, "limited": False}, (2,),
    ),
    "keep_boxes": lambda rng: Case(
        "vision.keep_boxes", [boxes(rng, 50), wild(rng, "float32", 50)], {"iou_threshold": 0.3}
    ),
    "all classes": lambda rng: Case(
        "vision.all_class_non_max_suppression",
        [boxes(rng, 2, 20), wild(rng, "float32", 2, 2, 20), *limits(rng)],
        {"output_format": rng.choice(["onnx", "tensorflow"])},
    ),
    "rows of boxes": lambda rng: Case(
        "vision.non_max_suppression", detections(rng, 25),
        {"return_indices": bool(rng.integers(2)), "invalid_to_bottom": bool(rng.integers(2))},
    ),
    "valid counts": lambda rng: Case(
        "vision.get_valid_counts", [detections(rng, 20)[0], number(0.2, np.float32)]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MAKERS)
def test_native_results_are_the_references(native, name: str) -> None:
    for seed in range(3):
        run_native(native, MAKERS[name](np.random.default_rng(seed)), "native")


@pytest.mark.parametrize("name", [
    "long sort", "topk", "nonzero", "compress rows", "select_boxes", "cumsum along", "scatter_nd",
])  # fmt: skip
@pytest.mark.parametrize("way", ["avx2", "generic"])
def test_other_targets(native, name: str, way: str) -> None:
    run_native(native, MAKERS[name](np.random.default_rng(5)), way)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_much_data(native, name: str) -> None:
    for seed in range(100, 140):
        run_native(native, MAKERS[name](np.random.default_rng(seed)), "native")


@pytest.mark.parametrize("name", [
    "short sort", "best along", "top_k of few", "argwhere", "compress", "unique rows", "cumprod",
    "scatter_elements", "searchsorted", "slice", "select few boxes", "valid counts",
])  # fmt: skip
def test_nests_stay_inside(name: str) -> None:
    run_numpy(MAKERS[name](np.random.default_rng(9)))


def test_many_keys_go_through_a_sample(native) -> None:
    rng = np.random.default_rng(2)
    for x in (
        rng.standard_normal(9001).astype(np.float32),
        np.sort(rng.standard_normal(9001)).astype(np.float32),
        np.tile(np.array([0, -0.0, 1], np.float32), 3001)[:9001],
        np.full(9001, np.nan, np.float32),
        np.where(np.arange(9001) % 9 == 0, np.float32(7), rng.random(9001).astype(np.float32)),
    ):
        for k in (5, 900):
            run_native(native, Case("topk", [x], {"k": k, "dtype": "int64"}), "native")
