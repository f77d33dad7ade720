"""Symbolic dims: one normal form, sound simplification."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.base import dim as dims
from ixion.base.dim import Any, Dim, SymVar
from ixion.base.errors import InputError

n, m = SymVar("n"), SymVar("m")


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (n + 1 - 1, n),
        (n - n, 0),
        (n * 8 // 8, n),
        ((n * 8 + 3) // 4, 2 * n),
        (n // 4 * 4 + n % 4, n),
        ((n - 1) // 4 + 1, (n + 3) // 4),
        (n // 2 // 3, n // 6),
        (((n + 1) // 2 + 1) // 2, (n + 3) // 4),
        (n * m * 4 // (n * 2), 2 * m),
        ((n * m + m) // m, n + 1),
        ((n + m) * 3 // (n + m), 3),
        (n % 1, 0),
        (n * 6 % 3, 0),
        (n % 8 % 4, n % 4),
        (m * n, n * m),
        (n // n, 1),
        (dims.maximum(n, 0), n),
        (dims.maximum(n, n + 2), n + 2),
        (dims.minimum(n, n + m), n),
        (dims.maximum(n, dims.maximum(m, n)), dims.maximum(m, n)),
        (dims.prod((n, 2, m)), 2 * n * m),
        (dims.prod(()), 1),
        (dims.ceil_div(n, 4), (n + 3) // 4),
        (dims.ceil_div(7, 4), 2),
    ],
)
def test_normal_form(made: Dim, expected: Dim) -> None:
    assert made == expected
    assert hash(made) == hash(expected)


def test_constant_results_are_ints() -> None:
    assert type(n - n + 3) is int
    assert type(n * 0) is int
    assert type(dims.minimum(3, 4)) is int


def test_any_absorbs() -> None:
    assert Any() == Any()
    assert hash(Any()) == hash(Any())
    assert str(Any()) == "?"
    results = [Any() + 1, 1 - Any(), Any() * n, Any() // 2, 5 % Any(), n + Any(), -Any()]
    assert all(found == Any() for found in results)
    assert Any() != n
    assert Any() != 1


def test_text_is_readable() -> None:
    assert str(2 * n + 1) == "2*n + 1"
    assert str(n % 4) == "(n % 4)"
    assert str((n + 3) // 4) == "((n + 3) // 4)"
    assert str(m - n * n) == "-n*n + m"
    assert str(dims.maximum(n, m)) == "max(m, n)"


def test_same_is_three_valued() -> None:
    assert dims.same(n + 1, 1 + n) is True
    assert dims.same(n, n + 1) is False
    assert dims.same(2 * n, 2 * m + 1) is False
    assert dims.same(n + m + 1, 0) is False
    assert dims.same(n, m) is None
    assert dims.same(Any(), 3) is None
    assert dims.same(3, 3) is True


def test_evaluate_and_substitute() -> None:
    made = (n * 3 + m) // 2 + dims.maximum(n, m)
    assert isinstance(made, dims.SymExpr)
    assert made.evaluate({"n": 5, "m": 4}) == 9 + 5
    assert made.substitute({"n": 5, "m": 4}) == 14
    assert made.substitute({"n": m}) == 3 * m
    assert made.free_vars() == {"n", "m"}
    with pytest.raises(InputError, match="no value for the symbolic dimension 'm'"):
        made.evaluate({"n": 1})
    with pytest.raises(InputError):
        dims.evaluate(Any(), {})


def test_a_symbol_is_no_number() -> None:
    with pytest.raises(TypeError, match="has no value yet"):
        range(n)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        n // 0
    with pytest.raises(TypeError):
        dims.as_dim("n")
    with pytest.raises(TypeError):
        dims.as_dim(True)
    with pytest.raises(ValueError, match="needs a name"):
        SymVar("")


@pytest.mark.parametrize("text", ["", "n +", "f(n)", "n ** 2", "1.5", "__import__('os')", "max()"])
def test_parse_rejects(text: str) -> None:
    with pytest.raises(ValueError, match="not a dimension"):
        dims.parse(text)


def test_parse_and_copies() -> None:
    assert dims.parse("?") == Any()
    assert dims.parse("-(3)") == -3
    made = (n + 3) // 4 * m
    assert copy.deepcopy(made) == made
    assert copy.deepcopy(n) == n


_OPERATORS: list[Callable[[Dim, Dim], Dim]] = [
    dims.add,
    lambda a, b: dims.add(a, dims.multiply(-1, b)),
    dims.multiply,
    dims.maximum,
    dims.minimum,
]
_PYTHON: list[Callable[[int, int], int]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    max,
    min,
]
_VALUES = {"n": 7, "m": 3, "k": 0}


@st.composite
def _dims(draw: st.DrawFn, depth: int = 3) -> tuple[Dim, Callable[[dict[str, int]], int]]:
    """A dim and an independent way to compute it."""
    if depth == 0 or draw(st.booleans()):
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(_VALUES)))
            return SymVar(name), lambda values: values[name]
        number = draw(st.integers(-6, 6))
        return number, lambda values: number
    left, left_value = draw(_dims(depth - 1))
    if draw(st.booleans()):
        divisor = draw(st.integers(-5, 6).filter(bool))
        if draw(st.booleans()):
            return dims.floordiv(left, divisor), lambda v: left_value(v) // divisor
        return dims.mod(left, divisor), lambda v: left_value(v) % divisor
    right, right_value = draw(_dims(depth - 1))
    which = draw(st.integers(0, len(_OPERATORS) - 1))
    made = _OPERATORS[which](left, right)
    return made, lambda v: _PYTHON[which](left_value(v), right_value(v))


@given(_dims(), st.fixed_dictionaries({name: st.integers(0, 30) for name in _VALUES}))
def test_simplification_keeps_the_value(
    case: tuple[Dim, Callable[[dict[str, int]], int]], values: dict[str, int]
) -> None:
    made, reference = case
    assert dims.evaluate(made, values) == reference(values)
    bound = dims.lower_bound(made)
    assert bound is None or reference(values) >= bound


@given(_dims())
def test_text_reads_back(case: tuple[Dim, Callable[[dict[str, int]], int]]) -> None:
    assert dims.parse(str(case[0])) == case[0]


@given(_dims(), _dims(), st.fixed_dictionaries({x: st.integers(1, 30) for x in _VALUES}))
def test_symbolic_divisors(case: tuple, other: tuple, values: dict[str, int]) -> None:  # type: ignore[type-arg]
    (a, a_value), (b, b_value) = case, other
    if b == 0 or b_value(values) == 0:
        return
    try:
        quotient, rest = dims.floordiv(a, b), dims.mod(a, b)
        assert dims.evaluate(quotient, values) == a_value(values) // b_value(values)
        assert dims.evaluate(rest, values) == a_value(values) % b_value(values)
    except ZeroDivisionError:
        # A factor cancelled inside may be zero only where the divisor is.
        raise AssertionError("division by zero with a divisor that is not zero") from None


@given(_dims(), _dims(), st.fixed_dictionaries({x: st.integers(0, 9) for x in _VALUES}))
def test_same_is_sound(case: tuple, other: tuple, values: dict[str, int]) -> None:  # type: ignore[type-arg]
    verdict = dims.same(case[0], other[0])
    if verdict is not None:
        assert verdict == (case[1](values) == other[1](values))


@pytest.mark.parametrize(
    ("dim", "bound"),
    [
        (n - 2 * (n // 2), 0),
        (n - n // 2, 0),
        (n - (n + 1) // 2, 0),
        (2 * ((n + 1) // 2) - n, 0),
        (512 - dims.minimum(n, 512), 0),
        (dims.maximum(n - 3, 2), 2),
        (n // 3 + 5, 5),
        (n + 1 - n // 4 - n // 2, 1),
        (n - m, None),
        (-n, None),
    ],
)
def test_lower_bounds(dim: Dim, bound: int | None) -> None:
    assert dims.lower_bound(dim) == bound


def test_reduced_and_simpler() -> None:
    assert dims.reduced(384 * n, 384) == (n, 1)
    assert dims.reduced(6 * n + 9, 3 * m) == (2 * n + 3, m)
    assert dims.reduced(n, Any()) == (n, Any())
    assert dims.simpler(2 * (n // 2), n) == n
    assert dims.simpler(n, 7) == 7
    assert dims.simpler(Any(), n) == n


def test_solving_for_a_symbol() -> None:
    assert dims.solved(n, 7) == ("n", 7)
    assert dims.solved(2 * n + 3, 11) == ("n", 4)
    assert dims.solved(2 * n + 3, 12) is None
    assert dims.solved(n + 5, 3) is None
    for dim in (n * m, n + m, n // 2, n * n, 4, Any()):
        assert dims.solved(dim, 4) is None
