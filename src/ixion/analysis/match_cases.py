"""Which values a match expression has no clause for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import Enum

from ixion.ir import (
    IRModule,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)

__all__ = ["unmatched_cases"]


class _Fit(Enum):
    MATCH = 0
    CLASH = 1
    UNSPECIFIED = 2


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns of values that no clause of ``match`` takes; empty if the match is total.

    Starts from the wildcard and makes a candidate more specific only where a clause asks for it,
    as Relay does. Needs ``mod`` to know the other constructors of a type.
    """
    candidates: list[Pattern] = [PatternWildcard()]
    missing: list[Pattern] = []
    while candidates:
        candidate = candidates.pop()
        for clause in match.clauses:
            fit = _fit(clause.lhs, candidate)
            if fit is _Fit.CLASH:
                continue
            if fit is _Fit.UNSPECIFIED:
                candidates.extend(_expand(clause.lhs, candidate, mod))
            break
        else:
            missing.append(candidate)
    return missing


def _fit(pattern: Pattern, candidate: Pattern) -> _Fit:
    """How a clause's pattern meets the values a candidate stands for."""
    if isinstance(pattern, (PatternWildcard, PatternVar)):
        return _Fit.MATCH
    if isinstance(candidate, (PatternWildcard, PatternVar)):
        return _Fit.UNSPECIFIED
    if isinstance(pattern, PatternConstructor):
        if not isinstance(candidate, PatternConstructor):
            return _Fit.CLASH
        if candidate.constructor is not pattern.constructor:
            return _Fit.CLASH
        return _fit_all(pattern.patterns, candidate.patterns)
    if isinstance(pattern, PatternTuple) and isinstance(candidate, PatternTuple):
        return _fit_all(pattern.patterns, candidate.patterns)
    return _Fit.CLASH


def _fit_all(patterns: Sequence[Pattern], candidates: Sequence[Pattern]) -> _Fit:
    fits = [_fit(p, c) for p, c in zip(patterns, candidates, strict=True)]
    if _Fit.CLASH in fits:
        return _Fit.CLASH
    return _Fit.UNSPECIFIED if _Fit.UNSPECIFIED in fits else _Fit.MATCH


def _expand(pattern: Pattern, candidate: Pattern, mod: IRModule | None) -> list[Pattern]:
    """The candidate split into cases as fine as the clause's pattern needs."""
    if isinstance(pattern, PatternConstructor):
        return _expand_constructor(pattern, candidate, mod)
    if not isinstance(pattern, PatternTuple):
        return [candidate]
    if isinstance(candidate, PatternTuple):
        fields = candidate.patterns
    else:
        fields = tuple(PatternWildcard() for _ in pattern.patterns)
        return [PatternTuple(fields)]
    return [PatternTuple(c) for c in _expand_all(pattern.patterns, fields, mod)]


def _expand_constructor(
    pattern: PatternConstructor, candidate: Pattern, mod: IRModule | None
) -> list[Pattern]:
    if isinstance(candidate, PatternConstructor):
        cases = _expand_all(pattern.patterns, candidate.patterns, mod)
        return [PatternConstructor(candidate.constructor, fields) for fields in cases]
    if mod is None:
        constructors = (pattern.constructor,)
    else:
        constructors = tuple(mod[pattern.constructor.belong_to].constructors)
    return [PatternConstructor(c, [PatternWildcard() for _ in c.inputs]) for c in constructors]


def _expand_all(
    patterns: Sequence[Pattern], candidates: Sequence[Pattern], mod: IRModule | None
) -> list[tuple[Pattern, ...]]:
    cases = [
        _expand(p, c, mod) if _fit(p, c) is _Fit.UNSPECIFIED else [c]
        for p, c in zip(patterns, candidates, strict=True)
    ]
    return list(itertools.product(*cases))
