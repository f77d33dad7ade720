"""Programs in TVM's words that compute; test_alias.py runs them under the adapter."""

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib.utils import tempdir
from tvm.ir.diagnostics import override_renderer
from tvm.relay.backend.interpreter import ConstructorValue, RefValue
from tvm.relay.loops import while_loop
from tvm.relay.prelude import Prelude, StaticTensorArrayOps
from tvm.relay.testing import check_grad, count, make_nat_expr, make_nat_value
from tvm.runtime.container import ADT, tuple_object

executor_kind = tvm.testing.parameter("debug", "vm")


def run(kind, params, body, *args):
    function = relay.Function(params, body)
    module = tvm.IRModule.from_expr(function)
    return relay.create_executor(kind, mod=module, device=tvm.cpu(), target="llvm").evaluate()(
        *args
    )


@pytest.mark.parametrize("kind", ["debug", "vm", "graph", "aot"])
def test_every_executor(kind):
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3,))
    a, b = np.full((2, 3), 2, "float32"), np.arange(3, dtype="float32")
    total = run(kind, [x, y], x + y, a, b)
    assert isinstance(total, tvm.nd.NDArray)
    tvm.testing.assert_allclose(total.numpy(), a + b)
    pair = run(kind, [x, y], relay.Tuple([x * y, relay.Tuple([y])]), a, b)
    assert isinstance(pair, ADT)
    tvm.testing.assert_allclose(pair[0].numpy(), a * b)
    tvm.testing.assert_allclose(pair[1][0].numpy(), b)


def test_unknown_executor_and_what_graphs_cannot():
    with pytest.raises(tvm.TVMError, match="unknown execution strategy: grap"):
        relay.create_executor("grap")
    x = relay.var("x", shape=(relay.Any(),))
    with pytest.raises(tvm.TVMError, match="static tensors only"):
        run("graph", [x], relay.exp(x), np.ones(3, "float32"))


def test_arguments_by_name_and_as_numbers(executor_kind):
    x, y = relay.var("x", "float32"), relay.var("y", "int64")
    module = tvm.IRModule.from_expr(relay.Function([x, y], relay.Tuple([x, y])))
    call = relay.create_executor(executor_kind, mod=module).evaluate()
    for found in (call(2, y=3), call(y=3, x=2.0), call(tvm.nd.array(np.float32(2)), np.int64(3))):
        assert [(part.numpy().item(), part.dtype.name) for part in found] == [
            (2, "float32"), (3, "int64"),
        ]  # fmt: skip
    for args, named in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"y": 2}), ((1,), {"z": 2})):
        with pytest.raises(tvm.TVMError, match="do not fit"):
            call(*args, **named)
    with pytest.raises(tvm.TVMError, match="wrong dtype"):
        call(1, 2.5)


def test_binds_and_params():
    x, w = relay.var("x"), relay.var("w", shape=(2,))
    found = relay.create_executor().evaluate(x + x, binds={x: np.ones((2, 2))})
    tvm.testing.assert_allclose(found.numpy(), np.full((2, 2), 2.0))
    module = tvm.IRModule.from_expr(relay.Function([w], w * w))
    found = relay.create_executor(mod=module, params={"w": np.full(2, 3, "float32")}).evaluate()()
    tvm.testing.assert_allclose(found.numpy(), [9, 9])
    assert len(module["main"].params) == 1


def test_expressions_that_mention_the_module():
    module = tvm.IRModule()
    x = relay.var("x", shape=(2,))
    module["twice"] = relay.Function([x], x + x)
    twice = module.get_global_var("twice")
    executor = relay.create_executor(mod=module)
    value = np.array([1, 2], "float32")
    tvm.testing.assert_allclose(executor.evaluate(twice)(value).numpy(), [2, 4])
    tvm.testing.assert_allclose(executor.evaluate(twice(relay.const(value))).numpy(), [2, 4])
    assert "main" not in module


def test_sizes_are_checked_when_they_are_known(executor_kind):
    x, y = relay.var("x", shape=(relay.Any(), 2)), relay.var("y", shape=(relay.Any(), 2))
    ones = [np.ones((n, 2), "float32") for n in (1, 3, 4)]
    assert run(executor_kind, [x, y], x + y, ones[0], ones[2]).shape == (4, 2)
    with pytest.raises(tvm.error.TVMError) as error:
        run(executor_kind, [x, y], x + y, ones[1], ones[2])
    assert "Invalid broadcast shapes" in str(error.value).split("\n")[-1]


