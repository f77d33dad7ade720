"""Writes inferred types into nodes, making a node anew only where it must differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ixion.base.dim import Any as AnyDim
from ixion.base.errors import TypeInferenceError
from ixion.ir import (
    Call,
    Clause,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IncompleteType,
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
    TypeCall,
    Var,
)
from ixion.ir.visitor import children
from ixion.transform.type_inferencer import TypeInferencer, place_of, written_type
from ixion.transform.type_solver import TypeSolver, parts_of

__all__ = ["TypeWriter", "is_known_type", "keep_type", "write_type"]

_E = TypeVar("_E", bound=Expr)
_write_type_args = vars(Call)["type_args"].__set__
write_type = vars(Expr)["_checked_type"].__set__


def keep_type(old: Expr, new: _E) -> _E:
    """``new`` with the type of ``old``, whose value it has: inference need not visit it.

    Only types of known sizes are kept (an unknown one, ``Any``, may get more precise by inference),
    and only where everything below has its type, for inference does not look below a typed
    expression.
    """
    if new is old or written_type(new) is not None:
        return new
    kind = written_type(old)
    if kind is not None and is_known_type(kind):
        for part in children(new):
            if written_type(part) is None and type(part) is not Op:
                return new
        write_type(new, kind)
    return new


def is_known_type(kind: Type) -> bool:
    """A tensor whose sizes are numbers or symbols, or a tuple of such tensors."""
    if type(kind) is TensorType:
        return AnyDim not in set(map(type, kind.shape))
    return type(kind) is TupleType and all(map(is_known_type, kind.fields))


class TypeWriter:
    """Runs over what an inferencer visited, operands first."""

    def __init__(self, inferencer: TypeInferencer) -> None:
        self._inferencer = inferencer
        self._solver: TypeSolver = inferencer.solver
        self._new: dict[Expr, Expr] = {}

    def result(self, expr: Expr) -> Any:
        """What ``expr`` became."""
        return self._new.get(expr, expr)

    def write(self) -> None:
        """Raises TypeInferenceError at the first expression whose type is still not known."""
        types = self._inferencer.types
        for expr in self._inferencer.order:
            kind = types[expr]
            if type(kind) is not TensorType:
                kind = self._complete(expr, kind)
            if type(expr) is GlobalVar:
                continue
            rule = _REBUILD.get(type(expr))
            new = expr if rule is None else rule(self, expr, kind)
            if new is not expr:
                self._new[expr] = new
            write_type(new, kind)

    def _complete(self, expr: Expr, kind: Type) -> Type:
        kind = self._solver.resolve(kind)
        if self._undetermined(kind):
            raise TypeInferenceError(
                "The type inference pass was unable to infer a type for this expression.",
                where=place_of(expr),
                found=str(kind),
                hint="an operator call or variable here is under constrained: annotate it",
            )
        return kind

    def _undetermined(self, kind: Type) -> bool:
        """Whether a part has no type. What a data type is applied to may stay open, as in Relay:
        an empty list is a list of anything.
        """
        if self._solver.is_complete(kind) or isinstance(kind, TypeCall):
            return False
        return isinstance(kind, IncompleteType) or any(map(self._undetermined, parts_of(kind)))

    def _all(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = self._new
        if not new:
            return exprs
        mapped = tuple(new.get(expr, expr) for expr in exprs)
        return exprs if all(a is b for a, b in zip(mapped, exprs, strict=True)) else mapped

    def _var(self, var: Var, kind: Type) -> Var:
        annotation = var.type_annotation
        if annotation is not None and self._solver.is_complete(annotation):
            return var
        return var.copy(type_annotation=kind)

    def _call(self, call: Call, kind: Type) -> Call:
        if type(call.op) is Op:
            new = call.copy(args=self._all(call.args)) if self._new else call
            # Derived, like the type itself, and no part of equality: written in place.
            _write_type_args(new, tuple([self._argument_type(arg) for arg in new.args]))
            return new
        changes: dict[str, Any] = {"op": self.result(call.op), "args": self._all(call.args)}
        given = self._inferencer.type_args.get(call)
        if given is not None:
            changes["type_args"] = tuple(self._solver.resolve(arg) for arg in given)
        return call.copy(**changes)

    def _argument_type(self, arg: Expr) -> Type:
        if type(arg) is not GlobalVar:
            return arg.checked_type
        # A function's own name gets its type when the function has it.
        return self._complete(arg, self._inferencer.infer(arg))

    def _tuple(self, expr: Tuple, kind: Type) -> Tuple:
        return expr.copy(fields=self._all(expr.fields)) if self._new else expr

    def _tuple_item(self, expr: TupleGetItem, kind: Type) -> TupleGetItem:
        return expr.copy(tuple_value=self.result(expr.tuple_value)) if self._new else expr

    def _function(self, func: Function, kind: Type) -> Function:
        assert isinstance(kind, FuncType)
        ret = func.ret_type if func.ret_type is not None else kind.ret_type
        return func.copy(params=self._all(func.params), body=self.result(func.body), ret_type=ret)

    def _let(self, let: Let, kind: Type) -> Let:
        if not self._new:
            return let
        return let.copy(
            var=self.result(let.var), value=self.result(let.value), body=self.result(let.body)
        )

    def _if(self, expr: If, kind: Type) -> If:
        return expr.copy(
            cond=self.result(expr.cond),
            true_branch=self.result(expr.true_branch),
            false_branch=self.result(expr.false_branch),
        )

    def _match(self, match: Match, kind: Type) -> Match:
        clauses = tuple(self._clause(clause) for clause in match.clauses)
        return match.copy(data=self.result(match.data), clauses=clauses)

    def _clause(self, clause: Clause) -> Clause:
        return clause.copy(lhs=self._pattern(clause.lhs), rhs=self.result(clause.rhs))

    def _pattern(self, pattern: Pattern) -> Pattern:
        if isinstance(pattern, PatternVar):
            return pattern.copy(var=self.result(pattern.var))
        if isinstance(pattern, (PatternTuple, PatternConstructor)):
            return pattern.copy(patterns=tuple(self._pattern(p) for p in pattern.patterns))
        return pattern

    def _ref_create(self, expr: RefCreate, kind: Type) -> RefCreate:
        return expr.copy(value=self.result(expr.value))

    def _ref_read(self, expr: RefRead, kind: Type) -> RefRead:
        return expr.copy(ref=self.result(expr.ref))

    def _ref_write(self, expr: RefWrite, kind: Type) -> RefWrite:
        return expr.copy(ref=self.result(expr.ref), value=self.result(expr.value))


_REBUILD: dict[type, Callable[[TypeWriter, Any, Type], Expr]] = {
    Var: TypeWriter._var,
    Call: TypeWriter._call,
    Tuple: TypeWriter._tuple,
    TupleGetItem: TypeWriter._tuple_item,
    Function: TypeWriter._function,
    Let: TypeWriter._let,
    If: TypeWriter._if,
    Match: TypeWriter._match,
    RefCreate: TypeWriter._ref_create,
    RefRead: TypeWriter._ref_read,
    RefWrite: TypeWriter._ref_write,
}
