"""Rewriting and partitioning by pattern."""

import pytest

import ixion.op
from ixion import ir
from ixion.base.errors import PassError
from ixion.ir.pattern import (
    DFPatternCallback,
    FunctionPattern,
    dominates,
    is_constant,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    partition,
    rewrite,
    wildcard,
)

X, Y, Z, W, B = (ir.var(name) for name in "xyzwb")


def call(name, *args, **attrs):
    return ixion.op.call(name, *args, **attrs)


def relu(x):
    return call("nn.relu", x)


def tanh(x):
    return call("tanh", x)


def conv(x=X, w=W):
    return call("nn.conv2d", x, w)


def bias(x, b=B):
    return call("nn.bias_add", x, b)


is_conv = is_op("nn.conv2d")
is_relu = is_op("nn.relu")
is_bias = is_op("nn.bias_add")


def same(left, right):
    ir.assert_structural_equal(left, right, map_free_vars=False)
    return True


class Replace(DFPatternCallback):
    def __init__(self, pattern, function, **options):
        super().__init__(**options)
        self.pattern = pattern
        self.function = function
        self.calls = 0

    def callback(self, pre, post, node_map):
        self.calls += 1
        return self.function(pre, post, node_map)


def to_subtract(pre, post, node_map):
    return post.args[0] - post.args[1]


ADD = is_op("add")(wildcard(), wildcard())


def test_every_match_is_replaced():
    out = rewrite(Replace(ADD, to_subtract), (X + Y) * (Y + Z))
    assert same(out, (X - Y) * (Y - Z))


def test_inside_functions_branches_and_lets():
    v = ir.var("v")
    before = ir.Let(v, ir.If(Z, X + Y, X), ir.Call(ir.Function((W,), W + W), (v,)))
    out = Replace(ADD, to_subtract).rewrite(before)
    assert "add" not in str(out)
    assert out.var is v


def test_nothing_to_do_gives_the_same_object():
    expr = X * Y
    assert rewrite(Replace(ADD, to_subtract), expr) is expr


def test_node_map_holds_rewritten_expressions():
    inner, outer = wildcard(), wildcard()
    pattern = is_relu(outer * is_op("add")(inner, is_constant()))

    def replace(pre, post, node_map):
        assert pre is expr
        return node_map[inner][0] * node_map[outer][0]

    expr = relu(X * (Y + ir.const(1)))
    assert same(rewrite(Replace(pattern, replace), expr), Y * X)


def test_callbacks_run_in_order_until_nothing_changes():
    log = []

    def logged(name, function):
        def run(pre, post, node_map):
            log.append(name)
            return function(pre, post, node_map)

        return run

    subtract = is_op("subtract")(wildcard(), wildcard())
    first = Replace(subtract, logged("-", lambda pre, post, node_map: post.args[0]))
    second = Replace(ADD, logged("+", to_subtract))
    assert rewrite([first, second], X + Y) is X
    assert log == ["+", "-"]


def test_rewrite_once():
    def deeper(pre, post, node_map):
        return relu(post)

    once = Replace(is_relu(wildcard()), deeper, rewrite_once=True)
    assert same(once.rewrite(relu(X)), relu(relu(X)))


def test_endless_rewriting_is_an_error():
    def grown(pre, post, node_map):
        return ir.const(post.data + 1)

    callback = Replace(is_constant(), grown)
    with pytest.raises(PassError, match="100 rewrite passes"):
        callback.rewrite(X + ir.const(0))
    assert callback.calls == 100


def test_shared_match_is_replaced_once():
    shared = X + Y
    callback = Replace(ADD, to_subtract)
    out = rewrite(callback, shared * shared)
    assert callback.calls == 1
    assert out.args[0] is out.args[1]


def test_overlapping_matches_take_the_outer_one():
    a = wildcard()
    pattern = is_relu(is_relu(a))
    out = rewrite(Replace(pattern, lambda pre, post, m: tanh(m[a][0]), rewrite_once=True),
                  relu(relu(relu(X))))  # fmt: skip
    assert same(out, tanh(relu(X)))


def test_match_used_outside_is_left_alone():
    inner = conv()
    expr = relu(inner) + inner
    assert is_relu(is_conv(wildcard(), wildcard())).partition(expr) is expr


def test_associated_match_is_rewritten():
    a, b, c = wildcard(), wildcard(), wildcard()
    pattern = a * b / c
    out = rewrite(Replace(pattern, lambda pre, post, m: m[a][0] + m[b][0] - m[c][0]), X * (Y / Z))
    assert same(out, Y + X - Z) or same(out, X + Y - Z)


def test_require_type_without_inference_is_an_error():
    from ixion.base.errors import IxionError
    from ixion.ir.pattern_typing import set_type_inference

    set_type_inference(None)
    with pytest.raises(IxionError, match="no type inference"):
        Replace(ADD, to_subtract, require_type=True).rewrite(X + Y)


# --- partition ----------------------------------------------------------------------------------


def lifted(name, body, params, args, **attrs):
    function = ir.Function(params, body, attrs={"PartitionedFromPattern": name, **attrs})
    return ir.Call(function, args)


