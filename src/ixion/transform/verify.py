"""Verification: evaluate the program after every pass and name the first that changed its value.

The judge is the reference interpreter, so this works for any pass, ours or a user's. Values are
compared at a tolerance that grows with what the program adds up: passes may reassociate sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ixion.analysis.evaluate import ConstructorValue, RefValue, evaluate
from ixion.analysis.well_formedness import check_well_formed
from ixion.base import dtype as dtypes
from ixion.base.dtype import to_numpy
from ixion.base.errors import IxionError, PassError
from ixion.base.guard import Guard
from ixion.ir import Function, IRModule, TensorType, TupleType, Type
from ixion.ir.sizes import bound_type, type_symbols
from ixion.transform.context import PassContext
from ixion.transform.infer_type import InferType
from ixion.transform.instrument import PassInstrument
from ixion.transform.pass_info import PassInfo

__all__ = ["VerifyInstrument", "difference", "example_sizes", "random_inputs", "verified"]

_RELATIVE = 1e-4
_EXAMPLES = (5, 7, 3, 8, 16, 32, 64, 96, 224, 1)
_SEED = 20240229


def random_inputs(
    func: Function, seed: int = _SEED, sizes: Mapping[str, int] | None = None
) -> list[Any]:
    """Values for the parameters of a typed function; ``sizes`` are those of its symbols.

    Floats are normal, integers small and not negative (they may be indices), bools fair.
    Raises PassError for a parameter that cannot be made up, such as a function.
    """
    rng = np.random.default_rng(seed)
    kinds = [bound_type(param.checked_type, sizes or {}) for param in func.params]
    return [_random(k, rng, p.name_hint) for k, p in zip(kinds, func.params, strict=True)]


def example_sizes(func: Function, guards: Iterable[Guard]) -> dict[str, int]:
    """Sizes for the symbols of a function's parameters that all guards allow.

    All different where that can be, so that one cannot stand in for another.  Raises PassError
    where none of those tried is allowed.
    """
    names: dict[str, None] = {}
    for param in func.params:
        names.update(dict.fromkeys(sorted(type_symbols(param.checked_type))))
    known = list(guards)
    for number in range(len(_EXAMPLES)):
        tried = {n: _EXAMPLES[(number + i) % len(_EXAMPLES)] for i, n in enumerate(names)}
        for sizes in (tried, dict.fromkeys(names, _EXAMPLES[number])):
            if all(guard.holds(sizes) for guard in known):
                return sizes
    raise PassError("verify: no sizes found that the program allows", found=", ".join(names))


def _random(kind: Type, rng: np.random.Generator, name: str) -> Any:
    if isinstance(kind, TupleType):
        return tuple(_random(field, rng, name) for field in kind.fields)
    if not isinstance(kind, TensorType) or not all(isinstance(d, int) for d in kind.shape):
        raise PassError(f"verify: no value can be made up for parameter {name}", found=str(kind))
    shape = kind.concrete_shape
    if dtypes.is_bool(kind.dtype):
        return rng.random(shape) < 0.5
    if dtypes.is_integer(kind.dtype):
        return rng.integers(0, 2, shape).astype(to_numpy(kind.dtype))
    return rng.normal(size=shape).astype(to_numpy(kind.dtype))


def difference(found: Any, expected: Any) -> float:
    """Largest error as a fraction of what reordering sums may change; at most 1 is fine.

    Infinite where structure, shapes or dtypes differ, or where one is finite and the other not.
    """
    if isinstance(expected, tuple):
        if not isinstance(found, tuple) or len(found) != len(expected):
            return float("inf")
        return max((difference(f, e) for f, e in zip(found, expected, strict=True)), default=0.0)
    if isinstance(expected, RefValue):
        return difference(found.value, expected.value)
    if isinstance(expected, ConstructorValue):
        same = found.constructor.name_hint == expected.constructor.name_hint
        return difference(found.fields, expected.fields) if same else float("inf")
    if not isinstance(expected, np.ndarray):
        return 0.0
    return _array_difference(np.asarray(found), expected)


def _array_difference(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.size:
        return 0.0
    dtype = dtypes.from_numpy(expected.dtype)
    if not dtypes.is_float(dtype):
        return 0.0 if np.array_equal(found, expected) else float("inf")
    a, b = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)) or not _same_special(a[~finite], b[~finite]):
        return float("inf")
    if not finite.any():
        return 0.0
    a, b = a[finite], b[finite]
    # The scale of the whole tensor stands for the sums behind each element.
    scale = max(float(np.sqrt(np.mean(b * b))), float(np.abs(b).max()) * 0.1, 1e-6)
    epsilon = float(np.finfo(np.float32).eps) if dtypes.bits(dtype) >= 32 else 2.0**-8
    allowed = _RELATIVE * max(1.0, epsilon / float(np.finfo(np.float32).eps) / 64) * scale
    return float(np.abs(a - b).max()) / allowed


def _same_special(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def _typed(mod: IRModule) -> IRModule:
    return InferType().transform_module(mod, PassContext())


class VerifyInstrument(PassInstrument):
    """Evaluates ``main`` before the first pass and after each, on the same inputs.

    Raises PassError naming the first pass whose result is not well formed, cannot be evaluated,
    or has another value. Inside a sequence the sequence's passes are judged one by one. ``values``
    evaluates a module; ``inputs`` are random unless given.
    """

    def __init__(
        self,
        inputs: Sequence[Any] | None = None,
        entry: str = "main",
        values: Callable[[IRModule, Sequence[Any]], Any] | None = None,
    ) -> None:
        self._given = inputs
        self._entry = entry
        self._values = values if values is not None else self._evaluate
        self._inputs: Sequence[Any] | None = None
        self._expected: Any = None
        self._judged: IRModule | None = None
        self._inferring: list[bool] = []
        self.checked: list[tuple[str, float]] = []

    def enter_pass_ctx(self) -> None:
        self._inputs = self._expected = self._judged = None
        self._inferring = []
        self.checked = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "InferType":
            self._inferring.append(mod is self._judged)
        if self._inputs is None and self._entry in mod:
            typed = _typed(mod)
            given = self._given
            self._inputs = random_inputs(typed[self._entry]) if given is None else given
            self._expected = self._values(typed, self._inputs)
            self._judged = mod

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if info.name == "InferType":
            # It runs inside other passes, which are then judged themselves.
            if self._inferring and self._inferring.pop():
                self._judged = mod
            return
        if self._inputs is None or mod is self._judged:
            return
        self._judge(mod, info.name)
        self._judged = mod

    def _evaluate(self, mod: IRModule, inputs: Sequence[Any]) -> Any:
        return evaluate(mod[self._entry], list(inputs), mod)

    def _judge(self, mod: IRModule, name: str) -> None:
        assert self._inputs is not None
        try:
            check_well_formed(mod)
            found = self._values(_typed(mod), self._inputs)
        except IxionError as error:
            raise PassError(
                f"verify: after pass {name} the program cannot be evaluated", found=str(error)
            ) from error
        error_ratio = difference(found, self._expected)
        self.checked.append((name, error_ratio))
        if not error_ratio <= 1.0:
            raise PassError(
                f"verify: pass {name} changed the program's value",
                found=f"{error_ratio:.3g} times the tolerance",
                hint=f"compare the program before and after with: print --after {name}",
            )


def verified(
    passes: Callable[[IRModule], IRModule], mod: IRModule, inputs: Sequence[Any] | None = None
) -> IRModule:
    """``passes(mod)`` in a context like the current one that verifies every pass."""
    current = PassContext.current()
    with PassContext(
        current.opt_level,
        current.required_pass,
        current.disabled_pass,
        [*current.instruments, VerifyInstrument(inputs)],
        current.config,
    ):
        return passes(mod)
