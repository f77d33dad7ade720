"""Where each expression of a graph must be bound: the innermost scope around all its uses.

Function bodies, branches, match clauses and let bodies open scopes. The scope of a shared
expression is the lowest common ancestor of the scopes of its users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ixion.analysis.ancestors import AncestorTree
from ixion.base.errors import PassError
from ixion.ir import Constructor, Expr, Function, GlobalVar, If, Let, Match, Op
from ixion.ir.visitor import children

__all__ = ["DependencyScopes", "check_basic_block_normal_form"]

# A user (graph node) and what it uses: an expression still to visit, or a graph node.
_Edge = tuple[int, "Expr | int"]


class DependencyScopes:
    """``scope``: the scope number of each expression; ``inner``: of the scopes it opens, in order;
    ``lifted``: expressions bound further out than their first user; ``tree``: the scopes.
    """

    def __init__(self, root: Expr) -> None:
        self.scope: dict[Expr, int] = {}
        self.inner: dict[Expr, list[int]] = {}
        self.lifted: set[Expr] = set()
        self.tree = AncestorTree()
        self._opens: list[bool] = []
        self._users: list[list[int]] = []
        self._order: list[int] = []
        self._node: dict[Expr, int] = {}
        self._inner_nodes: dict[Expr, list[int]] = {}
        self._pending: list[int] = []
        self._build(root)
        self._assign()

    def _new(self, opens: bool) -> int:
        self._opens.append(opens)
        self._users.append([])
        return len(self._opens) - 1

    def _build(self, root: Expr) -> None:
        self._node[root] = self._new(False)
        stack: list[tuple[Expr, Iterator[_Edge]]] = [(root, self._edges(root))]
        while stack:
            expr, edges = stack[-1]
            edge = next(edges, None)
            if edge is None:
                stack.pop()
                self._order.extend(reversed(self._inner_nodes.get(expr, ())))
                self._order.append(self._node[expr])
                if stack:
                    # The edge waits until what it leads to is placed; users keep Relay's order.
                    self._users[self._node[expr]].append(self._pending.pop())
                continue
            user, used = edge
            if isinstance(used, int):
                self._users[used].append(user)
            elif used in self._node:
                self._users[self._node[used]].append(user)
            else:
                self._node[used] = self._new(False)
                self._pending.append(user)
                stack.append((used, self._edges(used)))

    def _edges(self, expr: Expr) -> Iterator[_Edge]:
        rule = _EDGES.get(type(expr))
        if rule is not None:
            return rule(self, expr)
        node = self._node[expr]
        return iter([(node, part) for part in children(expr)])

    def _open(self, expr: Expr, count: int) -> list[int]:
        nodes = self._inner_nodes[expr] = [self._new(True) for _ in range(count)]
        return nodes

    def _function(self, func: Function) -> Iterator[_Edge]:
        (body,) = self._open(func, 1)
        params: list[_Edge] = [(body, param) for param in func.params]
        return iter([(self._node[func], body), *params, (body, func.body)])

    def _let(self, let: Let) -> Iterator[_Edge]:
        (body,) = self._open(let, 1)
        node = self._node[let]
        return iter([(node, body), (body, let.var), (body, let.value), (body, let.body)])

    def _if(self, expr: If) -> Iterator[_Edge]:
        then, other = self._open(expr, 2)
        node = self._node[expr]
        uses: list[_Edge] = [(node, expr.cond), (node, then), (node, other)]
        return iter([*uses, (then, expr.true_branch), (other, expr.false_branch)])

    def _match(self, match: Match) -> Iterator[_Edge]:
        clauses = self._open(match, len(match.clauses))
        node = self._node[match]
        edges: list[_Edge] = [(node, match.data)]
        for inner, clause in zip(clauses, match.clauses, strict=True):
            edges += [(node, inner), (inner, clause.rhs)]
        return iter(edges)

    def _assign(self) -> None:
        tree = self.tree
        scope = [0] * len(self._opens)
        lifted: set[int] = set()
        for node in reversed(self._order):
            users = self._users[node]
            found = scope[users[0]] if users else tree.add(0)
            for user in users[1:]:
                found, _ = tree.common(found, scope[user])
            if users and found != scope[users[0]]:
                lifted.add(node)
            scope[node] = tree.add(found) if self._opens[node] else found
        self.scope = {expr: scope[node] for expr, node in self._node.items()}
        self.inner = {expr: [scope[n] for n in ns] for expr, ns in self._inner_nodes.items()}
        self.lifted = {
            expr for expr, node in self._node.items() if node in lifted and type(expr) is not Op
        }


_EDGES: dict[type, Callable[[DependencyScopes, Any], Iterator[_Edge]]] = {
    Function: DependencyScopes._function,
    Let: DependencyScopes._let,
    If: DependencyScopes._if,
    Match: DependencyScopes._match,
}


def check_basic_block_normal_form(expr: Expr) -> bool:
    """True if everything that is shared between scopes is bound by a let around them.

    Raises PassError naming an expression that is not.
    """
    for shared in DependencyScopes(expr).lifted:
        # A bound variable is met first where it is bound; a free one belongs to no block.
        if not isinstance(shared, (GlobalVar, Constructor)):
            raise PassError(
                "the expression is not in basic block normal form: "
                f"a {type(shared).__name__} is shared between scopes and not let-bound",
                found=str(shared),
            )
    return True
