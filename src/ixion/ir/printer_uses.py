"""How often each expression of a program is used, which decides what the printer may inline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.ir.adt import Match
from ixion.ir.expr import Call, Expr, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from ixion.ir.function import Function

_CHILDREN: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Call: lambda node: (node.op, *node.args),
    Tuple: lambda node: node.fields,
    TupleGetItem: lambda node: (node.tuple_value,),
    Let: lambda node: (node.value, node.body),
    If: lambda node: (node.cond, node.true_branch, node.false_branch),
    Function: lambda node: (node.body,),
    Match: lambda node: (node.data, *(clause.rhs for clause in node.clauses)),
    RefCreate: lambda node: (node.value,),
    RefRead: lambda node: (node.ref,),
    RefWrite: lambda node: (node.ref, node.value),
}


def count_uses(root: Expr) -> dict[int, int]:
    """Number of places that use each expression below ``root``, by ``id``; a node used twice by one
    other counts twice. Leaves are left out. Linear in the number of nodes and edges.
    """
    uses: dict[int, int] = {id(root): 0}
    stack = [root]
    while stack:
        node = stack.pop()
        for child in _CHILDREN[type(node)](node) if type(node) in _CHILDREN else ():
            key = id(child)
            if key in uses:
                uses[key] += 1
            elif type(child) in _CHILDREN:
                uses[key] = 1
                stack.append(child)
    return uses


__all__ = ["count_uses"]
