"""Loop nests to LLVM text: one function per kernel, one module per list of kernels.

A kernel's function is ``i32 @name(ptr ctx, ptr slots, i64 lo, i64 hi)``: it does tasks ``lo`` up to
``hi``. ``slots[i]`` is the address of parameter i, then come the scalars; word 0 of ``ctx`` is the
address of the worker's scratch block, and a fault writes its index to word 1 and returns its code.
Parameters may be the same memory: nothing here assumes that they are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen.emit_expr import Expressions, register_index
from ixion.codegen.emit_types import is_small_float, scalar_type
from ixion.codegen.emit_writer import Writer
from ixion.te.expr import Cast, Expr
from ixion.te.stmt import Buffer, Fault, For, If, Kernel, Let, Prefetch, Seq, Stmt, Store

_PLAIN_NAME = re.compile(r"[A-Za-z$._][A-Za-z0-9$._]*\Z")
_Work = Iterator[Stmt]  # a statement being emitted; yields the statements inside it


def emit_kernel(kernel: Kernel, target: Target, symbol: str | None = None) -> str:
    """LLVM text of a module with one function, named ``symbol`` or as the kernel.

    Raises CodegenError for what has no machine code: a register buffer indexed at run time, a dtype
    without machine type, an operation that its dtype does not have.
    """
    return _module([_Function(kernel, target, symbol or kernel.name)])


def emit_module(kernels: Sequence[Kernel], target: Target) -> str:
    """LLVM text of a module with a function per kernel, named as the kernels (all different).

    Raises CodegenError as ``emit_kernel`` does.
    """
    return _module([_Function(kernel, target, kernel.name) for kernel in kernels])


def _module(functions: Sequence[_Function]) -> str:
    shared: dict[str, str] = {}
    declared: set[str] = set()
    for function in functions:
        shared |= function.writer.functions
        declared |= function.writer.declared
    texts = [*(f.text for f in functions), *(shared[name] for name in sorted(shared))]
    defined = {line for text in texts for line in text.splitlines() if line.startswith("declare")}
    return "\n\n".join([*texts, "\n".join(sorted(declared - defined))]) + "\n"


class _Function:
    """Emits one kernel; statements are generators on a stack, so nesting costs no recursion."""

    def __init__(self, kernel: Kernel, target: Target, symbol: str) -> None:
        self.kernel = kernel
        self.writer = Writer()
        self.expressions = Expressions(self.writer, target)
        self.storing: dict[int, bool] = {}
        name = symbol if _PLAIN_NAME.match(symbol) else '"' + symbol.replace('"', "'") + '"'
        head = (
            f"define i32 @{name}(ptr noalias %ctx, ptr noalias readonly %slots, i64 %lo, i64 %hi)"
        )
        self.text = f"{head} nounwind {{\nentry:\n{self._body()}\n}}"

    def _body(self) -> str:
        writer, expressions = self.writer, self.expressions
        self._bind_parameters()
        self._bind_locals()
        loop = writer.begin_loop("%lo", "%hi", 1, stores=True, entered=False, registers=False)
        expressions.variables[self.kernel.task] = (0, ((loop.variable, 1),))
        self._run(self.kernel.body)
        writer.end_loop()
        if not writer.closed:
            writer.close("ret i32 0")
        return writer.text()

    def _bind_parameters(self) -> None:
        for number, buffer in enumerate(self.kernel.params):
            self.expressions.indices.pointers[buffer] = self._slot(number, "ptr")
        for number, scalar in enumerate(self.kernel.scalars, len(self.kernel.params)):
            value = self._slot(number, scalar_type(scalar.dtype))
            linear = scalar.dtype == "int64"
            self.expressions.variables[scalar] = (0, ((value, 1),)) if linear else value

    def _slot(self, number: int, kind: str) -> str:
        place = "%slots"
        if number:
            place = self.writer.pure(f"getelementptr i64, ptr %slots, i64 {number}")
        return self.writer.here(f"load {kind}, ptr {place}, align 8")

    def _bind_locals(self) -> None:
        scratch = [b for b in self.kernel.locals if b.scope == "scratch"]
        if not scratch:
            return
        base = self.writer.here("load ptr, ptr %ctx, align 8")
        for buffer in scratch:
            offset = self._offset(buffer)
            place = f"getelementptr i8, ptr {base}, i64 {offset}"
            pointer = base if offset == "0" else self.writer.pure(place, base, offset)
            self.expressions.indices.pointers[buffer] = pointer

    def _offset(self, buffer: Buffer) -> str:
        offset: int | Expr = buffer.offset
        if isinstance(offset, int):
            return str(offset)
        return self.expressions.indices.name(self.expressions.linear(offset))

    # --- statements ---------------------------------------------------------------------------

    def _run(self, root: Stmt) -> None:
        stack = [self._emit(root)]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(self._emit(inner))

    def _emit(self, stmt: Stmt) -> _Work:
        if isinstance(stmt, Store):
            self._store(stmt)
        elif isinstance(stmt, Seq):
            for one in stmt.body:
                if self.writer.closed:
                    return
                yield one
        elif isinstance(stmt, Let):
            self.expressions.variables[stmt.var] = self.expressions.value(stmt.value)
            yield stmt.body
        elif isinstance(stmt, For):
            yield from self._for(stmt)
        elif isinstance(stmt, If):
            yield from self._if(stmt)
        elif isinstance(stmt, Prefetch):
            self.expressions.memory.prefetch(stmt.buffer, self.expressions.linear(stmt.index))
        elif isinstance(stmt, Fault):
            self._fault(stmt)
        else:
            raise CodegenError(f"no code for statement {type(stmt).__name__}")

    def _for(self, stmt: For) -> _Work:
        lo, hi = self.expressions.linear(stmt.lo), self.expressions.linear(stmt.hi)
        fixed = not lo[1] and not hi[1]
        if stmt.unrolled and not fixed:
            raise CodegenError(
                f"unrolled loop over '{stmt.var.name}' has a bound known at run time only"
            )
        rounds = range(lo[0], hi[0], stmt.step) if fixed else range(0)
        if stmt.unrolled or (fixed and len(rounds) <= 1):
            for number in rounds:
                if self.writer.closed:
                    return
                self.expressions.variables[stmt.var] = (number, ())
                yield stmt.body
            return
        bounds = (self.expressions.indices.name(lo), self.expressions.indices.name(hi))
        stores = self._stores(stmt.body)
        loop = self.writer.begin_loop(*bounds, stmt.step, stores=stores, entered=fixed)
        self.expressions.variables[stmt.var] = (0, ((loop.variable, 1),))
        yield stmt.body
        self.writer.end_loop()

    def _if(self, stmt: If) -> _Work:
        test = self.expressions.operand(stmt.cond)
        if test in ("true", "false"):
            taken = stmt.then if test == "true" else stmt.orelse
            if taken is not None:
                yield taken
            return
        stores = self._stores(stmt.then) or (stmt.orelse is not None and self._stores(stmt.orelse))
        branch = self.writer.begin_branch(test, stores=stores)
        yield stmt.then
        self.writer.end_side(branch, closed=stmt.closed)
        if stmt.orelse is not None:
            yield stmt.orelse
        self.writer.end_side(branch, closed=stmt.closed)
        self.writer.end_branch(branch)

    def _store(self, stmt: Store) -> None:
        buffer, value, expressions = stmt.buffer, stmt.value, self.expressions
        if value.dtype != buffer.dtype:
            raise CodegenError(f"{value.dtype} stored into {buffer!r}")
        index = expressions.linear(stmt.index)
        if buffer.scope == "register":
            operand = expressions.operand(value)
            if is_small_float(buffer.dtype):
                operand = expressions.conversions.rounded(operand, buffer.dtype, value.lanes)
            self.writer.write_element((buffer, register_index(index)), operand)
            return
        count = expressions.operand(stmt.count) if stmt.count is not None else None
        if isinstance(value, Cast) and is_small_float(buffer.dtype) and value.a.dtype == "float32":
            value = value.a  # storing rounds anyway
        operand = expressions.operand(value)
        expressions.memory.store(buffer, index, operand, value.lanes, count)

    def _stores(self, root: Stmt) -> bool:
        """Whether memory may be written somewhere inside ``root``."""
        known = self.storing.get(id(root))
        if known is None:
            known = self.storing[id(root)] = any(
                isinstance(s, Store) and s.buffer.scope != "register" for s in _statements(root)
            )
        return known

    def _fault(self, stmt: Fault) -> None:
        index = self.expressions.operand(stmt.index)
        place = self.writer.here("getelementptr i64, ptr %ctx, i64 1")
        self.writer.effect(f"store i64 {index}, ptr {place}, align 8")
        self.writer.close(f"ret i32 {stmt.code}")


def _statements(root: Stmt) -> Iterator[Stmt]:
    stack = [root]
    while stack:
        stmt = stack.pop()
        yield stmt
        if isinstance(stmt, Seq):
            stack.extend(stmt.body)
        elif isinstance(stmt, (For, Let)):
            stack.append(stmt.body)
        elif isinstance(stmt, If):
            stack.append(stmt.then)
            if stmt.orelse is not None:
                stack.append(stmt.orelse)
