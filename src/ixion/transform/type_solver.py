"""Unification of types with holes, and the relations that wait for them.

A hole is an ``IncompleteType``. ``unify`` makes two types equal by filling holes; a relation (an
operator call, a tuple field) is tried again whenever one of the holes it looks at is filled. This
is Relay's solver (Hindley-Milner unification plus a work list of relations) with one difference:
only holes are ever merged, so a type without holes is never looked at twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import Dim, same
from ixion.base.errors import TypeInferenceError
from ixion.base.guard import Guard
from ixion.ir import (
    FuncType,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    structural_equal,
)

__all__ = ["Relation", "TypeSolver", "holes", "parts_of", "substitute"]


class Relation:
    """A rule between types, tried until it holds.

    ``attempt`` returns True once the rule is settled; it fills holes by ``unify``. ``looks_at``
    are the types whose holes it waits for.
    """

    __slots__ = ("attempt", "looks_at", "settled")

    def __init__(self, attempt: Callable[[], bool], looks_at: Sequence[Type]) -> None:
        self.attempt = attempt
        self.looks_at = looks_at
        self.settled = False


def parts_of(kind: Type) -> tuple[Type, ...]:
    """The types a type is made of."""
    if isinstance(kind, TupleType):
        return tuple(kind.fields)
    if isinstance(kind, FuncType):
        return (*kind.arg_types, kind.ret_type)
    if isinstance(kind, RefType):
        return (kind.value,)
    if isinstance(kind, TypeCall):
        return tuple(kind.args)
    return ()


def _rebuilt(kind: Type, change: Callable[[Type], Type]) -> Type:
    """``kind`` with ``change`` applied to its direct parts; the same object if none changes."""
    if isinstance(kind, TupleType):
        fields = tuple(change(field) for field in kind.fields)
        return kind if _all_same(fields, kind.fields) else TupleType(fields)
    if isinstance(kind, FuncType):
        args = tuple(change(arg) for arg in kind.arg_types)
        ret = change(kind.ret_type)
        if ret is kind.ret_type and _all_same(args, kind.arg_types):
            return kind
        return FuncType(args, ret, kind.type_params, kind.type_constraints)
    if isinstance(kind, RefType):
        value = change(kind.value)
        return kind if value is kind.value else RefType(value)
    if isinstance(kind, TypeCall):
        args = tuple(change(arg) for arg in kind.args)
        return kind if _all_same(args, kind.args) else TypeCall(kind.func, args)
    return kind


def _all_same(new: Sequence[Type], old: Sequence[Type]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def substitute(kind: Type, variables: Sequence[TypeVar], types: Sequence[Type]) -> Type:
    """``kind`` with each variable replaced by the type at its place in ``types``.

    Variables that a function type binds itself stay.
    """
    return _substituted(kind, {id(var): to for var, to in zip(variables, types, strict=True)})


def _substituted(kind: Type, types: Mapping[int, Type]) -> Type:
    if isinstance(kind, TypeVar):
        return types.get(id(kind), kind)
    if isinstance(kind, FuncType) and kind.type_params:
        own = {id(var) for var in kind.type_params}
        types = {var: to for var, to in types.items() if var not in own}
    return _rebuilt(kind, lambda part: _substituted(part, types))


def holes(kind: Type) -> Iterable[IncompleteType]:
    """The holes in ``kind``, left to right, repeats included."""
    if isinstance(kind, IncompleteType):
        yield kind
        return
    for part in parts_of(kind):
        yield from holes(part)


class TypeSolver:
    """Holes, what fills them, and the relations waiting for them.

    Types are looked up by identity, because hashing one by structure walks all of it; whatever is
    in a table is kept alive, so that an identity stays its owner's. ``guards`` takes the sizes that
    were unified without proof.
    """

    def __init__(self, guards: list[Guard] | None = None) -> None:
        self.guards = guards
        self._filled: dict[int, Type] = {}
        self._waiting: dict[int, list[Relation]] = {}
        self._ready: deque[Relation] = deque()
        self._complete: dict[int, Type] = {}
        self._kept: list[Type] = []

    def hole(self) -> IncompleteType:
        return IncompleteType()

    def find(self, kind: Type) -> Type:
        """``kind``, or what fills it if it is a hole; parts are not looked into."""
        if type(kind) is not IncompleteType:
            return kind
        filled = self._filled
        path: list[int] = []
        while id(kind) in filled:
            path.append(id(kind))
            kind = filled[id(kind)]
        for hole in path[:-1]:
            filled[hole] = kind
        return kind

    def is_complete(self, kind: Type) -> bool:
        """Whether no hole is left in ``kind`` as written (filled holes count as holes)."""
        if type(kind) is TensorType or id(kind) in self._complete:
            return True
        if type(kind) is IncompleteType:
            return False
        if all(map(self.is_complete, parts_of(kind))):
            self._complete[id(kind)] = kind
            return True
        return False

    def resolve(self, kind: Type) -> Type:
        """``kind`` with every filled hole replaced, at any depth."""
        kind = self.find(kind)
        if self.is_complete(kind):
            return kind
        return _rebuilt(kind, self.resolve)

    def add(self, relation: Relation) -> None:
        self._ready.append(relation)

    def solve(self) -> None:
        """Try every relation that can be tried now; relations that wait stay for later."""
        while self._ready:
            relation = self._ready.popleft()
            if relation.settled:
                continue
            if relation.attempt():
                relation.settled = True
            else:
                self._wait(relation)

    def _wait(self, relation: Relation) -> None:
        for kind in relation.looks_at:
            for hole in holes(self.resolve(kind)):
                self._kept.append(hole)
                self._waiting.setdefault(id(hole), []).append(relation)

    def _fill(self, hole: IncompleteType, kind: Type, where: object) -> Type:
        if any(inner is hole for inner in holes(self.resolve(kind))):
            raise TypeInferenceError(
                "a type would have to contain itself", where=where, found=str(kind)
            )
        self._kept.append(hole)
        self._filled[id(hole)] = kind
        self._ready.extend(self._waiting.pop(id(hole), ()))
        return kind

    def unify(self, left: Type, right: Type, where: object = None) -> Type:
        """Make two types equal by filling holes and return the common type.

        Raises TypeInferenceError naming the smallest parts that differ and the whole types.
        """
        found = self._unify(left, right, where)
        if found is None:
            raise self._mismatch(left, right, where)
        return found

    def _mismatch(self, left: Type, right: Type, where: object) -> TypeInferenceError:
        left, right = self.resolve(left), self.resolve(right)
        inner = self._inner_mismatch(left, right)
        message = (
            "The Relay type checker is unable to show the following types match:\n"
            f"  {inner[0]}\n  {inner[1]}"
        )
        conflicts = _conflicts(*inner)
        if conflicts:
            message += "\nIn particular:" + "".join(f"\n  {line}" for line in conflicts)
        return TypeInferenceError(
            message, where=where, expected=str(left), found=str(right), hint=_hint(*inner)
        )

    def _inner_mismatch(self, left: Type, right: Type) -> tuple[Type, Type]:
        while type(left) is type(right):
            ours, theirs = parts_of(left), parts_of(right)
            if len(ours) != len(theirs) or not ours:
                break
            pairs = zip(ours, theirs, strict=True)
            differing = next((p for p in pairs if not _could_match(*p)), None)
            if differing is None:
                break
            left, right = differing
        return left, right

    def _unify(self, left: Type, right: Type, where: object) -> Type | None:
        left, right = self.find(left), self.find(right)
        if left is right:
            return left
        if isinstance(left, IncompleteType):
            return self._fill(left, right, where)
        if isinstance(right, IncompleteType):
            return self._fill(right, left, where)
        if isinstance(left, TensorType) and isinstance(right, TensorType):
            return self._unify_tensors(left, right, where)
        if isinstance(left, FuncType) and isinstance(right, FuncType):
            return self._unify_functions(left, right, where)
        if type(left) is not type(right):
            return None
        if isinstance(left, TypeCall) and isinstance(right, TypeCall):
            if not structural_equal(left.func, right.func):
                return None
        elif not isinstance(left, (TupleType, RefType)):
            return left if structural_equal(left, right) else None
        parts = self._unify_all(parts_of(left), parts_of(right), where)
        return None if parts is None else _with_parts(left, parts)

    def _unify_tensors(
        self, left: TensorType, right: TensorType, where: object
    ) -> TensorType | None:
        found = _unify_tensors(left, right)
        if found is not None and self.guards is not None:
            for a, b in zip(left.shape, right.shape, strict=True):
                unknown = isinstance(a, AnyDim) or isinstance(b, AnyDim)
                if not unknown and same(a, b) is None:
                    self.guards.append(Guard("equal", a, b, "types must match", str(where or "")))
        return found

    def _unify_all(
        self, left: Sequence[Type], right: Sequence[Type], where: object
    ) -> list[Type] | None:
        if len(left) != len(right):
            return None
        parts = []
        for ours, theirs in zip(left, right, strict=True):
            part = self._unify(ours, theirs, where)
            if part is None:
                return None
            parts.append(part)
        return parts

    def _unify_functions(self, left: FuncType, right: FuncType, where: object) -> Type | None:
        """The side with more type parameters is instantiated at the other's and at holes."""
        if len(left.arg_types) != len(right.arg_types):
            return None
        if len(left.type_params) < len(right.type_params):
            left, right = right, left
        shared = len(right.type_params)
        extra = [self.hole() for _ in left.type_params[shared:]]
        types = (*right.type_params, *extra)
        ours = [substitute(part, left.type_params, types) for part in parts_of(left)]
        parts = self._unify_all(ours, parts_of(right), where)
        if parts is None:
            return None
        return FuncType(parts[:-1], parts[-1], right.type_params, right.type_constraints)