def fresh(count):
    return [ir.var(f"p{i}") for i in range(count)]


def test_partition_lifts_a_function():
    pattern = is_relu(is_bias(is_conv(wildcard(), wildcard()), wildcard()))
    x, w, b = fresh(3)
    expected = lifted(
        "nn.conv2d_nn.bias_add_nn.relu_", relu(bias(conv(x, w), b)), (x, w, b),
        (tanh(X), W, B), Composite="my",
    )  # fmt: skip
    out = partition(pattern, relu(bias(conv(tanh(X)))), {"Composite": "my"})
    assert same(out, expected)
    assert [param.name_hint for param in out.op.params] == [f"FunctionVar_0_{i}" for i in range(3)]


def test_partition_twice():
    first = is_relu(is_conv(wildcard(), wildcard()))
    once = first.partition(tanh(relu(conv())))
    assert same(first.partition(once), once)
    inner = once.args[0]
    both = is_op("tanh")(wildcard()).partition(once)
    (y,) = fresh(1)
    assert same(both, lifted("tanh_", tanh(y), (y,), (inner,)))


def test_one_parameter_for_an_input_used_twice():
    a, b = wildcard(), wildcard()
    expr = (X * Y) + (Y * Z)
    x, y, z = fresh(3)
    out = ((a * wildcard()) + (b * wildcard())).partition(expr)
    assert same(out, lifted("multiply_multiply_add_", x * y + y * z, (x, y, z), (X, Y, Z)))


def test_constants_stay_only_where_asked_for():
    weight = ir.const([1.0, 2.0])
    (x,) = fresh(1)
    inside = is_conv(wildcard(), is_constant()).partition(conv(w=weight))
    assert same(inside, lifted("nn.conv2d_", conv(x, weight), (x,), (X,)))
    either = is_conv(wildcard(), is_var() | is_constant()).partition(conv(w=weight))
    assert same(either, inside)
    x, w = fresh(2)
    outside = is_conv(wildcard(), wildcard()).partition(conv(w=weight))
    assert same(outside, lifted("nn.conv2d_", conv(x, w), (x, w), (X, weight)))


def test_check_decides():
    pattern = is_relu(is_conv(wildcard(), wildcard()))
    expr = relu(conv())
    assert pattern.partition(expr, check=lambda pre: False) is expr
    assert isinstance(pattern.partition(expr, check=lambda pre: pre is expr).op, ir.Function)


def test_fuzzy_tuple_and_names():
    x, y = fresh(2)
    out = is_tuple(None).partition(ir.Tuple((X, Y)))
    assert same(out, lifted("Tuple_", ir.Tuple((x, y)), (x, y), (X, Y)))
    item = is_tuple_get_item(wildcard(), 1).partition(ir.TupleGetItem(X, 1))
    (x,) = fresh(1)
    assert same(item, lifted("TupleGetItem1_", ir.TupleGetItem(x, 1), (x,), (X,)))


def test_called_function():
    f = ir.Function((Z,), tanh(Z))
    expr = relu(ir.Call(f, (X,)))
    pattern = is_relu(FunctionPattern([wildcard()], wildcard())(wildcard()))
    (x,) = fresh(1)
    expected = lifted("tanh_FunctionCall_nn.relu_", relu(ir.Call(f, (x,))), (x,), (X,))
    assert same(pattern.partition(expr), expected)


def test_function_alone_is_not_partitioned():
    function = ir.Function((X,), X)
    with pytest.warns(UserWarning, match="cannot be partitioned"):
        assert FunctionPattern(None, wildcard()).partition(function) is function


def test_dominator_group():
    pattern = dominates(
        is_conv(wildcard(), wildcard()),
        is_relu(wildcard()) | is_op("tanh")(wildcard()),
        is_op("add")(wildcard(), wildcard()),
    )
    source = conv(X * X, W)
    expr = relu(source) + tanh(relu(source))
    x, w = fresh(2)
    inner = conv(x, w)
    body = relu(inner) + tanh(relu(inner))
    name = "nn.conv2d_nn.relu_nn.relu_tanh_add_"
    assert same(pattern.partition(expr), lifted(name, body, (x, w), (X * X, W)))


def test_use_outside_that_flows_back_is_allowed():
    pattern = is_op("multiply")(is_op("add")(is_conv(None), wildcard()), wildcard())
    total = conv() + B
    out = pattern.partition(total * call("sigmoid", total))
    assert isinstance(out.op, ir.Function)
    assert out.op.attrs["PartitionedFromPattern"] == "nn.conv2d_add_multiply_"
    assert out.args[-1].op.name == "sigmoid"


def test_deep_program():
    expr = X
    for _ in range(2000):
        expr = tanh(relu(expr))
    out = is_op("tanh")(is_relu(wildcard())).partition(expr)
    names = [node for node in ir.post_order(out) if isinstance(node, ir.Function)]
    assert len(names) == 2000
    back = rewrite(Replace(is_relu(wildcard()), lambda a, p, m: p.args[0]), expr)
    assert sum(isinstance(node, ir.Call) for node in ir.post_order(back)) == 2000
