import math
import operator

import pytest

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.expression import Apply, Literal, Operand, fold, operands, parse, tokens

FUNCTIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "log1p": math.log1p,
    "expm1": math.expm1,
    "exp": math.exp,
    "pow": operator.pow,
}


def evaluate(text, *inputs):
    def apply(name, args):
        return list(args) if name == "[" else FUNCTIONS[name](*args)

    return fold(parse(text), inputs.__getitem__, lambda value: value, apply)


@pytest.mark.parametrize(
    ("text", "inputs", "value"),
    [
        ("add(@0,@1)", (2, 3), 5),
        ("sub(mul(@0,2),1)", (4,), 7),
        ("sub(1,@0)", (4,), -3),
        ("@0", (4,), 4),
        ("add(@0,,mul(@1,2))", (1, 2), 5),
        ("[@0,mul(@0,2),[1,None]]", (3,), [3, 6, [1, None]]),
        ("[None,[0,2,5]]", (), [None, [0, 2, 5]]),
        ("[]", (), []),
        ("ij", (), "ij"),
        ("True", (), True),
        ("1.000000e-5", (), 1e-5),
    ],
)
def test_values(text, inputs, value):
    assert evaluate(text, *inputs) == value


def test_misplaced_punctuation_of_the_converter():
    assert evaluate("log1p,expm1,@0", 0.5) == math.log1p(math.expm1(0.5))
    got = evaluate("add(log1p,mul(@0,2)),mul(expm1,@0),3", 0.5)
    assert got == math.log1p(1.0) + math.expm1(0.5) * 3


def test_size_has_one_operand_or_two():
    assert parse("size(@0,-1)") == Apply("size", (Operand(0), Literal(-1)))
    assert parse("size(@0)") == Apply("size", (Operand(0),))
    tree = parse("[size(@0,0),size(@0)]")
    assert [len(node.args) for node in tree.args] == [2, 1]


def test_casts_take_one_operand():
    assert parse("torch.float(@0)") == Apply("torch.float", (Operand(0),))


def test_order_of_subtraction():
    assert evaluate("sub(@0,sub(@1,@2))", 10, 5, 2) == 7


def test_operands_in_order():
    assert operands(parse("add(mul(@2,@0),@2)")) == [2, 0]


def test_tokens():
    assert tokens("add(@0, 1.5)") == ["add", "(", "@0", ",", "1.5", ")"]


def test_deep_expressions():
    depth = 100_000
    text = "neg(" * depth + "@0" + ")" * depth
    assert evaluate(text, 3) == 3


@pytest.mark.parametrize(
    "text", ["", "add(@0)", "add", "@0,@1", "[@0", "@0]", "neg([)", "mul(@0,[)", "]", "[", "(,)"]
)
def test_broken_expressions(text):
    with pytest.raises(ModelFormatError):
        parse(text)
