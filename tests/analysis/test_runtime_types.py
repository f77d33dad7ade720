"""Sizes that inference does not know are checked when the values are there."""

from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import evaluate
from ixion.analysis.runtime_types import concrete_type, is_static_type
from ixion.base.dim import Any
from ixion.base.errors import InputError, KernelError
from ixion.ir import Call, Function, IRModule, Let, TensorType, TupleType, Var, const, parse, var
from ixion.transform import InferType


def module(params, body):
    return InferType()(IRModule.from_expr(Function(params, body)))


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def unknown(name, *shape, dtype="float32"):
    return var(name, shape=tuple(Any() if n is None else n for n in shape), dtype=dtype)


def test_static_types():
    assert is_static_type(TupleType([TensorType((2, 3)), TensorType(())]))
    assert not is_static_type(TupleType([TensorType((Any(), 3))]))


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [((1, 2), (3, 2), True), ((3, 2), (3, 2), True), ((4, 2), (3, 2), False)],
)
def test_broadcast_of_unknown_sizes(left, right, fits):
    x, y = unknown("x", None, 2), unknown("y", None, None)
    mod = module([x, y], x + y)
    if fits:
        assert np.array_equal(evaluate(mod, [ones(*left), ones(*right)]), 2 * ones(3, 2))
    else:
        with pytest.raises(InputError, match="Invalid broadcast shapes") as error:
            evaluate(mod, [ones(*left), ones(*right)])
        assert "call to add" in str(error.value)


def test_where_of_three_shapes():
    condition, x, y = unknown("c", None, dtype="bool"), unknown("x", None), unknown("y", None)
    mod = module([condition, x, y], op.where(condition, x, y))
    chosen = np.array([True, False, True])
    assert evaluate(mod, [chosen, ones(1), 3 * ones(3)]).tolist() == [1, 3, 1]
    with pytest.raises(InputError, match="Invalid broadcast shapes"):
        evaluate(mod, [chosen, ones(2), ones(1)])


def test_the_result_may_be_static_where_an_argument_is_not():
    x, y = unknown("x", None), unknown("y", 3, 2)
    mod = module([x, y], x + y)
    assert mod["main"].ret_type == TensorType((3, 2))
    with pytest.raises(InputError, match="Invalid broadcast shapes"):
        evaluate(mod, [ones(4), ones(3, 2)])


def test_product_and_concatenation():
    x, w = unknown("x", None, None), unknown("w", 5, None)
    dense = module([x, w], op.nn.dense(x, w))
    assert evaluate(dense, [ones(2, 3), ones(5, 3)]).tolist() == [[3] * 5] * 2
    with pytest.raises(InputError, match="dense"):
        evaluate(dense, [ones(2, 3), ones(5, 4)])
    joined = module([x, w], op.concatenate([x, w], axis=0))
    assert evaluate(joined, [ones(2, 3), ones(5, 3)]).shape == (7, 3)
    with pytest.raises(InputError, match="shapes differ"):
        evaluate(joined, [ones(2, 4), ones(5, 3)])


def test_shapes_that_are_computed():
    x, shape = unknown("x", None), var("s", shape=(2,), dtype="int64")
    mod = module([x, shape], op.reshape(x, shape))
    values = np.arange(6, dtype="float32")
    assert np.array_equal(evaluate(mod, [values, np.array([2, -1])]), values.reshape(2, 3))
    with pytest.raises(InputError, match="element counts differ"):
        evaluate(mod, [values, np.array([4, 2])])


def test_sizes_that_depend_on_data_stay_unknown():
    x = unknown("x", None, dtype="bool")
    mod = module([x], op.argwhere(x))
    call = mod["main"].body
    found = concrete_type(call, [np.array([True, False, True])])
    assert isinstance(found.shape[0], Any)
    assert evaluate(mod, [np.array([True, False, True])]).tolist() == [[0], [2]]


def test_a_variable_has_the_shape_it_states():
    x, y, f = unknown("x", None), var("y", shape=(3,)), Var("f")
    bound = module([x], Let(y, op.exp(x), y + y))
    called = module([x], Let(f, Function([y], y + y), Call(f, [x])))
    assert evaluate(called, [ones(3)]).tolist() == [2, 2, 2]
    assert np.allclose(evaluate(bound, [0 * ones(3)]), [2, 2, 2])
    for mod in (bound, called):
        with pytest.raises(InputError, match="%y does not have the shape"):
            evaluate(mod, [ones(4)])


def test_one_bias_and_one_slope_serve_channels_nobody_counted():
    x = unknown("x", None, None)
    value = np.array([[-1, 2]], "float32")
    biased = module([x], op.nn.bias_add(x, const(np.array([10], "float32"))))
    sloped = module([x], op.nn.prelu(x, const(np.array([0.5], "float32"))))
    assert evaluate(biased, [value]).tolist() == [[9, 12]]
    assert evaluate(sloped, [value]).tolist() == [[-0.5, 2]]
    many = const(np.ones(3, "float32"))
    with pytest.raises(InputError, match="one value per channel"):
        evaluate(module([x], op.nn.bias_add(x, many)), [value])
    with pytest.raises(InputError, match="one slope per channel"):
        evaluate(module([x], op.nn.prelu(x, many)), [value])


def test_a_fault_in_the_data_is_the_operators_own():
    x, at = unknown("x", None), unknown("at", None, dtype="int64")
    mod = module([x, at], op.take(x, at, mode="fast"))
    with pytest.raises(KernelError, match="outside"):
        evaluate(mod, [ones(2), np.array([5])])


def test_lists_grow_in_a_loop():
    mod = InferType()(
        parse("""#[version = "0.0.5"]
def @grow(%i: int32, %rows: Tensor[(?, 1), int32]) -> Tensor[(?, 1), int32] {
  if (%i == 4) { %rows } else {
    @grow(%i + 1, concatenate((%rows, reshape(%i, newshape=[1, 1]))))
  }
}
def @main() -> Tensor[(?, 1), int32] { @grow(0, reshape(7, newshape=[1, 1])) }
""")
    )
    assert evaluate(mod).ravel().tolist() == [7, 0, 1, 2, 3]
