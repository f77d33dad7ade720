"""What kinds of values go in and out of a program, and whether a value is of a kind.

A tensor kind has sizes that are numbers, names (equal wherever they stand among one call's
arguments) or ``?``. Data types may be recursive and values of them very deep: nothing here recurses
over values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.errors import InputError
from ixion.runtime.inputs import as_array
from ixion.runtime.program import TensorSpec
from ixion.runtime.values import Closure, ConstructorValue, RefValue

Array = npt.NDArray[Any]
Size: TypeAlias = "int | str"
UNKNOWN = "?"


@dataclass(frozen=True)
class TensorKind:
    """A tensor; ``shape`` holds numbers, names and ``?``."""

    shape: tuple[Size, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class TupleKind:
    fields: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.fields))})"


@dataclass(frozen=True)
class DataKind:
    """An algebraic data type applied to arguments."""

    name: str
    args: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.args))}]" if self.args else self.name


@dataclass(frozen=True)
class RefKind:
    value: Kind

    def __str__(self) -> str:
        return f"ref({self.value})"


@dataclass(frozen=True)
class FunctionKind:
    """A function, ``text`` its type: opaque outside the executable that made it."""

    text: str = "fn"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class ParameterKind:
    """Type parameter number ``index`` of the data type around it; -1: any value at all."""

    index: int = -1

    def __str__(self) -> str:
        return f"T{self.index}" if self.index >= 0 else "any"


Kind: TypeAlias = "TensorKind | TupleKind | DataKind | RefKind | FunctionKind | ParameterKind"


@dataclass(frozen=True)
class ConstructorSpec:
    """A constructor of data type ``belong_to``; ``fields`` refer to its type parameters."""

    name_hint: str
    tag: int
    belong_to: str
    fields: tuple[Kind, ...] = ()


@dataclass(frozen=True)
class ValueSpec:
    """Name and kind of an input or output that is no tensor."""

    name: str
    kind: Kind

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def dtype(self) -> str:
        return str(self.kind)

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"


def spec_of(name: str, kind: Kind) -> TensorSpec | ValueSpec:
    """How an input or output of a kind is described; open sizes stand as text."""
    if isinstance(kind, TensorKind):
        return TensorSpec(name, kind.shape, kind.dtype)  # type: ignore[arg-type]
    return ValueSpec(name, kind)


def check_tensor(array: Any, kind: TensorKind, sizes: dict[str, int], what: str) -> None:
    """Raise InputError unless an array is of a kind; ``sizes`` collects what names stand for."""
    if array.dtype != dtypes.to_numpy(kind.dtype):
        raise _mismatch(f"{what} has the wrong dtype", kind, array)
    if array.ndim != len(kind.shape):
        raise _mismatch(f"{what} has the wrong rank", kind, array)
    for axis, (size, wanted) in enumerate(zip(array.shape, kind.shape, strict=True)):
        if isinstance(wanted, int):
            if size != wanted:
                raise _mismatch(f"{what} has the wrong shape", kind, array)
        elif wanted != UNKNOWN and sizes.setdefault(wanted, size) != size:
            raise InputError(
                f"dimension {wanted} of {what} (axis {axis}) is not what it is elsewhere",
                expected=f"{wanted} = {sizes[wanted]}",
                found=f"{size} in {array.dtype}{list(array.shape)}",
            )


def _mismatch(message: str, kind: TensorKind, array: Any) -> InputError:
    return InputError(message, expected=str(kind), found=f"{array.dtype}{list(array.shape)}")


class Gate:
    """Checks the arguments of calls; ``is_own`` knows the closures that may be called here."""

    def __init__(
        self, constructors: Sequence[ConstructorSpec], is_own: Callable[[Closure], bool]
    ) -> None:
        self._by_type: dict[str, list[ConstructorSpec]] = {}
        for one in constructors:
            self._by_type.setdefault(one.belong_to, []).append(one)
        self._is_own = is_own
        self._kinds: dict[Kind, Kind] = {}
        self._tables: dict[int, Mapping[int, tuple[Kind, ...]]] = {}
        # Dtype and shape of tensor kinds without names: what most parts of a value are.
        self._plain: dict[int, tuple[Any, tuple[Size, ...]]] = {}

    def accept(self, name: str, kind: Kind, value: object, sizes: dict[str, int]) -> Any:
        """``value`` as the program takes it: arrays, tuples, data type values.

        Raises InputError, naming the input, for a value of another kind.
        """
        what = f"input {name!r}"
        if isinstance(kind, TensorKind):
            array = as_array(value, TensorSpec(name, kind.shape, kind.dtype))  # type: ignore[arg-type]
            check_tensor(array, kind, sizes, what)
            return array
        if isinstance(kind, TupleKind):
            if not isinstance(value, tuple | list) or len(value) != len(kind.fields):
                raise _wrong(what, kind, value)
            pairs = zip(kind.fields, value, strict=True)
            return tuple([self.accept(name, k, v, sizes) for k, v in pairs])
        self._walk(what, self._interned(kind), value, sizes)
        return value

    def _walk(self, what: str, kind: Kind, value: object, sizes: dict[str, int]) -> None:
        pending: list[tuple[Kind, Any]] = [(kind, value)]
        plain = self._plain
        # Values may share parts, and references may lead back.
        seen: set[int] = set()
        while pending:
            kind, value = pending.pop()
            if type(kind) is TensorKind:
                found = getattr(value, "dtype", None), getattr(value, "shape", None)
                if plain.get(id(kind)) != found:
                    self._tensor(what, kind, value, sizes)
            elif id(value) not in seen:
                if type(kind) is DataKind:
                    seen.add(id(value))
                    pending.extend(self._parts(what, kind, value))
                else:
                    pending.extend(self._other(what, kind, value, seen))

    def _tensor(self, what: str, kind: TensorKind, value: Any, sizes: dict[str, int]) -> None:
        if not isinstance(value, np.ndarray | np.generic):
            raise _wrong(f"a part of {what}", kind, value)
        check_tensor(value, kind, sizes, f"a part of {what}")
        if all(isinstance(size, int) for size in kind.shape):
            self._plain[id(kind)] = value.dtype, kind.shape

    def _other(
        self, what: str, kind: Kind, value: object, seen: set[int]
    ) -> Sequence[tuple[Kind, Any]]:
        if isinstance(kind, RefKind):
            if not isinstance(value, RefValue):
                raise _wrong(what, kind, value)
            seen.add(id(value))
            return [(self._interned(kind.value), value.value)]
        if isinstance(kind, TupleKind):
            if not isinstance(value, tuple) or len(value) != len(kind.fields):
                raise _wrong(f"a part of {what}", kind, value)
            return [(self._interned(k), v) for k, v in zip(kind.fields, value, strict=True)]
        own = isinstance(value, Closure) and self._is_own(value)
        if isinstance(kind, FunctionKind) and not own:
            raise _wrong(what, kind, value, "a function that this executable returned")
        return ()

    def _parts(
        self, what: str, kind: DataKind, value: object
    ) -> Iterable[tuple[Kind, Any]]:
        if not isinstance(value, ConstructorValue):
            raise _wrong(what, kind, value)
        fields = self._table(kind).get(value.tag)
        if fields is None or len(fields) != len(value.fields):
            known = self._by_type.get(kind.name, ())
            names = ", ".join(f"{c.name_hint} of {len(c.fields)} fields" for c in known)
            raise InputError(
                f"{what} has a value that is not of type {kind}",
                expected=names or f"a value of a type {kind.name} that the program knows",
                found=f"{value.constructor.name_hint} of {len(value.fields)} fields",
            )
        return zip(fields, value.fields, strict=True)

    def _table(self, kind: DataKind) -> Mapping[int, tuple[Kind, ...]]:
        """Kinds of the fields by constructor tag. Kinds are interned: one object, one table."""
        found = self._tables.get(id(kind))
        if found is None:
            found = self._tables[id(kind)] = {
                one.tag: tuple(self._interned(_filled(k, kind.args)) for k in one.fields)
                for one in self._by_type.get(kind.name, ())
            }
        return found

    def _interned(self, kind: Kind) -> Kind:
        return self._kinds.setdefault(kind, kind)


def _filled(kind: Kind, args: tuple[Kind, ...]) -> Kind:
    """A field's kind with the type parameters of its data type replaced."""
    if isinstance(kind, ParameterKind):
        return args[kind.index] if 0 <= kind.index < len(args) else ParameterKind()
    if isinstance(kind, TupleKind):
        return TupleKind(tuple(_filled(k, args) for k in kind.fields))
    if isinstance(kind, DataKind):
        return DataKind(kind.name, tuple(_filled(k, args) for k in kind.args))
    return RefKind(_filled(kind.value, args)) if isinstance(kind, RefKind) else kind