def _with_parts(kind: Type, parts: Sequence[Type]) -> Type:
    left = iter(parts)
    return _rebuilt(kind, lambda _: next(left))


def _could_match(left: Type, right: Type) -> bool:
    if isinstance(left, IncompleteType) or isinstance(right, IncompleteType):
        return True
    if isinstance(left, TensorType) and isinstance(right, TensorType):
        return _unify_tensors(left, right) is not None
    return structural_equal(left, right)


def _unify_tensors(left: TensorType, right: TensorType) -> TensorType | None:
    if left.dtype != right.dtype or len(left.shape) != len(right.shape):
        return None
    shape = [_unify_dims(a, b) for a, b in zip(left.shape, right.shape, strict=True)]
    if any(dim is None for dim in shape):
        return None
    if all(a is b for a, b in zip(shape, left.shape, strict=True)):
        return left
    return TensorType(shape, left.dtype)


def _unify_dims(left: Dim, right: Dim) -> Dim | None:
    """Any wins over everything, as in Relay. Two symbolic sizes that may be equal are accepted:
    the more definite one is kept, and the difference is checked at run time.
    """
    if left is right:
        return left
    if isinstance(left, AnyDim):
        return left
    if isinstance(right, AnyDim):
        return right
    if same(left, right) is False:
        return None
    return left if isinstance(left, int) else right


def _conflicts(left: Type, right: Type) -> list[str]:
    """The sizes of two tensors of one rank that cannot be equal."""
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return []
    if len(left.shape) != len(right.shape):
        return []
    return [
        f"dimension {axis} conflicts: {a} does not match {b}."
        for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True))
        if _unify_dims(a, b) is None
    ]


def _hint(left: Type, right: Type) -> str | None:
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return None
    if left.dtype != right.dtype:
        return f"the element types differ: {left.dtype} and {right.dtype}; a cast joins them"
    if len(left.shape) != len(right.shape):
        return f"the ranks differ: {len(left.shape)} and {len(right.shape)} dimensions"
    axes = [
        str(axis)
        for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True))
        if _unify_dims(a, b) is None
    ]
    return f"the sizes differ along axis {', '.join(axes)}"
