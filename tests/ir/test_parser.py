"""What the parser accepts, what it makes of it, and how it complains."""

import numpy as np
import pytest

import ixion.op  # noqa: F401 - registers the operators
from ixion import ir
from ixion.base.errors import DiagnosticError
from ixion.ir.parser import fromtext, parse, parse_expr

VERSION = '#[version = "0.0.5"]\n'


def same(left, right):
    return ir.structural_equal(left, right, map_free_vars=True)


def reads_as(text, other):
    return same(parse_expr(text), parse_expr(other))


def fails(text, *parts, whole=False):
    with pytest.raises(DiagnosticError) as caught:
        parse(text) if whole else parse_expr(text)
    message = str(caught.value)
    for part in parts:
        assert part in message, message
    return message


# --- lexical ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("0", 0, "int32"),
        ("-007", -7, "int32"),
        ("---5", -5, "int32"),
        ("2147483647", 2**31 - 1, "int32"),
        ("2147483648", 2**31, "int64"),
        ("-2147483648", -(2**31), "int32"),
        ("12i", 12, "int32"),
        ("12i16", 12, "int16"),
        ("12i64", 12, "int64"),
        ("3f", 3.0, "float32"),
        ("1e-3f", 1e-3, "float32"),
        ("1.5E+2f64", 150.0, "float64"),
        ("-2.5f16", -2.5, "float16"),
        ("-inff", -np.inf, "float32"),
        ("False", False, "bool"),
    ],
)
def test_literal(text, value, dtype):
    data = parse_expr(text).data
    assert data.dtype == dtype
    assert data == np.asarray(value, dtype)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("40000i16", "40000 does not fit in int16"),
        ("9223372036854775808", "does not fit in int64"),
        ("1i8", "16, 32 or 64 bits, not 8"),
        ("70000f16", "does not fit in float16"),
        ("1f80", "not 80"),
        ("1.5", "ends with `f`"),
        ("1e5", "ends with `f`"),
    ],
)
def test_bad_literal(text, part):
    fails(text, part, "from_string:1:1", "^")


def test_comments_nest():
    assert reads_as("/* a /* b */ c */ 1 // end", "1")
    assert reads_as("1 /* a ** / */ + /**/ 2", "1+2")
    fails("1 /* a /* b */", "never closed")


def test_blank_includes_windows_line_ends():
    assert reads_as("1\r\n+\t2", "1 + 2")


def test_slash_is_a_letter_of_names():
    assert parse_expr("free_var %scope/x; %scope/x").name_hint == "scope/x"


@pytest.mark.parametrize("text", ['"open', "$", "%", "@ x", "#[other]", "`"])
def test_bad_characters(text):
    fails(text, "error: ", "--> from_string:1:1", "^")


# --- expressions --------------------------------------------------------------------------------


def test_precedence_and_association():
    assert reads_as("1 + 2 * 3 - 4", "(1 + (2 * 3)) - 4")
    assert reads_as("1 / 2 / 3 * 4", "((1 / 2) / 3) * 4")
    assert reads_as("1 + 2 < 3 == 4 >= 5", "((1 + 2) < 3) == (4 >= 5)")
    assert not reads_as("1 - 2 - 3", "1 - (2 - 3)")


def test_binary_operators_have_no_attributes():
    call = parse_expr("1 != 2")
    assert call.op.name == "not_equal"
    assert call.attrs is None


def test_operator_call_has_default_attributes():
    call = parse_expr("free_var %x; nn.softmax(%x)")
    assert call.attrs.axis == -1
    assert parse_expr("nn.softmax").name == "nn.softmax"


def test_attribute_values():
    function = parse_expr(
        'fn (a=1, b=-2.5f, c=[1, [2, 3],], d="t", e=None, f=True, g=(4), h=nullptr, i.j=5) { () }'
    )
    assert dict(function.attrs.items()) == {
        "a": 1, "b": -2.5, "c": (1, (2, 3)), "d": "t", "e": None, "f": True, "g": 4, "h": None,
        "i.j": 5,
    }  # fmt: skip


def test_trailing_commas():
    assert reads_as("free_var %x; add(%x, %x,)", "free_var %x; add(%x, %x)")
    assert reads_as("(1, 2,)", "(1, 2)")
    assert isinstance(parse_expr("(1,)"), ir.Tuple)
    assert isinstance(parse_expr("(1)"), ir.Constant)
    assert reads_as("fn (%x: int8, a=1,) { %x }", "fn (%x: int8, a=1) { %x }")


