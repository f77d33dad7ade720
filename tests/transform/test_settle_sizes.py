"""SettleSizes and DynamicToStatic: sizes leave the operands, the arithmetic behind them goes."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis.evaluate import evaluate
from ixion.base.dim import SymVar
from ixion.ir import Call, Constant, Expr, Function, IRModule, Op, TensorType, Var, const
from ixion.ir.visitor import post_order
from ixion.transform import DynamicToStatic, InferType, SettleSizes

n, m = SymVar("n"), SymVar("m")


def module(params: list[Var], body: Expr) -> IRModule:
    return InferType()(IRModule.from_expr(Function(params, body)))


def x_var(*shape: object, dtype: str = "float32") -> Var:
    return Var("x", TensorType(shape, dtype))


def names(mod: IRModule) -> list[str]:
    nodes = post_order(mod["main"].body)
    return [c.op.name for c in nodes if isinstance(c, Call) and isinstance(c.op, Op)]


def settled(params: list[Var], body: Expr, *arrays: np.ndarray) -> IRModule:
    """The settled module, after a look that it still has the value it had."""
    before = module(params, body)
    after = SettleSizes()(before)
    assert after["main"].body.checked_type == before["main"].body.checked_type
    for want, got in zip(
        np.atleast_1d(evaluate(before, arrays)), np.atleast_1d(evaluate(after, arrays)), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    return after


def shape_of(x: Expr) -> Expr:
    return op.shape_of(x, "int64")


def part(x: Expr, first: int, last: int) -> Expr:
    return op.strided_slice(shape_of(x), [first], [last])


DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_dynamic_calls_take_sizes_from_attributes() -> None:
    x = x_var(n, m, 4)
    rows = op.concatenate([part(x, 0, 1), op.multiply(part(x, 1, 2), const(np.array([4])))], 0)
    assert names(settled([x], op.reshape(x, rows), DATA)) == ["reshape"]
    line = const(np.ones((1, 4), np.float32))
    assert names(settled([x], op.broadcast_to(line, shape_of(x)), DATA)) == ["broadcast_to"]
    assert names(settled([x], op.zeros(shape_of(x), "float32"), DATA)) == ["zeros"]
    assert names(settled([x], op.full(const(2.0), shape_of(x)), DATA)) == ["full"]
    assert names(settled([x], op.tile(x, part(x, 0, 1)), DATA)) == ["tile"]
    last = op.strided_slice(x, part(x, 0, 1), part(x, 1, 2), [1])
    assert names(settled([x], last, DATA)) == ["strided_slice"]


def test_a_symbolic_size_may_turn_out_to_be_zero() -> None:
    x = x_var(n, m, 4)
    swapped = op.concatenate([part(x, 1, 2), part(x, 0, 1), part(x, 2, 3)], 0)
    after = settled([x], op.reshape(x, swapped), DATA)
    assert evaluate(after, [np.zeros((5, 0, 4), np.float32)]).shape == (0, 5, 4)


def test_numbers_that_are_used_become_sizes() -> None:
    x = x_var(n, m, 4)
    count = op.cast(op.prod(shape_of(x)), "float32")
    after = settled([x], op.divide(op.sum(x), count), DATA)
    assert names(after) == ["sum", "sizes", "cast", "divide"]
    assert evaluate(after, [DATA]) == np.float32(DATA.mean())


def test_ranges_of_open_length_become_counts() -> None:
    x = x_var(n, m, 4)
    length = op.squeeze(part(x, 1, 2), [0])
    counted = op.arange(const(np.int64(0)), length, const(np.int64(1)), "int64")
    assert names(settled([x], counted, DATA)) == ["iota"]
    again = op.add(counted, op.arange(const(np.int64(0)), length, const(np.int64(1)), "int64"))
    after = settled([x], again, DATA)
    assert names(after) == ["iota", "add"]  # one count for both


def test_known_numbers_become_constants() -> None:
    x = x_var(2, 3, 4)
    after = settled([x], op.add(shape_of(x), const(np.array([1, 1, 1]))), DATA)
    assert isinstance(after["main"].body, Constant)
    np.testing.assert_array_equal(after["main"].body.data, [3, 4, 5])


def test_what_depends_on_data_stays() -> None:
    x, shape = x_var(n, 4), Var("shape", TensorType((2,), "int64"))
    before = module([x, shape], op.reshape(x, shape))
    assert SettleSizes()(before) is before


@pytest.mark.parametrize("opened", [False, True])
def test_dynamic_to_static_needs_numbers(opened: bool) -> None:
    x = x_var(n if opened else 2, 3, 4)
    before = module([x], op.reshape(x, op.concatenate([part(x, 1, 2), part(x, 0, 1),
                                                       part(x, 2, 3)], 0)))  # fmt: skip
    after = DynamicToStatic()(before)
    assert ("dyn.reshape" in names(after)) == opened
    np.testing.assert_array_equal(evaluate(after, [DATA]), DATA.reshape(3, 2, 4))


def dynamic_calls() -> list[tuple[str, Expr, tuple[int, ...]]]:
    """(name without dyn., call on x of shape (2, 3, 4), result's shape)."""
    x = x_var(2, 3, 4)
    image = Var("x", TensorType((1, 2, 4, 4), "float32"))
    whole = Var("x", TensorType((2, 3), "int64"))
    index = const(np.array([2]))
    return [
        ("reshape", op.reshape(x, const(np.array([4, 6]))), (4, 6)),
        ("broadcast_to", op.call("dyn.broadcast_to", x, const(np.array([5, 2, 3, 4]))),
         (5, 2, 3, 4)),
        ("tile", op.call("dyn.tile", x, const(np.array([1, 2, 1])), reps=()), (2, 6, 4)),
        ("zeros", op.call("dyn.zeros", const(np.array([2, 2])), dtype="float32"), (2, 2)),
        ("ones", op.call("dyn.ones", const(np.array([2, 2])), dtype="float32"), (2, 2)),
        ("full", op.call("dyn.full", const(1.0), const(np.array([3])), dtype="float32"), (3,)),
        ("squeeze", op.call("dyn.squeeze", op.expand_dims(x, 1), const(np.array([1]))), (2, 3, 4)),
        ("expand_dims", op.call("dyn.expand_dims", x, const(np.int64(0))), (1, 2, 3, 4)),
        ("strided_slice", op.call("dyn.strided_slice", x, *(
            const(np.array(v)) for v in ([0, 1, 0], [2, 3, 4], [1, 1, 2]))), (2, 2, 2)),
        ("topk", op.call("dyn.topk", x, index, ret_type="values"), (2, 3, 2)),
        ("one_hot", op.call("dyn.one_hot", whole, const(1.0), const(0.0), const(np.int64(5)),
                            axis=-1, dtype="float32"), (2, 3, 5)),
        ("nn.pad", op.call("dyn.nn.pad", x, const(np.array([[0, 0], [1, 2], [0, 0]])), const(0.0),
                           pad_width=()), (2, 6, 4)),
        ("image.resize2d", op.call("dyn.image.resize2d", image, const(np.array([8, 6])),
                                   const(np.zeros(4, np.float32))), (1, 2, 8, 6)),
        ("nn.upsampling", op.call("dyn.nn.upsampling", image, const(2.0, "float64"),
                                  const(3.0, "float64"), scale_h=0, scale_w=0), (1, 2, 8, 12)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "call", "shape"), dynamic_calls(), ids=[name for name, _, _ in dynamic_calls()]
)
def test_every_dynamic_operator_becomes_static(
    name: str, call: Expr, shape: tuple[int, ...]
) -> None:
    params = [v for v in post_order(call) if isinstance(v, Var)]
    before = module(params, call)
    args = [
        np.random.default_rng(3).integers(0, 4, p.checked_type.concrete_shape)
        .astype(p.checked_type.dtype) for p in params
    ]  # fmt: skip
    for transform in (DynamicToStatic(), SettleSizes()):
        after = transform(before)
        # What is made of constants alone is a constant for DynamicToStatic.
        assert names(after)[-1:] == ([name] if params or isinstance(transform, SettleSizes) else [])
        assert tuple(after["main"].body.checked_type.shape) == shape
        np.testing.assert_array_equal(evaluate(after, args), evaluate(before, args))
