"""Sizes of a model's inputs: the file's symbols, bound to numbers by the shapes a caller gives."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymVar
from ixion.base.errors import InputError, did_you_mean
from ixion.frontend.emitter import Emitter
from ixion.ir import IRModule
from ixion.ir.sizes import type_symbols
from ixion.transform.guards import ASSUMED, fixed_sizes, guards_of

Shape = tuple[Dim, ...]


def symbol(text: str, alone: Collection[str], otherwise: str) -> Dim:
    """The dim a file's size name stands for; `otherwise` names what says nothing (`?`, a number).

    An expression (`past + 1`) is read as one if its names are sizes of their own (`alone`), for
    `batch-size` is a name.
    """
    try:
        found = dims.parse(text)
    except (ValueError, ZeroDivisionError):
        found = None
    names = frozenset() if found is None else dims.free_vars(found)
    if found is not None and not names:
        text = otherwise
    elif found is not None and (names == {text} or names <= set(alone)):
        return found
    return SymVar(_identifier(text))


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text)
    name = f"_{name}" if name[:1].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def bind_sizes(
    inputs: Mapping[str, Shape],
    shapes: Mapping[str, Sequence[int]] | None,
    fixed: Mapping[str, int],
) -> dict[str, Shape]:
    """The inputs' shapes with symbols replaced by the sizes that `shapes` implies, or by `fixed`.

    InputError if a name is unknown, a rank differs, a fixed size is contradicted, or one symbol
    would have two sizes.
    """
    inputs = {
        name: tuple(dims.substitute(dim, fixed) for dim in shape) for name, shape in inputs.items()
    }
    if not shapes:
        return inputs
    values: dict[str, Dim] = {}
    for name, shape in shapes.items():
        if name not in inputs:
            raise InputError(
                f"the model has no input {name!r}",
                expected=", ".join(map(repr, inputs)),
                hint=did_you_mean(name, inputs),
            )
        _match(name, inputs[name], shape, values)
    bound = {
        name: tuple(dims.substitute(dim, values) for dim in shape) for name, shape in inputs.items()
    }
    for name, shape in shapes.items():
        if tuple(shape) != bound[name]:
            raise _mismatch(name, inputs[name], shape)
    return bound


def assumed_sizes(emit: Emitter) -> dict[str, Any]:
    """The module attribute that holds what an import took for granted of sizes, if it did."""
    found = tuple(guard.plain() for guard in dict.fromkeys(emit.assumed))
    return {ASSUMED: found} if found else {}


def with_fixed_sizes(make: Callable[[Mapping[str, int]], IRModule]) -> IRModule:
    """The module that `make` gives for sizes bound to numbers, with those bound that must be.

    Exporters build the size of their example into a model and still call it open: a symbol that
    only one number fits, by the operators that use it, is that number.
    """
    fixed: dict[str, int] = {}
    while True:
        module = make(fixed)
        symbols = {name for p in module["main"].params for name in type_symbols(p.checked_type)}
        more = fixed_sizes(guards_of(module)) if symbols else {}
        more = {name: size for name, size in more.items() if name in symbols}
        if not more:
            return module
        fixed = {**fixed, **more}


def _match(name: str, own: Shape, given: Sequence[int], values: dict[str, Dim]) -> None:
    if len(own) != len(given):
        raise _mismatch(name, own, given)
    for dim, size in zip(own, given, strict=True):
        if size < 0:
            raise InputError(f"input {name!r} with the negative size {size}")
        if isinstance(dim, int):
            if dim != size:
                raise _mismatch(name, own, given)
            continue
        found = dims.solved(dim, size)
        if found is not None and values.setdefault(*found) != found[1]:
            raise InputError(
                f"the size {found[0]!r} would be {values[found[0]]} and {found[1]}",
                where=f"input {name!r}",
            )


def _mismatch(name: str, own: Shape, given: Sequence[int]) -> InputError:
    return InputError(
        f"input {name!r} cannot have this shape",
        expected="(" + ", ".join(map(str, own)) + ")",
        found=str(tuple(given)),
    )
