"""The dataflow of one function body, without what lies inside the functions that it calls."""

from __future__ import annotations

from ixion.ir import Call, Expr, Function, Op, Tuple, TupleGetItem


def operands(node: Expr) -> tuple[Expr, ...]:
    """Values that a call, tuple or projection is computed from; nothing for other nodes."""
    if isinstance(node, Call):
        inline = isinstance(node.op, (Op, Function))
        return tuple(node.args) if inline else (node.op, *node.args)
    if isinstance(node, Tuple):
        return tuple(node.fields)
    return (node.tuple_value,) if isinstance(node, TupleGetItem) else ()


def dataflow_order(body: Expr) -> list[Expr]:
    """Every value that ``body`` depends on, each once, after what it is computed from."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(body, False)]
    while stack:
        node, ready = stack.pop()
        if ready:
            order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        stack.append((node, True))
        stack.extend((o, False) for o in reversed(operands(node)) if id(o) not in seen)
    return order


def calls_inside(function: Function) -> list[Call]:
    """Calls of a formed kernel's body, in order."""
    return [n for n in dataflow_order(function.body) if isinstance(n, Call)]
