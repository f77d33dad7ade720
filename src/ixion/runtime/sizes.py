"""What the shapes of a run's inputs say: the values of a program's symbolic dims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymExpr, SymVar
from ixion.base.errors import InputError
from ixion.base.guard import Guard
from ixion.runtime.program import TensorSpec

Shapes = Sequence[tuple[int, ...]]


def sizes_of(
    specs: Sequence[TensorSpec],
    shapes: Shapes,
    guards: Sequence[Guard],
    given: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """The value of every symbol in the specs' shapes, those ``given`` included.

    Raises InputError, naming the input and the dim, where a shape does not fit its spec or two
    inputs contradict each other, and, naming the node, where sizes do not fit an operator.
    """
    sizes: dict[str, int] = dict(given or {})
    sources: dict[str, str] = {}
    for spec, shape in zip(specs, shapes, strict=True):
        if len(shape) != len(spec.shape):
            raise _misfit(spec, shape, "rank")
        for axis, (dim, size) in enumerate(zip(_dims(spec), shape, strict=True)):
            if isinstance(dim, SymVar) and dim.name not in sizes:
                sizes[dim.name] = size
                sources[dim.name] = f"axis {axis} of input '{spec.name}'"
    _solve(specs, shapes, sizes, sources)
    _check(specs, shapes, sizes, sources)
    for guard in guards:
        guard.check(sizes)
    return sizes


def _solve(
    specs: Sequence[TensorSpec], shapes: Shapes, sizes: dict[str, int], sources: dict[str, str]
) -> None:
    """Symbols that only occur in expressions: found one at a time from ``c * symbol + rest``."""
    for spec, shape in zip(specs, shapes, strict=True):
        for axis, (dim, size) in enumerate(zip(_dims(spec), shape, strict=True)):
            unknown = [n for n in sorted(dims.free_vars(dim)) if n not in sizes]
            if len(unknown) == 1 and isinstance(dim, SymExpr):
                found = _solved(dim, unknown[0], size, sizes)
                if found is not None:
                    sizes[unknown[0]] = found
                    sources[unknown[0]] = f"axis {axis} of input '{spec.name}'"


def _dims(spec: TensorSpec) -> tuple[Dim, ...]:
    return spec.shape


def _solved(dim: SymExpr, name: str, size: int, sizes: dict[str, int]) -> int | None:
    at = [dims.evaluate(dim, {**sizes, name: value}) for value in (0, 1)]
    slope = at[1] - at[0]
    if slope == 0 or (size - at[0]) % slope:
        return None
    value = (size - at[0]) // slope
    return value if value >= 0 and dims.evaluate(dim, {**sizes, name: value}) == size else None


def _check(
    specs: Sequence[TensorSpec], shapes: Shapes, sizes: dict[str, int], sources: dict[str, str]
) -> None:
    for spec, shape in zip(specs, shapes, strict=True):
        for axis, (dim, size) in enumerate(zip(_dims(spec), shape, strict=True)):
            if any(n not in sizes for n in dims.free_vars(dim)):
                raise InputError(
                    f"input '{spec.name}' has an impossible size on axis {axis}",
                    expected=str(dim), found=size,
                )  # fmt: skip
            wanted = dims.evaluate(dim, sizes)
            if wanted == size:
                continue
            if isinstance(dim, int):
                raise _misfit(spec, shape, "shape")
            names = sorted(dims.free_vars(dim))
            named = ", ".join(
                f"{n} is {sizes[n]} by {sources.get(n, 'the session')}" for n in names
            )
            raise InputError(
                f"input '{spec.name}' has the wrong size on axis {axis}",
                expected=f"{dim} = {wanted} ({named})", found=size,
            )  # fmt: skip


def _misfit(spec: TensorSpec, shape: tuple[int, ...], what: str) -> InputError:
    return InputError(
        f"input '{spec.name}' has the wrong {what}",
        expected=f"{spec.dtype}[{', '.join(map(str, spec.shape))}]",
        found=f"{spec.dtype}{list(shape)}",
    )
