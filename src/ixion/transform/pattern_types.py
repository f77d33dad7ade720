"""Types of the variables that match patterns bind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ixion.analysis.match_cases import unmatched_cases
from ixion.base.errors import TypeInferenceError
from ixion.ir import (
    IRModule,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    TupleType,
    Type,
    TypeCall,
    Var,
)
from ixion.transform.type_solver import TypeSolver, substitute

__all__ = ["PatternTyper"]


class PatternTyper:
    """Unifies patterns with the type of the matched value; ``bind_var`` types a variable."""

    def __init__(self, mod: IRModule, solver: TypeSolver, bind_var: Callable[[Var], Type]) -> None:
        self._mod = mod
        self._solver = solver
        self._bind_var = bind_var

    def bind(self, pattern: Pattern, kind: Type) -> None:
        """Type every variable in ``pattern``, which must fit values of type ``kind``."""
        pending = [(pattern, kind)]
        while pending:
            pattern, kind = pending.pop()
            if isinstance(pattern, PatternVar):
                self._solver.unify(self._bind_var(pattern.var), kind, pattern.span)
            elif isinstance(pattern, PatternTuple):
                fields = [self._solver.hole() for _ in pattern.patterns]
                self._solver.unify(kind, TupleType(fields), pattern.span)
                pending.extend(zip(pattern.patterns, fields, strict=True))
            elif isinstance(pattern, PatternConstructor):
                pending.extend(self._fields(pattern, kind))

    def _fields(self, pattern: PatternConstructor, kind: Type) -> Sequence[tuple[Pattern, Type]]:
        constructor = pattern.constructor
        data = self._mod[constructor.belong_to]
        args = [self._solver.hole() for _ in data.type_vars]
        self._solver.unify(kind, TypeCall(constructor.belong_to, args), pattern.span)
        if len(constructor.inputs) != len(pattern.patterns):
            raise TypeInferenceError(
                f"Not enough inputs for the constructor {constructor.name_hint}",
                where=pattern.span,
                expected=len(constructor.inputs),
                found=len(pattern.patterns),
            )
        inputs = [substitute(each, data.type_vars, args) for each in constructor.inputs]
        return list(zip(pattern.patterns, inputs, strict=True))

    def check_complete(self, match: Match) -> None:
        """Raises TypeInferenceError naming the missing cases of a match that must be total."""
        if not match.complete:
            return
        missing = unmatched_cases(match, self._mod)
        if missing:
            cases = "\n".join(f"case {i}:\n{case}" for i, case in enumerate(missing))
            raise TypeInferenceError(
                f"match expression does not handle the following cases: {cases}",
                where=match.span,
                hint="add the cases, a wildcard clause, or write match? for a partial match",
            )
