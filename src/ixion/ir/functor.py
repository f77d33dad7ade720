"""Class-based visitors with one method per kind, as Relay's Python interface has them.

``visit`` calls the method of the node's kind, and remembers the result per object. The methods
call ``visit`` for what is below, in whatever order and scope they like, so they do recurse; where a
program is deep, ``visit`` goes on in a thread with a stack of its own, which keeps every depth
within bounds and leaves the order of the calls as it is. Passes that have no need of this form use
``visitor.rewrite``, which is faster.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ixion.ir.adt import Clause, Constructor, Match
from ixion.ir.expr import (
    Call,
    Constant,
    Expr,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ixion.ir.function import Function
from ixion.ir.visitor import children, rebuilt

_MISSING = object()
# Nested visits before the next thread takes over. A visit takes three to five Python frames, so
# the first hop comes well within Python's default limit of 1000, and later ones within _FRAMES.
_FIRST_HOP = 80
_NEXT_HOP = 1000
_FRAMES = 10_000


class _RecursionLimit:
    """Raises Python's recursion limit while some deep visit is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = 0

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, _FRAMES))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    sys.setrecursionlimit(self._before)


_limit = _RecursionLimit()


def _on_fresh_stack(call: Callable[[Any], Any], argument: Any) -> Any:
    """``call(argument)`` in a new thread that has this one's context variables."""
    context = contextvars.copy_context()
    outcome: list[Any] = [None, None]

    def target() -> None:
        try:
            outcome[0] = context.run(call, argument)
        except BaseException as error:  # noqa: BLE001 - carried over to the waiting thread
            outcome[1] = error

    with _limit.raised():
        thread = threading.Thread(target=target, name="ixion-deep-visit")
        thread.start()
        thread.join()
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


_METHODS: dict[type, str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
}


def _method_of(kind: type) -> str:
    for base in kind.__mro__:
        if base in _METHODS:
            return _METHODS.setdefault(kind, _METHODS[base])
    is_op = getattr(kind, "type_key", "") == "Op"
    return _METHODS.setdefault(kind, "visit_op" if is_op else "visit_other")


class ExprFunctor:
    """Calls the method of each node's kind, once per object. The methods here are abstract."""

    _depth = 0

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}

    def visit(self, expr: Expr) -> Any:
        """The result for a node, computed on first sight."""
        found = self.memo_map.get(expr, _MISSING)
        if found is not _MISSING:
            return found
        method = getattr(self, _METHODS.get(type(expr)) or _method_of(type(expr)))
        depth = self._depth
        self._depth = depth + 1
        try:
            if depth % _NEXT_HOP == _FIRST_HOP:
                result = _on_fresh_stack(method, expr)
            else:
                result = method(expr)
        finally:
            self._depth = depth
        self.memo_map[expr] = result
        return result

    def visit_function(self, expr: Any) -> Any:
        """Result for a Function."""
        return self._abstract("visit_function")

    def visit_let(self, expr: Any) -> Any:
        """Result for a Let."""
        return self._abstract("visit_let")

    def visit_call(self, expr: Any) -> Any:
        """Result for a Call."""
        return self._abstract("visit_call")

    def visit_var(self, expr: Any) -> Any:
        """Result for a Var."""
        return self._abstract("visit_var")

    def visit_type(self, expr: Any) -> Any:
        """Result for a type that a method chooses to visit."""
        return expr

    def visit_if(self, expr: Any) -> Any:
        """Result for an If."""
        return self._abstract("visit_if")

    def visit_tuple(self, expr: Any) -> Any:
        """Result for a Tuple."""
        return self._abstract("visit_tuple")

    def visit_tuple_getitem(self, expr: Any) -> Any:
        """Result for a TupleGetItem."""
        return self._abstract("visit_tuple_getitem")

    def visit_global_var(self, expr: Any) -> Any:
        """Result for a GlobalVar."""
        return self._abstract("visit_global_var")

    def visit_op(self, expr: Any) -> Any:
        """Result for an Op."""
        return self._abstract("visit_op")

    def visit_constant(self, expr: Any) -> Any:
        """Result for a Constant."""
        return self._abstract("visit_constant")

    def visit_ref_create(self, expr: Any) -> Any:
        """Result for a RefCreate."""
        return self._abstract("visit_ref_create")

    def visit_ref_write(self, expr: Any) -> Any:
        """Result for a RefWrite."""
        return self._abstract("visit_ref_write")

    def visit_ref_read(self, expr: Any) -> Any:
        """Result for a RefRead."""
        return self._abstract("visit_ref_read")

    def visit_constructor(self, expr: Any) -> Any:
        """Result for a Constructor."""
        return self._abstract("visit_constructor")

    def visit_match(self, expr: Any) -> Any:
        """Result for a Match."""
        return self._abstract("visit_match")

    def visit_other(self, expr: Any) -> Any:
        """Result for a kind that was registered elsewhere."""
        return self._abstract(f"visit_other, for {type(expr).__name__}")

    def _abstract(self, method: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not define {method}")


class ExprVisitor(ExprFunctor):
    """Visits everything below a node; override the methods of the kinds of interest."""

    def _visit_children(self, expr: Any) -> Any:
        for child in children(expr):
            self.visit(child)

    visit_function = visit_let = visit_call = _visit_children
    visit_if = visit_tuple = visit_tuple_getitem = _visit_children
    visit_var = visit_global_var = visit_op = visit_constant = visit_constructor = _visit_children
    visit_ref_create = visit_ref_read = visit_ref_write = _visit_children
    visit_match = visit_other = _visit_children


class ExprMutator(ExprFunctor):
    """Rebuilds a program; override the methods of the kinds to change.

    A node whose parts come back as they were is returned itself.
    """

    def _same(self, expr: Any) -> Any:
        return expr

    visit_var = visit_global_var = visit_op = visit_constant = visit_constructor = _same

    def _rebuild(self, expr: Any) -> Any:
        return rebuilt(expr, {child: self.visit(child) for child in children(expr)})

    visit_call = visit_if = visit_tuple = visit_tuple_getitem = _rebuild
    visit_ref_create = visit_ref_read = visit_ref_write = visit_other = _rebuild

    def visit_function(self, expr: Any) -> Any:
        """The function over new parameters and a new body."""
        params = [self.visit(param) for param in expr.params]
        return expr.copy(params=params, body=self.visit(expr.body))

    def visit_let(self, expr: Any) -> Any:
        """The binding with its variable, value and body visited in this order."""
        variable, value = self.visit(expr.var), self.visit(expr.value)
        return expr.copy(var=variable, value=value, body=self.visit(expr.body))

    def visit_match(self, expr: Any) -> Any:
        """The match with its data and then each clause visited."""
        data = self.visit(expr.data)
        clauses = [self.visit_clause(clause) for clause in expr.clauses]
        return expr.copy(data=data, clauses=clauses)

    def visit_clause(self, clause: Clause) -> Clause:
        """One case of a match, over a new result."""
        return clause.copy(rhs=self.visit(clause.rhs))