def test_statements_are_bindings():
    expr = parse_expr("1; 2; 3")
    assert isinstance(expr, ir.Let)
    assert expr.body.body.data == 3
    assert same(expr, parse_expr("let %a = 1; let %b = 2; 3"))


def test_graph_variables():
    expr = parse_expr("%0 = add(1, 2); %1 = add(%0, %0); (%1, %0)")
    assert expr.fields[0].args[0] is expr.fields[1]


def test_graph_variable_of_an_inner_scope():
    # A number bound in a block is known after it, unless it hid an outer one.
    expr = parse_expr("%0 = 1; if (True) { %0 = 2; %1 = 3; %0 } else { (%0, %1) }")
    assert expr.true_branch.data == 2
    assert [field.data for field in expr.false_branch.fields] == [1, 3]


def test_scopes():
    inner = parse_expr("let %x = 1; (fn (%x) { %x })(%x)")
    function, argument = inner.body.op, inner.body.args[0]
    assert function.body is function.params[0]
    assert argument is inner.var
    fails("(fn (%q) { %q })(%q)", "`%q` is not defined here")


def test_recursive_let():
    expr = parse_expr("let %f = fn (%x) { %f(%x) }; %f(1)")
    assert expr.value.body.op is expr.var


def test_projection():
    assert parse_expr("free_var %x; %x.1").index == 1
    assert parse_expr("(1, 2).0(3)").op.index == 0


def test_curried_call():
    call = parse_expr("free_var %f; %f(1)(2)")
    assert call.op.op.name_hint == "f"


def test_constructor_without_fields_is_a_call():
    module = parse(VERSION + "type T { A, B(int32) } def @f() { (A, B(1), B) }")
    first, second, third = module["f"].body.fields
    assert isinstance(first, ir.Call)
    assert first.args == ()
    assert second.args[0].data == 1
    assert isinstance(third, ir.Constructor)


def test_match_as_a_value():
    module = parse(VERSION + "type T { A, B(int32) } def @f(%t: T) { let %r = match (%t) { A => 1, "
                   "B(%n) => %n }; %0 = match? (%t) { _ => 2, }; (%r, %0) }")  # fmt: skip
    assert isinstance(module["f"].body.value, ir.Match)
    assert module["f"].body.value.complete
    assert not module["f"].body.body.fields[1].complete


def test_spans():
    expr = parse_expr("free_var %x;\nadd(%x,\n  1)")
    assert (expr.span.line, expr.span.end_line) == (2, 3)
    assert (expr.span.column, expr.span.end_column) == (1, 5)
    assert str(expr.args[1].span) == "from_string:3:3"
    chain = parse_expr("let %a = 1;\nlet %b = 2;\n%b")
    assert (chain.span.line, chain.span.end_line) == (1, 3)
    assert chain.body.span.line == 2


# --- modules ------------------------------------------------------------------------------------


def test_functions_may_refer_ahead():
    module = parse(VERSION + "def @f(%x: int8) { @g(%x) } def @g(%x: int8) { @f(%x) }")
    assert module["f"].body.op is module.get_global_var("g")


def test_type_parameters_and_external_types():
    module = parse(VERSION + "extern type E[A]\ndef @id[A, S: Shape](%x: E[A]) -> E[A] { %x }")
    function = module["id"]
    assert [str(kind.kind.name) for kind in function.type_params] == ["Type", "ShapeVar"]
    assert function.params[0].type_annotation.args[0] is function.type_params[0]


def test_init_module_is_not_changed():
    base = parse(VERSION + "type T { A }\ndef @f(%x: int8) { %x }")
    more = parse(VERSION + "def @g(%x: int8) { (@f(%x), A) }", init_module=base)
    assert "g" not in base
    assert more["g"].body.fields[0].op is base.get_global_var("f")


def test_init_meta_table_follows_the_texts_own():
    own = ir.const(np.zeros(2))
    text = ir.astext(own)
    extra = ir.const(np.ones(3))
    body, section = text.split("\n#[metadata]")
    back = parse_expr(f"{body.replace('[0]', '[1]')}\n#[metadata]{section}",
                      {"relay.Constant": [extra]})  # fmt: skip
    assert back is extra


def test_inference_is_the_callers():
    seen = []

    def infer(module):
        seen.append(module)
        return module

    module = fromtext(VERSION + "def @f() { 1 }", infer=infer)
    assert seen == [module]


