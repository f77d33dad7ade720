"""Which expressions a pattern matches."""

import numpy as np
import pytest

import ixion.op
from ixion import ir
from ixion.base.errors import IxionError
from ixion.ir.pattern import (
    CallPattern,
    DFPattern,
    FunctionPattern,
    TuplePattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from ixion.ir.pattern_typing import set_type_inference

X, Y, Z, W = (ir.var(name, shape=(4, 4)) for name in "xyzw")


def call(name, *args, **attrs):
    return ixion.op.call(name, *args, **attrs)


def relu(x):
    return call("nn.relu", x)


def conv(x=X, w=W, **attrs):
    return call("nn.conv2d", x, w, **attrs)


is_conv = is_op("nn.conv2d")
is_relu = is_op("nn.relu")


def test_leaves():
    assert is_var().match(X)
    assert is_var("x").match(X)
    assert not is_var("x").match(Y)
    assert is_constant().match(ir.const(1))
    assert not is_constant().match(X)
    assert is_op("add").match(ir.Op.get("add"))
    assert not is_op("add").match(ir.Op.get("subtract"))
    assert is_expr(ir.const(2)).match(ir.const(2))
    assert not is_expr(ir.const(2)).match(ir.const(2.0))
    assert wildcard().match(X + Y)


def test_call_arguments():
    assert is_relu(is_var("x")).match(relu(X))
    assert not is_relu(is_var("x")).match(relu(Y))
    assert not is_op("add")(wildcard()).match(X + Y)
    assert is_op("add")(None).match(X + Y)
    assert wildcard()(None).match(relu(X))


def test_same_pattern_object_means_same_expression():
    p = wildcard()
    assert (p + p).match(X + X)
    assert not (p + p).match(X + Y)
    assert (wildcard() + wildcard()).match(X + Y)


def test_commutative_operators():
    for build, swaps in (
        (lambda a, b: a + b, True),
        (lambda a, b: a * b, True),
        (lambda a, b: a - b, False),
        (lambda a, b: a / b, False),
    ):
        pattern = build(is_var("x"), is_var("y"))
        assert pattern.match(build(X, Y))
        assert pattern.match(build(Y, X)) == swaps


def test_failed_branch_is_forgotten():
    # The first way round binds p to X before it fails; the second must be free of that.
    p = is_var()
    pattern = p + is_relu(p)
    assert pattern.match(relu(X) + X)
    assert not pattern.match(relu(X) + Y)


def test_products_and_quotients_associate():
    a, b, c = is_var("x"), is_var("y"), is_var("z")
    for expr in (X * Y / Z, X * (Y / Z), Y * (X / Z), (X / Z) * Y):
        assert (a * b / c).match(expr)
    assert (a / b * c).match(X * Z / Y)
    assert (c * (a / b)).match(X * Z / Y)
    assert not (a * b / c).match(X / Y * Z)
    assert not (a * b / c).match(X * Y * Z)


def test_alternatives_and_options():
    either = is_op("add") | is_op("subtract")
    assert either(None).match(X - Y)
    assert not either(None).match(X * Y)
    chain = is_conv(None).optional(is_relu).optional(is_op("tanh"))
    for expr in (conv(), relu(conv()), call("tanh", conv()), call("tanh", relu(conv()))):
        assert chain.match(expr)
    assert not chain.match(relu(call("tanh", conv())))


def test_tuples():
    pair = ir.Tuple((X, Y))
    assert is_tuple((is_var("x"), wildcard())).match(pair)
    assert not is_tuple((is_var("x"),)).match(pair)
    assert is_tuple(None).match(pair)
    item = is_tuple_get_item(is_tuple(None), 1)
    assert item.match(ir.TupleGetItem(pair, 1))
    assert not item.match(ir.TupleGetItem(pair, 0))
    assert is_tuple_get_item(wildcard()).match(ir.TupleGetItem(pair, 0))


def test_functions_lets_and_conditionals():
    p = wildcard()
    function = ir.Function((X, Y), X + Y)
    assert FunctionPattern(None, wildcard()).match(function)
    assert FunctionPattern([p, wildcard()], p + wildcard()).match(function)
    assert not FunctionPattern([p], wildcard()).match(function)
    assert not FunctionPattern([p, wildcard()], p + p).match(function)
    variable = is_var("v")
    let = ir.Let(v := ir.var("v"), X + Y, v)
    assert is_let(variable, is_op("add")(None), variable).match(let)
    assert not is_let(variable, wildcard(), is_var("x")).match(let)
    choice = ir.If(X < Y, X, Y)
    assert is_if(is_op("less")(None), is_var("x"), is_var("y")).match(choice)
    assert not is_if(wildcard(), is_var("y"), wildcard()).match(choice)


def test_attributes():
    assert is_op("add").has_attr({"TOpPattern": 1}).match(ir.Op.get("add"))
    assert not is_op("add").has_attr({"TOpPattern": 0}).match(ir.Op.get("add"))
    assert not is_op("add").has_attr({"NoSuchAttribute": 1}).match(ir.Op.get("add"))
    wanted = is_conv(None).has_attr({"data_layout": "NCHW", "kernel_size": [3, 3]})
    assert wanted.match(conv(kernel_size=(3, 3)))
    assert not wanted.match(conv(kernel_size=(1, 1)))
    assert not wanted.match(conv(kernel_size=(3, 3), data_layout="NHWC"))
    assert not is_conv(None).has_attr({"other": 1}).match(conv())
    composite = has_attr({"Composite": "a"})
    assert composite.match(ir.Function((X,), X, attrs={"Composite": "a"}))
    assert not composite.match(ir.Function((X,), X, attrs={"Composite": "b"}))
    assert not composite.match(ir.Function((X,), X))
    assert not composite.match(X)
    assert wildcard()(None).has_attr({}).match(ir.Call(X, (Y,)))
    assert not wildcard()(None).has_attr({"k": 1}).match(ir.Call(X, (Y,)))


def typed(expr, kind):
    expr._set_checked_type(kind)
    return expr


def test_types():
    kind = ir.TensorType((2, 3), "int8")
    x = typed(ir.var("q", kind), kind)
    assert has_type(kind).match(x)
    assert not has_type(ir.TensorType((2, 3))).match(x)
    assert has_dtype("int8").match(x)
    assert not has_dtype("int16").match(x)
    assert has_shape((2, 3)).match(x)
    assert not has_shape((3, 2)).match(x)
    assert is_var("q").has_shape((2, 3)).has_dtype("int8").match(x)
    assert not has_dtype("int8").match(ir.Op.get("add"))


def test_types_that_need_inference():
    set_type_inference(None)
    with pytest.raises(IxionError, match="no type inference is loaded"):
        has_dtype("int8").match(ir.var("x", shape=(1,)))

    def infer(module):
        function = module["_tmp0"]
        for node in ir.post_order(function):
            if isinstance(node, ir.Var):
                node._set_checked_type(node.type_annotation)
        return module

    set_type_inference(infer)
    try:
        assert has_dtype("float32").match(ir.var("x", shape=(1,)))
    finally:
        set_type_inference(None)


def diamond(*, path=lambda: wildcard()(None)):
    return dominates(is_conv(wildcard(), wildcard()), path(), is_op("add")(wildcard(), wildcard()))


def unary():
    return is_relu(wildcard()) | is_op("tanh")(wildcard())


def test_dominator():
    source = conv()
    assert diamond().match(relu(source) + call("tanh", relu(source)))
    assert diamond(path=unary).match(relu(source) + call("tanh", relu(source)))
    assert not diamond(path=unary).match(relu(source) + (source - X))
    assert not diamond(path=unary).match(relu(conv()) + relu(conv()))
    assert not diamond(path=unary).match(relu(X) + relu(source))
    assert not diamond(path=unary).match(relu(X) + relu(X))
    assert not diamond(path=unary).match(conv(call("tanh", source)) + relu(source))


def test_dominator_ignores_leaf_inputs_on_the_way():
    biased = call("nn.bias_add", conv(), ir.var("b"))
    pattern = is_relu(wildcard()).dominates(is_conv(None), is_op("nn.bias_add")(None))
    assert pattern.match(relu(biased))
    assert not pattern.match(relu(call("nn.bias_add", X, ir.var("b"))))


def test_redirected_wildcard_repeats():
    inner = wildcard()
    chain = is_relu(inner)
    inner.redirect_to(chain | is_conv(None))
    expr = conv()
    assert not chain.match(expr)
    for _ in range(5000):
        expr = relu(expr)
    assert chain.match(expr)
    assert not chain.match(relu(call("tanh", expr)))
    assert "..." in str(chain)


def test_deep_dominator():
    expr = source = conv()
    for _ in range(5000):
        expr = relu(expr)
    pattern = is_op("tanh")(wildcard()).dominates(is_conv(None), is_relu(wildcard()))
    assert pattern.match(call("tanh", expr))
    assert not pattern.match(call("tanh", call("tanh", source)))


def test_pattern_nodes_show_themselves():
    pattern = is_op("add")(is_var("x"), wildcard()).has_attr({"k": 1}) | is_tuple(None)
    call = "CallPattern(Op(add), [Var(x), *])"
    text = f"AltPattern(AttrPattern({call}, attrs={{k=1}}), TuplePattern(Tuple, *))"
    assert str(pattern) == text
    assert pattern.astext().endswith(text)
    assert isinstance(pattern, DFPattern)


def test_pattern_fields():
    a, b = wildcard(), is_constant()
    pattern = is_op("add")(a, b)
    assert isinstance(pattern, CallPattern)
    assert pattern.args == (a, b)
    assert is_op("add")(None).args is None
    assert is_tuple_get_item(a).index == -1
    fields = is_tuple([a, b])
    assert isinstance(fields, TuplePattern)
    assert (len(fields), fields[1]) == (2, b)
    with pytest.raises(IndexError):
        fields[2]
    with pytest.raises(TypeError):
        fields.astype("int8")
    assert has_shape([np.int64(2), 3]).shape == (2, 3)
    with pytest.raises(IxionError, match=r"nn\.relu"):
        is_op("nn.rellu")
