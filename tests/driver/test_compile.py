from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.base import config
from ixion.base.errors import ConfigError, InputError, KernelError
from ixion.ir import Function, IRModule, Tuple, TupleGetItem, const, var

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with config.override(cache_dir=str(tmp_path_factory.getbasetemp() / "cache")):
        yield


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def convolution(x, ins, outs, size, stride=1):
    pad = size // 2
    y = op.call(
        "nn.conv2d", x, const(normal(outs, ins, size, size) * 0.2), strides=(stride, stride),
        padding=(pad,) * 4, channels=outs, kernel_size=(size, size),
    )  # fmt: skip
    return op.call("nn.relu", op.call("nn.bias_add", y, const(normal(outs))))


def small_network() -> IRModule:
    """Stem, residual, concatenation, squeeze and excite, pooling, classifier."""
    x = var("image", shape=(1, 3, 18, 18))
    y = convolution(x, 3, 16, 3, stride=2)
    y = op.call("nn.max_pool2d", y, pool_size=(3, 3), strides=(1, 1), padding=(1, 1, 1, 1))
    z = op.call("add", convolution(y, 16, 16, 3), y)
    z = op.call("concatenate", Tuple([z, convolution(y, 16, 20, 1)]), axis=1)
    gate = op.call("sigmoid", convolution(op.call("nn.global_avg_pool2d", z), 36, 36, 1))
    z = op.call("multiply", z, gate)
    parts = op.call("split", z, indices_or_sections=2, axis=1)
    z = op.call("subtract", TupleGetItem(parts, 0), TupleGetItem(parts, 1))
    flat = op.call(
        "nn.batch_flatten", op.call("nn.avg_pool2d", z, pool_size=(3, 3), strides=(3, 3))
    )
    scores = op.call("nn.dense", flat, const(normal(10, 162)), units=10)
    return IRModule.from_expr(Function([x], op.call("nn.softmax", scores)))


@pytest.mark.parametrize("target", ["native", "avx2", "generic"])
@pytest.mark.parametrize("opt_level", [0, 3])
def test_compiled_equals_reference(target: str, opt_level: int) -> None:
    module = small_network()
    x = normal(1, 3, 18, 18)
    want = ixion.compile(module, executor="reference")(x)
    exe = ixion.compile(module, target=target, opt_level=opt_level, threads=1)
    np.testing.assert_allclose(exe(x), want, rtol=1e-4, atol=1e-6)
    assert not exe.program.hosts
    two = ixion.compile(module, target=target, opt_level=opt_level, threads=2)
    np.testing.assert_array_equal(exe(x), two(x))


def test_names_shapes_and_both_ways_to_call() -> None:
    a, b = var("a", shape=(2, 3)), var("b", shape=(2, 3))
    body = Tuple([op.call("add", a, b), op.call("subtract", a, b)])
    exe = ixion.compile(IRModule.from_expr(Function([a, b], body)))
    x, y = normal(2, 3), normal(2, 3)
    assert [(s.name, s.shape, s.dtype) for s in exe.inputs] == [
        ("a", (2, 3), "float32"), ("b", (2, 3), "float32")
    ]  # fmt: skip
    assert [s.name for s in exe.outputs] == ["out0", "out1"]
    for result in (exe(x, y), exe((x, y))):
        np.testing.assert_array_equal(result[0], x + y)
        np.testing.assert_array_equal(result[1], x - y)
    named = exe.run({"b": y, "a": x})
    np.testing.assert_array_equal(named["out1"], x - y)
    with pytest.raises(InputError, match="did you mean 'a'"):
        exe.run({"aa": x, "b": y})
    with pytest.raises(InputError, match="shape"):
        exe(x[:1], y)
    with pytest.raises(InputError, match="dtype"):
        exe(x.astype(np.float64), y)


def test_an_output_that_is_an_input_a_constant_or_given_twice() -> None:
    x = var("x", shape=(3,))
    y = op.call("exp", x)
    module = IRModule.from_expr(Function([x], Tuple([x, const(np.float32([1, 2])), y, y])))
    data = normal(3)
    got = ixion.compile(module)(data)
    want = ixion.compile(module, executor="reference")(data)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-6)


def test_an_operator_without_compute_is_a_host_step() -> None:
    op.define(
        "test.host_only", inputs=("data",), pattern=None, level=10,
        infer=lambda args: args.tensor(0), reference=lambda attrs, ins, out: ins[0][::-1].copy(),
        doc="The data backwards.",
    )  # fmt: skip
    x = var("x", shape=(5,))
    body = op.call("exp", op.call("test.host_only", op.call("negative", x)))
    exe = ixion.compile(IRModule.from_expr(Function([x], body)))
    data = normal(5)
    np.testing.assert_allclose(exe(data), np.exp(-data[::-1]), rtol=1e-6)
    assert [h.op for h in exe.program.hosts] == ["test.host_only"]


def test_many_threads_call_one_executable() -> None:
    exe = ixion.compile(small_network(), threads=2)
    inputs = [normal(1, 3, 18, 18) for _ in range(8)]
    want = [exe(x) for x in inputs]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            if not np.array_equal(exe(inputs[i]), want[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_options_are_checked() -> None:
    module = small_network()
    with pytest.raises(ConfigError, match="did you mean 'compiled'"):
        ixion.compile(module, executor="compile")
    with pytest.raises(ConfigError, match="avx512"):
        ixion.compile(module, target="avx51")


def test_open_sizes_compile_per_shape() -> None:
    from ixion.base.dim import SymVar

    x = var("x", shape=(SymVar("n"), 4))
    module = IRModule.from_expr(Function([x], op.call("nn.relu", x)))
    exe = ixion.compile(module)
    for n in (1, 3, 3, 20):
        data = normal(n, 4)
        np.testing.assert_array_equal(exe(data), np.maximum(data, 0))
    with pytest.raises(InputError):
        exe(normal(2, 5))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("target", ["native", "generic"])
def test_indices_out_of_range_end_the_run_with_an_error(axis: int, target: str) -> None:
    x, i = var("x", shape=(5, 20)), var("i", shape=(7,), dtype="int64")
    body = op.call("take", x, i, axis=axis, mode="fast")
    exe = ixion.compile(IRModule.from_expr(Function([x, i], body)), target=target)
    data, index = normal(5, 20), np.array([0, 4, 2, 1, 3, 3, 0])
    want = np.take(data, index, axis=axis)
    np.testing.assert_array_equal(exe(data, index), want)
    for bad in (data.shape[axis], -1, 2**40, -(2**62)):
        wrong = index.copy()
        wrong[3] = bad
        with pytest.raises(KernelError, match=f"index {bad}|{bad}"):
            exe(data, wrong)
    np.testing.assert_array_equal(exe(data, index), want)
