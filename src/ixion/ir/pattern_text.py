"""One line of text for a pattern, for reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
from ixion.ir.trampoline import Step, run


def pattern_text(pattern: DFPattern) -> str:
    """``CallPattern(Op(add), [*, *])``; a pattern inside itself shows as ``...``."""
    return run(_text(pattern, set()))


def _text(node: Any, open_nodes: set[int]) -> Step[str]:
    if id(node) in open_nodes:
        return "..."
    open_nodes.add(id(node))
    printer = _PRINTERS.get(type(node))
    text = type(node).__name__
    if printer is not None:
        parts = yield _parts(printer(node), open_nodes)
        text = parts[0] if len(parts) == 1 else f"{text}({', '.join(parts)})"
    open_nodes.discard(id(node))
    return text


def _part(part: Any, open_nodes: set[int]) -> Step[str]:
    if isinstance(part, DFPattern):
        return (yield _text(part, open_nodes))  # type: ignore[no-any-return]
    if isinstance(part, tuple):
        return f"[{', '.join((yield _parts(part, open_nodes)))}]"
    return part if isinstance(part, str) else str(part)


def _parts(parts: Iterable[Any], open_nodes: set[int]) -> Step[list[str]]:
    texts: list[str] = []
    for part in parts:
        text = yield _part(part, open_nodes)
        texts.append(text)
    return texts


def _expr(node: ExprPattern) -> list[Any]:
    return [f"Op({node.expr.name})" if isinstance(node.expr, Op) else str(node.expr)]


def _attrs(node: AttrPattern) -> list[Any]:
    pairs = ", ".join(f"{key}={value!r}" for key, value in node.attrs.items())
    return [node.pattern, f"attrs={{{pairs}}}"]


def _any(values: tuple[DFPattern, ...] | None) -> Any:
    return "*" if values is None else values


_PRINTERS: dict[type, Callable[[Any], list[Any]]] = {
    ExprPattern: _expr,
    VarPattern: lambda node: [f"Var({node.name or '*'})"],
    ConstantPattern: lambda node: ["Constant"],
    CallPattern: lambda node: [node.op, _any(node.args)],
    FunctionPattern: lambda node: [_any(node.params), node.body],
    IfPattern: lambda node: [node.cond, node.true_branch, node.false_branch],
    LetPattern: lambda node: [node.var, node.value, node.body],
    TuplePattern: lambda node: ["Tuple", _any(node.fields)],
    TupleGetItemPattern: lambda node: [node.tuple, "*" if node.index < 0 else str(node.index)],
    AltPattern: lambda node: [node.left, node.right],
    WildcardPattern: lambda node: ["*" if node.pattern is None else node.pattern],
    TypePattern: lambda node: [node.pattern, f"type={node.type}"],
    DataTypePattern: lambda node: [node.pattern, f"dtype={node.dtype}"],
    ShapePattern: lambda node: [node.pattern, f"shape={node.shape}"],
    AttrPattern: _attrs,
    DominatorPattern: lambda node: [node.parent, node.path, node.child],
}


__all__ = ["pattern_text"]
