"""Relay's type inference over one module.

Plain dataflow is typed forward: a call whose argument types are known gets its type from the
operator's relation at once. What is not known yet becomes a hole, and the relation waits in the
solver (``type_solver``). At the end types are written into the nodes; a node is made anew only
where Relay's result differs from the input (a variable without annotation, a function without
result type, a call with inferred type arguments) and above such nodes.

Nothing recurses over expressions: scopes (let, function, if, match) are generator steps run by
``ir.trampoline``, the dataflow inside one is a loop with a stack of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any

from ixion.base.dtype import from_numpy
from ixion.base.errors import IxionError, TypeInferenceError
from ixion.base.guard import Guard
from ixion.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IncompleteType,
    IRModule,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    Var,
)
from ixion.ir.op import get_attr_map
from ixion.ir.trampoline import run
from ixion.op.define import InferArgs, Inferred
from ixion.transform.pattern_types import PatternTyper
from ixion.transform.symbolic_value import ArgumentValues, ValueTable
from ixion.transform.type_solver import Relation, TypeSolver, substitute

__all__ = ["TypeInferencer", "place_of", "written_type"]

Step = Generator[Any, Any, Type]
_FINFER = get_attr_map("FInfer")
_BOOL = TensorType((), "bool")
_read_type = vars(Expr)["_checked_type"].__get__


def written_type(expr: Expr) -> Type | None:
    """The type inference wrote earlier, or None."""
    try:
        return _read_type(expr)  # type: ignore[no-any-return]
    except AttributeError:
        return None


def place_of(expr: Expr) -> str:
    """Where an expression is, for an error: its span, and the operator if it is a call."""
    span = expr.span
    name = ""
    if isinstance(expr, Call):
        op = expr.op
        named = op.name if isinstance(op, Op) else getattr(op, "name_hint", type(op).__name__)
        name = f"call to {named}"
    elif isinstance(expr, Var):
        name = f"variable %{expr.name_hint}"
    else:
        name = type(expr).__name__
    return f"{name} at {span}" if span is not None else name


class TypeInferencer:
    """Types of the expressions of ``mod`` that have none, until they are written into the nodes.

    ``order`` lists them with operands before their users; ``types`` has their types by identity,
    with holes while inference goes on. With ``guards`` all expressions are visited, typed or not,
    and the list takes what the relations assume of symbolic sizes.
    """

    def __init__(self, mod: IRModule, guards: list[Guard] | None = None) -> None:
        self.mod = mod
        self.guards = guards
        self.solver = TypeSolver(guards)
        self.order: list[Expr] = []
        self.types: dict[Expr, Type] = {}
        self.type_args: dict[Expr, tuple[Type, ...]] = {}
        self.values = ValueTable(self.known, self._value_of_call)
        self._globals: dict[str, Type] = {}
        self._main = {mod[name] for name in ("main",) if name in mod}
        self._bound: set[Let] = set()
        # How many branches and function literals inference is inside of.
        self._uncertain = 0
        self._patterns = PatternTyper(mod, self.solver, self.bind_var)

    def infer(self, expr: Expr) -> Type:
        """Visit ``expr`` and all below it, and solve. The type may still have holes."""
        kind = run(self._region(expr))
        self.solver.solve()
        return self.solver.resolve(kind)

    def infer_global(self, var: GlobalVar) -> Type:
        """Visit the function bound to ``var``, once."""
        return run(self._global(var))

    def known(self, expr: Expr) -> Type | None:
        """The type found for ``expr`` so far, resolved at its root only; None before its visit."""
        kind = self.types.get(expr)
        if kind is None:
            kind = written_type(expr) if self.guards is None else None
            if kind is not None:
                self.types[expr] = kind
            return kind
        return kind if type(kind) is TensorType else self.solver.find(kind)

    def bind_var(self, var: Var) -> Type:
        """The type of a variable at its definition: its annotation, or a hole."""
        found = self.known(var)
        if found is None:
            annotation = var.type_annotation
            found = self.solver.hole() if annotation is None else annotation
            self._record(var, found)
        return found

    def _record(self, expr: Expr, kind: Type) -> None:
        self.types[expr] = kind
        self.order.append(expr)

    def _region(self, root: Expr) -> Step:
        """The dataflow above scopes, without recursion; scopes are steps."""
        types = self.types
        # Only expressions without a type are ever put on the stack.
        stack = [root] if self.known(root) is None else []
        while stack:
            expr = stack[-1]
            if expr in types:
                stack.pop()
                continue
            operands = _OPERANDS.get(type(expr))
            if operands is None:
                kind = yield self._scope(expr)
                if expr not in types:
                    self._record(expr, kind)
            else:
                missing = [part for part in operands(expr) if part not in types]
                missing = [part for part in missing if self.known(part) is None]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                self._record(expr, _DATAFLOW[type(expr)](self, expr))
            stack.pop()
        return self._operand(root)

    def _scope(self, expr: Expr) -> Step:
        rule = _SCOPES.get(type(expr))
        if rule is None:
            raise TypeInferenceError(
                f"a {type(expr).__name__} has no type", where=place_of(expr), found=repr(expr)
            )
        return rule(self, expr)

    # Dataflow: every operand is typed already.

    def _var(self, var: Var) -> Type:
        return self.solver.hole() if var.type_annotation is None else var.type_annotation

    def _constant(self, constant: Constant) -> Type:
        data = constant.data
        return TensorType(data.shape, from_numpy(data.dtype))

    def _tuple(self, expr: Tuple) -> Type:
        return TupleType([self._operand(field) for field in expr.fields])

    def _operand(self, expr: Expr) -> Type:
        kind = self.known(expr)
        assert kind is not None
        return kind

    def _tuple_item(self, expr: TupleGetItem) -> Type:
        whole = self._operand(expr.tuple_value)
        if isinstance(whole, TupleType):
            return self._field(expr, whole)
        out = self.solver.hole()

        def attempt() -> bool:
            found = self.solver.find(whole)
            if isinstance(found, IncompleteType):
                return False
            self.solver.unify(out, self._field(expr, found), place_of(expr))
            return True

        self.solver.add(Relation(attempt, (whole,)))
        return out

    @staticmethod
    def _field(expr: TupleGetItem, whole: Type) -> Type:
        if not isinstance(whole, TupleType):
            raise TypeInferenceError(
                "a field is taken of something that is no tuple",
                where=place_of(expr),
                expected="a tuple type",
                found=str(whole),
            )
        if not 0 <= expr.index < len(whole.fields):
            raise TypeInferenceError(
                f"field {expr.index} of a tuple with {len(whole.fields)} fields",
                where=place_of(expr),
                found=str(whole),
            )
        return whole.fields[expr.index]

    def _call(self, call: Call) -> Type:
        op = call.op
        if not isinstance(op, Op):
            return self._general_call(call)
        found = self._relate(call, op)
        if found is not None and found.arg_types is None:
            self.values.set(call, found.value)
            return found.type
        out = self.solver.hole()
        if found is not None:
            self._settle(call, out, found)
            return self.solver.find(out)

        def attempt() -> bool:
            result = self._relate(call, op)
            if result is None:
                return False
            self._settle(call, out, result)
            return True

        self.solver.add(Relation(attempt, [self._operand(arg) for arg in call.args]))
        return out

    def _relate(self, call: Call, op: Op) -> Inferred | None:
        """Run the operator's type relation on what is known of the arguments."""
        infer = _FINFER.get(op)
        if infer is None:
            raise TypeInferenceError(
                f"operator {op.name} has no type relation",
                where=place_of(call),
                hint="give it one with define(..., infer=) or Op.add_type_rel",
            )
        kinds = []
        for arg in call.args:
            kind = self.known(arg)
            assert kind is not None
            if type(kind) is not TensorType:
                kind = self.solver.resolve(kind)
                kinds.append(kind if self.solver.is_complete(kind) else None)
            else:
                kinds.append(kind)
        values: Any = ArgumentValues(self.values, call.args)
        noted: list[Guard] | None = None if self.guards is None else []
        try:
            found = infer(InferArgs(op.name, tuple(kinds), call.attrs, values, noted))
        except IxionError as error:
            if error.where is None:
                error.where = place_of(call)
            raise
        if noted and self.guards is not None:
            certain = not self._uncertain
            self.guards.extend(replace(g, span=call.span, certain=certain) for g in noted)
        return Inferred(found) if isinstance(found, Type) else found

    def _settle(self, call: Call, out: Type, found: Inferred) -> None:
        place = place_of(call)
        for arg, kind in zip(call.args, found.arg_types or (), strict=False):
            if kind is not None:
                self.solver.unify(self._operand(arg), kind, place)
        self.solver.unify(out, found.type, place)
        self.values.set(call, found.value)

    def _value_of_call(self, call: Call) -> Any:
        """The symbolic value of a call that was typed in an earlier run."""
        if not isinstance(call.op, Op) or any(self.known(arg) is None for arg in call.args):
            return None
        found = self._relate(call, call.op)
        return None if found is None else found.value

    def _general_call(self, call: Call) -> Type:
        """A call to a function value: instantiate its type parameters, unify its arguments."""
        self.solver.solve()
        place = place_of(call)
        args = [self._operand(arg) for arg in call.args]
        kind = self._operand(call.op)
        if isinstance(kind, IncompleteType):
            kind = self.solver.unify(kind, FuncType(args, self.solver.hole()), place)
        if not isinstance(kind, FuncType):
            raise TypeInferenceError(
                "only expressions with function types can be called", where=place, found=str(kind)
            )
        kind = self._instantiate_call(call, kind, place)
        if len(kind.arg_types) != len(args):
            few = "many" if len(args) > len(kind.arg_types) else "few"
            raise TypeInferenceError(
                f"the function is provided too {few} arguments",
                where=place,
                expected=len(kind.arg_types),
                found=len(args),
            )
        for param, arg in zip(kind.arg_types, args, strict=True):
            self.solver.unify(param, arg, place)
        return self.solver.find(kind.ret_type)

    def _instantiate_call(self, call: Call, kind: FuncType, place: str) -> FuncType:
        given = tuple(call.type_args or ())
        if len(given) > len(kind.type_params):
            raise TypeInferenceError(
                "Incorrect number of type args",
                where=place,
                expected=len(kind.type_params),
                found=len(given),
            )
        if not kind.type_params:
            return kind
        args = given + tuple(self.solver.hole() for _ in kind.type_params[len(given) :])
        self.type_args[call] = args
        return self._instantiate(kind, args)

    @staticmethod
    def _instantiate(kind: FuncType, args: tuple[Type, ...]) -> FuncType:
        plain = FuncType(kind.arg_types, kind.ret_type, (), kind.type_constraints)
        result = substitute(plain, kind.type_params, args)
        assert isinstance(result, FuncType)
        return result

    def _constructor(self, constructor: Constructor) -> Type:
        data = self.mod[constructor.belong_to]
        result = TypeCall(constructor.belong_to, data.type_vars)
        return FuncType(constructor.inputs, result, data.type_vars)

    # Scopes: generator steps that may visit more.

    def _global(self, var: GlobalVar) -> Step:
        name = var.name_hint
        if name in self._globals:
            return self._globals[name]
        if name not in self.mod:
            return self._outside(var)
        func = self.mod[name]
        if not isinstance(func, Function):
            return self._outside(var)
        written = written_type(func) if self.guards is None else None
        if written is not None:
            self._globals[name] = written
            return written
        # A recursive call meets the annotation, with a hole for a result type that is not stated.
        self._globals[name] = self._annotated(func)
        kind: Type = yield self._region(func)
        self.solver.unify(self._globals[name], kind, place_of(func))
        self._globals[name] = kind
        return kind

    def _outside(self, var: GlobalVar) -> Type:
        written = written_type(var)
        if written is None:
            raise TypeInferenceError(
                f"@{var.name_hint} is not a function of this module and has no type"
            )
        return written

    def _annotated(self, func: Function) -> FuncType:
        params = [self.bind_var(param) for param in func.params]
        ret = func.ret_type if func.ret_type is not None else self.solver.hole()
        return FuncType(params, ret, func.type_params)

    def _function(self, func: Function) -> Step:
        params = [self.bind_var(param) for param in func.params]
        self._uncertain += func not in self._main
        kind = yield self._region(func.body)
        self._uncertain -= func not in self._main
        self.solver.solve()
        kind = self.solver.resolve(kind)
        if isinstance(kind, FuncType) and kind.type_params:
            kind = self._instantiate(kind, tuple(self.solver.hole() for _ in kind.type_params))
        if func.ret_type is not None:
            kind = self.solver.unify(func.ret_type, kind, place_of(func))
        return self.solver.resolve(FuncType(params, kind, func.type_params))

    def _let(self, let: Let) -> Step:
        chain: list[Let] = []
        expr: Expr = let
        while isinstance(expr, Let) and self.known(expr) is None:
            if expr not in self._bound:
                self._bound.add(expr)
                yield self._bind(expr)
            chain.append(expr)
            expr = expr.body
        kind: Type = yield self._region(expr)
        for each in reversed(chain):
            if each not in self.types:
                self._record(each, kind)
        return kind

    def _bind(self, let: Let) -> Step:
        """Type a let's variable by its annotation and value; function literals may recurse."""
        var, value = let.var, let.value
        kind = self.bind_var(var) if isinstance(value, Function) else None
        found = yield self._region(value)
        if kind is None:
            kind = found if var.type_annotation is None else var.type_annotation
            if self.known(var) is None:
                self._record(var, kind)
        self.values.bind(var, value)
        return self.solver.unify(kind, found, place_of(let))

    def _if(self, expr: If) -> Step:
        cond = yield self._region(expr.cond)
        self.solver.unify(cond, _BOOL, place_of(expr))
        self._uncertain += 1
        then = yield self._region(expr.true_branch)
        other = yield self._region(expr.false_branch)
        self._uncertain -= 1
        return self.solver.unify(then, other, place_of(expr))

    def _match(self, match: Match) -> Step:
        data = yield self._region(match.data)
        for clause in match.clauses:
            self._patterns.bind(clause.lhs, data)
        kind: Type = self.solver.hole()
        self._uncertain += 1
        for clause in match.clauses:
            found = yield self._region(clause.rhs)
            kind = self.solver.unify(kind, found, place_of(match))
        self._uncertain -= 1
        self._patterns.check_complete(match)
        return kind

    def _ref_create(self, expr: RefCreate) -> Step:
        value = yield self._region(expr.value)
        return RefType(value)

    def _ref_read(self, expr: RefRead) -> Step:
        ref = yield self._region(expr.ref)
        inner = self.solver.hole()
        self.solver.unify(ref, RefType(inner), place_of(expr))
        return self.solver.find(inner)

    def _ref_write(self, expr: RefWrite) -> Step:
        ref = yield self._region(expr.ref)
        value = yield self._region(expr.value)
        inner = self.solver.hole()
        self.solver.unify(ref, RefType(inner), place_of(expr))
        self.solver.unify(value, inner, place_of(expr))
        return TupleType(())


def _call_operands(call: Call) -> tuple[Expr, ...]:
    return call.args if type(call.op) is Op else (call.op, *call.args)


def _none(expr: Expr) -> tuple[Expr, ...]:
    return ()


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Var: _none,
    Constant: _none,
    Constructor: _none,
    Call: _call_operands,
    Tuple: lambda expr: expr.fields,
    TupleGetItem: lambda expr: (expr.tuple_value,),
}
_DATAFLOW: dict[type, Callable[[TypeInferencer, Any], Type]] = {
    Var: TypeInferencer._var,
    Constant: TypeInferencer._constant,
    Tuple: TypeInferencer._tuple,
    TupleGetItem: TypeInferencer._tuple_item,
    Call: TypeInferencer._call,
    Constructor: TypeInferencer._constructor,
}
_SCOPES: dict[type, Callable[[TypeInferencer, Any], Step]] = {
    GlobalVar: TypeInferencer._global,
    Function: TypeInferencer._function,
    Let: TypeInferencer._let,
    If: TypeInferencer._if,
    Match: TypeInferencer._match,
    RefCreate: TypeInferencer._ref_create,
    RefRead: TypeInferencer._ref_read,
    RefWrite: TypeInferencer._ref_write,
}
