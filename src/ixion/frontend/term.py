"""A term: an expression under construction, with its type and its number when that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.ir import Constant, Expr, TensorType, Type
from ixion.op.define import is_followed

Array = np.ndarray[Any, Any]


class Term:
    """Expression, type, and what is known of the value.

    A weight is a term that loads its array when it is first used, so weights nobody uses are never
    read; `turned` is the constant it is a transpose of, and the axes; `cut` the constant it is a
    slice of symbolic size of, and the axes, begins, ends and steps. `value` is the array of a
    small integer tensor: of ints, or of dims (dtype object) where it depends on symbolic sizes.
    """

    __slots__ = ("_array", "_expr", "_load", "_value", "cut", "turned", "type")

    def __init__(self, expr: Expr, kind: Type, value: Any = None) -> None:
        self._expr: Expr | None = expr
        self._array: Array | None = None
        self._load: Callable[[], Array] | None = None
        self._value = value
        self.turned: tuple[Term, tuple[int, ...]] | None = None
        self.cut: tuple[Term, tuple[Any, ...]] | None = None
        self.type = kind

    @classmethod
    def constant(cls, array: Array) -> Term:
        """A term of a known array."""
        return cls.lazy(lambda: array, array.shape, dtypes.from_numpy(array.dtype))

    @classmethod
    def lazy(cls, load: Callable[[], Array], shape: tuple[int, ...], dtype: str) -> Term:
        """A term whose array `load` gives when it is needed."""
        term = cls.__new__(cls)
        term._expr = term._array = term._value = term.turned = term.cut = None
        term._load = load
        term.type = TensorType(shape, dtype)
        return term

    @property
    def known(self) -> bool:
        """Whether the whole value is known now (it is a constant)."""
        return self._load is not None

    @property
    def array(self) -> Array | None:
        """The constant's array, None if it is none."""
        if self._array is None and self._load is not None:
            self._array = self._load()
        return self._array

    def derived(self, change: Callable[[Array], Array], shape: tuple[int, ...]) -> Term:
        """A constant made of this one, when it is needed; this one is not kept for it."""
        assert self._load is not None

        def load() -> Array:
            held = self._array
            assert self._load is not None
            return change(self._load() if held is None else held)

        return Term.lazy(load, shape, self.dtype)

    @property
    def expr(self) -> Expr:
        """The expression; one object however often it is asked for."""
        if self._expr is None:
            array = self.array
            assert array is not None
            self._expr = Constant(array)
            self._expr._set_checked_type(self.type)
        return self._expr

    @property
    def value(self) -> Any:
        """Known ints, bools or dims of a small integer tensor as an array, else None.

        Of floats only tiny ones are looked at, for shapes that are scaled in floating point.
        """
        if self._value is None and self.known and is_followed(self.type):
            self._value = self.array
        return self._value

    @property
    def tensor(self) -> TensorType:
        """The type of a tensor; ModelFormatError where the model uses something else as one."""
        if not isinstance(self.type, TensorType):
            raise ModelFormatError("a tensor is needed here", found=str(self.type))
        return self.type

    @property
    def shape(self) -> tuple[Dim, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> str:
        return str(self.tensor.dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements; huge while a dim is symbolic."""
        total = 1
        for dim in self.shape:
            total *= dim if isinstance(dim, int) else 1 << 40
        return total

    def dims(self) -> list[Dim] | None:
        """The value as a flat list of dims, None if it is not known or no list of whole numbers."""
        value = self.value
        if value is None or dtypes.is_float(self.dtype):
            return None
        return [_plain(v) for v in np.asarray(value).reshape(-1)]

    def ints(self) -> list[int] | None:
        """The value as a flat list of numbers, None unless all are known."""
        dims = self.dims()
        if dims is None or not all(isinstance(dim, int) for dim in dims):
            return None
        return [dim for dim in dims if isinstance(dim, int)]

    def static(self) -> tuple[int, ...]:
        """The shape in numbers; ModelFormatError while a dim is symbolic."""
        return tuple(static(dim) for dim in self.shape)

    def __repr__(self) -> str:
        return f"Term({self.type}{', constant' if self.known else ''})"


def at_most(limit: int, count: int, what: str) -> int:
    """`count`, if a real model can have so many; ModelFormatError for a hostile number."""
    if count > limit:
        raise ModelFormatError(f"too many {what}", expected=f"at most {limit}", found=str(count))
    return count


def static(dim: Dim) -> int:
    """A dim that must be a number here; ModelFormatError with a hint to bind sizes otherwise."""
    if isinstance(dim, int):
        return dim
    raise ModelFormatError(
        f"the size {dim} must be known here",
        hint="give the input's shape: load(path, shapes={name: shape})",
    )


def _plain(value: Any) -> Dim:
    return int(value) if isinstance(value, (int, np.integer, np.bool_)) else value