# --- diagnostics --------------------------------------------------------------------------------


def test_caret_points_at_the_token():
    message = fails("let %x = 1;\nadd(%x, %yy)", "`%yy` is not defined here")
    assert message.splitlines() == [
        "error: the local variable `%yy` is not defined here",
        " --> from_string:2:9",
        "  |",
        "2 | add(%x, %yy)",
        "  |         ^^^",
        "help: declare it with `free_var %yy;`",
    ]


def test_several_errors_at_once():
    message = fails("(%a, %b, 99999i16)")
    assert message.count("error: ") == 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nn.conv2dd(1)", ["no operator `nn.conv2dd`", "did you mean `nn.conv2d`?"]),
        ("foo", ["no operator `foo`"]),
        ("add(1, 2", ["expected `,`, found the end of the text"]),
        ("1 2", ["expected the end of the text, found integer `2`"]),
        ("let @x = 1; ()", ["expected a local variable, found global variable `x`"]),
        ("let x = 1; ()", ["expected a local variable, found identifier `x`"]),
        ("let %x = 1", ["expected `;`"]),
        ('"text"', ["expected an expression, found string `text`"]),
        ("%7", ["`%7` is not defined before its use"]),
        ("meta[relay.Constant][0]", ["no entry in the metadata for `relay.Constant`"]),
        ("fn (%x: Tensor[(1), flaot32]) { %x }", ["`flaot32` is not an element type"]),
        ("fn (%x: @t) { %x }", ["expected a type"]),
        ("fn (a=1, a=2) { () }", ["`a` is given twice"]),
        ("free_var %f; %f(1, a=2)", ["which kind of attributes", "attrs_type_key"]),
        ("free_var %x; match (%x) { Foo => 1 }", ["no constructor `Foo`", "`%Foo`"]),
        ("type T { A }", ["expected an expression, found `type`"]),
        ("", ["expected an expression, found the end of the text"]),
    ],
)
def test_syntax_error(text, parts):
    fails(text, "error: ", " --> from_string:", "^", *parts)


def test_unknown_attribute_names_the_nearest():
    text = "free_var %x; nn.softmax(%x, axiss=1)"
    message = fails(text, "axiss", "axis", "from_string:1:29")
    with pytest.raises(AttributeError):
        parse_expr(text)
    assert "^" in message


def test_bad_attribute_value():
    fails('free_var %x; nn.softmax(%x, axis="a")', "axis", "from_string:1:29")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("def @f() { 1 }", ["expected the version of the text", 'version = "0.0.5"']),
        ('#[version = "0.0.4"]\ndef @f() { 1 }', ["text version 0.0.4 is not supported"]),
        (VERSION + "def @f() { 1 } def @f() { 2 }", ["`@f` is defined twice", "2:5"]),
        (VERSION + "def @foo() { 1 } def @g() { @fooo() }", ["`@fooo` is not", "`@foo`?"]),
        (VERSION + "type A { X } type B { X }", ["a constructor `X` already", "`A` has it"]),
        (VERSION + "extern type A { X }", ["an external type has no constructors"]),
        (VERSION + "1", ["expected `def`, `type` or `extern`, found integer `1`"]),
        (VERSION + "def @f() { 1 }\n#[metadata]\n{]", ["the metadata is malformed"]),
        (VERSION + "def @f() { 1 }\n#[metadata]\n[]", ["the metadata is malformed"]),
    ],
)
def test_module_error(text, parts):
    fails(text, "error: ", "^", *parts, whole=True)


def test_source_name_in_messages():
    with pytest.raises(DiagnosticError, match=r"net\.relay:2:12"):
        parse(VERSION + "def @f() { ? }", "net.relay")


def test_long_lines_are_cut():
    message = fails("add(" + "1 + " * 400 + "%x, 2)", "`%x` is not defined")
    assert max(map(len, message.splitlines())) < 200


def test_hostile_nesting():
    depth = 20_000
    assert parse_expr("(" * depth + "1" + ")" * depth).data == 1
    assert isinstance(parse_expr("abs(" * depth + "1" + ")" * depth), ir.Call)
    fails(f"fn (a={'[' * depth}{']' * depth}) {{ () }}", "nested at most 64 deep")
    fails("(" * depth, "expected an expression, found the end of the text")
    fails("fn (%x: " + "(" * depth, "expected a type")
