"""Converters of PNNX operators: how each is registered, and what it sees of its line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError, UnsupportedOpError
from ixion.frontend.emitter import Emitter
from ixion.frontend.pnnx.arithmetic import number
from ixion.frontend.pnnx.param import Operator
from ixion.frontend.pnnx.promote import Item
from ixion.frontend.pnnx.value import NO_LIMIT
from ixion.frontend.term import Term

#: A converter gives one item for an operator of one output, or a tuple or list of them.
Converter = Callable[["Site"], Any]

_CONVERTERS: dict[str, Converter] = {}
_MISSING: Any = object()


def converts(*kinds: str) -> Callable[[Converter], Converter]:
    """Register a converter of operator types."""

    def register(function: Converter) -> Converter:
        for kind in kinds:
            _CONVERTERS[kind] = function
        return function

    return register


def converter(kind: str) -> Converter | None:
    """The converter of an operator type, None if there is none."""
    return _CONVERTERS.get(kind)


class Site:
    """One line while it is converted.

    `items` holds the values of the operands, by operand name; `fixed` those that are weights
    (made by pnnx.Attribute), which tied modules list among their inputs.
    """

    def __init__(
        self,
        op: Operator,
        items: dict[str, Item],
        fixed: set[str],
        emit: Emitter,
        place: str,
        weight: Callable[[Operator, str], np.ndarray[Any, Any]],
    ) -> None:
        self.op = op
        self.items = items
        self.emit = emit
        self.place = place
        self._fixed = fixed
        self._weight = weight

    def call(self, name: str, *args: Any, **attrs: Any) -> Term:
        """A call of a Relay operator."""
        return self.emit.call(name, *args, **attrs)

    def arg(self, name: str, default: Any = _MISSING) -> Any:
        """An argument: the operand bound to its name, else the parameter, else the default."""
        if name in self.op.arguments:
            return self.items[self.op.arguments[name]]
        if name in self.op.params:
            return self.op.params[name]
        if default is _MISSING:
            raise ModelFormatError(f"{self.op.kind} without its argument {name!r}")
        return default

    def number(self, name: str, default: float | None = None) -> float:
        """A numeric argument; None in the file means the default."""
        found = self.arg(name, None) if default is not None else self.arg(name)
        return number(found, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """A bool argument (old files write 0 and 1)."""
        return bool(self.arg(name, default))

    @property
    def positional(self) -> list[Item]:
        """Operands bound to no name, in order."""
        return [self.items[name] for name in self.op.positional]

    @property
    def x(self) -> Term:
        """The main input: `$input`, else the first operand that is no tied weight.

        Fused attention leaves operands under other names (`$mask`), so any operand will do.
        """
        if "input" in self.op.arguments:
            return self.term(self.arg("input"))
        names = [name for name in self.op.positional if name not in self._fixed]
        names = names or list(self.op.positional) or list(self.op.inputs)
        if not names:
            raise ModelFormatError(f"{self.op.kind} without an input")
        return self.term(self.items[names[0]])

    def term(self, item: Item) -> Term:
        """An item that must be a tensor."""
        if not isinstance(item, Term):
            raise ModelFormatError(f"{self.op.kind} of what is no tensor", found=repr(item))
        return item

    def tensor(self, name: str) -> Term | None:
        """A tensor argument, None if it is left out or None."""
        item = self.arg(name, None)
        return None if item is None else self.term(item)

    def operand(self, name: str) -> Term:
        """A tensor argument that must be there."""
        found = self.tensor(name)
        if found is None:
            raise ModelFormatError(f"{self.op.kind} without its argument {name!r}")
        return found

    def has_weight(self, key: str) -> bool:
        """Whether the line lists a weight."""
        return key in self.op.weights

    def weight(self, key: str, dtype: str | None = None) -> Term:
        """A weight of this operator, floats as `dtype`: files mix half weights and full inputs."""
        shape = self.op.weights.get(key)
        if shape is None:
            raise ModelFormatError(f"{self.op.kind} without its weight {key!r}")
        sizes = tuple(dim for dim in shape.dims if dim is not None)
        wanted = dtype if dtype and dtypes.is_float(shape.dtype) else shape.dtype
        op = self.op

        def load() -> np.ndarray[Any, Any]:
            array = self._weight(op, key)
            return array.astype(dtypes.to_numpy(wanted), copy=False)

        return Term.lazy(load, sizes, wanted)

    def optional_weight(self, key: str, dtype: str | None = None) -> Term | None:
        """A weight, None if the line lists none."""
        return self.weight(key, dtype) if self.has_weight(key) else None

    def narrowed(self, x: Term) -> tuple[Term, str | None]:
        """The input as a module with half-precision weights sees it, and the weights' dtype.

        The converter drops the casts around such a module and states its tensors as float32. Its
        numbers are still those of the narrow dtype: inputs are rounded to it here, and outputs by
        `rounded`; between them the product is as wide as the input.
        """
        shape = self.op.weights.get("weight")
        narrow = shape.dtype if shape else x.dtype
        if narrow not in ("float16", "bfloat16") or x.dtype == narrow:
            return x, None
        rough = self.call("cast", x, dtype=narrow)
        return self.call("cast", rough, dtype=x.dtype), narrow

    def rounded(self, x: Term, narrow: str | None) -> Term:
        """A result rounded to a dtype and widened again; x itself for None."""
        if narrow is None:
            return x
        return self.call("cast", self.call("cast", x, dtype=narrow), dtype=x.dtype)

    def dims(self, name: str, default: Any = _MISSING) -> list[Dim]:
        """An argument that is a list of sizes; one number is a list of one."""
        found = self.arg(name, default)
        if isinstance(found, Term):
            known = found.dims()
            if known is None:
                self.unsupported(f"with {name} computed at run time")
            return known
        values = list(found) if isinstance(found, (list, tuple)) else [found]
        return [_dim(self, name, value) for value in values]

    def ints(self, name: str, count: int | None = None, default: Any = _MISSING) -> tuple[int, ...]:
        """An argument of plain numbers; one number stands for `count` of them."""
        values = self.dims(name, default)
        if not all(isinstance(value, int) for value in values):
            raise ModelFormatError(
                f"{name} depends on a size that is not known",
                hint="give the input's shape: load(path, shapes={name: shape})",
            )
        numbers = tuple(value for value in values if isinstance(value, int))
        if count is None or len(numbers) == count:
            return numbers
        if len(numbers) == 1:
            return numbers * count
        raise ModelFormatError(f"{name} has {len(numbers)} values", expected=str(count))

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """An axis argument, counted from the front; ModelFormatError if it is out of range."""
        found = self.arg(name) if default is None else self.arg(name, default)
        if not isinstance(found, int) or not -rank <= found < max(rank, 1):
            raise ModelFormatError(f"the axis {found!r} of a tensor of rank {rank}")
        return found % max(rank, 1)

    def axes(self, name: str, rank: int) -> list[int] | None:
        """A list of axes, None for all."""
        if self.arg(name, None) is None:
            return None
        return [axis % max(rank, 1) for axis in self.ints(name)]

    def unsupported(self, what: str) -> NoReturn:
        """Raise UnsupportedOpError for this line."""
        raise UnsupportedOpError([(f"{self.op.kind} {what}", 1, [self.place])])


def _dim(site: Site, name: str, value: Item) -> Dim:
    if isinstance(value, Term):
        known = value.dims()
        if known is None or len(known) != 1:
            site.unsupported(f"with {name} computed at run time")
        return known[0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if dims.is_dim(value):
        return value
    raise ModelFormatError(f"{name} is no list of sizes", found=repr(value))


def bound(value: Item) -> Item:
    """A slice bound with pnnx's "no limit" as a number beyond any size."""
    return 1 << 62 if value is None or (isinstance(value, int) and value >= NO_LIMIT) else value


def several(outputs: Sequence[Term]) -> tuple[Term, ...]:
    """Outputs of an operator with more than one."""
    return tuple(outputs)
