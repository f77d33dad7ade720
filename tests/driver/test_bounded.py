"""Operators whose results data sizes, run alone; and those of fixed sizes inside programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base import config
from ixion.base import dtype as dtypes
from ixion.base.errors import InputError, KernelError, RegistryError
from ixion.driver.bounded import compile_bounded
from ixion.ir import Call, Function, IRModule, TensorType, Var, const
from ixion.runtime.bounded import cut
from ixion.transform.infer_type import InferType

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def typed(name: str, *args: Array | TensorType, **attrs: Any) -> Call:
    """A call on variables of some types and on constants."""
    given = [Var(f"x{i}", a) if isinstance(a, TensorType) else const(a) for i, a in enumerate(args)]
    params = [v for v in given if isinstance(v, Var)]
    function = Function(params, op.call(name, *given, **attrs))
    body = InferType()(IRModule.from_expr(function))["main"].body
    assert isinstance(body, Call)
    return body


def floats(*shape: int) -> TensorType:
    return TensorType(shape, "float32")


def test_results_have_their_true_sizes() -> None:
    nonzero = compile_bounded(typed("nonzero", floats(3, 4)))
    x = np.zeros((3, 4), np.float32)
    (none,) = nonzero(x)
    assert none.shape == (2, 0)
    x[1, 2] = x[2, 0] = np.nan
    assert nonzero(x)[0].tolist() == [[1, 2], [2, 0]]
    (whole,) = nonzero(np.ones((3, 4), np.float32))
    assert whole.tolist() == np.argwhere(np.ones((3, 4))).T.tolist()


def test_a_small_result_does_not_hold_a_large_buffer() -> None:
    argwhere = compile_bounded(typed("argwhere", floats(1000)))
    (found,) = argwhere(np.eye(1, 1000, dtype=np.float32)[0])
    assert found.tolist() == [[0]]
    assert found.base is None or found.base.size <= 2


def test_sizes_of_the_arguments_may_be_open() -> None:
    call = typed("unique", TensorType((ixion.base.dim.Any(),), "int64"), return_counts=True)
    unique = compile_bounded(call)
    for n in (0, 1, 9, 300):
        x = RNG.integers(0, 5, n)
        values, first, inverse, total, counts = unique(x)
        want = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        for got, expected in zip((values, first, inverse, counts), want, strict=True):
            assert got.tolist() == expected.tolist()
        assert total.tolist() == [len(want[0])]


def test_executables_are_kept_and_let_go() -> None:
    call = typed("compress", TensorType((ixion.base.dim.Any(),), "float32"),
                 TensorType((ixion.base.dim.Any(),), "bool"))  # fmt: skip
    compress = compile_bounded(call)
    first = compress.executable(((4,), (4,)))
    assert compress.executable(((4,), (4,))) is first
    with config.override(shape_cache=1):
        compress.executable(((5,), (4,)))
        assert compress.executable(((4,), (4,))) is not first


def test_a_constant_limit_bounds_the_result() -> None:
    limits = (np.array([3]), np.array([0.5], np.float32), np.array([0.0], np.float32))
    call = typed("vision.select_boxes", floats(1, 50, 4), floats(1, 4, 50), *limits)
    select = compile_bounded(call)
    assert select.executable(((1, 50, 4), (1, 4, 50))).program.outputs[0].shape == (12, 3)
    corner = RNG.random((1, 50, 2)).astype(np.float32)
    boxes = np.concatenate([corner, corner + np.float32(0.01)], 2)
    (rows,) = select(boxes, np.ones((1, 4, 50), np.float32))
    assert len(rows) == 12


@pytest.mark.parametrize("threads", [1, 2])
def test_many_tasks(threads: int) -> None:
    x = (RNG.random((30, 4000)) < 0.3).astype(np.float32)
    argwhere = compile_bounded(typed("argwhere", floats(30, 4000)), threads=threads)
    np.testing.assert_array_equal(argwhere(x)[0], np.argwhere(x))
    kept = RNG.random(4000) < 0.5
    call = typed("compress", floats(30, 4000), TensorType((4000,), "bool"), axis=1)
    np.testing.assert_array_equal(compile_bounded(call, threads=threads)(x, kept)[0], x[:, kept])


def test_bad_arguments() -> None:
    top = compile_bounded(typed("top_k", floats(5), TensorType((), "int64")))
    x = np.arange(5, dtype=np.float32)
    assert [a.tolist() for a in top(x, np.array(2))] == [[4, 3], [4, 3]]
    for k in (-1, 6, -(2**63), 2**63 - 1):
        with pytest.raises(KernelError, match="not accepted") as caught:
            top(x, np.array(k))
        assert caught.value.index == k
    with pytest.raises(InputError):
        top(x)
    with pytest.raises(InputError):
        top(x.astype(np.float64), np.array(1))
    with pytest.raises(RegistryError, match="how large"):
        compile_bounded(typed("negative", floats(3)))(x[:3])


def test_cut_takes_shapes_in_turn() -> None:
    buffers = [np.arange(12).reshape(3, 4), np.arange(5)]
    first, second = cut(buffers, np.array([2, 3, 0]))
    assert first.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert second.shape == (0,)
    assert first.base is not None


@pytest.mark.parametrize(
    ("name", "arrays", "attrs"),
    [
        ("sort", [RNG.random((3, 200), np.float32)], {"axis": 1}),
        ("topk", [RNG.random((3, 200), np.float32)], {"k": 5}),
        ("cumsum", [RNG.random((3, 200), np.float32)], {"axis": 0}),
        ("scatter_nd", [np.zeros((5, 3), np.float32), np.array([[1, 4]]),
                        RNG.random((2, 3), np.float32)], {}),
        ("scatter_elements", [np.zeros(9, np.float32), RNG.integers(0, 9, 2000),
                              RNG.random(2000, np.float32)], {"reduction": "add"}),
        ("searchsorted", [np.sort(RNG.random(30)), RNG.random((4, 5))], {}),
    ],
)  # fmt: skip
def test_programs_have_no_host_steps(name: str, arrays: list[Array], attrs: dict[str, Any]) -> None:
    params = [
        Var(f"x{i}", TensorType(a.shape, dtypes.from_numpy(a.dtype))) for i, a in enumerate(arrays)
    ]
    result = op.call(name, *params, **attrs)
    main = Function(params, op.add(result, result) if name == "cumsum" else result)
    exe = ixion.compile(main)
    assert not exe.program.hosts
    want = ixion.compile(main, executor="reference").run_flat(arrays)
    for got, expected in zip(exe.run_flat(arrays), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_scatter_may_take_the_place_of_its_data() -> None:
    """The data of the scatter is a value of the program that nobody reads later."""
    x, where = Var("x", floats(64)), Var("where", TensorType((3,), "int64"))
    doubled = op.add(x, x)
    body = op.scatter_elements(doubled, where, op.take(x, where, axis=0))
    exe = ixion.compile(Function([x, where], op.negative(body)))
    values, places = RNG.random(64, np.float32), np.array([5, 0, 63])
    want = values * 2
    want[places] = values[places]
    np.testing.assert_array_equal(exe.run_flat([values, places])[0], -want)


def test_a_fault_names_the_index() -> None:
    x, where = Var("x", floats(4)), Var("where", TensorType((2,), "int64"))
    exe = ixion.compile(Function([x, where], op.scatter_elements(x, where, op.take(x, where))))
    with pytest.raises(KernelError, match="index out of range") as caught:
        exe.run_flat([np.zeros(4, np.float32), np.array([0, -5])])
    assert caught.value.index == -5
