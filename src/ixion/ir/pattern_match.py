"""Matching a pattern against an expression.

The rules are Relay's: one expression per pattern object unless a dominator's path is being
followed, what a failed branch had matched is forgotten, products and quotients associate. Matching
is written as generators, so a pattern that repeats itself (``redirect_to``) or a dominator's path
may follow a program to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ixion.ir.attrs import Attrs
from ixion.ir.equal import structural_equal
from ixion.ir.expr import Call, Constant, Expr, If, Let, Tuple, TupleGetItem, Var
from ixion.ir.function import Function
from ixion.ir.node import Node
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
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
from ixion.ir.pattern_graph import ExprGraph
from ixion.ir.pattern_typing import type_of
from ixion.ir.trampoline import Step, run
from ixion.ir.types import TensorType

_COMMUTATIVE = ("add", "multiply")


def pattern_op(pattern: DFPattern) -> str | None:
    """Name of the operator that a call pattern calls, if it calls exactly one."""
    if type(pattern) is CallPattern and type(pattern.op) is ExprPattern:
        op = pattern.op.expr
        return op.name if type(op) is Op else None
    return None


def expr_op(expr: Expr) -> str | None:
    """Name of the operator that a call calls."""
    if type(expr) is Call and type(expr.op) is Op:
        return expr.op.name
    return None


def same_value(wanted: Any, found: Any) -> bool:
    """An attribute has the value that a pattern asks for."""
    if isinstance(wanted, Node) or isinstance(found, Node):
        return structural_equal(wanted, found, map_free_vars=True)
    if isinstance(wanted, (tuple, list)) and isinstance(found, (tuple, list)):
        return len(wanted) == len(found) and all(map(same_value, wanted, found))
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return structural_equal(wanted, found, map_free_vars=True)
    if isinstance(wanted, str) != isinstance(found, str):
        # An element type that is not set is None here and the empty string in Relay.
        return wanted in (None, "") and found in (None, "")
    return bool(wanted == found)


class Matcher:
    """Matches patterns against parts of one expression.

    After a successful ``match``, ``memo`` has the expressions each pattern object matched.
    """

    def __init__(self, root: Expr) -> None:
        self.root = root
        self.memo: dict[DFPattern, list[Expr]] = {}
        self._matched: list[DFPattern] = []
        self._memoize = True
        self._graph: ExprGraph | None = None

    @property
    def graph(self) -> ExprGraph:
        """The whole expression as a graph, built when first asked for."""
        if self._graph is None:
            self._graph = ExprGraph(self.root)
        return self._graph

    def match(self, pattern: DFPattern, expr: Expr) -> bool:
        """True where ``expr``, the root or a part of it, matches."""
        self.memo = {}
        self._matched = []
        self._memoize = True
        return run(self._visit(pattern, expr))

    def _forget(self, mark: int) -> None:
        for pattern in self._matched[mark:]:
            self.memo.pop(pattern, None)
        del self._matched[mark:]

    def _visit(self, pattern: DFPattern, expr: Expr) -> Step[bool]:
        if self._memoize and pattern in self.memo:
            return any(expr is known for known in self.memo[pattern])
        mark = len(self._matched)
        leaf = _LEAVES.get(type(pattern))
        if leaf is not None:
            found = leaf(pattern, expr)
        else:
            found = yield _RULES[type(pattern)](self, pattern, expr)
        if found:
            self.memo.setdefault(pattern, []).append(expr)
            self._matched.append(pattern)
        else:
            self._forget(mark)
        return found

    def _all(self, patterns: tuple[DFPattern, ...], exprs: tuple[Expr, ...]) -> Step[bool]:
        if len(patterns) != len(exprs):
            return False
        for pattern, expr in zip(patterns, exprs, strict=True):
            if not (yield self._visit(pattern, expr)):
                return False
        return True

    # --- plain structure ------------------------------------------------------------------------

    def _alt(self, pattern: AltPattern, expr: Expr) -> Step[bool]:
        if (yield self._visit(pattern.left, expr)):
            return True
        return (yield self._visit(pattern.right, expr))  # type: ignore[no-any-return]

    def _wildcard(self, pattern: WildcardPattern, expr: Expr) -> Step[bool]:
        if pattern.pattern is None:
            return True
        return (yield self._visit(pattern.pattern, expr))  # type: ignore[no-any-return]

    def _function(self, pattern: FunctionPattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, Function):
            return False
        if pattern.params is not None and not (yield self._all(pattern.params, expr.params)):
            return False
        return (yield self._visit(pattern.body, expr.body))  # type: ignore[no-any-return]

    def _tuple(self, pattern: TuplePattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, Tuple):
            return False
        return pattern.fields is None or (yield self._all(pattern.fields, expr.fields))

    def _item(self, pattern: TupleGetItemPattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, TupleGetItem) or pattern.index not in (-1, expr.index):
            return False
        return (yield self._visit(pattern.tuple, expr.tuple_value))  # type: ignore[no-any-return]

    def _if(self, pattern: IfPattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, If):
            return False
        wanted = (pattern.cond, pattern.true_branch, pattern.false_branch)
        found = (expr.cond, expr.true_branch, expr.false_branch)
        return (yield self._all(wanted, found))  # type: ignore[no-any-return]

    def _let(self, pattern: LetPattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, Let):
            return False
        wanted = (pattern.var, pattern.value, pattern.body)
        return (yield self._all(wanted, (expr.var, expr.value, expr.body)))  # type: ignore[no-any-return]

    # --- calls ----------------------------------------------------------------------------------

    def _call(self, pattern: CallPattern, expr: Expr) -> Step[bool]:
        if not isinstance(expr, Call):
            return False
        mark = len(self._matched)
        if not (yield self._visit(pattern.op, expr.op)):
            self._forget(mark)
            return (yield self._associated(pattern, expr))  # type: ignore[no-any-return]
        if pattern.args is None:
            return True
        mark = len(self._matched)
        if (yield self._all(pattern.args, expr.args)):
            return True
        self._forget(mark)
        if pattern_op(pattern) in _COMMUTATIVE:
            if (yield self._all(pattern.args[::-1], expr.args)):
                return True
            self._forget(mark)
        return False

    def _associated(self, pattern: CallPattern, expr: Call) -> Step[bool]:
        """The same product and quotient of three values, grouped the other way."""
        names = (pattern_op(pattern), expr_op(expr))
        if pattern.args is None or len(pattern.args) != 2:
            return False
        if names == ("divide", "multiply") and "divide" in map(expr_op, expr.args):
            return (yield self._product_of_quotient(pattern, pattern.args, expr))  # type: ignore[no-any-return]
        if names == ("multiply", "divide") and "multiply" in map(expr_op, expr.args):
            return (yield self._quotient_of_product(pattern, pattern.args, expr))  # type: ignore[no-any-return]
        return False

    def _product_of_quotient(
        self, pattern: CallPattern, args: tuple[DFPattern, ...], expr: Call
    ) -> Step[bool]:
        """``(a * b) / c`` as ``b * (a / c)`` or ``a * (b / c)``."""
        product, divisor = args
        if pattern_op(product) != "multiply" or not isinstance(product, CallPattern):
            return False
        if product.args is None or len(product.args) != 2:
            return False
        mark = len(self._matched)
        for divided, other in (product.args, product.args[::-1]):
            quotient = CallPattern(pattern.op, (divided, divisor))
            if (yield self._visit(CallPattern(product.op, (other, quotient)), expr)):
                return True
            self._forget(mark)
        return False

    def _quotient_of_product(
        self, pattern: CallPattern, args: tuple[DFPattern, ...], expr: Call
    ) -> Step[bool]:
        """``(a / b) * c`` as ``(a * c) / b``."""
        for quotient, other in (args, args[::-1]):
            if pattern_op(quotient) == "divide" and isinstance(quotient, CallPattern):
                if quotient.args is None or len(quotient.args) != 2:
                    continue
                product = CallPattern(pattern.op, (quotient.args[0], other))
                wanted = CallPattern(quotient.op, (product, quotient.args[1]))
                return (yield self._visit(wanted, expr))  # type: ignore[no-any-return]
        return False

    # --- types and attributes -------------------------------------------------------------------

    def _type(self, pattern: TypePattern, expr: Expr) -> Step[bool]:
        found = type_of(expr)
        if found is None or not structural_equal(pattern.type, found):
            return False
        return (yield self._visit(pattern.pattern, expr))  # type: ignore[no-any-return]

    def _shape(self, pattern: ShapePattern, expr: Expr) -> Step[bool]:
        found = type_of(expr)
        if not isinstance(found, TensorType) or found.shape != pattern.shape:
            return False
        return (yield self._visit(pattern.pattern, expr))  # type: ignore[no-any-return]

    def _dtype(self, pattern: DataTypePattern, expr: Expr) -> Step[bool]:
        found = type_of(expr)
        if not isinstance(found, TensorType) or found.dtype != pattern.dtype:
            return False
        return (yield self._visit(pattern.pattern, expr))  # type: ignore[no-any-return]

    def _attr(self, pattern: AttrPattern, expr: Expr) -> Step[bool]:
        if not (yield self._visit(pattern.pattern, expr)):
            return False
        lookup = _attribute_lookup(expr)
        if lookup is None:
            return False
        for name, wanted in pattern.attrs.items():
            known, found = lookup(name)
            if not known or not same_value(wanted, found):
                return False
        return True

    # --- dominators -----------------------------------------------------------------------------

    def _dominator(self, pattern: DominatorPattern, expr: Expr) -> Step[bool]:
        if not (yield self._visit(pattern.child, expr)):
            return False
        follows = yield self._paths(pattern, expr)
        self._memoize = True
        if not follows:
            return False
        return (yield self._dominates_parent(pattern, expr))  # type: ignore[no-any-return]

    def _paths(self, pattern: DominatorPattern, expr: Expr) -> Step[bool]:
        """Every way up from ``expr`` goes through ``path`` calls to the one parent.

        Inputs that have no inputs themselves (a bias) are no ways, but there must be at least one
        way.
        """
        callee = expr.op if isinstance(expr, Call) else None
        ways = 0
        for node in self.graph[expr].inputs:
            if node.expr is callee:
                continue
            self._memoize = True
            if (yield self._visit(pattern.parent, node.expr)):
                ways += 1
                continue
            self._memoize = False
            if not node.inputs:
                continue
            ways += 1
            if not (yield self._visit(pattern.path, node.expr)):
                return False
            if not (yield self._paths(pattern, node.expr)):
                return False
        return ways > 0

    def _dominates_parent(self, pattern: DominatorPattern, expr: Expr) -> Step[bool]:
        stack = [self.graph[expr]]
        while stack:
            for node in stack.pop().dominated:
                if (yield self._visit(pattern.parent, node.expr)):
                    return True
                stack.append(node)
        return False


_Lookup = Callable[[str], tuple[bool, Any]]


def _attribute_lookup(expr: Expr) -> _Lookup | None:
    """How to find an attribute of an expression: (known, value); None where it can have none."""
    if isinstance(expr, Op):
        op = expr
        return lambda name: (op.has_attr(name), op.get_attr(name))
    if isinstance(expr, (Call, Function)):
        attrs: Attrs | None = expr.attrs
        if attrs is None:
            return lambda name: (False, None)
        return lambda name: (name in attrs, attrs.get(name))
    return None


def _is_expr(pattern: Any, expr: Expr) -> bool:
    wanted = pattern.expr
    if wanted is expr:
        return True
    return type(wanted) is type(expr) and type(expr) is not Op and structural_equal(wanted, expr)


def _is_var(pattern: Any, expr: Expr) -> bool:
    return isinstance(expr, Var) and pattern.name in ("", expr.name_hint)


_LEAVES: dict[type, Callable[[Any, Expr], bool]] = {
    ExprPattern: _is_expr,
    VarPattern: _is_var,
    ConstantPattern: lambda pattern, expr: isinstance(expr, Constant),
}
_RULES: dict[type, Callable[[Matcher, Any, Expr], Step[bool]]] = {
    AltPattern: Matcher._alt,
    AttrPattern: Matcher._attr,
    CallPattern: Matcher._call,
    DataTypePattern: Matcher._dtype,
    DominatorPattern: Matcher._dominator,
    FunctionPattern: Matcher._function,
    IfPattern: Matcher._if,
    LetPattern: Matcher._let,
    ShapePattern: Matcher._shape,
    TupleGetItemPattern: Matcher._item,
    TuplePattern: Matcher._tuple,
    TypePattern: Matcher._type,
    WildcardPattern: Matcher._wildcard,
}


__all__ = ["Matcher", "expr_op", "pattern_op", "same_value"]
