"""Golden text of every construct, and what the printer promises about it."""

import numpy as np
import pytest

import ixion.op
from ixion import ir
from ixion.base.dim import Any, SymVar
from ixion.base.span import Span
from ixion.ir.parser import parse, parse_expr
from ixion.ir.printer import MetaTable, astext, pretty_print

VERSION = '#[version = "0.0.5"]\n'


def op(name, *args, **attrs):
    return ixion.op.call(name, *args, **attrs)


def add(left, right):
    return ir.Call(ir.Op.get("add"), (left, right))


def check(expr, text):
    assert pretty_print(expr) == text
    assert ir.structural_equal(parse_expr(text), expr, map_free_vars=True)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (7, "int16", "7i16"),
        (-7, "int32", "-7"),
        (7, "int64", "7i64"),
        (2.5, "float16", "2.5f16"),
        (0.1, "float32", "0.1f"),
        (1e30, "float32", "1e+30f"),
        (16777217.0, "float64", "16777217.0f64"),
        (1 / 3, "float32", "0.33333334f"),
        (float("inf"), "float32", "inff"),
        (float("-inf"), "float64", "-inff64"),
        (True, "bool", "True"),
    ],
)
def test_scalar(value, dtype, text):
    constant = ir.const(value, dtype)
    assert pretty_print(constant) == text
    back = parse_expr(text)
    assert back.data.dtype == constant.data.dtype
    assert back.data == constant.data


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bfloat16"])
def test_other_scalars_are_metadata(dtype):
    text = astext(ir.const(3, dtype))
    assert text.startswith(VERSION + "meta[relay.Constant][0]\n#[metadata]\n")
    assert ir.structural_equal(parse_expr(text), ir.const(3, dtype))


def test_nan_is_metadata():
    text = astext(ir.const(float("nan")))
    assert "meta[relay.Constant][0]" in text
    assert np.isnan(parse_expr(text).data)


def test_shared_expression_is_bound_once():
    x = ir.var("x", shape=(2, 3))
    twice = add(x, x)
    check(
        add(twice, twice),
        "free_var %x: Tensor[(2, 3), float32];\n%0 = add(%x, %x);\nadd(%0, %0)",
    )


def test_callee_is_bound_after_its_arguments():
    x, y = ir.var("x"), ir.var("y")
    inner = ir.Call(ir.Function((y,), y), (ir.const(1),))
    check(
        ir.Call(ir.Function((x,), x), (inner,)),
        "%0 = fn (%y) {\n  %y\n};\n%1 = %0(1);\n%2 = fn (%x) {\n  %x\n};\n%2(%1)",
    )


def test_names_are_made_unique_and_start_with_a_letter():
    pairs = [ir.var("x"), ir.var("x"), ir.var("1"), ir.var("_t"), ir.var("")]
    check(
        ir.Tuple(pairs),
        "free_var %x;\nfree_var %x1;\nfree_var %v1;\nfree_var %v_t;\nfree_var %v;\n"
        "(%x, %x1, %v1, %v_t, %v)",
    )


def test_foreign_names_are_quoted_and_kept():
    x = ir.var("onnx::Conv.1", shape=(2,))
    function = ir.Function((x,), x)
    text = pretty_print(function)
    assert text == 'fn (%"onnx::Conv.1": Tensor[(2), float32]) {\n  %"onnx::Conv.1"\n}'
    assert parse_expr(text).params[0].name_hint == "onnx::Conv.1"


def test_tuples():
    x = ir.var("x", "int8")
    check(ir.Tuple(()), "()")
    check(ir.Tuple((x,)), "free_var %x: int8;\n(%x,)")
    check(ir.TupleGetItem(ir.Tuple((x, x)), 1), "free_var %x: int8;\n%0 = (%x, %x);\n%0.1")


def test_let_chain_and_let_as_operand():
    x, y, z = ir.var("x"), ir.var("y"), ir.var("z")
    one = ir.const(1)
    check(
        ir.Let(x, one, ir.Let(y, add(x, add(one, one)), y)),
        "let %x = 1;\n%0 = add(1, 1);\nlet %y = add(%x, %0);\n%y",
    )
    check(ir.Let(z, ir.Let(x, one, x), z), "let %z = (\n  let %x = 1;\n  %x\n);\n%z")
    inner = ir.Let(x, one, x)
    check(add(inner, inner), "%0 = (\n  let %x = 1;\n  %x\n);\nadd(%0, %0)")


