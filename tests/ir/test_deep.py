"""Programs of any depth, through everything that walks them."""

from __future__ import annotations

import copy

import pytest

from ixion import ir
from ixion.ir import Call, Function, Let, register_op, var

ADD, MUL = register_op("add"), register_op("multiply")
DEPTH = 8_000


def chain(n: int) -> Function:
    x = var("x", shape=(4,))
    e: ir.Expr = x
    for _ in range(n):
        e = Call(ADD, [e, x])
    return Function([x], e)


def lets(n: int) -> Function:
    names = [var(f"v{i}") for i in range(n + 1)]
    body: ir.Expr = names[-1]
    for i in range(n, 0, -1):
        body = Let(names[i], Call(ADD, [names[i - 1], names[i - 1]]), body)
    return Function([names[0]], body)


def functions(n: int) -> ir.Expr:
    x = var("x")
    e: ir.Expr = x
    for _ in range(n):
        y = var("y")
        e = Call(Function([y], e), [x])
    return e


@pytest.mark.parametrize("depth", [DEPTH, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [chain, lets, functions])
def test_deep_programs(make, depth: int) -> None:
    a, b = make(depth), make(depth)
    free = make is functions
    # Named before they are asserted: a failing assertion prints what stands in it.
    equal = ir.structural_equal(a, b, map_free_vars=free)
    same_hash = ir.structural_hash(a, free) == ir.structural_hash(b, free)
    kept = ir.rewrite(a, lambda old, new: new) is a
    counts = len(ir.free_vars(a)), len(ir.free_type_vars(a))
    assert (equal, same_hash, kept, counts) == (True, True, True, (int(free), 0))
    swapped = ir.rewrite(a, lambda old, new: MUL if new is ADD else new)
    if not free:
        pair = ir.get_first_structural_mismatch(a, swapped)
        assert pair is not None
        assert str(pair.lhs_path)[-3:] == ".op"
    again = ir.load_json(ir.save_json(a))
    equal = ir.structural_equal(a, again, map_free_vars=free)
    assert equal


def test_deep_copies() -> None:
    a = lets(5_000)
    equal = ir.structural_equal(copy.deepcopy(a), a)
    assert equal


def test_a_wide_and_shared_program_is_linear() -> None:
    def made() -> ir.Expr:
        e: ir.Expr = ir.const(1)
        for _ in range(5_000):
            e = ir.Tuple([e, e, ir.TupleGetItem(e, 0), ir.TupleGetItem(e, 0)])
        return e

    a, b = made(), made()
    equal, same_hash = ir.structural_equal(a, b), ir.structural_hash(a) == ir.structural_hash(b)
    assert (equal, same_hash) == (True, True)
