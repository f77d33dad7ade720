"""Programs with open sizes go through the pipeline to the kernels that their numbers would give."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ixion
from ixion import op
from ixion.analysis.dataflow import calls_inside, dataflow_order
from ixion.analysis.evaluate import evaluate
from ixion.base.dim import SymVar
from ixion.base.target import Target
from ixion.driver import pipeline
from ixion.driver.binding import bind_inputs
from ixion.frontend import load
from ixion.ir import (
    Call,
    Expr,
    Function,
    IRModule,
    TensorType,
    TupleGetItem,
    Var,
    const,
)
from ixion.op.typed import callee, op_name
from ixion.transform import InferType, guards_of
from ixion.transform.verify import VerifyInstrument

# Many kernels at many sizes: minutes of compilation.
pytestmark = pytest.mark.slow

SHARED = Path(__file__).parents[3] / "shared"
RNG = np.random.default_rng(5)
# Layouts are planned for sizes that are known.
STEPS = tuple(step for step in pipeline.COMPILED if step.name != "PlanLayouts")


def weights(*shape: int) -> Expr:
    return const((RNG.standard_normal(shape) * 0.2).astype(np.float32))


def through(module: IRModule, inputs: Any = None) -> IRModule:
    """The formed kernels; with ``inputs`` the value is judged after every pass."""
    watch = [] if inputs is None else [VerifyInstrument(inputs)]
    steps = list(pipeline.run(module, STEPS, Target.parse("avx512"), 3, watch))
    return steps[-1][1]


def kernels(module: IRModule) -> Counter[str]:
    """Operators of each formed kernel."""
    calls = [n for n in dataflow_order(module["main"].body) if isinstance(n, Call)]
    return Counter(" ".join(op_name(c) for c in calls_inside(callee(n))) for n in calls)


def norm(x: Expr, width: int) -> Expr:
    """Layer norm as exporters write it out."""
    away = op.subtract(x, op.mean(x, axis=[-1], keepdims=True))
    spread = op.mean(op.multiply(away, away), axis=[-1], keepdims=True)
    out = op.divide(away, op.sqrt(op.add(spread, const(1e-5))))
    return op.add(op.multiply(out, weights(width)), weights(width))


def product(x: Expr, ins: int, outs: int) -> Expr:
    return op.add(op.call("nn.dense", x, weights(outs, ins), units=outs), weights(outs))


def heads(x: Expr, shape: tuple[Any, ...], turned: bool = False) -> Expr:
    batch, length, count, size = shape
    parts = op.transpose(op.reshape(x, [batch, length, count, size]), [0, 2, 1, 3])
    rows = op.call("reshape", parts, newshape=(batch * count, length, size))
    return op.transpose(rows, [0, 2, 1]) if turned else rows


def transformer(batch: Any, length: Any) -> IRModule:
    """One block: norm, attention of two heads, a residual, norm, GELU, a residual."""
    x = Var("x", TensorType((batch, length, 16), "float32"))
    shape, inner = (batch, length, 2, 8), norm(x, 16)
    q, k, v = (product(inner, 16, 16) for _ in range(3))
    scores = op.call("nn.batch_matmul", heads(q, shape), heads(k, shape, turned=True),
                     transpose_b=False)  # fmt: skip
    chances = op.call("nn.softmax", op.multiply(scores, const(0.35)), axis=-1)
    mixed = op.call("nn.batch_matmul", chances, heads(v, shape), transpose_b=False)
    mixed = op.transpose(op.call("reshape", mixed, newshape=(batch, 2, length, 8)), [0, 2, 1, 3])
    y = op.add(product(op.call("reshape", mixed, newshape=(batch, length, 16)), 16, 16), x)
    wide = product(norm(y, 16), 16, 32)
    gate = op.add(op.erf(op.divide(wide, const(1.4142135))), const(1.0))
    gelu = op.multiply(op.multiply(wide, gate), const(0.5))
    return InferType()(IRModule.from_expr(Function([x], op.add(product(gelu, 32, 16), y))))


def convolve(x: Expr, ins: int, outs: int, size: int, **attrs: Any) -> Expr:
    weight = weights(outs, ins // attrs.get("groups", 1), size, size)
    return op.call("nn.conv2d", x, weight, channels=outs, kernel_size=(size, size), **attrs)


def batch_norm(x: Expr, width: int) -> Expr:
    variance = const(np.full(width, 0.5, np.float32))
    made = op.call("nn.batch_norm", x, weights(width), weights(width), weights(width), variance)
    return TupleGetItem(made, 0)


def picture_network(batch: Any, height: Any, width: Any) -> IRModule:
    """Convolutions with batch norm, a residual, a gate per channel, pooling, a skip connection."""
    x = Var("x", TensorType((batch, 3, height, width), "float32"))
    a = op.call("nn.relu", batch_norm(convolve(x, 3, 16, 3, padding=(1, 1)), 16))
    b = batch_norm(convolve(a, 16, 16, 3, padding=(1, 1)), 16)
    c = op.call("nn.relu", op.add(b, a))
    d = op.call("nn.relu", batch_norm(convolve(c, 16, 16, 3, padding=(1, 1), groups=16), 16))
    e = op.call("nn.max_pool2d", d, pool_size=(2, 2), strides=(2, 2))
    gate = op.sigmoid(convolve(op.call("nn.global_avg_pool2d", e), 16, 16, 1))
    up = op.call("nn.conv2d_transpose", op.multiply(e, gate), weights(16, 16, 2, 2), channels=16,
                 kernel_size=(2, 2), strides=(2, 2))  # fmt: skip
    joined = op.concatenate([up, d], 1)
    return InferType()(IRModule.from_expr(Function([x], convolve(joined, 32, 4, 1))))


NAMES = [SymVar(name) for name in ("batch", "height", "width", "length")]
BATCH, HEIGHT, WIDTH, LENGTH = NAMES
PROGRAMS = {
    "transformer": (transformer(BATCH, LENGTH), [(2, 5, 16), (1, 9, 16), (3, 1, 16)]),
    "pictures of one size": (picture_network(BATCH, 8, 12), [(2, 3, 8, 12), (5, 3, 8, 12)]),
    "pictures": (picture_network(1, HEIGHT, WIDTH), [(1, 3, 8, 12), (1, 3, 4, 2)]),
    "all open": (picture_network(BATCH, HEIGHT, WIDTH), [(2, 3, 6, 4), (1, 3, 2, 2)]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_pass_changes_the_value(name: str) -> None:
    module, shapes = PROGRAMS[name]
    for shape in shapes:
        through(module, [RNG.standard_normal(shape).astype(np.float32)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_those_of_known_sizes(name: str) -> None:
    module, shapes = PROGRAMS[name]
    found = kernels(through(module))
    for shape in shapes[:1]:
        assert found == kernels(through(bind_inputs(module, {"x": shape})))


def test_what_a_block_should_become() -> None:
    found = kernels(through(PROGRAMS["transformer"][0]))
    attention = next(k for k in found if "softmax" in k)
    assert attention.split().count("nn.batch_matmul") == 2
    assert any(k.startswith("nn.dense") and "erf" in k for k in found)
    assert sum(count for k, count in found.items() if "nn.layer_norm" in k) == 2
    assert not any(k == "add" for k in found)  # residuals are in other kernels


@pytest.mark.parametrize("name", PROGRAMS)
def test_bound_programs_have_the_value_of_open_ones(name: str) -> None:
    module, shapes = PROGRAMS[name]
    for shape in shapes:
        x = RNG.standard_normal(shape).astype(np.float32)
        bound = bind_inputs(module, {"x": shape})
        np.testing.assert_array_equal(evaluate(module, [x]), evaluate(bound, [x]))


@pytest.mark.parametrize("name", ["transformer", "pictures"])
def test_open_programs_compile_for_what_they_meet(name: str) -> None:
    module, shapes = PROGRAMS[name]
    exe = ixion.compile(module)
    for shape in shapes:
        x = RNG.standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(exe(x), evaluate(module, [x]), rtol=1e-4, atol=1e-5)


# The stored exporters' models, with the dims of their inputs opened.

OPENED: dict[str, dict[int, str]] = {
    "minilm_l6_dynamic": {}, "resnet50": {0: "batch"}, "unet": {2: "height", 3: "width"},
    "mobilenet_v2": {0: "batch"}, "efficientnet_b0": {0: "batch"}, "convnext_tiny": {0: "batch"},
}  # fmt: skip
FIXED = ("shufflenet_v2", "yolov5s", "minilm_l6")  # the batch of the example is built in
SIZES = {"batch": 2, "sequence": 6, "height": 32, "width": 48}


def opened(name: str, axes: dict[int, str], folder: Path) -> Path:
    """A stored skeleton with weights and with names for some sizes."""
    onnx = pytest.importorskip("onnx")
    source = SHARED / "models" / f"{name}.skeleton.onnx"
    if not source.exists():
        pytest.skip("the exporters' models are not here")
    model = onnx.load(source)
    for value in model.graph.input:
        for axis, text in axes.items():
            dim = value.type.tensor_type.shape.dim[axis]
            dim.Clear()
            dim.dim_param = text
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]
    for tensor in model.graph.initializer:
        if tensor.doc_string.startswith("ixion-random"):
            count = int(np.prod(tensor.dims))
            data = np.resize(RNG.standard_normal(4093).astype(np.float32) * 0.05, count)
            made = onnx.numpy_helper.from_array(data.reshape(tuple(tensor.dims)), tensor.name)
            tensor.CopyFrom(made)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def shapes_of(module: IRModule, sizes: dict[str, int] = SIZES) -> dict[str, tuple[int, ...]]:
    return {
        p.name_hint: tuple(sizes.get(str(d), d) for d in p.checked_type.shape)
        for p in module["main"].params
    }


def fed(name: str, module: IRModule, sizes: dict[str, int]) -> dict[str, Any]:
    """Inputs as the stored recipes have them; of a mask the first place is never masked."""
    recipes = json.loads((SHARED / "models" / "index.json").read_text())[name]["inputs"]
    feeds: dict[str, Any] = {}
    for key, shape in shapes_of(module, sizes).items():
        recipe = recipes[key]
        if recipe["kind"] == "normal":
            feeds[key] = RNG.standard_normal(shape).astype(np.float32)
        else:
            feeds[key] = RNG.integers(0, recipe.get("high", 2), shape).astype(recipe["dtype"])
        if recipe["kind"] == "ones":
            feeds[key][:, 0] = 1
    return feeds


def work(found: Counter[str]) -> Counter[str]:
    """Kernels without those that only count and index."""
    heads_ = ("conv", "dense", "matmul", "norm", "pool", "softmax", "erf", "concatenate", "mean")
    return Counter({k: count for k, count in found.items() if any(h in k for h in heads_)})


@pytest.mark.parametrize("name", OPENED)
def test_exported_models_form_the_kernels_of_known_sizes(name: str, tmp_path: Path) -> None:
    path = opened(name, OPENED[name], tmp_path)
    module = load(path)
    fixed = load(path, shapes_of(module))
    found, wanted = kernels(through(module)), kernels(through(fixed))
    assert sum(found.values()) == sum(wanted.values())
    assert work(found) == work(wanted)


@pytest.mark.parametrize("name", ["minilm_l6_dynamic", "unet"])
def test_exported_models_are_right_at_other_sizes(name: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = opened(name, OPENED[name], tmp_path)
    module = load(path)
    guards = guards_of(module)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for sizes in (SIZES, {"batch": 1, "sequence": 1, "height": 16, "width": 64}):
        feeds = fed(name, module, sizes)
        assert all(guard.holds(sizes) for guard in guards)
        (want, *_) = session.run(None, feeds)
        got = evaluate(module, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * float(np.abs(want).max()))


@pytest.mark.parametrize("name", FIXED)
def test_exported_models_with_a_batch_built_in(name: str, tmp_path: Path) -> None:
    module = load(opened(name, {0: "batch"}, tmp_path))
    assert all(p.checked_type.shape[0] == 1 for p in module["main"].params)


@pytest.mark.parametrize("name", ["gpt_dyn", "q_shape_dyn", "resnet18_dyn", "unet_dyn"])
def test_stored_networks_of_open_sizes(name: str) -> None:
    folder = SHARED / "pnnx" / "samples" / name
    if not folder.exists():
        pytest.skip("the converter's samples are not here")
    module = load(folder / f"{name}.pnnx.param")
    for file in ("io.npz", "io2.npz"):
        data = np.load(folder / file)
        keys = sorted(data.files)
        ins, outs = ([data[k] for k in keys if k.startswith(part)] for part in ("in", "out"))
        got = evaluate(module, ins)
        got = got if isinstance(got, tuple) else (got,)
        for value, want in zip(got, outs, strict=True):
            assert value.shape == want.shape
            np.testing.assert_allclose(value, want, rtol=1e-4, atol=1e-5)
        through(module, ins)