def test_if():
    c, x = ir.var("c", "bool"), ir.var("x")
    check(
        ir.Function((c, x), ir.If(c, add(x, x), x)),
        "fn (%c: bool, %x) {\n  if (%c) {\n    add(%x, %x)\n  } else {\n    %x\n  }\n}",
    )


def test_references():
    x = ir.var("x")
    ref = ir.RefCreate(x)
    check(
        ir.Tuple((ir.RefWrite(ref, x), ir.RefRead(ref))),
        "free_var %x;\n%0 = ref(%x);\n%1 = ref_write(%0, %x);\n%2 = ref_read(%0);\n(%1, %2)",
    )


def test_attributes_that_differ_from_their_defaults():
    x = ir.var("x", shape=(1, 4))
    assert pretty_print(op("nn.softmax", x)).endswith("nn.softmax(%x)")
    assert pretty_print(op("nn.softmax", x, axis=1)).endswith("nn.softmax(%x, axis=1)")
    w = ir.var("w")
    call = op("nn.conv2d", x, w, padding=(1, 1, 1, 1), channels=2, kernel_size=(3, 3),
              data_layout="NHWC", out_dtype="int32")  # fmt: skip
    assert pretty_print(call).endswith(
        "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=2, kernel_size=[3, 3], "
        'data_layout="NHWC", out_dtype="int32")'
    )
    assert ir.structural_equal(parse_expr(astext(call)), call, map_free_vars=True)


def test_function_attributes():
    x = ir.var("x")
    attrs = {"Primitive": 1, "relay.reshape_only": True, "name": "a", "none": None,
             "list": [1, 2.5, "b"], "odd key": 3, "text": 'a "quoted"\nline'}  # fmt: skip
    function = ir.Function((x,), x, attrs=attrs)
    text = astext(function)
    assert 'fn (%x, Primitive=1, relay.reshape_only=True, name="a", none=None, ' in text
    assert 'list=[1, 2.5f, "b"], "odd key"=3, text=meta[runtime.String][0])' in text
    assert ir.structural_equal(parse_expr(text), function)


def test_call_of_a_function_names_its_attribute_kind():
    f, x = ir.var("f"), ir.var("x")
    call = ir.Call(f, (x,), ir.make_node("relay.attrs.SoftmaxAttrs", axis=3))
    text = pretty_print(call)
    assert text.endswith('%f(%x, axis=3, attrs_type_key="relay.attrs.SoftmaxAttrs")')
    assert ir.structural_equal(parse_expr(text), call, map_free_vars=True)


def test_attributes_of_another_kind_go_to_the_metadata():
    x = ir.var("x")
    call = ir.Call(ir.Op.get("add"), (x, x), ir.make_node("relay.attrs.SoftmaxAttrs", axis=3))
    text = astext(call)
    assert "add(%x, %x, meta[relay.attrs.SoftmaxAttrs][0])" in text
    assert ir.structural_equal(parse_expr(text), call, map_free_vars=True)


def test_types():
    scalar = ir.scalar_type("int64")
    variable = ir.TypeVar("A")
    cases = {
        "int64": scalar,
        "Tensor[(3), float32]": ir.TensorType((3,)),
        "Tensor[(?, 2), uint8]": ir.TensorType((Any(), 2), "uint8"),
        "()": ir.TupleType(()),
        "(int64,)": ir.TupleType((scalar,)),
        "fn (int64) -> (int64, int64)": ir.FuncType((scalar,), ir.TupleType((scalar, scalar))),
        "fn [A](A) -> A": ir.FuncType((variable,), variable, (variable,)),
        "ref(int64)": ir.RefType(scalar),
        "List[int64]": ir.TypeCall(ir.GlobalTypeVar("List"), (scalar,)),
    }
    for text, kind in cases.items():
        assert pretty_print(kind) == text
        x = ir.Var("x", kind)
        back = parse_expr(f"fn (%x: {text}) {{ %x }}")
        if "List" not in text:
            assert ir.structural_equal(back, ir.Function((x,), x), map_free_vars=True)


def test_symbolic_dimension_is_metadata():
    n = SymVar("n")
    x = ir.var("x", shape=(n, n * 2, 3))
    function = ir.Function((x,), x)
    text = astext(function)
    assert "Tensor[(meta[tir.SizeVar][0], meta[tir.PrimExpr][0], 3), float32]" in text
    assert parse_expr(text).params[0].type_annotation == x.type_annotation


