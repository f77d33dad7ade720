"""Kernels whose sizes are known at run time only: the scalars that tell them."""

from __future__ import annotations

from collections.abc import Iterator

from ixion.te.expr import Expr, Reduce, Size
from ixion.te.stmt import Fault, For, If, Kernel, Let, Prefetch, Seq, Stmt, Store


def bind_sizes(kernel: Kernel) -> None:
    """Appends the sizes that the kernel depends on to its scalars, by name."""
    found: dict[str, Size] = {}
    seen: set[int] = set()
    stack: list[Expr] = [*_expressions(kernel.body), *_offsets(kernel)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Size):
            found[node.name] = node
        stack.extend(node.children())
        if isinstance(node, Reduce):
            stack.extend(extent for _, extent in node.axes)
    new = tuple(found[name] for name in sorted(found) if found[name] not in kernel.scalars)
    kernel.scalars += new
    kernel.values += new


def _offsets(kernel: Kernel) -> Iterator[Expr]:
    numbers = (kernel.tasks, kernel.scratch, *(b.offset for b in kernel.locals))
    return (n for n in numbers if isinstance(n, Expr))


def _expressions(root: Stmt) -> Iterator[Expr]:
    stack = [root]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, Seq):
            stack.extend(stmt.body)
        elif isinstance(stmt, For):
            yield from (stmt.lo, stmt.hi)
            stack.append(stmt.body)
        elif isinstance(stmt, Let):
            yield stmt.value
            stack.append(stmt.body)
        elif isinstance(stmt, If):
            yield stmt.cond
            stack.append(stmt.then)
            stack.extend(() if stmt.orelse is None else (stmt.orelse,))
        elif isinstance(stmt, Store):
            yield from (stmt.index, stmt.value, *(() if stmt.count is None else (stmt.count,)))
        elif isinstance(stmt, (Prefetch, Fault)):
            yield stmt.index
