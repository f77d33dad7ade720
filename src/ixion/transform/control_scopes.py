"""Scopes of a function while it is run on values that are not known yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.analysis.binding import let_values, recursive_vars
from ixion.analysis.dependency_scopes import DependencyScopes
from ixion.ir import Expr, Function, Let, Var
from ixion.ir.visitor import post_order
from ixion.transform.control_values import LeftAlone, Region, Value

__all__ = ["Activation", "Frame", "Scopes"]


class Scopes:
    """Of one global function: where expressions are computed, and what lets bind.

    The *home* of an expression is the innermost function body or branch around all its uses: what
    is shared is computed once.
    """

    def __init__(self, func: Function) -> None:
        nodes = post_order(func)
        found = DependencyScopes(func)
        self.inner = found.inner
        self.bound: dict[Var, Expr] = {n.var: n.value for n in nodes if isinstance(n, Let)}
        self._scope = found.scope
        self._home = list(range(len(found.tree.parent)))
        let_scopes = {found.inner[n][0] for n in nodes if isinstance(n, Let)}
        for scope in range(1, len(self._home)):
            if scope in let_scopes:
                self._home[scope] = self._home[found.tree.parent[scope]]
        recursive = recursive_vars(func)
        names = let_values(nodes)
        self.recursive: dict[Expr, Var] = {
            value: var for value, all_ in names.items() for var in all_ if var in recursive
        }

    def home(self, expr: Expr) -> int:
        return self._home[self._scope[expr]]


@dataclass(eq=False)
class Frame:
    """What is computed in one function body or branch: the region it goes to, values so far."""

    region: Region
    values: dict[Expr, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Activation:
    """One run of a function; ``frames`` by scope, ``outer`` is where the function was made."""

    scopes: Scopes
    outer: Activation | None = None
    frames: dict[int, Frame] = field(default_factory=dict)

    def frame(self, expr: Expr) -> Frame:
        """Where an expression is computed."""
        return self.home(expr).frames[self.scopes.home(expr)]

    def home(self, expr: Expr) -> Activation:
        """The activation in which an expression is computed: this one or one around it."""
        scope = self.scopes.home(expr)
        run: Activation | None = self
        while run is not None:
            if scope in run.frames:
                return run
            run = run.outer
        raise LeftAlone("an expression is used outside of its scope", expr)
