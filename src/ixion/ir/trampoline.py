"""Mutual recursion without Python's stack.

Grammar and printer functions that may nest as deep as a program does are generators: instead of
calling one another they yield the generator to run, and receive its result. ``run`` keeps them on a
list.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeVar

T = TypeVar("T")
Step = Generator[Any, Any, T]


def run(step: Step[T]) -> T:
    """The result of a step that may yield other steps, to any depth."""
    stack: list[Step[Any]] = [step]
    send = step.send
    value: Any = None
    while True:
        try:
            inner = send(value)
        except StopIteration as done:
            stack.pop()
            value = done.value
            if not stack:
                return value  # type: ignore[no-any-return]
            send = stack[-1].send
        else:
            assert type(inner) is GeneratorType
            stack.append(inner)
            send, value = inner.send, None


__all__ = ["Step", "run"]
