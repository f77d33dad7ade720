"""A user's operator: reference only, then with compute, and from a file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import ixion
import ixion_extra
from ixion import ir, transform

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
WANT = X / (1 + np.abs(X))


def program() -> ir.IRModule:
    """relu(squash(-x))."""
    from ixion.op import call

    x = ir.var("x", shape=(2, 3, 4), dtype="float32")
    body = call("nn.relu", ixion_extra.squash(call("negative", x)))
    return ir.IRModule.from_expr(ir.Function([x], body))


def host_steps(exe) -> list[str]:
    program = exe.program
    return [program.hosts[step.host].op for step in program.steps if step.kind == "host"]


def test_on_the_reference_executor() -> None:
    exe = ixion.compile(program(), executor="reference")
    np.testing.assert_allclose(exe(X), np.maximum(-WANT, 0), rtol=1e-6)


def test_with_a_reference_only_it_is_a_host_step() -> None:
    exe = ixion.compile(program(), threads=1)
    assert host_steps(exe) == ["extra.squash"]
    np.testing.assert_allclose(exe(X), np.maximum(-WANT, 0), rtol=1e-6)


def test_with_a_compute_it_is_native(with_compute) -> None:
    exe = ixion.compile(program(), threads=1)
    assert host_steps(exe) == []
    np.testing.assert_allclose(exe(X), np.maximum(-WANT, 0), rtol=1e-6)


def test_its_text_parses_back() -> None:
    text = program().astext()
    assert "extra.squash" in text
    ir.assert_structural_equal(ixion.parse(text), transform.InferType()(program()))


def test_from_a_pnnx_file(tmp_path: Path) -> None:
    lines = [
        "7767517",
        "3 2",
        "pnnx.Input x 0 1 0 #0=(2,3,4)f32",
        "extra.Squash s 1 1 0 1 #0=(2,3,4)f32 #1=(2,3,4)f32",
        "pnnx.Output y 1 0 1 #1=(2,3,4)f32",
    ]
    path = tmp_path / "squash.pnnx.param"
    path.write_text("\n".join(lines) + "\n")
    zipfile.ZipFile(tmp_path / "squash.pnnx.bin", "w").close()
    np.testing.assert_allclose(ixion.compile(path, threads=1)(X), WANT, rtol=1e-6)


def test_from_an_onnx_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    value = [make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3, 4]) for n in "xy"]
    node = make.make_node("Squash", ["x"], ["y"], domain="extra")
    graph = make.make_graph([node], "squash", value[:1], value[1:])
    opsets = [make.make_opsetid("", 17), make.make_opsetid("extra", 1)]
    path = tmp_path / "squash.onnx"
    path.write_bytes(make.make_model(graph, opset_imports=opsets).SerializeToString())
    np.testing.assert_allclose(ixion.compile(path, threads=1)(X), WANT, rtol=1e-6)
