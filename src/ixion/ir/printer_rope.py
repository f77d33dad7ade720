"""Text in pieces, put together once.

A program may nest as deep as it likes, so the text of an inner scope is not copied into the outer
one: pieces refer to pieces, and ``render`` walks them on a list. Beyond ``MAX_INDENT`` levels lines
are indented no further, or the text of a deep program would be made of blanks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Rope: TypeAlias = "str | list[Rope]"

# Marks between pieces; no piece of program text reads like one.
NEWLINE = "\n"
INDENT = "\t>"
DEDENT = "\t<"
MAX_INDENT = 50


def join_lines(lines: Iterable[Rope]) -> Rope:
    """The lines one below the other."""
    joined: list[Rope] = []
    for line in lines:
        joined += (line, NEWLINE)
    if joined:
        joined.pop()
    return joined


def enclosed(left: str, body: Rope, right: str) -> Rope:
    """``body`` on lines of its own, indented, between two brackets."""
    return [left, INDENT, NEWLINE, body, DEDENT, NEWLINE, right]


def render(rope: Rope) -> str:
    """The text of a rope."""
    if isinstance(rope, str):
        return rope
    pieces: list[str] = []
    depth = 0
    stack = [iter(rope)]
    while stack:
        for item in stack[-1]:
            if isinstance(item, list):
                stack.append(iter(item))
                break
            if item == NEWLINE:
                pieces.append(_BREAKS[min(depth, MAX_INDENT)])
            elif item == INDENT:
                depth += 1
            elif item == DEDENT:
                depth -= 1
            else:
                pieces.append(item)
        else:
            stack.pop()
    return "".join(pieces)


_BREAKS = ["\n" + "  " * depth for depth in range(MAX_INDENT + 1)]


__all__ = ["Rope", "enclosed", "join_lines", "render"]
