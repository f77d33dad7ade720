"""What a module's types take for granted about its symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterable

from ixion.base import dim as dims
from ixion.base.guard import Guard
from ixion.ir import Function, IRModule
from ixion.transform.type_inferencer import TypeInferencer

__all__ = ["ASSUMED", "fixed_sizes", "guards_of"]

#: The module attribute with what an importer took for granted itself, each a ``Guard.plain()``.
ASSUMED = "assumed_sizes"


def guards_of(mod: IRModule) -> list[Guard]:
    """The relations between sizes that every run must satisfy, each once, in program order.

    They are found by asking all type relations again, so they belong to the module as it is: a pass
    that drops a call drops what the call relied on. What an importer assumed comes first. Ask after
    InferType and before other passes. Sizes that depend on data (``Any``) are in none of them. What
    only a branch or another function than main relies on is not ``certain``. Raises
    TypeInferenceError for a module whose types do not hold.
    """
    found = [Guard.of(plain) for plain in mod.get_attr(ASSUMED) or ()]
    inferencer = TypeInferencer(mod, found)
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            inferencer.infer_global(var)
    inferencer.solver.solve()
    return list(dict.fromkeys(found))


def fixed_sizes(guards: Iterable[Guard]) -> dict[str, int]:
    """Symbols that can have one value only, for some call has that size built in."""
    values: dict[str, int] = {}
    for guard in guards:
        apart = dims.add(guard.left, dims.multiply(-1, guard.right))
        names = dims.free_vars(apart)
        if guard.kind != "equal" or not guard.certain or len(names) != 1:
            continue
        (name,) = names
        at = [dims.evaluate(apart, {name: v}) for v in (0, 1, 2)]
        slope = at[1] - at[0]
        straight = at[2] - at[1] == slope and "//" not in str(apart)
        if straight and slope and at[0] % slope == 0 and -at[0] // slope > 0:
            values.setdefault(name, -at[0] // slope)
    return values
