"""Models whose sizes come with their inputs: one compilation, right at every size."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base import config
from ixion.base import dim as dims
from ixion.base.dim import SymVar
from ixion.base.errors import InputError
from ixion.driver.executable import OpenCompiledExecutable
from ixion.ir import Expr, Function, TensorType, Tuple, Var, const
from ixion.runtime.outline_text import decode_outline, encode_outline
from ixion.runtime.program_file import load_program, save_program

Array = np.ndarray[Any, np.dtype[Any]]
n, m = SymVar("n"), SymVar("m")
SIZES = (1, 2, 3, 7, 16, 17, 64, 131)


def tensor(name: str, *shape: Any, dtype: str = "float32") -> Var:
    return Var(name, TensorType(shape, dtype))


def compiled(params: list[Var], body: Expr, **options: Any) -> OpenCompiledExecutable:
    made = ixion.compile(Function(params, body), **options)
    assert isinstance(made, OpenCompiledExecutable)
    return made


def random(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


X = tensor("x", 2, n, 24)
CASES: dict[str, tuple[Expr, Callable[[Array], Array]]] = {
    "elementwise": (op.add(op.exp(X), const(np.float32(1))), lambda x: np.exp(x) + 1),
    "transpose": (op.transpose(X, [0, 2, 1]), lambda x: x.transpose(0, 2, 1)),
    "sum over the open axis": (op.sum(X, [1]), lambda x: x.sum(1)),
    "maximum over the closed axis": (op.max(X, [2], True), lambda x: x.max(2, keepdims=True)),
    "mean of everything": (op.mean(X, [0, 1, 2]), lambda x: np.asarray(x.mean())),
    "softmax along the open axis": (op.nn.softmax(X, 1), lambda x: softmax(x, 1)),
    "softmax along the closed axis": (op.nn.softmax(X, -1), lambda x: softmax(x, -1)),
    "merged axes": (op.reshape(X, [-1, 24]), lambda x: x.reshape(-1, 24)),
    "split axis": (op.reshape(X, [0, 0, 4, 6]), lambda x: x.reshape(2, -1, 4, 6)),
    "joined along the open axis": (
        op.concatenate(Tuple((X, op.negative(X))), 1), lambda x: np.concatenate([x, -x], 1)
    ),
    "part of the open axis": (op.strided_slice(X, [0], [1], [1], axes=[1]), lambda x: x[:, :1]),
    "product of two open operands": (
        op.nn.batch_matmul(X, X, transpose_b=True), lambda x: x @ x.transpose(0, 2, 1)
    ),
    "padding of the open axis": (
        op.nn.pad(X, [(0, 0), (2, 1), (0, 0)]), lambda x: np.pad(x, [(0, 0), (2, 1), (0, 0)])
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_compilation_for_every_size(name: str) -> None:
    body, reference = CASES[name]
    model = compiled([X], body, threads=2)
    for number, size in enumerate(SIZES):
        x = random(2, size, 24, seed=size)
        np.testing.assert_allclose(model(x), reference(x), rtol=2e-5, atol=2e-5)
        assert model.plans == number + 1
    x = random(2, SIZES[0], 24)
    model(x)
    assert model.plans == len(SIZES)


@pytest.mark.parametrize("name", ["elementwise", "transpose", "merged axes", "split axis"])
def test_a_size_of_zero(name: str) -> None:
    body, reference = CASES[name]
    x = random(2, 0, 24)
    got = compiled([X], body)(x)
    assert got.shape == reference(x).shape


def test_nothing_joined_with_something() -> None:
    x, y = tensor("x", n, 4), tensor("y", m, 4)
    model = compiled([x, y], op.concatenate(Tuple((op.exp(x), y)), 0))
    for sizes in ((0, 3), (3, 0), (0, 0), (2, 5)):
        a, b = random(sizes[0], 4), random(sizes[1], 4, seed=1)
        np.testing.assert_allclose(model(a, b), np.concatenate([np.exp(a), b]), rtol=1e-5)


def test_looks_at_nothing_stay_in_memory() -> None:
    """Lanes of a concatenation are read at the last element, which for none is before the first."""
    x, y = tensor("x", n, 4), tensor("y", m, 4)
    both = op.strided_slice(op.concatenate(Tuple((x, y)), 0), [0], [7], [1])
    model = compiled([x, y], op.sum(both, [0]), threads=1)
    for sizes in ((2, 3), (0, 3), (0, 0), (3, 0)):
        a, b = random(sizes[0], 4), random(sizes[1], 4, seed=1)
        np.testing.assert_allclose(model(a, b), np.concatenate([a, b]).sum(0), rtol=1e-5)
        program = model.native.program_for((a.shape, b.shape))
        places = [s.offset for step in program.steps for s in step.slots if s.kind == "arena"]
        if 0 in sizes:
            assert min(places) >= 16
            assert max(places) + 16 <= program.arena_size


def test_a_size_that_seems_to_be_fixed_once_there_is_something() -> None:
    """Of at least 4 elements 4 are taken; of 3 only 3, and no byte behind them is written."""
    x, y = tensor("x", 3), tensor("y", n)
    part = op.strided_slice(op.concatenate(Tuple((x, y)), 0), [0], [4], [1])
    model = compiled([x, y], op.nn.relu(part))
    room = np.full(16, 7, np.float32)
    for size in (2, 0):
        a, b = random(3), random(size, seed=1)
        want = np.maximum(np.concatenate([a, b])[:4], 0)
        room[:] = 7
        model.native.run_flat([a, b], [room[4 : 4 + len(want)]])
        np.testing.assert_array_equal(room[4 : 4 + len(want)], want)
        assert (room[4 + len(want) :] == 7).all()


def test_sums_of_nothing() -> None:
    x = tensor("x", n, 4)
    np.testing.assert_array_equal(compiled([x], op.sum(x, [0]))(random(0, 4)), np.zeros(4))


def test_broadcasting_is_decided_when_sizes_are_known() -> None:
    x, y = tensor("x", n, 4), tensor("y", m, 4)
    model = compiled([x, y], op.add(x, y))
    for sizes in ((3, 3), (1, 5), (5, 1)):
        a, b = random(sizes[0], 4), random(sizes[1], 4, seed=1)
        np.testing.assert_allclose(model(a, b), a + b, rtol=1e-6)
    with pytest.raises(InputError, match="n = 3") as caught:
        model(random(3, 4), random(2, 4))
    assert "m = 2" in str(caught.value)
    assert "add" in str(caught.value)


def test_equal_names_must_be_equal_sizes() -> None:
    x, y = tensor("x", n, 4), tensor("y", n)
    model = compiled([x, y], op.add(x, op.expand_dims(y, 1)))
    with pytest.raises(InputError, match="'y'") as caught:
        model(random(3, 4), random(2))
    assert "n is 3 by axis 0 of input 'x'" in str(caught.value)


def test_a_size_found_from_an_expression() -> None:
    x = tensor("x", dims.add(dims.multiply(2, n), 1))
    model = compiled([x], op.exp(x))
    np.testing.assert_allclose(model(random(7)), np.exp(random(7)), rtol=1e-6)
    with pytest.raises(InputError, match="axis 0"):
        model(random(6))


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 25), (1, 3, 24)])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    body, _ = CASES["elementwise"]
    with pytest.raises(InputError, match="'x'"):
        compiled([X], body)(random(*shape))


def test_names_that_are_no_identifiers() -> None:
    odd = SymVar("total time (s)")
    x = tensor("x", odd, 3)
    np.testing.assert_allclose(compiled([x], op.sqrt(x))(np.ones((4, 3), np.float32)), 1)


def test_the_number_of_plans_kept_is_bounded() -> None:
    body, reference = CASES["elementwise"]
    with config.override(plan_cache=3):
        model = compiled([X], body)
        for size in (1, 2, 3, 4, 5, 1):
            x = random(2, size, 24)
            np.testing.assert_allclose(model(x), reference(x), rtol=1e-5)
        assert model.plans == 6
        assert len(model.native._known) == 3


def test_many_threads_with_sizes_of_their_own() -> None:
    body, reference = CASES["softmax along the open axis"]
    model = compiled([X], body, threads=2)
    wrong: list[int] = []

    def work(size: int) -> None:
        x = random(2, size, 24, seed=size)
        for _ in range(20):
            if not np.allclose(model(x), reference(x), atol=1e-5):
                wrong.append(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in SIZES]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_outlines_on_disk(tmp_path: Any) -> None:
    body, _ = CASES["softmax along the open axis"]
    outline = compiled([X], body).outline
    path = tmp_path / "model.ixp"
    save_program(outline, path)
    again = load_program(path, verify=True)
    assert encode_outline(again) == encode_outline(outline)  # type: ignore[arg-type]
    broken = encode_outline(outline)
    broken["steps"][0]["rooms"] = [99]
    with pytest.raises(Exception, match="rooms"):
        decode_outline(broken, [], [])


def test_a_host_step_of_open_sizes() -> None:
    x = tensor("x", n)
    placed = op.scatter_nd(x, const(np.array([[0]])), op.ones((1,), "float32"))
    model = compiled([x], op.exp(placed))
    for size in (1, 5):
        want = random(size)
        want[0] = 1
        np.testing.assert_allclose(model(random(size)), np.exp(want), rtol=1e-5)


def test_a_size_that_cannot_vary_is_a_number() -> None:
    """A reshape that was exported for a batch of 2 says what the open batch is."""
    x = tensor("x", n, 6)
    made = ixion.compile(Function([x], op.reshape(op.exp(x), [2, 3, 2])))
    assert made.inputs[0].shape == (2, 6)
    assert made.program is not None
    with pytest.raises(InputError):
        made(random(3, 6))


def test_some_sizes_given_and_others_left_open() -> None:
    x, y = tensor("x", n, m), tensor("y", n)
    body = op.add(x, op.expand_dims(y, 1))
    made = ixion.compile(Function([x, y], body), inputs={"x": (4, None)})
    assert [spec.shape for spec in made.inputs] == [(4, m), (4,)]
    for width in (1, 9):
        a, b = random(4, width), random(4, seed=1)
        np.testing.assert_allclose(made(a, b), a + b[:, None], rtol=1e-6)
    closed = ixion.compile(Function([x, y], body), inputs={"x": (4, 5)})
    assert closed.program is not None


def test_open_programs_are_verified_at_made_up_sizes() -> None:
    x, y = tensor("x", 2, n, 24), tensor("y", m, 24)
    body = op.nn.softmax(op.nn.batch_matmul(x, op.exp(x), transpose_b=True), -1)
    model = compiled([x, y], Tuple((body, op.add(y, y))), verify=True)
    assert model(random(2, 5, 24), random(3, 24))[0].shape == (2, 5, 5)


def test_a_small_network_of_any_picture() -> None:
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape).astype(np.float32) * 0.2
                     for shape in ((16, 3, 3, 3), (16, 16, 3, 3)))  # fmt: skip
    x = tensor("x", n, 3, m, SymVar("w"))
    y = op.nn.relu(op.nn.conv2d(x, const(first), padding=(1, 1)))
    y = op.nn.max_pool2d(y, pool_size=(2, 2), strides=(2, 2))
    y = op.nn.global_avg_pool2d(op.nn.conv2d(y, const(second), padding=(1, 1)))
    model = compiled([x], y)
    plain = ixion.compile(Function([x], y), executor="reference")
    for shape in ((1, 3, 8, 8), (2, 3, 33, 30), (3, 3, 16, 57), (1, 3, 2, 2)):
        value = random(*shape)
        np.testing.assert_allclose(model(value), plain(value), rtol=1e-4, atol=1e-5)
    assert model.plans == 4
