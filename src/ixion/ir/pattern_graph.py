"""Expressions and patterns as indexed graphs: order, users, and post-dominators.

A node *post-dominates* another where every path from that one to the root goes through it.
Immediate post-dominators come from the classic walk to the least common ancestor (Cooper, Harvey,
Kennedy), which one sweep suffices for in an acyclic graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.ir.adt import Match, pattern_vars
from ixion.ir.expr import Call, Expr, If, Let, RefCreate, RefRead, RefWrite, Tuple, TupleGetItem
from ixion.ir.function import Function
from ixion.ir.pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    WildcardPattern,
)


def _match_inputs(node: Match) -> tuple[Expr, ...]:
    inputs: list[Expr] = [node.data]
    for clause in node.clauses:
        inputs.extend(pattern_vars(clause.lhs))
        inputs.append(clause.rhs)
    return tuple(inputs)


_EXPR_INPUTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Call: lambda node: (node.op, *node.args),
    Tuple: lambda node: node.fields,
    TupleGetItem: lambda node: (node.tuple_value,),
    Function: lambda node: (*node.params, node.body),
    Let: lambda node: (node.value, node.var, node.body),
    If: lambda node: (node.cond, node.true_branch, node.false_branch),
    Match: _match_inputs,
    RefCreate: lambda node: (node.value,),
    RefRead: lambda node: (node.ref,),
    RefWrite: lambda node: (node.ref, node.value),
}


def _redirect(node: WildcardPattern) -> tuple[DFPattern, ...]:
    return () if node.pattern is None else (node.pattern,)


_PATTERN_INPUTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    AltPattern: lambda node: (node.left, node.right),
    AttrPattern: lambda node: (node.pattern,),
    CallPattern: lambda node: (node.op, *(node.args or ())),
    DataTypePattern: lambda node: (node.pattern,),
    DominatorPattern: lambda node: (node.parent, node.path, node.child),
    FunctionPattern: lambda node: (*(node.params or ()), node.body),
    IfPattern: lambda node: (node.cond, node.true_branch, node.false_branch),
    LetPattern: lambda node: (node.var, node.value, node.body),
    ShapePattern: lambda node: (node.pattern,),
    TupleGetItemPattern: lambda node: (node.tuple,),
    TuplePattern: lambda node: node.fields or (),
    TypePattern: lambda node: (node.pattern,),
    WildcardPattern: _redirect,
}


def expr_inputs(node: Expr) -> tuple[Expr, ...]:
    """What an expression is made of, in the order Relay visits it."""
    get = _EXPR_INPUTS.get(type(node))
    return () if get is None else get(node)


def pattern_inputs(node: DFPattern) -> tuple[DFPattern, ...]:
    """The patterns inside a pattern."""
    get = _PATTERN_INPUTS.get(type(node))
    return () if get is None else get(node)


def post_order(root: Any, inputs: Callable[[Any], tuple[Any, ...]]) -> list[Any]:
    """Every node below ``root`` once, after its inputs; a cycle is cut where it closes."""
    order: list[Any] = []
    seen: set[int] = set()
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(inputs(node)))
    return order


class GraphNode:
    """One expression with its neighbours; lists hold an input as often as it is used."""

    __slots__ = ("depth", "dominated", "dominator", "enter", "expr", "inputs", "leave", "outputs")

    def __init__(self, expr: Expr) -> None:
        self.expr = expr
        self.inputs: list[GraphNode] = []
        self.outputs: list[GraphNode] = []
        self.depth = 1
        self.dominator: GraphNode | None = None
        self.dominated: list[GraphNode] = []
        self.enter = self.leave = -1


def _common(left: GraphNode | None, right: GraphNode | None) -> GraphNode | None:
    while left is not right:
        if left is None or right is None:
            return None
        if left.depth >= right.depth:
            left, right = (left.dominator, right) if left.depth > right.depth else (
                left.dominator, right.dominator)  # fmt: skip
        else:
            right = right.dominator
    return left


class ExprGraph:
    """An expression's nodes in topological order, with users and post-dominators."""

    def __init__(self, root: Expr) -> None:
        self.order = [GraphNode(expr) for expr in post_order(root, expr_inputs)]
        self._nodes = {id(node.expr): node for node in self.order}
        self._connect()
        self._dominate()
        self._number()

    def __getitem__(self, expr: Expr) -> GraphNode:
        return self._nodes[id(expr)]

    def __contains__(self, expr: Expr) -> bool:
        return id(expr) in self._nodes

    def _connect(self) -> None:
        for node in self.order:
            for child in expr_inputs(node.expr):
                found = self._nodes[id(child)]
                node.inputs.append(found)
                found.outputs.append(node)

    def _dominate(self) -> None:
        for node in reversed(self.order[:-1]):
            outputs = node.outputs
            parent: GraphNode | None = outputs[0]
            for other in outputs[1:]:
                parent = _common(parent, other)
            if parent is not None:
                node.dominator = parent
                node.depth = parent.depth + 1
                parent.dominated.append(node)

    def _number(self) -> None:
        """Intervals of a walk over the dominator tree: one lies in another where it is
        dominated.
        """
        clock = 0
        stack = [(node, False) for node in self.order if node.dominator is None]
        while stack:
            node, done = stack.pop()
            clock += 1
            if done:
                node.leave = clock
                continue
            node.enter = clock
            stack.append((node, True))
            stack.extend((child, False) for child in node.dominated)

    def dominates(self, upper: GraphNode, lower: GraphNode) -> bool:
        """True where every way from ``lower`` to the root passes ``upper``, another node."""
        return upper.enter < lower.enter and lower.leave < upper.leave


__all__ = ["ExprGraph", "GraphNode", "expr_inputs", "pattern_inputs", "post_order"]