def test_values_of_data_types(executor_kind):
    prelude = Prelude(tvm.IRModule())
    _, cons, nil = prelude.mod.get_type("List")
    empty = ConstructorValue(nil.tag, [], nil)
    one = ConstructorValue(cons.tag, [tvm.nd.array(np.float32(5)), empty], cons)
    same = relay.create_executor(executor_kind, mod=prelude.mod).evaluate(prelude.id)
    found = same(one)
    fields = found if executor_kind == "vm" else found.fields
    assert isinstance(found, ADT if executor_kind == "vm" else ConstructorValue)
    assert (found.tag, fields[1].tag) == (cons.tag, nil.tag)
    assert fields[0].numpy() == 5
    assert same(ADT(cons.tag, [np.float32(6), ADT(nil.tag, [])])).tag == cons.tag
    assert same(RefValue(np.float32(7))).value.numpy() == 7
    assert [part.numpy() for part in same(tuple_object([1, 2]))] == [1, 2]


def test_a_long_list_is_no_deep_recursion():
    prelude = Prelude(tvm.IRModule())
    prelude.mod.import_from_std("nat.rly")
    value = make_nat_value(prelude, 30_000)
    same = relay.create_executor(mod=prelude.mod).evaluate(prelude.id)
    assert count(prelude, same(value)) == 30_000


def test_natural_numbers():
    prelude = Prelude(tvm.IRModule())
    prelude.mod.import_from_std("nat.rly")
    double = prelude.mod.get_global_var("nat_double")
    nil = prelude.mod.get_type("List")[2]
    found = relay.create_executor(mod=prelude.mod).evaluate(double(make_nat_expr(prelude, 3)))
    assert count(prelude, found) == 6
    with pytest.raises(TypeError, match="natural number"):
        count(prelude, ConstructorValue(nil.tag, [], nil))


def test_while_loop(executor_kind):
    i, total = relay.var("i", "int32"), relay.var("total", "int32")
    loop = while_loop(
        lambda i, total: relay.less(i, relay.const(10)),
        [i, total],
        lambda i, total: (i + relay.const(1), total + i),
    )
    start = relay.var("start", "int32")
    body = relay.TupleGetItem(loop(start, relay.const(0)), 1)
    assert run(executor_kind, [start], body, 3).numpy() == sum(range(3, 10))


def entries(value):
    """The tensors of a list of them."""
    found = []
    while value.fields:
        entry, value = value.fields
        found.append(entry.fields[0].numpy() if entry.fields else None)
    return found


def arrays_of(prelude, shape):
    """The function, by canonical name, over arrays of the dynamic type or of one shape."""
    if shape is None:
        return lambda name: prelude.get_global_var(name, "float32")
    StaticTensorArrayOps(prelude, "float32", shape).register()
    return lambda name: prelude.get_global_var_static(name, "float32", shape)


@pytest.mark.parametrize("shape", [None, (relay.Any(), 2)])
def test_tensor_arrays(shape):
    prelude = Prelude(tvm.IRModule())
    get = arrays_of(prelude, shape)
    if shape is None:
        wrap = prelude.get_tensor_ctor("tensor2", "float32")
    else:
        wrap = prelude.get_tensor_ctor_static("tensor_constructor", "float32", shape)
    rows = np.arange(8, dtype="float32").reshape(4, 2)
    whole, empty = wrap(relay.const(rows)), get("tensor_array")(relay.const(3))

    def value(expr):
        return relay.create_executor(mod=prelude.mod).evaluate(expr)

    assert entries(value(empty)) == [None] * 3
    part = value(get("tensor_take")(whole, relay.const(1), relay.const(3)))
    tvm.testing.assert_allclose(part.fields[0].numpy(), rows[1:3])
    lengths = relay.const(np.array([1, 3], "int32"))
    split = get("tensor_array_split")(empty, whole, lengths)
    first, second, third = entries(value(split))
    tvm.testing.assert_allclose(first, rows[:1])
    tvm.testing.assert_allclose(second, rows[1:])
    assert third is None
    written = get("tensor_array_write")(empty, relay.const(0), whole)
    places = relay.const(np.array([2, 0], "int32"))
    moved = entries(value(get("tensor_array_scatter")(empty, places, split)))
    tvm.testing.assert_allclose(moved[2], rows[:1])
    tvm.testing.assert_allclose(moved[0], rows[1:])
    gathered = get("tensor_array_gather")(written, relay.const(np.array([0, 0], "int32")))
    tvm.testing.assert_allclose(value(gathered).fields[0].numpy(), np.stack([rows, rows]))


