from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.base import dim as dims
from ixion.base.dim import Any, Dim, SymVar
from ixion.base.errors import InputError
from ixion.runtime.size_table import SizeTable


@st.composite
def some_dim(draw: st.DrawFn, depth: int = 3) -> Dim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from((0, 1, 7, -3, SymVar("n"), SymVar("the height"))))
    a, b = draw(some_dim(depth - 1)), draw(some_dim(depth - 1))
    kind = draw(st.sampled_from(("add", "mul", "max", "min", "div")))
    if kind == "div":
        return dims.floordiv(a, draw(st.sampled_from((2, 5, SymVar("n")))))
    makers = {"add": dims.add, "mul": dims.multiply, "max": dims.maximum, "min": dims.minimum}
    return makers[kind](a, b)


@given(st.lists(some_dim(), min_size=1, max_size=8), st.integers(1, 9), st.integers(0, 30))
def test_values_are_those_of_the_dims(several: list[Dim], n: int, height: int) -> None:
    table = SizeTable()
    numbers = [table.add(d) for d in several]
    sizes = {"n": n, "the height": height}
    values = table.values(sizes)
    assert [values[i] for i in numbers] == [dims.evaluate(d, sizes) for d in several]


def test_equal_parts_are_kept_once() -> None:
    table = SizeTable()
    n = SymVar("n")
    first = table.add(dims.floordiv(n, 4))
    assert table.add(dims.floordiv(n, 4)) == first


def test_work_cut_into_pieces_of_nothing() -> None:
    table = SizeTable()
    number = table.add(dims.floordiv(12, SymVar("n")))
    assert table.values({"n": 0})[number] == 0


def test_what_has_no_value_is_named() -> None:
    table = SizeTable()
    table.add(SymVar("sequence"))
    with pytest.raises(InputError, match="sequence"):
        table.values({"batch": 3})
    with pytest.raises(InputError):
        table.add(Any())
