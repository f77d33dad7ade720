"""The language of `pnnx.Expression` and of `Tensor.index`: tokens, tree, evaluation.

It looks like nested calls, but the converter's own printer misplaces brackets and commas
(`add(log1p,mul(@0,2)),mul(expm1,@0),3`), and what stays true is the order of the words: it is
Polish notation with a fixed number of operands a name. So punctuation is skipped, except that
brackets close lists and that `size` shows by its parenthesis whether it has one operand or two.
The text is read from its end with a stack of finished nodes, one pass, no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.value import Value, parse_value

Result = TypeVar("Result")

UNARY = frozenset(
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor int log log10 log1p "
    "neg reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc".split()
)
BINARY = frozenset(
    "add sub mul div floor_divide remainder pow atan2 fmod max maximum min minimum logaddexp "
    "and or xor lshift rshift".split()
)
SIZE, LIST = "size", "["
_CAST = "torch."

_TOKEN = re.compile(r"[\[\](),]|[^\[\](),\s]+|\s+")
_OPERAND = re.compile(r"@\d{1,9}")
_MOST_CHARACTERS = 1 << 24


@dataclass(frozen=True, slots=True)
class Operand:
    """`@index`: an input of the operator."""

    index: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, word or None."""

    value: Value


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of `UNARY`, `BINARY`, `size`, a cast `torch.float`, or `[` for a list."""

    name: str
    args: tuple[Tree, ...]


Tree = Operand | Literal | Apply


def tokens(text: str) -> list[str]:
    """Words and punctuation of an expression in order, blanks left out."""
    return [token for token in _TOKEN.findall(text) if not token.isspace()]


def parse(text: str, where: str | None = None) -> Tree:
    """The tree of an expression; ModelFormatError if operands are missing or left over."""
    if len(text) > _MOST_CHARACTERS:
        raise _broken("the expression is too long", text[:60], where)
    words = tokens(text)
    stack: list[Tree | str] = []
    for place in range(len(words) - 1, -1, -1):
        _reduce(words, place, stack, text, where)
    if len(stack) != 1 or isinstance(stack[0], str):
        raise _broken("the expression has operands left over", text, where)
    return stack[0]


def _reduce(
    words: list[str], place: int, stack: list[Tree | str], text: str, where: str | None
) -> None:
    word = words[place]
    if word == "]":
        stack.append(word)
    elif word == LIST:
        items = []
        while stack and not isinstance(stack[-1], str):
            items.append(stack.pop())
        if not stack:
            raise _broken("a list has no end", text, where)
        stack.pop()
        stack.append(Apply(LIST, tuple(item for item in items if not isinstance(item, str))))
    elif word not in "(),":
        arity = _arity(words, place)
        args = []
        for _ in range(arity):
            if not stack or isinstance(stack[-1], str):
                raise _broken(f"{word!r} needs {arity} operands", text, where)
            args.append(stack.pop())
        stack.append(_node(word, tuple(arg for arg in args if not isinstance(arg, str))))


def _arity(words: list[str], place: int) -> int:
    word = words[place]
    if word == SIZE:
        alone = words[place + 1 : place + 2] == ["("] and words[place + 3 : place + 4] == [")"]
        return 1 if alone else 2
    if word in UNARY or word.startswith(_CAST):
        return 1
    return 2 if word in BINARY else 0


def _node(word: str, args: tuple[Tree, ...]) -> Tree:
    if args:
        return Apply(word, args)
    if _OPERAND.fullmatch(word):
        return Operand(int(word[1:]))
    return Literal(parse_value(word))


def fold(
    tree: Tree,
    operand: Callable[[int], Result],
    literal: Callable[[Value], Result],
    apply: Callable[[str, tuple[Result, ...]], Result],
) -> Result:
    """Evaluate bottom-up: `apply(name, args)` sees the results of the arguments, left to right.

    Iterative, so the depth of the tree does not matter.
    """
    pending: list[tuple[Tree, bool]] = [(tree, False)]
    done: list[Result] = []
    while pending:
        node, ready = pending.pop()
        if isinstance(node, Operand):
            done.append(operand(node.index))
        elif isinstance(node, Literal):
            done.append(literal(node.value))
        elif ready:
            count = len(node.args)
            args = tuple(done[len(done) - count :])
            del done[len(done) - count :]
            done.append(apply(node.name, args))
        else:
            pending.append((node, True))
            pending.extend((arg, False) for arg in reversed(node.args))
    return done[0]


def operands(tree: Tree) -> list[int]:
    """Indices of the operands an expression uses, in order, each once."""
    seen: dict[int, None] = {}
    fold(tree, seen.setdefault, lambda _: None, lambda _, __: None)
    return list(seen)


def _broken(message: str, text: str, where: str | None) -> ModelFormatError:
    shown = text if len(text) < 200 else text[:200] + "..."
    return ModelFormatError(message, where=where, found=shown)