def _wrong(what: str, kind: Kind, value: object, expected: str | None = None) -> InputError:
    found = type(value).__name__
    if isinstance(value, tuple | list):
        found += f" of {len(value)}"
    return InputError(f"{what} has a wrong value", expected=expected or str(kind), found=found)


_TAGS: dict[str, type] = {
    "tensor": TensorKind,
    "tuple": TupleKind,
    "data": DataKind,
    "ref": RefKind,
    "fn": FunctionKind,
    "param": ParameterKind,
}
_NAMES = {kind: tag for tag, kind in _TAGS.items()}


def kind_to_json(kind: Kind) -> list[Any]:
    """A kind as JSON data."""
    tag = _NAMES[type(kind)]
    if isinstance(kind, TensorKind):
        return [tag, list(kind.shape), kind.dtype]
    if isinstance(kind, TupleKind):
        return [tag, [kind_to_json(k) for k in kind.fields]]
    if isinstance(kind, DataKind):
        return [tag, kind.name, [kind_to_json(k) for k in kind.args]]
    if isinstance(kind, RefKind):
        return [tag, kind_to_json(kind.value)]
    return [tag, kind.text if isinstance(kind, FunctionKind) else kind.index]


def kind_from_json(row: list[Any]) -> Kind:
    """The kind that JSON data stands for; ValueError or LookupError where it is none."""
    tag = row[0]
    if tag == "tensor":
        if not all(type(size) in (int, str) for size in row[1]):
            raise ValueError("a size is a number or a name")
        dtypes.to_numpy(str(row[2]))
        return TensorKind(tuple(row[1]), str(row[2]))
    if tag == "tuple":
        return TupleKind(tuple(kind_from_json(k) for k in row[1]))
    if tag == "data":
        return DataKind(str(row[1]), tuple(kind_from_json(k) for k in row[2]))
    if tag == "ref":
        return RefKind(kind_from_json(row[1]))
    if tag == "fn":
        return FunctionKind(str(row[1]))
    if tag == "param":
        return ParameterKind(int(row[1]))
    raise ValueError(f"no kind of values is called {tag!r}")
