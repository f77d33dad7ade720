"""The reference interpreter: runs a program by its operators' numpy references.

It is the debug executor, folds constants and is every pass's judge. Nothing recurses in Python:
function activations and scopes are generator steps, dataflow inside one is a loop. An activation
remembers each expression's value, so a shared expression runs once. The outermost one forgets a
value after its last use, or a large network would keep every tensor it ever made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from ixion.analysis.liveness import use_counts
from ixion.analysis.runtime_types import check_binding, concrete_type, is_static_type
from ixion.base.dtype import to_numpy
from ixion.base.errors import InputError, IxionError, UnsupportedOpError
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
from ixion.ir.op import get_attr_map
from ixion.ir.sizes import bound_attrs, bound_type, match_sizes, type_symbols
from ixion.ir.trampoline import run
from ixion.runtime.values import Closure, ConstructorValue, RefValue

__all__ = ["Closure", "ConstructorValue", "RefValue", "call_op", "evaluate"]

Array = np.ndarray[Any, Any]
Step = Generator[Any, Any, Any]
_REFERENCE = get_attr_map("FReference")
_CONTROL = get_attr_map("FControl")


class _Frame:
    """One activation: values of its expressions and of the variables it can see.

    ``uses`` counts how often each value is still needed, where that is kept track of. ``sizes`` has
    the numbers behind symbolic sizes, found at the parameters.
    """

    __slots__ = ("outer", "sizes", "uses", "values")

    def __init__(self, outer: _Frame | None) -> None:
        self.outer = outer
        self.sizes: dict[str, int] = {} if outer is None else outer.sizes
        # Keys are expressions: nodes compare by identity.
        self.values: dict[Expr, Any] = {}
        self.uses: Counter[Expr] | None = None

    def enter(self, params: Sequence[Var], args: Sequence[Any]) -> None:
        """Parameters get their values, and the symbols in their types numbers."""
        for param, arg in zip(params, args, strict=True):
            check_binding(param, arg)
            self.values[param] = arg
            if type_symbols(param.type_annotation):
                self.sizes = dict(self.sizes)
                _read_sizes(param.type_annotation, arg, self.sizes)

    def used(self, operands: Sequence[Expr]) -> None:
        """An expression has its value: what it was computed from may be needed no more.

        Variables stay, for closures read them later. A use in a branch that is not taken or in
        another function never comes, which keeps a value too long and never too short.
        """
        if self.uses is None:
            return
        for operand in operands:
            self.uses[operand] -= 1
            if not self.uses[operand] and type(operand) is not Var:
                self.values.pop(operand, None)

    def lookup(self, var: Var) -> Any:
        frame: _Frame | None = self
        while frame is not None:
            if var in frame.values:
                return frame.values[var]
            frame = frame.outer
        raise InputError(f"variable %{var.name_hint} has no value", where=var.span)


def evaluate(
    target: Expr | IRModule,
    args: Sequence[Any] | Mapping[str, Any] = (),
    module: IRModule | None = None,
    *,
    on_value: Callable[[Expr, Any], None] | None = None,
) -> Any:
    """The value of ``target``: an expression, a function applied to ``args``, or a module's main.

    ``args`` are numpy arrays (tuples of them for tuple parameters) in the order of the
    parameters, or by parameter name; symbolic sizes take their numbers from them. Results are
    arrays, tuples, closures, ``ConstructorValue`` or ``RefValue``. Operators need their types:
    ``target`` must have been type checked. ``on_value`` sees each expression with its value as it
    is computed. Raises InputError for wrong arguments, UnsupportedOpError for an operator without
    a reference.
    """
    if isinstance(target, IRModule):
        module = target
    machine = _Machine(module, on_value)
    root: Expr = target["main"] if isinstance(target, IRModule) else target
    if isinstance(root, GlobalVar):
        root = machine.function(root)
    if not isinstance(root, Function):
        return run(machine.region(root, _Frame(None)))
    frame = _Frame(None)
    frame.uses = use_counts(root.body)
    frame.enter(root.params, _bound_args(root, args))
    return run(machine.region(root.body, frame))


def _bound_args(func: Function, args: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    names = [param.name_hint for param in func.params]
    if isinstance(args, Mapping):
        missing = [name for name in names if name not in args]
        if missing:
            raise InputError(f"no value for parameter {missing[0]}", expected=", ".join(names))
        args = [args[name] for name in names]
    if len(args) != len(names):
        raise InputError("wrong number of arguments", expected=len(names), found=len(args))
    return [_as_value(arg, param) for arg, param in zip(args, func.params, strict=True)]


def _read_sizes(kind: Type | None, value: Any, sizes: dict[str, int]) -> None:
    if isinstance(kind, TensorType) and isinstance(value, np.ndarray):
        match_sizes(kind.shape, value.shape, sizes)
    elif isinstance(kind, TupleType) and isinstance(value, tuple):
        for field, part in zip(kind.fields, value, strict=True):
            _read_sizes(field, part, sizes)


def _as_value(arg: Any, param: Var) -> Any:
    kind = param.type_annotation
    if isinstance(arg, (tuple, list)) and isinstance(kind, TupleType):
        return tuple(
            _as_tensor(each, field, param) for each, field in zip(arg, kind.fields, strict=True)
        )
    return _as_tensor(arg, kind, param)


def _as_tensor(arg: Any, kind: Type | None, param: Var) -> Any:
    if not isinstance(kind, TensorType) or isinstance(arg, (Closure, RefValue, ConstructorValue)):
        return arg
    array = np.asarray(arg)
    if array.dtype != to_numpy(kind.dtype):
        raise InputError(
            f"parameter {param.name_hint} has the wrong dtype",
            expected=kind.dtype,
            found=str(array.dtype),
        )
    fits = len(array.shape) == len(kind.shape) and all(
        have == want
        for have, want in zip(array.shape, kind.shape, strict=True)
        if isinstance(want, int)
    )
    if not fits:
        raise InputError(
            f"parameter {param.name_hint} has the wrong shape",
            expected=str(kind.shape),
            found=str(array.shape),
        )
    return array


def call_op(call: Call, args: Sequence[Any], sizes: Mapping[str, int] | None = None) -> Any:
    """Run one operator call's reference on argument values; tuple arguments are opened.

    ``sizes`` gives numbers to the symbols in the call's attributes and type. Raises InputError
    where sizes that inference did not know do not fit.
    """
    op = call.op
    assert isinstance(op, Op)
    reference = _REFERENCE.get(op)
    if reference is None:
        raise UnsupportedOpError([(op.name, 1, [str(call.span or "")])])
    flat: list[Array] = []
    for arg in args:
        flat.extend(arg) if isinstance(arg, tuple) else flat.append(arg)
    attrs, kind = call.attrs, call.checked_type
    if sizes:
        kind = bound_type(kind, sizes)
        attrs = None if attrs is None else bound_attrs(attrs, sizes)
    try:
        if not sizes or not is_static_type(kind):
            kind = concrete_type(call, args, attrs)
        result = reference(attrs, tuple(flat), kind)
    except IxionError as error:
        if error.where is None:
            error.where = f"call to {op.name}" + (f" at {call.span}" if call.span else "")
        raise
    return _checked(result, kind)


def _checked(result: Any, kind: Type) -> Any:
    """Tuples as tuples and arrays in the dtype the type says."""
    if isinstance(kind, TupleType):
        return tuple(_checked(r, k) for r, k in zip(result, kind.fields, strict=True))
    if not isinstance(kind, TensorType):
        return result
    return np.asarray(result, dtype=to_numpy(kind.dtype))


class _Machine:
    def __init__(
        self, module: IRModule | None, on_value: Callable[[Expr, Any], None] | None
    ) -> None:
        self.module = module
        self.on_value = on_value

    def function(self, var: GlobalVar) -> Any:
        if self.module is None:
            raise InputError(f"@{var.name_hint} needs a module to be evaluated")
        return self.module[var.name_hint]

    def applied(self, call: Call, args: Sequence[Any], frame: _Frame) -> Step:
        """The result of a call that runs functions: of one, or of an operator over regions."""
        if isinstance(call.op, Op):
            result = yield _CONTROL[call.op](args, self.apply)
            return _checked(result, call.checked_type)
        return (yield self.apply(frame.values[call.op], args))

    def apply(self, callee: Any, args: Sequence[Any]) -> Step:
        """The result of calling a function value."""
        if isinstance(callee, Constructor):
            return ConstructorValue(callee, tuple(args))
        if not isinstance(callee, Closure):
            raise InputError(f"a {type(callee).__name__} cannot be called")
        frame = _Frame(callee.frame)
        frame.enter(callee.func.params, args)
        return (yield self.region(callee.func.body, frame))

    def region(self, root: Expr, frame: _Frame) -> Step:
        """The value of ``root`` in an activation; scopes inside are steps of their own."""
        values = frame.values
        stack = [root]
        while stack:
            expr = stack[-1]
            if expr in values:
                stack.pop()
                continue
            operands = _OPERANDS.get(type(expr))
            if operands is None:
                value = yield self.scope(expr, frame)
            else:
                missing = [part for part in operands(expr) if part not in values]
                if missing:
                    stack.extend(reversed(missing))
                    continue
                value = self.simple(expr, frame)
                if value is _PENDING:
                    assert isinstance(expr, Call)
                    value = yield self.applied(expr, [values[arg] for arg in expr.args], frame)
            stack.pop()
            values[expr] = value
            if self.on_value is not None:
                self.on_value(expr, value)
            if operands is not None:
                frame.used(operands(expr))
        return values[root]

    def simple(self, expr: Expr, frame: _Frame) -> Any:
        """The value of an expression whose operands have theirs; ``_PENDING`` for a call."""
        values = frame.values
        if isinstance(expr, Call):
            if not isinstance(expr.op, Op) or expr.op in _CONTROL:
                return _PENDING
            return call_op(expr, [values[arg] for arg in expr.args], frame.sizes)
        if isinstance(expr, Constant):
            return expr.data
        if isinstance(expr, Tuple):
            return tuple(values[field] for field in expr.fields)
        if isinstance(expr, TupleGetItem):
            return values[expr.tuple_value][expr.index]
        if isinstance(expr, Var):
            return frame.lookup(expr)
        if isinstance(expr, Function):
            return Closure(expr, frame)
        if isinstance(expr, GlobalVar):
            return Closure(self.function(expr), _Frame(None))
        if isinstance(expr, RefCreate):
            return RefValue(values[expr.value])
        return expr

    def scope(self, expr: Expr, frame: _Frame) -> Step:
        """Expressions whose parts must not all be evaluated, or not in any order."""
        if isinstance(expr, Let):
            while isinstance(expr, Let):
                value = yield self.region(expr.value, frame)
                check_binding(expr.var, value)
                frame.values[expr.var] = value
                expr = expr.body
            return (yield self.region(expr, frame))
        if isinstance(expr, If):
            cond = yield self.region(expr.cond, frame)
            branch = expr.true_branch if bool(cond) else expr.false_branch
            return (yield self.region(branch, frame))
        if isinstance(expr, RefRead):
            ref = yield self.region(expr.ref, frame)
            return ref.value
        if isinstance(expr, RefWrite):
            ref = yield self.region(expr.ref, frame)
            ref.value = yield self.region(expr.value, frame)
            return ()
        if isinstance(expr, Match):
            return (yield self.match(expr, frame))
        raise InputError(f"a {type(expr).__name__} cannot be evaluated", where=expr.span)

    def match(self, match: Match, frame: _Frame) -> Step:
        data = yield self.region(match.data, frame)
        for clause in match.clauses:
            bound = _match(clause.lhs, data)
            if bound is not None:
                frame.values.update(bound)
                return (yield self.region(clause.rhs, frame))
        raise InputError("no clause of the match fits the value", where=match.span)


_PENDING = object()


def _call_operands(call: Call) -> tuple[Expr, ...]:
    return call.args if isinstance(call.op, Op) else (call.op, *call.args)


def _none(expr: Expr) -> tuple[Expr, ...]:
    return ()


_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Call: _call_operands,
    Constant: _none,
    Tuple: lambda expr: expr.fields,
    TupleGetItem: lambda expr: (expr.tuple_value,),
    Var: _none,
    Function: _none,
    GlobalVar: _none,
    Constructor: _none,
    Op: _none,
    RefCreate: lambda expr: (expr.value,),
}


def _match(pattern: Pattern, value: Any) -> dict[Expr, Any] | None:
    """Variables bound where ``value`` has the form of ``pattern``, else None."""
    bound: dict[Expr, Any] = {}
    pending = [(pattern, value)]
    while pending:
        pattern, value = pending.pop()
        if isinstance(pattern, PatternVar):
            bound[pattern.var] = value
        elif isinstance(pattern, PatternTuple):
            pending.extend(zip(pattern.patterns, value, strict=True))
        elif isinstance(pattern, PatternConstructor):
            if value.constructor.name_hint != pattern.constructor.name_hint:
                return None
            pending.extend(zip(pattern.patterns, value.fields, strict=True))
    return bound