def test_tensor_arrays_of_scalars_and_fixed_sizes():
    prelude = Prelude(tvm.IRModule())
    for shape in ((), (3,)):
        ops = StaticTensorArrayOps(prelude, "int32", shape)
        ops.register()
        ops.define_tensor_array_scatter((2,))
        ops.register()
        data = relay.const(np.full(shape, 4, "int32"))
        array = ops.get_global_var("tensor_array_write")(
            ops.get_global_var("tensor_array")(relay.const(1)),
            relay.const(0),
            ops.get_ctor("tensor_constructor")(data),
        )
        read = ops.get_global_var("tensor_array_read")(array, relay.const(0))
        found = relay.create_executor(mod=prelude.mod).evaluate(
            ops.get_global_var("tensor_get_data")(read)
        )
        tvm.testing.assert_allclose(found.numpy(), np.full(shape, 4))
        assert ops.get_name("tensor_array_scatter", {"indices": (2,)}) in prelude.mod


def test_type_errors_reach_the_renderer():
    seen = []
    override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        wrong = relay.Let(relay.var("t", shape=(2,)), relay.var("x", shape=(3,)), relay.const(1))
        with pytest.raises(tvm.error.DiagnosticError) as error:
            relay.testing.run_infer_type(wrong)
    finally:
        override_renderer(None)
    assert type(error.value) is tvm.error.DiagnosticError
    assert "dimension 0 conflicts: 2 does not match 3." in seen[0].message


def test_span_check():
    module = tvm.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    with pytest.raises(tvm.error.DiagnosticError, match="a Call has no span"):
        relay.SpanCheck()(module)
    spanned = relay.transform.AnnotateSpans()(relay.transform.InferType()(module))
    assert relay.SpanCheck()(spanned) is spanned


def test_layouts_both_ways():
    way = tvm.tir.bijective_layout("NCHW", "NCHW4c")
    assert way.forward_shape((1, 8, 5, 6)) == (1, 2, 5, 6, 4)
    assert way.backward_shape((1, 2, 5, 6, 4)) == (1, 8, 5, 6)


