"""What a module's types take for granted about its symbolic sizes."""

from __future__ import annotations

from collections.abc import Iterable

from ixion.base import dim as dims
from ixion.base.guard import Guard
from ixion.ir import Function, IRModule
from ixion.transform.type_inferencer import TypeInferencer

__all__ = ["fixed_sizes", "guards_of"]


def guards_of(mod: IRModule) -> list[Guard]:
    """The relations between sizes that every run must satisfy, each once, in program order.

    They are found by asking all type relations again, so they belong to the module as it is: a pass
    that drops a call drops what the call relied on. Ask after InferType and before other passes.
    Sizes that depend on data (``Any``) are in none of them. What only a branch or another function
    than main relies on is not ``certain``. Raises TypeInferenceError for a module
    whose types do not hold.
    """
    found: list[Guard] = []
    inferencer = TypeInferencer(mod, found)
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            inferencer.infer_global(var)
    inferencer.solver.solve()
    return list(dict.fromkeys(found))


def fixed_sizes(guards: Iterable[Guard]) -> dict[str, int]:
    """Symbols that can have one value only, for some call has that size built in."""
    found: dict[str, int] = {}
    for guard in guards:
        for symbol, number in ((guard.left, guard.right), (guard.right, guard.left)):
            alone = dims.free_vars(symbol) == {str(symbol)}
            if guard.kind == "equal" and guard.certain and alone and isinstance(number, int):
                found.setdefault(str(symbol), number)
    return found
