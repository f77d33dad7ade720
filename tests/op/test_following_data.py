"""Operators whose work follows the data, on adversarial data: against onnxruntime, torch and numpy.

Empty, all equal, NaN, infinities, zeros of both signs, duplicates, full and empty selections.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.base import dtype as dtypes
from ixion.base.errors import KernelError, TypeInferenceError
from ixion.ir.op import Op
from ixion.ir.types import TensorType, TupleType
from ixion.op.bounds import bounded_type
from ixion.op.define import InferArgs

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

Array = np.ndarray[Any, Any]
NAN, INF = np.nan, np.inf
FLOATS = ("float32", "float64", "float16")
KINDS = (*FLOATS, "int8", "uint8", "int32", "int64", "bool")


def vectors(dtype: str) -> list[Array]:
    """Empty, all zero, all one, ties; NaN among infinities and zeros, or the ends of the range."""
    kind = np.dtype(dtype)
    found = [np.zeros(0, kind), np.zeros(9, kind), np.ones(9, kind)]
    if kind.kind == "f":
        wild = [NAN, INF, -INF, 0.0, -0.0, NAN, 1, -1, INF, 1, -0.0, 0.0]
        found += [np.full(5, NAN, kind), np.array(wild, kind)]
    elif kind.kind in "iu":
        info = np.iinfo(kind)
        found.append(np.array([info.max, info.min, 0, info.max, info.min, 1], kind))
    return [*found, np.array([2, 1, 1, 3, 0, 3, 1, 2]).astype(kind)]


def onnx_run(kind: str, inputs: list[Any], outputs: int = 1, opset: int = 18, **attrs: Any) -> Any:
    names = [f"x{i}" for i in range(len(inputs))]
    outs = [f"y{i}" for i in range(outputs)]
    types = [
        onnx.helper.make_tensor_value_info(
            n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
        )
        for n, x in zip(names, inputs, strict=True)
    ]
    node = onnx.helper.make_node(kind, names, outs, **attrs)
    results = [onnx.ValueInfoProto(name=o) for o in outs]
    graph = onnx.helper.make_graph([node], "g", types, results)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs, strict=True)))


def op_args(name: str, arrays: list[Array], attrs: dict[str, Any]) -> tuple[Op, InferArgs]:
    op = Op.get(name)
    types = tuple(TensorType(a.shape, dtypes.from_numpy(a.dtype)) for a in arrays)
    values = tuple(a if a.dtype.kind in "iub" else None for a in arrays)
    return op, InferArgs(name, types, op.attrs_type(**attrs) if op.attrs_type else None, values)


def run(name: str, *arrays: Array, **attrs: Any) -> list[Array]:
    """The reference, whose results must be of the inferred types and within their bounds."""
    op, args = op_args(name, list(arrays), attrs)
    kind = op.get_attr("FInfer")(args).type
    out = op.get_attr("FReference")(args.attrs, arrays, kind)
    results = list(out) if isinstance(out, tuple) else [out]
    types = kind.fields if isinstance(kind, TupleType) else [kind]
    for one, result in zip(types, results, strict=True):
        assert one.dtype == dtypes.from_numpy(result.dtype)
    if op.get_attr("FResultBound") is not None:
        *bounds, extents = bounded_type(op, args, kind).fields
        assert extents.shape == (sum(r.ndim for r in results),)
        for bound, result in zip(bounds, results, strict=True):
            assert all(n <= most for n, most in zip(result.shape, bound.shape, strict=True))
    return results


def same(got: Any, want: Any) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", KINDS)
def test_order_is_torchs(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    for x in vectors(dtype):
        for descending in (False, True):
            values, places = torch.sort(torch.from_numpy(x), stable=True, descending=descending)
            same(run("sort", x, axis=0, is_ascend=not descending)[0], values.numpy())
            order = run("argsort", x, axis=-1, is_ascend=not descending, dtype="int64")
            same(order[0], places.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_takes_the_first_of_equals(dtype: str, largest: int) -> None:
    for x in vectors(dtype):
        if x.dtype.kind == "f" and np.isnan(x).any():
            continue  # onnxruntime leaves NaN where its heap puts it
        for k in range(len(x) + 1):
            want = onnx_run("TopK", [x, np.array([k], np.int64)], 2, largest=largest)
            got = run("top_k", x, np.array([k], np.int64), is_ascend=not largest)
            for g, w in zip(got, want, strict=True):
                same(g, w)
            if k:
                got = run("topk", x, k=k, is_ascend=not largest, dtype="int64")
                for g, w in zip(got, want, strict=True):
                    same(g, w)


def test_top_k_of_nan_is_torchs() -> None:
    torch = pytest.importorskip("torch")
    x = np.array([[1, NAN, 3, -INF], [NAN, NAN, INF, 0]], np.float32)
    for largest in (False, True):
        want = torch.topk(torch.from_numpy(x), 3, largest=largest)[0].numpy()
        same(run("topk", x, k=3, is_ascend=not largest)[0], want)


def test_k_outside_of_the_axis_is_refused() -> None:
    x = np.zeros((2, 3), np.float32)
    for k in (-1, 4, 2**63 - 1):
        with pytest.raises(TypeInferenceError, match="within the axis"):
            run("top_k", x, np.array(k, np.int64))
        op, args = op_args("top_k", [x, np.array(k, np.int64)], {})
        with pytest.raises(KernelError, match="of an axis of 3"):
            op.get_attr("FReference")(args.attrs, (x, np.array(k, np.int64)), None)
    with pytest.raises(TypeInferenceError, match="larger than the axis"):
        run("topk", x, k=4)
    op, args = op_args("dyn.topk", [x, np.array(4, np.int64)], {})
    with pytest.raises(KernelError, match="of an axis of 3"):
        op.get_attr("FReference")(args.attrs, (x, np.array(4, np.int64)), None)


@pytest.mark.parametrize("dtype", KINDS)
def test_nonzero(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    arrays = [*vectors(dtype), np.ones((2, 0, 3), dtype), np.zeros((), dtype), np.ones((), dtype)]
    for x in arrays:
        rows = torch.nonzero(torch.from_numpy(x)).numpy()
        same(run("argwhere", x)[0], rows)
        # For a scalar ONNX asks for (0, n), other than numpy's nonzero.
        same(run("nonzero", x)[0], rows.T)
    for x in vectors(dtype):
        if dtype in ("float32", "int32", "int64", "uint8", "bool"):
            same(run("nonzero", x)[0], onnx_run("NonZero", [x])[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("rising", [0, 1])
def test_unique_of_everything(dtype: str, rising: int) -> None:
    for x in vectors(dtype):
        if x.dtype.kind == "f" and np.isnan(x).any():
            continue  # onnxruntime's map has no order for NaN
        want = onnx_run("Unique", [x], 4, sorted=rising)
        for g, w in zip(run("unique_slices", x, sorted=bool(rising)), want, strict=True):
            same(g, w)
        got = run("unique", x, sorted=bool(rising), return_counts=True)
        for g, w in zip((*got[:3], got[4]), want, strict=True):
            same(g, w)
        assert got[3].tolist() == [len(want[0])]


@pytest.mark.parametrize("rising", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_unique_along_an_axis(rising: int, axis: int) -> None:
    rng = np.random.default_rng(axis + 3)
    for shape in ((3, 4, 2), (4, 1, 5), (1, 1, 1)):
        x = rng.integers(0, 2, shape).astype(np.float32)
        want = onnx_run("Unique", [x], 4, sorted=rising, axis=axis)
        for g, w in zip(
            run("unique_slices", x, sorted=bool(rising), axis=axis), want, strict=True
        ):
            same(g, w)


def test_unique_of_nan() -> None:
    torch = pytest.importorskip("torch")
    for x in vectors("float32"):
        one = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        for g, w in zip(run("unique_slices", x), one, strict=True):
            same(g, w)
        values, inverse, counts = torch.unique(
            torch.from_numpy(x), return_inverse=True, return_counts=True
        )
        got = run("unique_slices", x, nan_equal=False)
        for g, w in zip((got[0], got[2], got[3]), (values, inverse, counts), strict=True):
            same(g, w.numpy())
    rows = np.array([[NAN, 1], [NAN, 1], [1, NAN], [1, 2], [1, 2]], np.float32)
    assert len(run("unique_slices", rows, axis=0, nan_equal=False)[0]) == 4
    assert len(run("unique_slices", rows, axis=0, nan_equal=True)[0]) == 3


def test_unique_slices_without_elements_are_one() -> None:
    values, first, inverse, counts = run("unique_slices", np.zeros((3, 0), np.float32), axis=0)
    assert values.shape == (1, 0)
    assert (first.tolist(), inverse.tolist(), counts.tolist()) == ([0], [0, 0, 0], [3])
    assert [r.shape for r in run("unique_slices", np.zeros((0, 3), np.int8), axis=0)] == [
        (0, 3), (0,), (0,), (0,)
    ]  # fmt: skip


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None) -> None:
    rng = np.random.default_rng(3)
    for shape in ((4, 5), (1, 7), (6, 1)):
        x = rng.standard_normal(shape).astype(np.float32)
        size = x.size if axis is None else x.shape[axis]
        for mask in (
            np.zeros(size, bool), np.ones(size, bool), rng.random(size) < 0.5,
            np.ones(max(size - 2, 0), bool), np.ones(size + 3, bool), np.zeros(0, bool),
        ):  # fmt: skip
            extra = {} if axis is None else {"axis": axis}
            want = onnx_run("Compress", [x, mask], **extra)[0]
            same(run("compress", x, mask, axis=axis)[0], want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_running_sums(dtype: str, exclusive: int) -> None:
    cube = np.arange(24).reshape(2, 3, 4).astype(dtype)
    arrays = [*vectors(dtype), np.ones((3, 0, 2), dtype), cube]
    for x in arrays:
        for axis in range(-x.ndim, x.ndim):
            want = onnx_run("CumSum", [x, np.array(axis, np.int64)], exclusive=exclusive)[0]
            same(run("cumsum", x, axis=axis, exclusive=bool(exclusive))[0], want)


def test_a_sum_as_integers_is_cut_to_their_range() -> None:
    x = np.array([1.9, NAN, 1], np.float32)
    assert run("cumsum", x, axis=0, dtype="int32")[0].tolist() == [1, 0, 0]
    big = np.array([2.0**31, 1], np.float64)
    assert run("cumsum", big, axis=0, dtype="int32")[0].tolist() == [2**31 - 1] * 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_scatters(dtype: str, reduction: str) -> None:
    rng = np.random.default_rng(5)
    own = "update" if reduction == "none" else reduction
    x, updates = (rng.integers(-4, 5, s).astype(dtype) for s in ((4, 5), (3, 2)))
    for axis in (0, 1, -1):
        for indices in (
            rng.integers(-x.shape[axis], x.shape[axis], (3, 2)), np.zeros((3, 2), np.int64),
        ):  # fmt: skip
            want = onnx_run(
                "ScatterElements", [x, indices, updates], axis=axis, reduction=reduction
            )
            same(run("scatter_elements", x, indices, updates, axis=axis, reduction=own)[0], want[0])
    rows = rng.integers(-4, 5, (3, 5)).astype(dtype)
    for places in (np.array([[1, -1, 1]]), np.zeros((1, 3), np.int64)):
        want = onnx_run("ScatterND", [x, np.ascontiguousarray(places.T), rows], reduction=reduction)
        same(run("scatter_nd", x, places, rows, mode=own)[0], want[0])


@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max", "mean"])
def test_scatter_of_nan_is_torchs(reduction: str) -> None:
    torch = pytest.importorskip("torch")
    names = {"add": "sum", "mul": "prod", "min": "amin", "max": "amax", "mean": "mean"}
    x = np.array([0, -0.0, INF, NAN, 1], np.float32)
    updates = np.array([NAN, 1, -INF, 2, -0.0, 3], np.float32)
    indices = np.array([0, 1, 2, 3, 1, 4])
    want = torch.from_numpy(x).scatter_reduce(
        0, torch.from_numpy(indices), torch.from_numpy(updates), names[reduction]
    )
    same(run("scatter_elements", x, indices, updates, reduction=reduction)[0], want.numpy())


@pytest.mark.parametrize("index", [4, -5, 2**63 - 1, -(2**63)])
def test_scatter_refuses_an_index_outside(index: int) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(KernelError, match="outside"):
        run("scatter_elements", x, np.array([index]), np.ones(1, np.float32))
    with pytest.raises(KernelError, match="outside"):
        run("scatter_nd", x, np.array([[index]]), np.ones(1, np.float32))


def test_scatter_indices_must_not_reach_past_the_data() -> None:
    x, wide = np.zeros((2, 3), np.float32), np.zeros((3, 1), np.int64)
    with pytest.raises(TypeInferenceError, match="reach past"):
        run("scatter_elements", x, wide, np.zeros((3, 1), np.float32), axis=1)


@pytest.mark.parametrize("right", [False, True])
def test_search_with_nan_and_infinities(right: bool) -> None:
    table = np.array([-INF, -0.0, 0.0, 1, 1, INF, NAN, NAN], np.float32)
    values = np.array([NAN, INF, -INF, 0.0, -0.0, 1, 2], np.float32)
    want = np.searchsorted(table, values, side="right" if right else "left")
    same(run("searchsorted", table, values, right=right)[0], want)
    assert run("searchsorted", table[:0], values, right=right)[0].tolist() == [0] * 7
