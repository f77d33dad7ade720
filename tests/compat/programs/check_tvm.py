"""A program in TVM's words; test_alias.py runs it with ``tvm`` standing for the adapter."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relay, te
from tvm.relay import testing
from tvm.relay.build_module import bind_params_by_name
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from tvm.script import tir as T


def test_constant_data_is_an_ndarray():
    data = relay.const([1.0, 2.0]).data
    assert isinstance(data, tvm.nd.NDArray)
    assert type(data.numpy()) is np.ndarray
    assert str(data.device) == "cpu(0)"
    assert relay.Constant(tvm.nd.array(np.ones(2))).data.shape == (2,)


def test_ndarray():
    a = tvm.nd.array(np.arange(3))
    b = tvm.nd.empty((3,), "int64", tvm.cpu(0))
    a.copyto(b)
    assert not a.same_as(b)
    tvm.testing.assert_allclose(b.numpy(), a.asnumpy())
    b.copyfrom([4, 5, 6])
    assert b[0] == 4
    with pytest.raises(ValueError, match="does not match"):
        b.copyfrom([1])


def test_module_maps_have_lists():
    module = tvm.IRModule.from_expr(relay.var("x", shape=(2,)) + relay.const(1.0))
    (pair,) = module.functions.items()
    assert pair[0].name_hint == "main"
    assert module.functions.items()[0][1] is module["main"]


def test_parse_infers_types():
    module = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { exp(%x) }')
    assert module["main"].ret_type == relay.TensorType((2, 3))
    tvm.ir.assert_structural_equal(relay.fromtext(module.astext()), module)
    with pytest.raises(tvm.error.DiagnosticError):
        relay.parse('#[version = "0.0.5"]\ndef @main() { %x }')


def test_annotate_spans():
    module = tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    spanned = relay.transform.AnnotateSpans()(relay.transform.InferType()(module))
    assert spanned["main"].body.span.source_name.name == "GeneratedSource"


def test_bind_params_by_name():
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    function = bind_params_by_name(relay.Function([x, w], x * w), {"w": np.ones(2, "float32")})
    assert len(function.params) == 1
    assert isinstance(function.body.args[1], relay.Constant)


def test_patterns():
    x = relay.var("x", shape=(2, 3))

    class Swap(DFPatternCallback):
        def __init__(self):
            super().__init__(require_type=True)
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre, post, node_map):
            assert pre.checked_type.shape[1] == 3
            return relay.log(post.args[0])

    assert rewrite(Swap(), relay.exp(x)).op.name == "log"
    assert wildcard().has_shape((2, 3)).match(relay.exp(x))


def test_prelude():
    module = tvm.IRModule()
    prelude = relay.prelude.Prelude(module)
    assert prelude.map is module.get_global_var("map")
    typed = relay.transform.InferType()(module)
    assert str(typed["length"].ret_type) == "int32"
    assert prelude.get_tensor_ctor("tensor1", "int64").inputs[0].dtype == "int64"
    module = tvm.IRModule()
    module.import_from_std("gradient.rly")
    assert len(module.get_type("GradCell")) == 4


def test_scalars_and_dimensions():
    assert T.int32(3) == 3
    assert tvm.tir.IntImm("int64", 5).dtype == "int64"
    assert tvm.tir.const(1.5).value == 1.5
    n = te.size_var("n")
    assert relay.var("x", shape=(n, 2)).type_annotation.shape[0] == tvm.tir.Var("n")
    tvm.ir.assert_structural_equal([T.int32(1), [2]], (1, (2,)))
    assert not tvm.ir.structural_equal([1], (2,))


def test_attributes_by_type_key():
    attrs = tvm.ir.make_node("attrs.TestAttrs", name="a", padding=(1, 2, 3))
    assert (attrs.axis, attrs.padding) == (10, (1, 2, 3))
    assert tvm.runtime.convert([1, [2]]) == (1, (2,))


def test_operators_by_name():
    assert relay.op.get("nn.relu") is tvm.ir.Op.get("nn.relu")
    x = relay.var("x", shape=(1, 4))
    assert relay.nn.relu(x).op.name == relay.op.nn.relu(x).op.name == "nn.relu"
    assert len(relay.split(x, 2, axis=1)) == 2
    with pytest.raises(AttributeError):
        relay.no_such_operator  # noqa: B018


@pytest.mark.parametrize("name", ["mlp", "dqn", "dcgan", "synthetic"])
def test_networks(name):
    shape = {"input_shape": (1, 3, 24, 12)} if name == "synthetic" else {"batch_size": 1}
    module, params = getattr(testing, name).get_workload(**shape)
    names = [param.name_hint for param in module["main"].params]
    assert set(names) == {"data", *params}
    tvm.ir.assert_structural_equal(relay.parse(module.astext()), module)


def test_parameter_files():
    params = {"a": tvm.nd.array(np.ones((2, 3), "float32")), "b.c": tvm.nd.array(np.array(5))}
    raw = relay.save_param_dict(params)
    back = relay.load_param_dict(raw)
    assert list(back) == ["a", "b.c"]
    tvm.testing.assert_allclose(back["a"].numpy(), params["a"].numpy())
    for bad in (raw[:-1], b"", raw[8:], b"\xff" * 64):
        with pytest.raises(ValueError, match="parameter file"):
            relay.load_param_dict(bad)
