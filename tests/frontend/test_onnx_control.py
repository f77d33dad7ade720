"""If, Loop and Scan of ONNX against onnxruntime: compiled where they are first-order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import ixion
from ixion.base.errors import IxionError
from ixion.frontend.onnx.importer import import_model
from ixion.frontend.onnx.model import parse_model
from ixion.ir import IRModule
from ixion.transform import InferType, why_left_alone

onnxruntime = pytest.importorskip("onnxruntime")
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
RNG = np.random.default_rng(3)


def info(name: str, shape: Any = None, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def node(kind: str, inputs: str, outputs: str, **attrs: Any) -> Any:
    """A node; "-" is an operand left out."""
    names = [("" if name == "-" else name) for name in inputs.split()]
    return helper.make_node(kind, names, outputs.split(), **attrs)


def graph(nodes: list[Any], inputs: list[Any], outputs: list[Any], **fixed: Any) -> Any:
    weights = [numpy_helper.from_array(np.asarray(a), name) for name, a in fixed.items()]
    return helper.make_graph(nodes, "g", inputs, outputs, weights)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], opset: int = 17, **fixed: Any):
    made = graph(nodes, inputs, outputs, **fixed)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def imported(made: Any) -> IRModule:
    return InferType()(import_model(parse_model(made.SerializeToString()), "m.onnx"))


def check(
    made: Any, *feeds: dict[str, Any], steps: bool = True, compiled: bool = True
) -> IRModule:
    """Equal to onnxruntime by the reference, and compiled where that is possible.

    `steps`: whether the control flow should become steps.
    """
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    mod = imported(made)
    reason = why_left_alone(mod)
    assert (reason is None) is steps, reason
    runs = [ixion.compile(mod, executor="reference")]
    runs += [ixion.compile(mod, threads=threads) for threads in (1, 2) if compiled]
    for feed in feeds:
        given = {name: np.asarray(value) for name, value in feed.items()}
        want = session.run(None, given)
        for run in runs:
            for got, expected in zip(run.run(given).values(), want, strict=True):
                assert got.dtype == expected.dtype
                assert got.shape == expected.shape
                np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    return mod


def f32(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(value: Any) -> Any:
    return np.asarray(value, np.int64)


# A body that counts in floats and keeps what it multiplies by from outside.
SCALE = [node("Mul", "x_in k", "t"), node("Add", "t one", "x_out"), node("Identity", "c", "c_out")]
BODY = [info("i", [], INT), info("c", [], BOOL), info("x_in", [3])]
GIVES = [info("c_out", [], BOOL), info("x_out", [3])]


@pytest.mark.parametrize("given", ["m -", "m c0", "m yes"])
def test_a_number_of_rounds(given):
    body = graph(SCALE, BODY, GIVES, one=np.float32(1))
    made = model(
        [node("Loop", f"{given} x", "y", body=body)],
        [info("m", [], INT), info("c0", [], BOOL), info("x", [3]), info("k", [3])],
        [info("y", [3])], yes=np.array(True),
    )  # fmt: skip
    feeds = [
        {"m": i64(m), "c0": np.array(c0), "x": f32(3), "k": f32(3)}
        for m in (-1, 0, 1, 5) for c0 in (True, False)
    ]  # fmt: skip
    mod = check(made, *feeds)
    assert "put_slice" not in str(mod)


@pytest.mark.parametrize("most", ["-", "m", "far"])
def test_a_condition_that_the_body_computes(most):
    """Also with the largest number for a trip count, which exporters write for `while`."""
    nodes = [
        node("Add", "x_in x_in", "x_out"), node("ReduceSum", "x_out", "s", keepdims=0),
        node("Less", "s top", "c_out"),
    ]  # fmt: skip
    made = model(
        [node("Loop", f"{most} c0 x", "y", body=graph(nodes, BODY, GIVES))],
        [info("m", [], INT), info("c0", [], BOOL), info("x", [3]), info("top", [])],
        [info("y", [3])], far=i64(2**63 - 1),
    )  # fmt: skip
    x = np.array([1, 2, 3], np.float32)
    feeds = [
        {"m": i64(m), "c0": np.array(c0), "x": x, "top": np.float32(top)}
        for m in (0, 2, 9) for c0 in (True, False) for top in (0, 20, 100)
    ]  # fmt: skip
    check(made, *feeds)


def test_states_of_all_kinds_and_one_element_numbers():
    """The number and the condition are vectors of one element; states are int, bool and float."""
    nodes = [
        node("Add", "n_in i", "n_out"), node("Not", "b_in", "b_out"),
        node("Cast", "n_out", "f", to=FLOAT), node("Mul", "f x_in", "x_out"),
        node("Less", "n_out top", "c_out"),
    ]  # fmt: skip
    inputs = [info("i", [1], INT), info("c", [1], BOOL), info("n_in", [1], INT),
              info("b_in", [], BOOL), info("x_in", [2])]  # fmt: skip
    outputs = [info("c_out", [1], BOOL), info("n_out", [1], INT), info("b_out", [], BOOL),
               info("x_out", [2])]  # fmt: skip
    made = model(
        [node("Loop", "m c0 n b x", "n2 b2 x2", body=graph(nodes, inputs, outputs, top=i64([9])))],
        [info("m", [1], INT), info("c0", [1], BOOL), info("n", [1], INT), info("b", [], BOOL),
         info("x", [2])],
        [info("n2", [1], INT), info("b2", [], BOOL), info("x2", [2])],
    )  # fmt: skip
    feeds = [
        {"m": i64([m]), "c0": np.array([True]), "n": i64([3]), "b": np.array(m % 2 == 0),
         "x": f32(2)}
        for m in (0, 1, 4, 20)
    ]  # fmt: skip
    check(made, *feeds)


def results_body(*more: Any) -> Any:
    nodes = [
        node("Add", "x_in k", "x_out"), node("Mul", "x_out x_out", "row"),
        node("Add", "i i", "twice"), *more,
    ]  # fmt: skip
    given = [*GIVES, info("row", [3]), info("twice", [], INT)]
    return graph(nodes, BODY, given, top=np.float32(4))


def test_results_of_a_known_number_of_rounds_lie_in_one_tensor():
    made = model(
        [node("Loop", "m - x", "y rows twos", body=results_body(node("Identity", "c", "c_out")))],
        [info("x", [3]), info("k", [3])],
        [info("y", [3]), info("rows", None), info("twos", None, INT)], m=i64(6),
    )  # fmt: skip
    mod = check(made, {"x": f32(3), "k": f32(3)})
    assert "concatenate" not in str(mod)


def test_no_rounds_give_no_results():
    made = model(
        [node("Loop", "m - x", "y rows twos", body=results_body(node("Identity", "c", "c_out")))],
        [info("x", [3]), info("k", [3])],
        [info("y", [3]), info("rows", None), info("twos", None, INT)], m=i64(0),
    )  # fmt: skip
    check(made, {"x": f32(3), "k": f32(3)})


STOPS = [node("ReduceSum", "x_out", "s", keepdims=0), node("Less", "s top", "c_out")]


@pytest.mark.parametrize("most", ["known", "m"])
def test_results_of_rounds_that_data_counts(most):
    made = model(
        [node("Loop", f"{most} yes x", "y rows twos", body=results_body(*STOPS))],
        [info("m", [], INT), info("x", [3]), info("k", [3])],
        [info("y", [3]), info("rows", None), info("twos", None, INT)],
        yes=np.array(True), known=i64(8),
    )  # fmt: skip
    k = np.full(3, 0.5, np.float32)
    starts = [np.full(3, x, np.float32) for x in (0, 9)]
    feeds = [{"m": i64(m), "x": x, "k": k} for m in (0, 3, 8) for x in starts]
    check(made, *feeds, steps=most == "known", compiled=False)


def test_a_state_that_grows():
    nodes = [node("Concat", "x_in x_in", "x_out", axis=0), node("Identity", "c", "c_out")]
    inputs = [info("i", [], INT), info("c", [], BOOL), info("x_in", None)]
    outputs = [info("c_out", [], BOOL), info("x_out", None)]
    made = model(
        [node("Loop", "m - x", "y", body=graph(nodes, inputs, outputs))],
        [info("m", [], INT), info("x", [3])], [info("y", None)],
    )  # fmt: skip
    feeds = [{"m": i64(m), "x": f32(3)} for m in (0, 1, 3)]
    check(made, *feeds, steps=False, compiled=False)


def test_loops_in_loops_in_branches():
    inner = graph(
        [node("Mul", "y_in half", "t"), node("Add", "t x_in", "y_out"),
         node("Identity", "d", "d_out")],
        [info("j", [], INT), info("d", [], BOOL), info("y_in", [3])],
        [info("d_out", [], BOOL), info("y_out", [3])], half=np.float32(0.5),
    )  # fmt: skip
    then = graph([node("Loop", "i - x_in", "z", body=inner)], [], [info("z", [3])])
    other = graph([node("Neg", "x_in", "z2")], [], [info("z2", [3])])
    body = graph(
        [node("Mod", "i two", "odd"), node("Cast", "odd", "flag", to=BOOL),
         node("If", "flag", "x_out", then_branch=then, else_branch=other),
         node("Identity", "c", "c_out")],
        BODY, GIVES, two=i64(2),
    )  # fmt: skip
    outer = graph([node("Loop", "m - x", "a", body=body)], [], [info("a", [3])])
    plain = graph([node("Exp", "x", "b")], [], [info("b", [3])])
    made = model(
        [node("If", "go", "y", then_branch=outer, else_branch=plain)],
        [info("go", [], BOOL), info("m", [], INT), info("x", [3])], [info("y", [3])],
    )  # fmt: skip
    ways = [(go, m) for go in (True, False) for m in (0, 1, 6)]
    feeds = [{"go": np.array(go), "m": i64(m), "x": f32(3)} for go, m in ways]
    check(made, *feeds)


def test_a_state_without_use_and_states_that_change_places():
    nodes = [node("Identity", "b_in", "a_out"), node("Add", "a_in b_in", "b_out"),
             node("Add", "u_in u_in", "u_out"), node("Identity", "c", "c_out")]  # fmt: skip
    names = [("a_in", "a_out"), ("b_in", "b_out"), ("u_in", "u_out")]
    body = graph(
        nodes, [*BODY[:2], *(info(a, [2]) for a, _ in names)],
        [GIVES[0], *(info(b, [2]) for _, b in names)],
    )  # fmt: skip
    made = model(
        [node("Loop", "m - a b u", "a2 b2 unused", body=body)],
        [info("m", [], INT), *(info(n, [2]) for n in "abu")], [info("a2", [2]), info("b2", [2])],
    )  # fmt: skip
    check(made, *[{"m": i64(m), "a": f32(2), "b": f32(2), "u": f32(2)} for m in (0, 1, 2, 7)])


SCANS = [
    ({}, (4, 3), (4, 2), "yz"),
    ({"scan_input_directions": [1, 0]}, (4, 3), (4, 2), "yz"),
    ({"scan_input_axes": [1, -1], "scan_output_axes": [1, 0]}, (3, 4), (2, 4), "yz"),
    ({"scan_output_directions": [1, 0], "scan_output_axes": [-1, 0]}, (4, 3), (4, 2), "yz"),
    ({"scan_input_directions": [1, 1], "scan_output_directions": [1, 1]}, (1, 3), (1, 2), "yz"),
]


@pytest.mark.parametrize(("attrs", "first", "second", "names"), SCANS)
@pytest.mark.parametrize("opset", [9, 11, 16])
def test_scan(attrs, first, second, names, opset):
    body = graph(
        [node("Add", "s u", "s_out"), node("Mul", "s_out k", "row"), node("Neg", "v", "neg")],
        [info("s", [3]), info("u", [3]), info("v", [2])],
        [info("s_out", [3]), info("row", [3]), info("neg", [2])],
    )  # fmt: skip
    made = model(
        [node("Scan", "s0 a b", "s1 y z", num_scan_inputs=2, body=body, **attrs)],
        [info("s0", [3]), info("a", first), info("b", second), info("k", [3])],
        [info("s1", [3]), info("y", None), info("z", None)], opset=opset,
    )  # fmt: skip
    mod = check(made, {"s0": f32(3), "a": f32(*first), "b": f32(*second), "k": f32(3)})
    assert "concatenate" not in str(mod)


def test_scan_without_state_over_ints_and_flags():
    body = graph(
        [node("Add", "u u", "two"), node("Not", "f", "nf")],
        [info("u", [2], INT), info("f", [], BOOL)], [info("two", [2], INT), info("nf", [], BOOL)],
    )  # fmt: skip
    made = model(
        [node("Scan", "a b", "y z", num_scan_inputs=2, body=body)],
        [info("a", [5, 2], INT), info("b", [5], BOOL)],
        [info("y", None, INT), info("z", None, BOOL)],
    )  # fmt: skip
    a, b = RNG.integers(-9, 9, (5, 2)), RNG.random(5) < 0.5
    check(made, {"a": a, "b": b})


def test_weights_of_a_file_are_used_up_in_bodies_too(tmp_path):
    """A program made from a file lets its weights go as they are packed: each use is counted."""
    inside, outside = f32(64, 64) * 0.1, f32(64, 64) * 0.1
    body = graph(
        [node("MatMul", "x_in W", "t"), node("Tanh", "t", "u"), node("MatMul", "u V", "v"),
         node("Add", "v x_in", "x_out"), node("Identity", "c", "c_out")],
        [*BODY[:2], info("x_in", [8, 64])], [GIVES[0], info("x_out", [8, 64])], W=inside,
    )  # fmt: skip
    made = model(
        [node("MatMul", "x V", "x0"), node("Loop", "m - x0", "y", body=body)],
        [info("m", [], INT), info("x", [8, 64])], [info("y", [8, 64])], V=outside,
    )  # fmt: skip
    (tmp_path / "loop.onnx").write_bytes(made.SerializeToString())
    session = onnxruntime.InferenceSession(made.SerializeToString())
    exe = ixion.compile(tmp_path / "loop.onnx")
    for rounds in (0, 1, 5):
        feed = {"m": i64(rounds), "x": f32(8, 64)}
        np.testing.assert_allclose(exe.run(feed)["y"], session.run(None, feed)[0], atol=1e-4)


def test_a_loop_over_a_size_that_is_open():
    """One program for all numbers of rows; the results are as many."""
    body = graph(
        [node("Gather", "x i", "row", axis=0), node("Add", "s row", "s_out"),
         node("Identity", "s_out", "sum"), node("Identity", "c", "c_out")],
        [*BODY[:2], info("s", [3])], [GIVES[0], info("s_out", [3]), info("sum", [3])],
    )  # fmt: skip
    made = model(
        [node("Shape", "x", "shape"), node("Gather", "shape zero", "n"),
         node("Loop", "n - s0", "s1 sums", body=body)],
        [info("x", ["rows", 3]), info("s0", [3])],
        [info("s1", [3]), info("sums", None)], zero=i64(0),
    )  # fmt: skip
    session = onnxruntime.InferenceSession(made.SerializeToString())
    exe = ixion.compile(imported(made), threads=1)
    for rows in (1, 2, 7, 30, 0):
        feed = {"x": f32(rows, 3), "s0": f32(3)}
        for got, want in zip(exe.run(feed).values(), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert exe.native.plans == 5


def broken(kind: str, inputs: str, body: Any, **attrs: Any) -> Any:
    return model(
        [node(kind, inputs, "y", body=body, **attrs)], [info("m", [], INT), info("x", [3])],
        [info("y", [3])], yes=np.array(True),
    )  # fmt: skip


FEW = graph([node("Neg", "x_in", "x_out")], [info("x_in", [3])], [info("x_out", [3])])
ENDLESS = graph(
    [node("Neg", "x_in", "x_out"), node("Identity", "c", "c_out")], BODY, GIVES
)  # fmt: skip
OTHER = graph(
    [node("Cast", "x_in", "x_out", to=INT), node("Identity", "c", "c_out")], BODY,
    [GIVES[0], info("x_out", [3], INT)],
)  # fmt: skip


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (broken("Loop", "m yes x", FEW), "must take a number, a condition"),
        (broken("Loop", "- yes x", ENDLESS), "never ends"),
        (broken("Loop", "- - x", ENDLESS), "never ends"),
        (broken("Loop", "m - x", OTHER), "another kind"),
        (broken("Scan", "x", FEW, num_scan_inputs=2), "do not fit"),
        (broken("Scan", "x", FEW, num_scan_inputs=1, scan_input_axes=[0, 1]), "wrong length"),
    ],
)
def test_broken_loops_are_refused(made, message):
    with pytest.raises(IxionError, match=message):
        imported(made)


def test_what_a_body_may_not_hold_is_named_once():
    nodes = [node("Relu", "x_in", "t"), node("StringNormalizer", "t", "u"),
             node("Add", "t u", "x_out"), node("Identity", "c", "c_out")]  # fmt: skip
    with pytest.raises(IxionError) as caught:
        imported(broken("Loop", "m yes x", graph(nodes, BODY, GIVES)))
    assert "StringNormalizer" in str(caught.value)
    assert "1 unsupported operator(s)" in str(caught.value)
