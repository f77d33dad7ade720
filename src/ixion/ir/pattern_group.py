"""Which parts of an expression a pattern claims.

Matches are looked for from the root down; a node belongs to one group at most. A group is refused
where something inside it is used outside, unless that use flows back into the group's root.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ixion.ir.adt import Match
from ixion.ir.expr import Call, Constant, Expr, If, Let, Tuple, TupleGetItem, Var
from ixion.ir.function import Function
from ixion.ir.op import Op
from ixion.ir.pattern import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    ShapePattern,
    TuplePattern,
    TypePattern,
)
from ixion.ir.pattern_graph import expr_inputs, pattern_inputs, post_order
from ixion.ir.pattern_match import Matcher, expr_op, pattern_op
from ixion.ir.visitor import rebuilt

PARTITIONED = "PartitionedFromPattern"
_ASSOCIATIVE = frozenset({"multiply", "divide"})


class Group:
    """One match: its root, what each pattern matched, and the group as a function of its inputs."""

    __slots__ = ("args", "function", "matched", "name", "root")

    def __init__(
        self,
        root: Expr,
        matched: dict[DFPattern, list[Expr]],
        args: list[Expr],
        function: Function,
        name: str,
    ) -> None:
        self.root = root
        self.matched = matched
        self.args = args
        self.function = function
        self.name = name


def root_ops(pattern: DFPattern) -> frozenset[str] | None:
    """Operators that a matching call must call, or None where any expression may match."""
    if isinstance(pattern, (AttrPattern, TypePattern, ShapePattern, DataTypePattern)):
        return root_ops(pattern.pattern)
    if isinstance(pattern, DominatorPattern):
        return root_ops(pattern.child)
    if isinstance(pattern, AltPattern):
        left, right = root_ops(pattern.left), root_ops(pattern.right)
        return None if left is None or right is None else left | right
    name = pattern_op(pattern)
    if name is None:
        return None
    return _ASSOCIATIVE if name in _ASSOCIATIVE else frozenset((name,))


class Grouper:
    """Finds the groups of one pattern in one expression."""

    def __init__(self, pattern: DFPattern, root: Expr) -> None:
        self.pattern = pattern
        self.matcher = Matcher(root)
        self.owner: dict[Expr, Group] = {}
        self._order = post_order(pattern, pattern_inputs)
        self._numbered = 0
        self._find()

    def group_at(self, expr: Expr) -> Group | None:
        """The group whose root is ``expr``."""
        group = self.owner.get(expr)
        return group if group is not None and group.root is expr else None

    def _find(self) -> None:
        ops = root_ops(self.pattern)
        partitioned: set[Expr] = set()
        for node in reversed(post_order(self.matcher.root, expr_inputs)):
            if node in self.owner:
                continue
            if isinstance(node, Function) and node.attrs is not None and PARTITIONED in node.attrs:
                partitioned.add(node)
                partitioned.update(post_order(node.body, expr_inputs))
            if ops is not None and expr_op(node) not in ops:
                continue
            if node not in partitioned and self.matcher.match(self.pattern, node):
                self._create(node, self.matcher.memo)

    # --- inputs ---------------------------------------------------------------------------------

    def _create(self, root: Expr, matched: dict[DFPattern, list[Expr]]) -> None:
        inputs: dict[Expr, Var] = {}
        args: list[Expr] = []
        fuzzy = self._fuzzy(matched)
        for pattern in self._order:
            for expr in _leaf_matches(pattern, matched):
                if expr in fuzzy or expr in inputs or isinstance(expr, (Op, Function)):
                    continue
                if not self._embedded(expr, pattern):
                    inputs[expr] = Var(f"FunctionVar_{self._numbered}_{len(args)}")
                    args.append(expr)
        self._numbered += 1
        inner = post_order(root, lambda node: () if node in inputs else expr_inputs(node))
        inner = [node for node in inner if node not in inputs]
        if not self._closed(root, inner):
            return
        function = Function(tuple(inputs.values()), _extract(inner, inputs), None, ())
        group = Group(root, matched, args, function, "".join(map(_label, inner)))
        self.owner.update((node, group) for node in inner)

    def _fuzzy(self, matched: dict[DFPattern, list[Expr]]) -> set[Expr]:
        """What matched a dominator's parent and path, or lies in a function: never an input."""
        fuzzy: set[Expr] = set()
        for pattern in self._order:
            if isinstance(pattern, DominatorPattern):
                for part in (pattern.parent, pattern.path):
                    fuzzy.update(matched.get(part, ()))
            elif isinstance(pattern, FunctionPattern):
                for function in matched.get(pattern, ()):
                    assert isinstance(function, Function)
                    fuzzy.update(post_order(function.body, expr_inputs))
        return fuzzy

    def _embedded(self, expr: Expr, pattern: DFPattern) -> bool:
        """A constant that the pattern asks for as a constant stays inside the function."""
        if not isinstance(expr, Constant):
            return False
        while isinstance(pattern, AltPattern):
            pattern = pattern.left if self.matcher.match(pattern.left, expr) else pattern.right
        if isinstance(pattern, ExprPattern):
            return isinstance(pattern.expr, Constant)
        return isinstance(pattern, ConstantPattern)

    # --- validity -------------------------------------------------------------------------------

    def _closed(self, root: Expr, inner: list[Expr]) -> bool:
        """No node is in another group, and none but the root is used from outside."""
        inside = set(inner)
        graph = self.matcher.graph
        top = graph[root]
        for node in inner:
            if isinstance(node, (Op, Function, Constant)):
                continue
            if node in self.owner:
                return False
            if node is root:
                continue
            for user in graph[node].outputs:
                if user.expr not in inside and not graph.dominates(top, user):
                    return False
        return True


def _leaf_matches(pattern: DFPattern, matched: dict[DFPattern, list[Expr]]) -> Iterator[Expr]:
    """What matched the parts of a pattern that say nothing more about their insides."""
    found: Any = matched.get(pattern, ())
    if isinstance(pattern, TuplePattern) and pattern.fields is None:
        for expr in found:
            yield from expr.fields
    elif isinstance(pattern, CallPattern) and pattern.args is None:
        for expr in found:
            yield from expr.args
    elif not pattern_inputs(pattern):
        yield from found


def _extract(inner: list[Expr], inputs: dict[Expr, Var]) -> Expr:
    """The last of ``inner`` with the inputs replaced by parameters."""
    made: dict[Expr, Expr] = dict(inputs)
    for node in inner:
        made[node] = rebuilt(node, made)
    return made[inner[-1]]


def _label(node: Expr) -> str:
    """A node's share of a group's name."""
    if isinstance(node, Call):
        return f"{node.op.name}_" if isinstance(node.op, Op) else "Call_"
    if isinstance(node, TupleGetItem):
        return f"TupleGetItem{node.index}_"
    return _LABELS.get(type(node), "")


_LABELS: dict[type, str] = {
    Tuple: "Tuple_", Function: "Function", Let: "Let_", If: "If_", Match: "Match_",
}  # fmt: skip


__all__ = ["PARTITIONED", "Group", "Grouper"]
