"""Rewriting and partitioning by pattern."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ixion.base.errors import PassError
from ixion.ir.equal import structural_equal
from ixion.ir.expr import Call, Expr
from ixion.ir.module import IRModule
from ixion.ir.pattern import DFPattern, FunctionPattern
from ixion.ir.pattern_graph import expr_inputs, post_order
from ixion.ir.pattern_group import PARTITIONED, Group, Grouper
from ixion.ir.pattern_typing import with_types
from ixion.ir.visitor import rebuilt

_LIMIT = 100


class DFPatternCallback:
    """A rewrite: a ``pattern``, set by the subclass, and what replaces a match of it.

    ``require_type`` infers types before matching; ``rewrite_once`` retires the callback after the
    first round in which it changed something.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: DFPattern | None = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Expr) -> Expr:
        """``expr`` with this applied until nothing changes."""
        return rewrite(self, expr)

    def callback(self, pre: Expr, post: Expr, node_map: Mapping[DFPattern, list[Expr]]) -> Expr:
        """The replacement of a match.

        ``pre`` is the matched expression, ``post`` the same with its inputs rewritten, and
        ``node_map`` has what each part of the pattern matched, also rewritten.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define callback")


Callbacks = DFPatternCallback | Sequence[DFPatternCallback]


def rewrite(callbacks: Callbacks, expr: Expr, mod: IRModule | None = None) -> Expr:
    """``expr`` with every match replaced, callback by callback, again until nothing changes.

    ``mod`` has the functions that ``expr`` calls, for callbacks that require types. Raises
    PassError when callbacks have run 100 times in all and still change something.
    """
    todo = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    module = IRModule() if mod is None else mod
    retired: set[int] = set()
    rounds = 0
    while True:
        last = expr
        for callback in todo:
            if id(callback) in retired:
                continue
            before = expr
            expr = _apply(callback, with_types(expr, module) if callback.require_type else expr)
            rounds += 1
            if callback.rewrite_once and not _same(before, expr):
                retired.add(id(callback))
        if _same(last, expr):
            return expr
        if rounds >= _LIMIT:
            raise PassError(
                f"observed {_LIMIT} rewrite passes and the expression still changes",
                hint="two callbacks may undo one another; rewrite_once=True runs one only once",
            )


def _same(before: Expr, after: Expr) -> bool:
    return before is after or structural_equal(before, after, map_free_vars=True)


def _apply(callback: DFPatternCallback, expr: Expr) -> Expr:
    assert callback.pattern is not None, "a callback sets self.pattern in its constructor"
    grouper = Grouper(callback.pattern, expr)

    def replace(group: Group, post: Expr, made: dict[Expr, Expr]) -> Expr:
        node_map = {
            pattern: [made.get(found, found) for found in matches]
            for pattern, matches in group.matched.items()
        }
        return callback.callback(group.root, post, node_map)

    return _mutate(grouper, expr, replace)


def _mutate(
    grouper: Grouper, root: Expr, replace: Callable[[Group, Expr, dict[Expr, Expr]], Expr]
) -> Expr:
    if not grouper.owner:
        return root
    made: dict[Expr, Expr] = {}
    for node in post_order(root, expr_inputs):
        post = rebuilt(node, made)
        group = grouper.group_at(node)
        made[node] = post if group is None else replace(group, post, made)
    return made[root]


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Expr], Any] = lambda expr: True,
) -> Expr:
    """``expr`` with each match lifted into a function of its inputs, called in its place.

    The function has ``PartitionedFromPattern`` (the names of its operations) and ``attrs``. A match
    for which ``check(expr)`` is false stays as it is.
    """
    if isinstance(pattern, FunctionPattern):
        message = f"a function that is not called cannot be partitioned: {pattern}"
        warnings.warn(message, stacklevel=2)
        return expr

    def lift(group: Group, post: Expr, made: dict[Expr, Expr]) -> Expr:
        if not check(group.root):
            return post
        function = group.function.with_attrs({PARTITIONED: group.name, **(attrs or {})})
        return Call(function, tuple(made.get(arg, arg) for arg in group.args))

    return _mutate(Grouper(pattern, expr), expr, lift)


__all__ = ["DFPatternCallback", "partition", "rewrite"]
