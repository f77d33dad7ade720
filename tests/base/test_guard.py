"""Guards: what must hold between sizes, and the error where it does not."""

from __future__ import annotations

import copy

import pytest

from ixion.base.dim import SymVar
from ixion.base.errors import InputError
from ixion.base.guard import Guard
from ixion.base.span import Span

n, m = SymVar("n"), SymVar("m")


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("equal", [(3, 3), (0, 0)], [(3, 4), (1, 3)]),
        ("broadcast", [(3, 3), (1, 3), (3, 1), (1, 1), (0, 0)], [(3, 4), (0, 1), (0, 3)]),
        ("expand", [(3, 3), (1, 3), (1, 0)], [(3, 1), (2, 3)]),
        ("at most", [(3, 3), (0, 3)], [(4, 3)]),
        ("differ", [(3, 1), (0, 1)], [(1, 1)]),
    ],
)
def test_kinds(kind: str, good: list[tuple[int, int]], bad: list[tuple[int, int]]) -> None:
    guard = Guard(kind, n, m, "sizes must fit")
    assert all(guard.holds({"n": a, "m": b}) for a, b in good)
    assert not any(guard.holds({"n": a, "m": b}) for a, b in bad)
    for a, b in bad:
        with pytest.raises(InputError):
            guard.check({"n": a, "m": b})


def test_the_error_names_sizes_and_place() -> None:
    guard = Guard("equal", 2 * (n // 2), m, "the parts differ", "concatenate", Span("net.onnx:cat"))
    assert guard.symbols() == {"n", "m"}
    text = str(guard.failure({"n": 5, "m": 5}))
    for part in ("m = 5, n = 5", "the parts differ", "concatenate at net.onnx:cat", "= 4"):
        assert part in text
    with pytest.raises(InputError, match="no value"):
        guard.holds({"n": 5})


def test_one_relation_is_one_guard_wherever_it_comes_from() -> None:
    first = Guard("equal", n, m, "a", "add", Span("one"))
    assert first == Guard("equal", n, m, "b", "multiply", Span("two"))
    assert first != Guard("equal", n, m, "a", "add", certain=False)
    assert len({first, Guard("equal", n, m, "c"), Guard("at most", n, m, "c")}) == 2
    assert copy.deepcopy(first) == first
    assert Guard.of(first.plain()) == first
    assert str(Guard.of(first.plain()).span) == "one"