def test_blocked_convolution():
    x, w = np.random.rand(1, 8, 5, 5), np.random.rand(4, 8, 3, 3)
    blocked = x.reshape(1, 2, 4, 5, 5).transpose(0, 1, 3, 4, 2)
    weights = w.reshape(1, 4, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    call = relay.nn.contrib_conv2d_nchwc(
        relay.const(blocked.astype("float32")), relay.const(weights.astype("float32")),
        padding=(1, 1), kernel_size=(3, 3), channels=4, data_layout="NCHW4c",
        kernel_layout="OIHW4i4o",
    )  # fmt: skip
    found = relay.create_executor().evaluate(call).numpy()
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    wanted = np.einsum("nchwij,ocij->nohw", windows, w)
    tvm.testing.assert_allclose(found[:, 0].transpose(0, 3, 1, 2), wanted, rtol=1e-5)


def program_of_two():
    module = tvm.IRModule()
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    module["twice"] = relay.Function([x], relay.nn.relu(x + x))
    module["main"] = relay.Function([y], module.get_global_var("twice")(y) * relay.const(3.0))
    return module


def test_a_program_is_kept_and_loaded():
    made = relay.vm.compile(program_of_two())
    assert made.globals == ["main", "twice"]
    assert made.primitive_ops == ["vm_mod_fused_multiply", "vm_mod_fused_add_nn_relu"]
    assert "main(y):" in made.bytecode
    assert "twice(x):" in made.bytecode
    code, library = made.save()
    folder = tempdir()
    library.export_library(folder.relpath("lib.so"))
    assert folder.listdir() == ["lib.so"]
    loaded = tvm.runtime.load_module(folder / "lib.so")
    machine = tvm.runtime.vm.VirtualMachine(
        tvm.runtime.vm.Executable.load_exec(code, loaded), tvm.cpu()
    )
    value = np.array([-1, 2], "float32")
    tvm.testing.assert_allclose(machine.run(value).numpy(), [0, 12])
    tvm.testing.assert_allclose(machine.invoke("twice", x=value).numpy(), [0, 4])
    machine.set_input("main", value)
    tvm.testing.assert_allclose(machine.run().numpy(), [0, 12])
    with pytest.raises(tvm.TVMError, match="no function thrice"):
        machine.invoke("thrice")
    folder.remove()
    assert not folder.path.exists()


def test_code_and_library_belong_together(tmp_path):
    load = tvm.runtime.vm.Executable.load_exec
    code, library = relay.vm.compile(program_of_two()).save()
    for damaged in (code[:-1], code.replace(b"relu", b"tanh"), b""):
        with pytest.raises(ValueError, match="not that of the library"):
            load(damaged, library)
    (tmp_path / "other").write_bytes(b"\x7fELF and more")
    for path in (tmp_path / "other", tmp_path / "none"):
        with pytest.raises(ValueError, match="library"):
            tvm.runtime.load_module(path)


def test_params_become_constants():
    w, x = relay.var("w", shape=(2,)), relay.var("x", shape=(2,))
    made = relay.vm.compile(relay.Function([x, w], x * w), params={"w": np.full(2, 4, "float32")})
    found = tvm.runtime.vm.VirtualMachine(made, tvm.cpu()).run(np.array([1, 2], "float32"))
    tvm.testing.assert_allclose(found.numpy(), [4, 8])


# What tests are written with.

sizes, total = tvm.testing.parameters(((1, 2), 3), ((4, 5), 9))


@tvm.testing.fixture
def doubled(total):
    return 2 * total


def test_parameters_go_together(sizes, total, doubled):
    assert sum(sizes) == total
    assert doubled == 2 * total


class TestParametersOfAClass:
    number = tvm.testing.parameter(by_dict={"one": 1, "two": 2})

    def test_number(self, number, target, dev):
        assert number in (1, 2)
        assert (target, dev) == ("llvm", tvm.cpu())


@tvm.testing.known_failing_targets("llvm")
def test_known_failure(target):
    raise AssertionError(target)


@tvm.testing.parametrize_targets("cuda", "llvm -mcpu=generic")
def test_targets_that_are_here(target, dev):
    assert tvm.target.Target(target).kind.name == "llvm"
    assert tvm.testing.device_enabled(target)


def test_numpy_operators():
    reference = tvm.topi.testing
    x = np.arange(6.0).reshape(2, 3)
    hot = reference.one_hot(np.array([2, 0]), 5, -1, 3, 0, "int32")
    assert hot.tolist() == [[-1, 5], [-1, -1], [5, -1]]
    found = reference.gather_python(x, 1, np.array([[2, 0]]))
    assert found.tolist() == [[2, 0]]
    assert reference.searchsorted_ref(
        np.array([1.0, 2, 4]), np.array([2, 9]), True, "int32"
    ).tolist() == [2, 3]
    assert reference.strided_slice_python(x, [0, 2], [2, 0], [1, -1]).tolist() == [[2, 1], [5, 4]]
    assert reference.strided_slice_python(x, [1, 0], [1, -1], None, "size").tolist() == [[3, 4, 5]]
    assert reference.strided_slice_python(x, [1], [3], None, axes=[1]).tolist() == [[1, 2], [4, 5]]
    assert np.array_equal(reference.batch_matmul(x[None], x[None]), [x @ x.T])
    line = np.array([[[0.0, 4, 8]]])
    resize = reference.resize1d_python
    assert resize(line, (2,), method="linear").ravel().tolist() == pytest.approx(
        [0, 1.6, 3.2, 4.8, 6.4, 8]
    )
    asymmetric = resize(line, (2,), "NCW", "nearest_neighbor", "asymmetric")
    assert asymmetric.ravel().tolist() == [0, 0, 4, 4, 8, 8]
    half = resize(line, (2,), "NCW", "linear", "half_pixel")
    assert half.ravel().tolist() == [0, 1, 3, 5, 7, 8]
    flat = np.ones((1, 4, 4, 2))
    assert np.allclose(reference.resize2d_python(flat, (2, 3), "NHWC", "cubic"), 1)
    assert reference.resize3d_python(np.ones((1, 2, 2, 3, 4)), (1, 2, 1)).shape == (1, 2, 2, 6, 4)


@pytest.mark.parametrize("factor", [2, 3])
def test_gradients_are_compared(monkeypatch, factor):
    x = relay.var("x", shape=(3,), dtype="float64")
    square = relay.Function([x], x * x)

    def gradient(function, mode):
        (x,) = function.params
        slope = relay.Tuple([x * relay.const(float(factor), "float64")])
        return relay.Function([x], relay.Tuple([function.body, slope]))

    monkeypatch.setattr(relay.transform, "gradient", gradient, raising=False)
    value = np.array([1.0, -2.0, 0.5])
    if factor == 2:
        check_grad(square, [value])
    else:
        with pytest.raises(AssertionError):
            check_grad(square, [value])
