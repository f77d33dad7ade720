"""Damaged texts: every mistake is a DiagnosticError with a place, and nothing else is raised."""

import random

import pytest

import ixion.op  # noqa: F401 - registers the operators
from ixion import ir
from ixion.base.errors import DiagnosticError
from ixion.ir.parser import parse

SAMPLE = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
extern type Foreign[A]
def @id[A](%x: A) -> A { %x }
def @main(%x: Tensor[(1, ?, 3), float32], %f: fn [B](B) -> B, Primitive=1, names=["a", "b"]) {
  %0 = nn.softmax(%x, axis=-1) /* ty=float32 */;
  let %y: (int8, ref(int32)) = (1i16, ref(-2));
  let %g = fn (%p: List[int32]) -> int32 {
    match? (%p) { Cons(%head, _) => { %head }, (_, %q) => 1, Nil => ref_read(%y.1), }
  };
  %1 = if (True) { %0 + %x * 2f } else { ref_write(%y.1, 3); (%x) };
  free_var %z: bool;
  @id(%g(Cons(1, Nil)), %1, 1e3f64, inff, %z == False)
}
"""
PIECES = [
    "(", ")", "{", "}", "[", "]", ",", ";", ":", "=", "->", "=>", "%x", "@id", "%0", "1", "2f", '"',
    "meta[A][0]", "let", "fn", "if", "match", "Nil", "Cons", "_", "?", "-", ".", "add", "1.5",
    "99999999999999999999", "#[metadata]", "/*", "é", "\\", "Tensor", "int32",
]  # fmt: skip


def complaint(read, text):
    """The message of the DiagnosticError that reading a text raises, or None."""
    try:
        read(text)
    except DiagnosticError as error:
        return str(error)
    return None


def damaged(seed):
    chance = random.Random(seed)
    text = SAMPLE
    for _ in range(chance.randrange(1, 4)):
        at, kind = chance.randrange(len(text)), chance.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + chance.randrange(1, 12) :]
        elif kind == 1:
            text = text[:at] + chance.choice(PIECES) + text[at:]
        elif kind == 2:
            text = text[:at]
        else:
            end = at + chance.randrange(1, 30)
            text = text[:end] + text[at:end] + text[end:]
    return text


def test_the_sample_itself():
    with pytest.raises(DiagnosticError, match="free variables"):
        parse(SAMPLE)
    module = parse(SAMPLE.replace("free_var %z: bool;", "let %z = True;"))
    assert ir.structural_equal(parse(ir.astext(module)), module)


@pytest.mark.parametrize("block", range(10))
def test_damaged_text(block):
    for seed in range(block * 50, block * 50 + 50):
        message = complaint(parse, damaged(seed))
        assert message is None or ("error: " in message and "--> from_string:" in message)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("9" * 5000, True),
        ("1e99999f", True),
        ("%" + "9" * 5000, True),
        ("meta[A][" + "9" * 5000 + "]", True),
        ("1" + "-" * 9999 + "1", True),
        ("(1, 2).99999999999999999999", False),
        ("(1, 2).0i64", False),
    ],
)
def test_extreme_numbers(text, fails):
    message = complaint(ir.parse_expr, text)
    assert (message is not None) == fails
    assert message is None or "from_string:1:" in message
