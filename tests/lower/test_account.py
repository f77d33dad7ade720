"""What a program says its steps stand for."""

from __future__ import annotations

import json

import numpy as np

from ixion import driver, ir, op


def weights(*shape: int) -> ir.Constant:
    return ir.const(np.ones(shape, np.float32))


def account_of(function: ir.Function) -> list[dict]:
    program = driver.compile(function, threads=1).program
    records = program.meta["account"]
    assert sum(record["steps"] for record in records) == len(program.steps)
    assert all(len(r["moved"]) == len(r["weights"]) == r["steps"] for r in records)
    assert json.loads(json.dumps(records)) == records
    return records


def test_fused_operators_and_bytes() -> None:
    """256 x 64 times 64 x 32: two operations a multiply-add, one an element for add and relu."""
    x = ir.var("x", shape=(256, 64), dtype="float32")
    made = op.nn.relu(op.add(op.nn.dense(x, weights(32, 64)), weights(32)))
    (record,) = account_of(ir.Function([x], made))
    assert record["ops"] == ["nn.dense", "add", "nn.relu"]
    assert record["flops"] == 2 * 256 * 64 * 32 + 2 * 256 * 32
    assert record["moved"] == [4 * (256 * 64 + 256 * 32)]
    assert record["weights"] == [4 * (64 * 32 + 32)]


def test_nodes_are_named_once_without_the_file() -> None:
    x = ir.var("x", shape=(8,), dtype="float32")
    span = ir.Span("model.onnx:block/0/Relu")
    inner = op.nn.relu(x).copy(span=span)
    (record,) = account_of(ir.Function([x], op.exp(inner).copy(span=span)))
    assert record["nodes"] == ["block/0/Relu"]


def test_kernels_of_several_steps_count_once() -> None:
    """A large Winograd convolution takes steps for transforms and products."""
    x = ir.var("x", shape=(1, 256, 14, 14), dtype="float32")
    made = op.nn.conv2d(x, weights(256, 256, 3, 3), padding=(1, 1))
    records = account_of(ir.Function([x], made))
    (conv,) = [record for record in records if "nn.conv2d" in record["ops"]]
    assert conv["flops"] == 2 * 256 * 256 * 9 * 14 * 14
    assert all(moved > 0 for moved in conv["moved"])
