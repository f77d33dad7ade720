"""From functions in A-normal form to drafts: blocks of operators and acts.

Closures are lifted: what a function closes over becomes its last parameters, and where the
function is known a call gives them along without making a closure. Nothing recurses in Python over
the depth of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

from ixion.base.dtype import from_numpy
from ixion.base.errors import CodegenError
from ixion.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from ixion.ir.trampoline import run
from ixion.runtime.machine_program import ConstantSpec
from ixion.vm.draft import Act, Block, Clause, Known, Operator, Scope, Test, Value
from ixion.vm.naming import Found, Names, constant_value, infer_named
from ixion.vm.native import NativeFunctions, bounded_call
from ixion.vm.proof import proves, tensor_kind

__all__ = ["Builder"]

Step = Generator[Any, Any, Any]
# The kind of a part of a matched value until a variable tells it.
_OPEN = TupleType(())


class Builder:
    """Builds every function that the entry can reach.

    ``scopes`` are the functions by number; ``constructors`` and ``arrays`` what their constants
    and acts refer to. Calls of ``native`` functions are operators.
    """

    def __init__(self, module: IRModule, native: NativeFunctions) -> None:
        self.module = module
        self.native = native
        self.names = Names()
        self.scopes: list[Scope] = []
        self.constructors: list[Constructor] = []
        self.arrays: list[Constant] = []
        self.host_calls: list[Call] = []
        self._globals: dict[str, Scope] = {}
        self._wrappers: dict[int, Scope] = {}
        self._numbers: dict[int, int] = {}
        self._arrays: dict[int, int] = {}
        self._queue: list[tuple[Scope, Function]] = []

    def build(self, entry: str = "main") -> Scope:
        """Raises CodegenError for what no machine program can hold."""
        first = self._global(self.module.get_global_var(entry))
        while self._queue:
            scope, function = self._queue.pop()
            run(self._function(scope, function))
        return first

    # Functions.

    def _scope(self, name: str, outer: Scope | None) -> Scope:
        scope = Scope(name, len(self.scopes), outer)
        self.scopes.append(scope)
        return scope

    def _global(self, var: GlobalVar) -> Scope:
        found = self._globals.get(var.name_hint)
        if found is None:
            function = self.module[var.name_hint]
            if not isinstance(function, Function):
                raise CodegenError(f"@{var.name_hint} is no function that can be called")
            found = self._globals[var.name_hint] = self._scope(f"@{var.name_hint}", None)
            self._parameters(found, function)
            self._queue.append((found, function))
        return found

    def _parameters(self, scope: Scope, function: Function) -> None:
        for param in function.params:
            kind = self.names.named(param.checked_type)
            scope.params.append(Value(param.name_hint, kind, scope.root))
            scope.env[param] = scope.params[-1]

    def _function(self, scope: Scope, function: Function) -> Step:
        yield self._region(function.body, scope.root)

    def _wrapper(self, constructor: Constructor) -> Scope:
        """A function that makes a value of a constructor: the constructor as a function value."""
        number = self._constructor(constructor)
        scope = self._wrappers.get(number)
        if scope is None:
            scope = self._wrappers[number] = self._scope(constructor.name_hint, None)
            scope.params = [
                Value(f"field{i}", kind, scope.root) for i, kind in enumerate(constructor.inputs)
            ]
            kind = TupleType(())
            made = self._act(scope.root, "adt", scope.params, kind, number=number)
            scope.root.close(self._operand(made, scope.root))
        return scope

    def _constructor(self, constructor: Constructor) -> int:
        number = self._numbers.get(constructor.tag)
        if number is None:
            number = self._numbers[constructor.tag] = len(self.constructors)
            self.constructors.append(constructor)
        return number

    # Values.

    def lookup(self, scope: Scope, var: Var) -> Value:
        """The value of a variable in a function, taken in from the functions around it."""
        chain: list[Scope] = []
        at: Scope | None = scope
        while at is not None and var not in at.env:
            chain.append(at)
            at = at.outer
        if at is None:
            raise CodegenError(f"variable %{var.name_hint} has no value", where=var.span)
        value = at.env[var]
        for inner in reversed(chain):
            value = inner.env[var] = self._captured(inner, value)
        return value

    def _captured(self, scope: Scope, value: Value) -> Value:
        """A value of the function around ``scope`` as a value inside."""
        if value.constant is not None or value.data is not None:
            return value
        known = value.function
        if known is not None and known.captured == []:
            return self._function_value(known.scope, value.kind)
        found = scope.captured.get(value)
        if found is not None:
            return found
        if value.fields is not None:
            parts = tuple(self._captured(scope, part) for part in value.fields)
            return Value(value.name, value.kind, scope.root, fields=parts)
        found = Value(value.name, value.kind, scope.root)
        scope.captured[value] = found
        return found

    def _function_value(self, scope: Scope, kind: Type) -> Value:
        """A function that closes over nothing."""
        constant = ConstantSpec("closure", scope.number)
        return Value(scope.name, kind, function=Known(scope, []), constant=constant)

    def _atom(self, expr: Expr, block: Block) -> Value:
        if isinstance(expr, Var):
            return self.lookup(block.scope, expr)
        if isinstance(expr, Constant):
            kind = TensorType(expr.data.shape, from_numpy(expr.data.dtype))
            return Value("constant", kind, data=expr, number=constant_value(expr.data))
        if isinstance(expr, GlobalVar):
            scope = self._global(expr)
            scope.unproven = True
            return self._function_value(scope, expr.checked_type)
        if isinstance(expr, Constructor):
            if not expr.inputs:
                raise CodegenError(f"constructor {expr.name_hint} is used without a call")
            return self._function_value(self._wrapper(expr), expr.checked_type)
        raise CodegenError(
            f"a {type(expr).__name__} cannot be a value of a compiled program", where=expr.span
        )

    def _operand(self, value: Value, block: Block) -> Value:
        """A value that an act takes: whole, in a register."""
        if value.data is not None:
            value.constant = value.constant or ConstantSpec("array", self._array(value.data))
        known = value.function
        if value.constant is not None:
            if known is not None:
                known.scope.unproven = True
            return value
        if value.fields is not None or known is not None:
            value = self._whole(value, block)
        self._needed(value)
        value.used = True
        return value

    def _array(self, constant: Constant) -> int:
        number = self._arrays.get(id(constant))
        if number is None:
            number = self._arrays[id(constant)] = len(self.arrays)
            self.arrays.append(constant)
        return number

    def _needed(self, value: Value) -> None:
        """Something other than an operator of its block uses a value now.

        The value's block is open; what uses it is the act that comes next there, or inside it.
        """
        if value.operator is not None and value.block is not None:
            value.need = min(value.need, len(value.block.acts))

    def _whole(self, value: Value, block: Block) -> Value:
        """A tuple or closure as a value in a register, made once where that can be seen."""
        scope = block.scope
        made = scope.made.get(value)
        if made is not None and made.block is not None and made.block.open:
            return made
        if value.fields is not None:
            if not value.fields:
                return Value("empty", value.kind, constant=ConstantSpec("empty"))
            made = self._act(block, "tuple", value.fields, value.kind, value.name)
        else:
            known = value.function
            assert known is not None
            # The closure may be called with whatever its type lets through.
            known.scope.unproven = True
            own = known.captured is None
            made = self._act(
                block, "closure", known.captured or (), value.kind, value.name,
                number=known.scope.number, captured_of=known.scope if own else None,
            )  # fmt: skip
        scope.made[value] = made
        return made

    def _item(self, value: Value, index: int, block: Block) -> Value:
        """A field of a tuple."""
        if value.fields is not None:
            return value.fields[index]
        key = (value, index)
        found = block.scope.made.get(key)
        if found is None or found.block is None or not found.block.open:
            assert isinstance(value.kind, TupleType)
            kind = value.kind.fields[index]
            found = self._act(block, "item", (value,), kind, value.name, number=index)
            block.scope.made[key] = found
        return found

    def _act(
        self,
        block: Block,
        name: str,
        args: Iterable[Value],
        kind: Type,
        result: str = "",
        **more: Any,
    ) -> Value:
        """Adds an act with one result, of a named type, to a block."""
        act = Act(name, [self._operand(a, block) for a in args], **more)
        value = Value(result or name, kind, block, len(block.acts) + 1)
        act.results.append(value)
        block.acts.append(act)
        return value

    # Regions.

    def _region(self, expr: Expr, block: Block) -> Step:
        """Lets in a row and what they end in; closes the block."""
        env = block.scope.env
        while isinstance(expr, Let):
            env[expr.var] = value = yield self._bound(expr.value, expr.var, block)
            self._promised(expr.var, value, block)
            expr = expr.body
        value = yield self._bound(expr, None, block)
        block.close(self._operand(value, block))

    def _promised(self, var: Var, value: Value, block: Block) -> None:
        """A variable's type may say more of a tensor's sizes than is known: that is checked."""
        kind = var.type_annotation
        if not isinstance(kind, TensorType) or proves(value.kind, self.names.named(kind)):
            return
        act = Act("check", [self._operand(value, block)], label=block.scope.name)
        act.kinds = ((f"variable %{var.name_hint}", tensor_kind(kind)),)
        block.acts.append(act)

    def _bound(self, expr: Expr, var: Var | None, block: Block) -> Step:
        rule = _RULES.get(type(expr))
        if rule is None:
            return self._atom(expr, block)
        found = rule(self, expr, var, block)
        if isinstance(found, Value):
            return found
        result = yield found
        return result

    def _kind(self, expr: Expr, var: Var | None) -> Type:
        return self.names.named(expr.checked_type if var is None else var.checked_type)

    def _tuple(self, expr: Tuple, var: Var | None, block: Block) -> Value:
        fields = tuple(self._atom(field, block) for field in expr.fields)
        kind = TupleType([field.kind for field in fields])
        return Value(_name(var, "tuple"), kind, block, fields=fields)

    def _tuple_item(self, expr: TupleGetItem, var: Var | None, block: Block) -> Value:
        return self._item(self._atom(expr.tuple_value, block), expr.index, block)

    def _ref_create(self, expr: RefCreate, var: Var | None, block: Block) -> Value:
        value = self._atom(expr.value, block)
        return self._act(block, "ref", (value,), self._kind(expr, var), _name(var, "ref"))

    def _ref_read(self, expr: RefRead, var: Var | None, block: Block) -> Value:
        ref = self._atom(expr.ref, block)
        return self._act(block, "read", (ref,), self._kind(expr, var), _name(var, "value"))

    def _ref_write(self, expr: RefWrite, var: Var | None, block: Block) -> Value:
        args = [self._operand(self._atom(e, block), block) for e in (expr.ref, expr.value)]
        block.acts.append(Act("write", args))
        return Value("empty", TupleType(()), constant=ConstantSpec("empty"))

    # Choices and functions.

    def _if(self, expr: If, var: Var | None, block: Block) -> Step:
        act = Act("if", [self._operand(self._atom(expr.cond, block), block)])
        for branch in (expr.true_branch, expr.false_branch):
            inner = Block(block.scope)
            act.blocks.append(inner)
            yield self._region(branch, inner)
        return self._joined(act, expr, var, block)

    def _joined(self, act: Act, expr: Expr, var: Var | None, block: Block) -> Value:
        value = Value(_name(var, act.name), self._kind(expr, var), block, len(block.acts) + 1)
        act.results.append(value)
        block.acts.append(act)
        return value

    def _match(self, expr: Match, var: Var | None, block: Block) -> Step:
        data = self._atom(expr.data, block)
        act = Act("match", label=_place(expr, block))
        if data.fields is None:
            data = self._operand(data, block)
            act.args.append(data)
        for clause in expr.clauses:
            inner = Block(block.scope)
            act.clauses.append(Clause(self._pattern(clause.lhs, data, inner), inner))
            yield self._region(clause.rhs, inner)
        return self._joined(act, expr, var, block)

    def _pattern(self, pattern: Pattern, data: Value, block: Block) -> list[Test]:
        """Tests in order; fields that are bound but not tested are taken out at the end."""
        tests: list[Test] = []
        bound: list[Test] = []
        pending = [(pattern, data)]
        while pending:
            part, value = pending.pop()
            if isinstance(part, PatternVar):
                block.scope.env[part.var] = self._bound_value(part.var, value)
            elif isinstance(part, PatternTuple):
                parts = [self._part(value, i, block) for i in range(len(part.patterns))]
                _take(parts, part.patterns, value, "item", tests, bound)
                pending.extend(reversed(list(zip(part.patterns, parts, strict=True))))
            elif isinstance(part, PatternConstructor):
                constructor = part.constructor
                number = self._constructor(constructor)
                tests.append(Test("tag", self._held(value), number, constructor.tag))
                parts = [Value("field", _OPEN, block) for _ in part.patterns]
                _take(parts, part.patterns, value, "field", tests, bound)
                pending.extend(reversed(list(zip(part.patterns, parts, strict=True))))
        return [*tests, *bound]

    def _part(self, value: Value, index: int, block: Block) -> Value:
        if value.fields is not None:
            return value.fields[index]
        return Value("item", _OPEN, block)

    def _bound_value(self, var: Var, value: Value) -> Value:
        """What a pattern variable stands for: a part whose type its variable tells."""
        if value.kind is _OPEN:
            value.kind = self.names.named(var.checked_type)
            value.name = var.name_hint
        return value

    def _held(self, value: Value) -> Value:
        self._needed(value)
        value.used = True
        return value

    def _closure(self, expr: Function, var: Var | None, block: Block) -> Step:
        outer = block.scope
        inner = self._scope(f"{outer.name}.{_name(var, 'fn')}", outer)
        if var is not None:
            own = Known(inner, None)
            inner.env[var] = Value(_name(var, "fn"), var.checked_type, inner.root, function=own)
        self._parameters(inner, expr)
        yield self._function(inner, expr)
        captured = list(inner.captured)
        if not captured:
            return self._function_value(inner, expr.checked_type)
        known = Known(inner, captured)
        return Value(_name(var, "fn"), expr.checked_type, block, function=known)

    # Calls.

    def _call(self, call: Call, var: Var | None, block: Block) -> Any:
        callee = call.op
        if isinstance(callee, Op) or self.native.runs(call):
            return self._operator(call, var, block)
        args = [self._atom(arg, block) for arg in call.args]
        name, kind = _name(var, "result"), self._kind(call, var)
        if isinstance(callee, Constructor):
            number = self._constructor(callee)
            if not args:
                return Value(name, kind, constant=ConstantSpec("value", number))
            return self._act(block, "adt", args, kind, name, number=number)
        if isinstance(callee, Function):
            return self._applied(call, callee, args, var, block)
        if isinstance(callee, GlobalVar):
            known = Known(self._global(callee), [])
        else:
            function = self._atom(callee, block)
            if function.function is None:
                label = _place(call, block)
                return self._act(block, "invoke", (function, *args), kind, name, label=label)
            known = function.function
        return self._known_call(call, known, args, var, block)

    def _applied(
        self, call: Call, callee: Function, args: list[Value], var: Var | None, block: Block
    ) -> Step:
        """A function literal called where it stands."""
        function = yield self._closure(callee, None, block)
        return self._known_call(call, function.function, args, var, block)

    def _known_call(
        self, call: Call, known: Known, args: list[Value], var: Var | None, block: Block
    ) -> Value:
        scope = known.scope
        if not all(proves(a.kind, p.kind) for a, p in zip(args, scope.params, strict=True)):
            scope.unproven = True
        own = known.captured is None
        return self._act(
            block, "call", (*args, *(known.captured or ())), self._kind(call, var),
            _name(var, "result"), number=scope.number, label=_place(call, block),
            captured_of=scope if own else None,
        )  # fmt: skip

    def _operator(self, call: Call, var: Var | None, block: Block) -> Value:
        args = tuple(self._argument(arg, block) for arg in call.args)
        kinds = [_kind_of(a) for a in args]
        if isinstance(call.op, GlobalVar):
            found: Found | None = Found(call.checked_type)
        else:
            found = infer_named(call, kinds, [_number_of(a) for a in args])
        if found is None:
            return self._host(call, args, var, block)
        operator = Operator(call, args, block)
        if found.by_value:
            operator.again = _repeated(args)
        for maker in (operator, *operator.again):
            for value in maker.operands():
                self._operand_of(operator, value, block)
        operator.results, result = _results(operator, found.kind, _name(var, "value"))
        result.number = found.value
        if result.fields is not None and isinstance(found.value, tuple):
            for part, number in zip(result.fields, found.value, strict=True):
                part.number = number
        block.operators.append(operator)
        return result

    def _argument(self, arg: Expr, block: Block) -> Value | tuple[Value, ...]:
        value = self._atom(arg, block)
        if isinstance(value.kind, TupleType):
            return tuple(self._item(value, i, block) for i in range(len(value.kind.fields)))
        return value

    def _operand_of(self, operator: Operator, value: Value, block: Block) -> None:
        """An operator uses a value: it comes after it, in this block or in one around."""
        value.used = True
        if value.block is not block:
            self._needed(value)
        elif value.operator is not None:
            operator.ready = max(operator.ready, value.operator.ready)
        else:
            operator.ready = max(operator.ready, value.ready)

    def _host(
        self, call: Call, args: tuple[Any, ...], var: Var | None, block: Block
    ) -> Value:
        """An operator outside segments, because data decides the sizes of its results."""
        flat = [v for a in args for v in (a if isinstance(a, tuple) else (a,))]
        kind = self.names.named(call.checked_type)
        bounded = bounded_call(call, args)
        if bounded is not None:
            flat = [v for v in flat if v.data is None]
            act = Act("bounded", [self._operand(v, block) for v in flat], call=bounded)
        else:
            act = Act("host", [self._operand(v, block) for v in flat], number=len(self.host_calls))
            self.host_calls.append(call)
        act.label = _place(call, block)
        ready, name = len(block.acts) + 1, _name(var, "value")
        block.acts.append(act)
        if not isinstance(kind, TupleType):
            act.results.append(Value(name, kind, block, ready))
            return act.results[0]
        act.results += [
            Value(f"{name}{i}", field, block, ready) for i, field in enumerate(kind.fields)
        ]
        return Value(name, kind, block, fields=tuple(act.results))


_RULES: dict[type, Callable[[Builder, Any, Var | None, Block], Any]] = {
    Tuple: Builder._tuple,
    TupleGetItem: Builder._tuple_item,
    RefCreate: Builder._ref_create,
    RefRead: Builder._ref_read,
    RefWrite: Builder._ref_write,
    If: Builder._if,
    Match: Builder._match,
    Function: Builder._closure,
    Call: Builder._call,
}


def _name(var: Var | None, default: str) -> str:
    return default if var is None else var.name_hint


def _place(expr: Expr, block: Block) -> str:
    """What an act is in the model: its function, and the operator or source line."""
    what = block.scope.name
    if isinstance(expr, Call) and isinstance(expr.op, Op):
        what += f": {expr.op.name}"
    return what if expr.span is None else f"{what} at {expr.span}"


def _kind_of(arg: Value | tuple[Value, ...]) -> Type:
    return TupleType([a.kind for a in arg]) if isinstance(arg, tuple) else arg.kind


def _number_of(arg: Value | tuple[Value, ...]) -> Any:
    if not isinstance(arg, tuple):
        return arg.number
    numbers = tuple(a.number for a in arg)
    return None if any(n is None for n in numbers) else numbers


def _take(
    parts: list[Value],
    patterns: tuple[Pattern, ...],
    source: Value,
    name: str,
    tests: list[Test],
    bound: list[Test],
) -> None:
    """Fields taken out of a value: those with tests of their own at once, others at the end."""
    if source.fields is not None:
        return
    for index, (part, pattern) in enumerate(zip(parts, patterns, strict=True)):
        test = Test(name, source, index, result=part)
        inner = isinstance(pattern, PatternConstructor | PatternTuple)
        (tests if inner else bound).append(test)


def _repeated(args: tuple[Value | tuple[Value, ...], ...]) -> tuple[Operator, ...]:
    """The operators that small integer arguments come from, each after what it needs."""
    order: dict[Operator, None] = {}
    pending = [a for arg in args for a in (arg if isinstance(arg, tuple) else (arg,))]
    while pending:
        value = pending.pop()
        if value.number is not None and value.operator is not None:
            order.pop(value.operator, None)
            order[value.operator] = None
            pending.extend(value.operator.operands())
    return tuple(reversed(order))


def _results(operator: Operator, kind: Type, name: str) -> tuple[tuple[Value, ...], Value]:
    """The values of an operator's tensors, and the value of the whole."""
    block = operator.block
    if isinstance(kind, TupleType):
        parts = tuple(
            Value(f"{name}{i}", field, block, operator=operator)
            for i, field in enumerate(kind.fields)
        )
        return parts, Value(name, kind, block, fields=parts)
    value = Value(name, kind, block, operator=operator)
    return (value,), value