def test_match_and_definitions():
    text = """type List[A] {
  Cons(A, List[A]),
  Nil,
}

def @length[A](%xs: List[A]) -> int32 {
  match (%xs) {
    Cons(_, %rest) => {
      %0 = @length(%rest);
      add(1, %0)
    },
    Nil => {
      0
    },
  }
}

def @pair(%p: (int32, int32)) -> int32 {
  match? (%p) {
    (%a, _) => {
      %a
    },
  }
}
"""
    module = parse(VERSION + text)
    again = parse(astext(module))
    assert ir.structural_equal(module, again)
    plain = astext(module, annotate=lambda expr: "")
    assert plain == VERSION + text


def test_span_and_type_comments():
    x = ir.var("x", "int32")
    call = ir.Call(ir.Op.get("add"), (x, x), span=Span("net.onnx", 0, 0, 0, 0))
    call._set_checked_type(ir.scalar_type("int32"))
    assert pretty_print(call) == (
        "free_var %x: int32;\nadd(%x, %x) /* ty=int32 span=net.onnx:0:0 */"
    )
    assert pretty_print(ir.Call(call.op, (x, x), span=Span("a*/b/*", 1, 1, 2, 2))).endswith(
        "/* span=a*_/b/_*:1:2 */"
    )


def test_annotate_replaces_comments():
    x = ir.var("x")
    text = astext(add(x, x), annotate=lambda e: " /* call */" if isinstance(e, ir.Call) else "")
    assert text == VERSION + "free_var %x;\nadd(%x, %x) /* call */"


def test_text_without_metadata_says_so():
    text = pretty_print(ir.const(np.zeros(3)))
    assert text.startswith("meta[relay.Constant][0]\n/* ")
    assert "{" not in text


def test_constant_used_twice_is_stored_once():
    weight = ir.const(np.arange(6.0).reshape(2, 3))
    text = astext(add(weight, weight))
    assert text.count("meta[relay.Constant][0]") == 2
    assert "meta[relay.Constant][1]" not in text


def test_constants_by_reference():
    weight = ir.const(np.ones((64, 64), "float32"))
    other = ir.const(np.zeros((64, 64), "float32"))
    x = ir.var("x", shape=(64, 64))
    module = ir.IRModule.from_expr(ir.Function((x,), add(add(x, weight), add(weight, other))))
    table = MetaTable()
    text = astext(module, constants=table)
    assert "#[metadata]" not in text
    assert len(table["relay.Constant"]) == 2
    back = parse(text, init_meta_table=table)
    call = back["main"].body
    assert call.args[0].args[1] is weight
    assert ir.structural_equal(back, module)
    assert astext(back, annotate=lambda e: "", constants=table) == astext(
        module, annotate=lambda e: "", constants=table
    )
    assert len(table["relay.Constant"]) == 2


def test_module_attributes_survive():
    x = ir.var("x", shape=(2,))
    module = ir.IRModule.from_expr(ir.Function((x,), x))
    module = module.with_attrs({"input_names": ("x",), "output_names": ("y",)})
    back = parse(astext(module))
    assert back.attrs["input_names"] == ("x",)
    assert ir.structural_equal(back, module)


def deep(kind, depth):
    x = ir.var("x")
    expr = x
    for _ in range(depth):
        if kind == "calls":
            expr = add(expr, x)
        elif kind == "lets":
            expr = ir.Let(ir.var("v"), add(x, x), expr)
        elif kind == "let values":
            variable = ir.var("v")
            expr = ir.Let(variable, expr, variable)
        elif kind == "functions":
            expr = ir.Function((ir.var("p"),), expr)
        elif kind == "ifs":
            expr = ir.If(x, x, expr)
        elif kind == "tuples":
            expr = ir.TupleGetItem(ir.Tuple((expr,)), 0)
        else:
            expr = ir.RefRead(ir.RefCreate(expr))
    return expr


@pytest.mark.parametrize(
    "kind", ["calls", "lets", "let values", "functions", "ifs", "tuples", "references"]
)
def test_deep_programs(kind):
    expr = deep(kind, 5000)
    back = parse_expr(astext(expr))
    assert ir.structural_equal(back, expr, map_free_vars=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["calls", "lets", "let values"])
def test_very_deep_programs(kind):
    expr = deep(kind, 100_000)
    back = parse_expr(astext(expr))
    assert ir.structural_equal(back, expr, map_free_vars=True)


def test_deep_type():
    kind = ir.scalar_type("int8")
    for _ in range(5000):
        kind = ir.TupleType((kind,))
    text = pretty_print(kind)
    assert text == "(" * 5000 + "int8" + ",)" * 5000
    assert isinstance(parse_expr(f"fn (%x: {text}) {{ %x }}"), ir.Function)
