"""Expressions to operands: runs plans step by step, with variables bound to values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ixion.base.abi import Fault
from ixion.base.errors import CodegenError
from ixion.base.target import Target
from ixion.codegen import vmath
from ixion.codegen.emit_arith import Arithmetic
from ixion.codegen.emit_convert import Conversions
from ixion.codegen.emit_index import Indices, Linear, as_linear, wrapped
from ixion.codegen.emit_intrinsic import Intrinsics
from ixion.codegen.emit_memory import Memory
from ixion.codegen.emit_plan import Affine, Plan, Rare, Step, plan
from ixion.codegen.emit_types import constant, value_type, vector
from ixion.codegen.emit_writer import Writer
from ixion.te.expr import (
    INDEX,
    Binary,
    Bitcast,
    Broadcast,
    Cast,
    Checked,
    Compare,
    Compressed,
    Const,
    Expr,
    HorizontalReduce,
    Intrinsic,
    LaneBits,
    Lanes,
    Load,
    Ramp,
    Select,
    Shuffle,
    Var,
)

Value = Any  # an operand (str), or a scalar int64 in parts (Linear)
Handler = Callable[[Any, Sequence[Value]], Value]

# A vmath function of more steps than _LONG is always called; one of more than _SHORT after _COPIES.
_SHORT, _LONG, _COPIES = 12, 120, 8


class Expressions:
    """Emits the value of any loop-level expression."""

    def __init__(self, writer: Writer, target: Target) -> None:
        self.writer, self.target = writer, target
        self.indices = Indices(writer)
        self.arithmetic = Arithmetic(writer, target, self.expand)
        self.conversions = Conversions(self.arithmetic)
        self.memory = Memory(self.indices, self.conversions)
        self.intrinsics = Intrinsics(self.arithmetic, self.conversions)
        self.variables: dict[Var, Value] = {}
        self.is_function = False
        self.expanded: dict[str, int] = {}
        self.plans: dict[int, tuple[Expr, Plan]] = {}
        self.handlers: dict[type[Any], Handler] = {
            Const: self._const, Var: self._var, Binary: self._binary, Compare: self._compare,
            Select: self._select, Cast: self._cast, Bitcast: self._bitcast, Load: self._load,
            Intrinsic: self._intrinsic, Broadcast: self._broadcast, Ramp: self._ramp,
            HorizontalReduce: self._fold, Lanes: self._lanes, Shuffle: self._shuffle,
            Checked: self._checked, LaneBits: self._lane_bits, Compressed: self._compressed,
        }  # fmt: skip

    # --- entry points -------------------------------------------------------------------------

    def operand(self, expr: Expr) -> str:
        """The value of ``expr`` as a name or literal."""
        return self.indices.name(self.value(expr))

    def linear(self, expr: Expr) -> Linear:
        """A scalar int64 as a linear form."""
        return as_linear(self.value(expr))

    def value(self, expr: Expr) -> Value:
        known = self.plans.get(id(expr))
        if known is None:
            known = self.plans[id(expr)] = (expr, plan(expr))
        return self._run(known[1])

    def expand(self, name: str, lanes: int, *operands: str) -> str:
        """The value of a vmath function on operands: in place, or by a call if code would pile up.

        A tile of 28 vectors with a sigmoid each would be mostly copies of the sigmoid.
        """
        expansion = vmath.expansion(name, lanes, self.target)
        size = len(expansion.plan.steps)
        key = f"ixion.{name}.{lanes}"
        self.expanded[key] = self.expanded.get(key, 0) + 1
        many = size > _SHORT and self.expanded[key] > _COPIES
        if (size > _LONG or many) and not self.is_function:
            return self._called(key, name, lanes, operands)
        return self.inlined(expansion, operands)

    def inlined(self, expansion: vmath.Expansion, operands: Sequence[str]) -> str:
        """The value of a vmath function whose code is written here."""
        for parameter, operand in zip(expansion.parameters, operands, strict=True):
            self.variables[parameter] = operand
        return self.indices.name(self._run(expansion.plan))

    def _called(self, symbol: str, name: str, lanes: int, operands: Sequence[str]) -> str:
        function = vector_function(symbol, name, lanes, self.target)
        self.writer.functions |= function.functions
        self.writer.declared |= function.declared
        arguments = ", ".join(f"{k} {o}" for k, o in zip(function.kinds, operands, strict=True))
        return self.writer.pure(f"call {function.result} @{symbol}({arguments})", *operands)

    def _run(self, plan: Plan) -> Value:
        values: list[Value] = [""] * plan.size
        self._steps(plan.steps, values)
        return values[plan.result]

    def _steps(self, steps: Sequence[Step], values: list[Value]) -> None:
        handlers = self.handlers
        for node, place, operands, rare in steps:
            if rare:
                values[place] = self._rare(node, operands, rare, values)
                continue
            if type(node) is Affine:
                values[place] = self._affine(node, values)
                continue
            handler = handlers.get(type(node))
            if handler is None:
                raise CodegenError(f"no code for {type(node).__name__} in a loop nest")
            values[place] = handler(node, [values[i] for i in operands])

    def _affine(self, node: Affine, values: Sequence[Value]) -> Linear:
        constant = node.constant
        terms: dict[str, int] = {}
        for atom, factor in node.parts:
            value = values[atom] if isinstance(atom, int) else self._var(atom, ())
            if isinstance(value, str):
                terms[value] = terms.get(value, 0) + factor
                continue
            constant += value[0] * factor
            for name, more in value[1]:
                terms[name] = terms.get(name, 0) + more * factor
        return wrapped(constant), tuple(sorted(t for t in terms.items() if t[1])) if terms else ()

    # --- nodes --------------------------------------------------------------------------------

    def _const(self, node: Const, _: Sequence[Value]) -> Value:
        return constant(node.value, node.dtype, node.lanes)

    def _var(self, node: Var, _: Sequence[Value]) -> Value:
        try:
            return self.variables[node]
        except KeyError:
            raise CodegenError(f"variable '{node.name}' has no value here") from None

    def _binary(self, node: Binary, values: Sequence[Value]) -> Value:
        if node.dtype == INDEX and node.lanes == 1:
            a, b = as_linear(values[0]), as_linear(values[1])
            known = self.indices.operation(node.op, a, b)
            return self._index_binary(node.op, a, b) if known is None else known
        return self.arithmetic.binary(node.op, values[0], values[1], node.dtype, node.lanes)

    def _index_binary(self, op: str, a: Linear, b: Linear) -> Linear:
        self.arithmetic.pure = self.writer.index
        try:
            name = self.arithmetic.binary(op, self.indices.name(a), self.indices.name(b), INDEX, 1)
        finally:
            self.arithmetic.pure = self.writer.pure
        return as_linear(name)

    def _compare(self, node: Compare, values: Sequence[Value]) -> Value:
        a, b = values
        if isinstance(a, tuple) or isinstance(b, tuple):
            decided = self.indices.compare(node.op, as_linear(a), as_linear(b))
            if decided is not None:
                return "true" if decided else "false"
            a, b = self.indices.name(a), self.indices.name(b)
        return self.arithmetic.compare(node.op, a, b, node.a.dtype, node.lanes)

    def _select(self, node: Select, values: Sequence[Value]) -> Value:
        test, a, b = values
        if test == "true" or a == b:
            return a
        if test == "false":
            return b
        a, b = self.indices.name(a), self.indices.name(b)
        return self.arithmetic.select(test, a, b, node.dtype, node.lanes, node.cond.lanes)

    def _rare(
        self,
        node: Expr | Affine,
        operands: Sequence[int],
        rare: Sequence[Step],
        values: list[Value],
    ) -> Value:
        """``b``, or where the condition holds in a lane: both sides and a select."""
        assert isinstance(node, Rare)
        test, usual = values[operands[0]], values[operands[1]]
        lanes = node.cond.lanes
        some = test
        if lanes > 1:
            kind, word = vector("i1", lanes), f"i{lanes}"
            bits = self.writer.pure(f"bitcast {kind} {test} to {word}", test)
            some = self.writer.pure(f"icmp ne {word} {bits}, 0", bits)
        branch = self.writer.begin_branch(some, stores=False)
        self._steps(rare, values)
        seldom = values[operands[2]]
        mixed = self.arithmetic.select(test, seldom, usual, node.dtype, node.lanes, lanes)
        self.writer.end_side(branch)
        self.writer.end_side(branch)
        self.writer.end_branch(branch)
        return self.writer.join(branch, value_type(node.dtype, node.lanes), mixed, usual)

    def _cast(self, node: Cast, values: Sequence[Value]) -> Value:
        value = self.indices.name(values[0])
        return self.conversions.cast(value, node.a.dtype, node.dtype, node.lanes)

    def _bitcast(self, node: Bitcast, values: Sequence[Value]) -> Value:
        value = self.indices.name(values[0])
        return self.conversions.bitcast(value, node.a.dtype, node.dtype, node.lanes)

    def _intrinsic(self, node: Intrinsic, values: Sequence[Value]) -> Value:
        operands = [self.indices.name(v) for v in values]
        return self.intrinsics.emit(node.name, operands, node.args[0].dtype, node.lanes)

    def _broadcast(self, node: Broadcast, values: Sequence[Value]) -> Value:
        return self.arithmetic.splat(self.indices.name(values[0]), node.dtype, node.lanes)

    def _ramp(self, node: Ramp, values: Sequence[Value]) -> Value:
        base = self.indices.name(values[0])
        return self.arithmetic.ramp(base, node.stride, node.dtype, node.lanes)

    def _fold(self, node: HorizontalReduce, values: Sequence[Value]) -> Value:
        value = self.indices.name(values[0])
        return self.arithmetic.fold_lanes(node.kind, value, node.dtype, node.a.lanes)

    def _checked(self, node: Checked, values: Sequence[Value]) -> Value:
        """The index, after a branch that ends the kernel where it is out of range."""
        index = self.indices.name(values[0])
        extent = self.indices.name(values[1]) if len(values) > 1 else str(node.extent)
        bad = self.writer.pure(f"icmp uge i64 {index}, {extent}", index, extent)
        branch = self.writer.begin_branch(bad, stores=False)
        place = self.writer.here("getelementptr i64, ptr %ctx, i64 1")
        self.writer.effect(f"store i64 {index}, ptr {place}, align 8")
        self.writer.close(f"ret i32 {int(Fault.INDEX)}")
        self.writer.end_side(branch)
        self.writer.end_side(branch)
        self.writer.end_branch(branch)
        return as_linear(index)

    def _lanes(self, node: Lanes, values: Sequence[Value]) -> Value:
        return self.arithmetic.gathered([self.indices.name(v) for v in values], node.dtype)

    def _shuffle(self, node: Shuffle, values: Sequence[Value]) -> Value:
        a, b = (self.indices.name(v) for v in values)
        kind = value_type(node.dtype, node.a.lanes)
        picks = ", ".join(f"i32 {p}" for p in node.picks)
        code = f"shufflevector {kind} {a}, {kind} {b}, <{node.lanes} x i32> <{picks}>"
        return self.writer.pure(code, a, b)

    def _lane_bits(self, node: LaneBits, values: Sequence[Value]) -> Value:
        return as_linear(self.arithmetic.lane_bits(self.indices.name(values[0]), node.a.lanes))

    def _compressed(self, node: Compressed, values: Sequence[Value]) -> Value:
        value, mask = (self.indices.name(v) for v in values)
        return self.arithmetic.compressed(value, mask, node.dtype, node.lanes)

    def _load(self, node: Load, values: Sequence[Value]) -> Value:
        index = as_linear(values[0])
        if node.buffer.scope == "register":
            return self.writer.read_element((node.buffer, register_index(index)))
        count = self.indices.name(values[1]) if node.count is not None else None
        return self.memory.load(node.buffer, index, node.lanes, node.stride, count)


class VectorFunction(NamedTuple):
    """An internal function: its types, and the text of what a module needs to use it."""

    result: str
    kinds: tuple[str, ...]
    functions: dict[str, str]
    declared: frozenset[str]


@functools.cache
def vector_function(symbol: str, name: str, lanes: int, target: Target) -> VectorFunction:
    """The vmath function ``name`` on vectors of ``lanes`` as the internal function ``symbol``."""
    expansion = vmath.expansion(name, lanes, target)
    writer = Writer()
    emitter = Expressions(writer, target)
    emitter.is_function = True
    kinds = tuple(value_type(p.dtype, p.lanes) for p in expansion.parameters)
    result = value_type(expansion.body.dtype, lanes)
    names = [f"%x{i}" for i in range(len(kinds))]
    value = emitter.inlined(expansion, names)
    writer.close(f"ret {result} {value}")
    listed = ", ".join(f"{k} {n}" for k, n in zip(kinds, names, strict=True))
    head = f"define internal {result} @{symbol}({listed}) nounwind willreturn memory(none)"
    text = f"{head} {{\nentry:\n{writer.text()}\n}}"
    return VectorFunction(
        result, kinds, {**writer.functions, symbol: text}, frozenset(writer.declared)
    )


def register_index(index: Linear) -> int:
    """The constant that indexes a register buffer. Raises CodegenError for anything else."""
    if index[1]:
        raise CodegenError(
            "a register buffer is indexed by a value known at run time only",
            where="codegen", hint="unroll the loop whose variable is in the index",
        )  # fmt: skip
    return index[0]
