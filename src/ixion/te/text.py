"""Text of expressions and loop nests: for people (``--stage loops``) and for cache keys."""

from __future__ import annotations

import hashlib

from ixion.te.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Checked,
    Compare,
    Const,
    Expr,
    HorizontalReduce,
    Intrinsic,
    Load,
    Ramp,
    Read,
    Reduce,
    Select,
    Shuffle,
    Var,
)
from ixion.te.stmt import Buffer, Fault, For, If, Kernel, Let, Prefetch, Seq, Stmt, Store

_SYMBOL = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "floormod": "%",
    "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip


class _Names:
    """Names for variables and buffers: as written, or numbered by first use (``canonical``)."""

    def __init__(self, canonical: bool) -> None:
        self.canonical = canonical
        self.numbers: dict[object, str] = {}

    def of(self, thing: Var | Buffer) -> str:
        if not self.canonical:
            return thing.name
        return self.numbers.setdefault(thing, f"n{len(self.numbers)}")


def expr_text(expr: Expr, names: _Names | None = None) -> str:
    """One line; vector width shows as ``:dtypexlanes`` on loads and broadcasts."""
    n = names or _Names(canonical=False)
    if isinstance(expr, Const):
        wide = f"x{expr.lanes}" if expr.lanes > 1 else ""
        plain = expr.dtype == "int64" and expr.lanes == 1
        return str(expr.value) if plain else f"{expr.dtype}{wide}({expr.value!r})"
    if isinstance(expr, Var):
        return n.of(expr)
    inner = [expr_text(c, n) for c in expr.children()]
    if isinstance(expr, (Binary, Compare)):
        if expr.op in _SYMBOL:
            return f"({inner[0]} {_SYMBOL[expr.op]} {inner[1]})"
        return f"{expr.op}({inner[0]}, {inner[1]})"
    if isinstance(expr, Load):
        extra = f" stride {expr.stride}" if expr.stride != 1 else ""
        extra += f" count {inner[1]}" if expr.count is not None else ""
        return f"{n.of(expr.buffer)}[{inner[0]}]:{expr.dtype}x{expr.lanes}{extra}"
    if isinstance(expr, Read):
        return f"{expr.tensor.name}[{', '.join(inner)}]"
    if isinstance(expr, Reduce):
        axes = ", ".join(f"{n.of(v)} < {expr_text(e, n)}" for v, e in expr.axes)
        return f"reduce_{expr.kind}({inner[0]} for {axes})"
    return f"{_label(expr)}({', '.join(inner)})"


def _label(expr: Expr) -> str:
    if isinstance(expr, Intrinsic):
        return expr.name
    if isinstance(expr, (Cast, Bitcast)):
        return f"{type(expr).__name__.lower()}:{expr.dtype}"
    if isinstance(expr, Broadcast):
        return f"broadcast:{expr.lanes}"
    if isinstance(expr, Ramp):
        return f"ramp:{expr.lanes}:{expr.stride}"
    if isinstance(expr, Checked):
        return f"checked:{expr.extent if isinstance(expr.extent, int) else ''}"
    if isinstance(expr, HorizontalReduce):
        return f"reduce_lanes_{expr.kind}"
    if isinstance(expr, Shuffle):
        return "shuffle:" + ".".join(str(p) for p in expr.picks)
    return "select" if isinstance(expr, Select) else type(expr).__name__.lower()


def _lines(stmt: Stmt, n: _Names, indent: str) -> list[str]:
    deeper = indent + "  "
    if isinstance(stmt, Seq):
        return [line for s in stmt.body for line in _lines(s, n, indent)]
    if isinstance(stmt, For):
        word = "unrolled" if stmt.unrolled else "for"
        span = f"{expr_text(stmt.lo, n)} .. {expr_text(stmt.hi, n)}"
        step = f" step {stmt.step}" if stmt.step != 1 else ""
        head = f"{indent}{word} {n.of(stmt.var)} in {span}{step}:"
        return [head, *_lines(stmt.body, n, deeper)]
    if isinstance(stmt, Let):
        head = f"{indent}{n.of(stmt.var)} = {expr_text(stmt.value, n)}"
        return [head, *_lines(stmt.body, n, indent)]
    if isinstance(stmt, Store):
        count = f" count {expr_text(stmt.count, n)}" if stmt.count is not None else ""
        where = f"{n.of(stmt.buffer)}[{expr_text(stmt.index, n)}]"
        return [f"{indent}{where}{count} = {expr_text(stmt.value, n)}"]
    if isinstance(stmt, If):
        lines = [f"{indent}if {expr_text(stmt.cond, n)}:", *_lines(stmt.then, n, deeper)]
        if stmt.orelse is not None:
            lines += [f"{indent}else:", *_lines(stmt.orelse, n, deeper)]
        return lines
    if isinstance(stmt, Prefetch):
        return [f"{indent}prefetch {n.of(stmt.buffer)}[{expr_text(stmt.index, n)}]"]
    if isinstance(stmt, Fault):
        return [f"{indent}fault {stmt.code} at {expr_text(stmt.index, n)}"]
    raise TypeError(f"te: no text for {type(stmt).__name__}")


def kernel_text(kernel: Kernel, *, canonical: bool = False) -> str:
    """The whole nest; ``canonical`` leaves out every name a person chose."""
    n = _Names(canonical)
    title = "" if canonical else kernel.name
    tasks, scratch = _size(kernel.tasks, n), _size(kernel.scratch, n)
    lines = [f"kernel {title}({tasks} tasks, scratch {scratch})"]
    for word, buffers in (("param", kernel.params), ("local", kernel.locals)):
        for b in buffers:
            shape = f"{b.dtype}x{b.lanes}[{_size(b.size, n)}] at {_size(b.offset, n)}"
            lines.append(f"  {word} {n.of(b)}: {b.scope} {shape}")
    lines += [f"  scalar {n.of(s)}: {s.dtype}" for s in kernel.scalars]
    lines.append(f"  task {n.of(kernel.task)}:")
    return "\n".join(lines + _lines(kernel.body, n, "    ")) + "\n"


def _size(value: int | Expr, n: _Names) -> str:
    return expr_text(value, n) if isinstance(value, Expr) else str(value)


def kernel_key(kernel: Kernel) -> str:
    """SHA-256 of the nest without names: equal for kernels that do the same thing the same way."""
    return hashlib.sha256(kernel_text(kernel, canonical=True).encode()).hexdigest()
