import random

import pytest

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.param import Shape, parse_param, read_param
from ixion.frontend.pnnx.value import parse_value

LINEAR = (
    "nn.Linear                l1                       1 1 0 1 bias=True in_features=8 x= "
    "@weight=(4,8)f32 @bias=(4)bf16 $input=0 #0=(1,?,8)f32 #1=(1,?,4)f32"
)
TEXT = f"""7767517
3 2
pnnx.Input               in0                      0 1 0 #0=(1,?,8)f32
{LINEAR}
pnnx.Output              out                      1 0 1
"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("()", None),
        ("[]", None),
        ("True", True),
        ("False", False),
        ("12", 12),
        ("-3", -3),
        ("2.0", 2.0),
        ("1.000000e-5", 1e-5),
        ("1.000000e-05", 1e-5),
        ("1.23456792e8", 1.23456792e8),
        ("-1e30", -1e30),
        ("inf", "inf"),
        ("torch.float", "torch.float"),
        ("2147483647", 2147483647),
        ("(1,2,3)", [1, 2, 3]),
        ("(1.0,2)", [1.0, 2]),
        ("(a,b)", ["a", "b"]),
        ("[3]", [3]),
        ("1.200000e+00-9.000000e-01j", complex(1.2, -0.9)),
        ("1e+00+-2e+00j", complex(1, -2)),
        ("0.000000e+00+4.000000e+00j", 4j),
        ("ij,jk->ik", "ij,jk->ik"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_values(text, value):
    got = parse_value(text)
    assert got == value
    assert type(got) is type(value)


def test_operators():
    network = parse_param(TEXT)
    linear = network.operators[1]
    assert (linear.kind, linear.name, linear.line) == ("nn.Linear", "l1", 4)
    assert (linear.inputs, linear.outputs) == (("0",), ("1",))
    assert linear.params == {"bias": True, "in_features": 8, "x": ""}
    assert linear.weights == {
        "weight": Shape((4, 8), "float32"),
        "bias": Shape((4,), "bfloat16"),
    }
    assert linear.arguments == {"input": "0"}
    assert linear.shapes["0"] == Shape((1, None, 8), "float32")


def test_expressions_stay_text():
    text = "7767517\n1 1\npnnx.Expression e 0 1 0 expr=[None,[0,2,5]]\n"
    assert parse_param(text).operators[0].params == {"expr": "[None,[0,2,5]]"}


def test_a_value_may_hold_an_equals_sign():
    text = "7767517\n1 1\nx e 0 1 0 k=a=b\n"
    assert parse_param(text).operators[0].params == {"k": "a=b"}


def test_one_operand_bound_to_two_names():
    text = "7767517\n1 2\ntorch.matmul m 2 1 0 0 1 $input=0 $other=0\n"
    op = parse_param(text).operators[0]
    assert op.arguments == {"input": "0", "other": "0"}
    assert op.positional == ()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ":1"),
        ("123\n1 1\n", ":1"),
        ("7767517\n", ":2"),
        ("7767517\nx y\n", ":2"),
        ("7767517\n1 1\nnn.ReLU\n", ":3"),
        ("7767517\n1 1\nnn.ReLU m.my conv 1 1 0 1\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 stray\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 $input=7\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 #0=(1,2)q7\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 #0=1,2)f32\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 @w=(99999999999999999999)f32\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 1 0 1 @w=(?)f32\n", ":3"),
        ("7767517\n1 1\nnn.ReLU r 1 999999999999999999999 0 1\n", ":3"),
        ("7767517\n5 1\nnn.ReLU r 1 1 0 1\n", "line 2"),
    ],
)
def test_broken_texts_name_the_line(text, line):
    with pytest.raises(ModelFormatError) as caught:
        parse_param(text)
    assert line in str(caught.value)


def test_mutated_texts():
    rng = random.Random(5)
    for _ in range(2000):
        text = list(TEXT)
        for _ in range(rng.choice([1, 2, 8])):
            at = rng.randrange(len(text))
            text[at] = rng.choice(list("()[]@#$=,.?\n -0123456789abcj\x00\u20ac")) * rng.choice(
                [0, 1, 3]
            )
        try:
            parse_param("".join(text))
        except ModelFormatError:
            continue


def test_files_that_are_no_param(tmp_path):
    binary = tmp_path / "a.param"
    binary.write_bytes(b"\xff\xfe\x00PK")
    for path in (binary, tmp_path / "missing.param", tmp_path):
        with pytest.raises(ModelFormatError):
            read_param(path)
