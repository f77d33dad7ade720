"""Structural equality of nodes, with Relay's rules.

Nodes of one kind are compared field by field. Graph nodes are mapped one to one: a shared node on
one side must be the same shared node on the other. A variable is equal to what it is mapped to; it
may be mapped where it is defined, where it is identical, or anywhere with ``map_free_vars``.

Both sides are walked in step with an explicit stack, in the order of the fields, so that a
definition is met before its uses. The cost is linear in the number of nodes, whatever their depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ixion.base.dim import SymExpr
from ixion.ir.containers import Map
from ixion.ir.expr import Constant, Tuple
from ixion.ir.node import Node, plain_repr
from ixion.ir.object_path import ObjectPath, ObjectPathPair

_TOLERANCE = 1e-9
_PLAIN = frozenset({int, str, bool, bytes})


def same_float(a: float, b: float) -> bool:
    """Equal within 1e-9, with NaN equal to NaN."""
    if a == b:
        return True
    difference = a - b
    return -_TOLERANCE < difference < _TOLERANCE or (math.isnan(a) and math.isnan(b))


def same_data(a: Any, b: Any) -> bool:
    """Arrays of the same dtype, shape and bytes."""
    if a is b:
        return True
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.nbytes <= 64 or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return bool(a.tobytes() == b.tobytes())
    import numpy as np

    return bool(np.array_equal(a.reshape(-1).view(np.uint8), b.reshape(-1).view(np.uint8)))


# A pair to compare: lhs, rhs, whether free variables may be mapped, and the path to it (or None).
_Task = tuple[Any, Any, bool, Any]


class _Comparison:
    """One walk over two nodes in step."""

    def __init__(self, trace: bool) -> None:
        self.trace = trace
        self.mismatch: ObjectPathPair | None = None
        self.lhs_of: dict[int, Any] = {}
        self.rhs_of: dict[int, Any] = {}
        self.stack: list[_Task] = []
        # Pairs that are no graph nodes, met before: shared types are compared once. The pairs
        # themselves are kept, so that no id is used again while the walk lasts.
        self.seen: dict[tuple[int, int], tuple[Any, Any]] = {}

    def run(self, lhs: Any, rhs: Any, map_free: bool) -> bool:
        """Whether the two are equal; otherwise ``mismatch`` is set if this is a tracing walk."""
        root = ObjectPath.root() if self.trace else None
        stack = self.stack
        stack.append((lhs, rhs, map_free, root))
        while stack:
            task = stack.pop()
            if not self._step(*task):
                if self.trace and self.mismatch is None:
                    self.mismatch = ObjectPathPair(task[3], task[3])
                return False
        return True

    def _step(self, a: Any, b: Any, map_free: bool, path: Any) -> bool:
        kind = type(a)
        if kind is not type(b):
            return self._foreign(a, b, map_free, path)
        if kind in _PLAIN or a is None:
            return bool(a == b)
        if kind is tuple:
            return self._sequence(a, b, map_free, path)
        if isinstance(a, Node):
            return self._node(a, b, map_free, path)
        if kind is float:
            return same_float(a, b)
        if kind is Map:
            return self._map(a, b, map_free, path)
        return self._foreign(a, b, map_free, path)

    def _node(self, a: Any, b: Any, map_free: bool, path: Any) -> bool:
        kind = type(a)
        if kind._by_identity:
            return a is b
        if kind._graph and not (kind is Tuple and not a.fields):
            mapped = self.lhs_of.get(id(a))
            if mapped is not None:
                return mapped is b
            if id(b) in self.rhs_of:
                return False
            if kind._free_var and not (map_free or a is b):
                return False
            self.lhs_of[id(a)] = b
            self.rhs_of[id(b)] = a
        elif kind is Constant:
            return same_data(a.data, b.data)
        else:
            pair = (id(a), id(b))
            if pair in self.seen:
                return True
            self.seen[pair] = (a, b)
        if path is None:
            return self._push_fields(a, b, map_free)
        return self._push_traced(a, b, map_free, path)

    def _push_fields(self, a: Any, b: Any, map_free: bool) -> bool:
        kind, stack = type(a), self.stack
        left, right = kind._structure(a), kind._structure(b)
        if len(left) != len(right):
            return False
        binds = kind._binds
        for i in range(len(left) - 1, -1, -1):
            x, y = left[i], right[i]
            plain = type(x)
            if plain in _PLAIN or x is None or y is None:
                if x is y or (plain is type(y) and x == y):
                    continue
                return False
            inner = map_free or binds[i]
            if plain is tuple:
                if type(y) is not tuple or len(x) != len(y):
                    return False
                for j in range(len(x) - 1, -1, -1):
                    stack.append((x[j], y[j], inner, None))
            else:
                stack.append((x, y, inner, None))
        return True

    def _push_traced(self, a: Any, b: Any, map_free: bool, path: Any) -> bool:
        kind = type(a)
        left, right = kind._structure(a), kind._structure(b)
        names, binds = kind._compared, kind._binds
        for i in range(max(len(left), len(right)) - 1, -1, -1):
            x = left[i] if i < len(left) else None
            y = right[i] if i < len(right) else None
            self.stack.append((x, y, map_free or binds[i], path.attr(names[i])))
        return True

    def _sequence(self, a: Any, b: Any, map_free: bool, path: Any) -> bool:
        stack, shared = self.stack, min(len(a), len(b))
        if len(a) != len(b):
            if path is None:
                return False
            # The first differing element says more than the length does, if there is one.
            stack.append((_Short(len(a)), _Short(len(b)), False, path))
        if path is None:
            stack.extend([(a[i], b[i], map_free, None) for i in range(shared - 1, -1, -1)])
        else:
            for i in range(shared - 1, -1, -1):
                stack.append((a[i], b[i], map_free, path.array_index(i)))
        return True

    def _map(self, a: Map, b: Map, map_free: bool, path: Any) -> bool:
        for key in a:
            other = self._mapped_key(key)
            if other not in b:
                return self._missing(key, path, left_has=True)
            inner = path.map_value(key) if path is not None else None
            self.stack.append((a[key], b[other], map_free, inner))
        if len(a) == len(b):
            return True
        matched = {id(k) if isinstance(k, Node) else k for k in map(self._mapped_key, a)}
        extra = [k for k in b if (id(k) if isinstance(k, Node) else k) not in matched]
        return self._missing(extra[0] if extra else None, path, left_has=False)

    def _mapped_key(self, key: Any) -> Any:
        return self.lhs_of.get(id(key), key) if isinstance(key, Node) else key

    def _missing(self, key: Any, path: Any, left_has: bool) -> bool:
        if path is not None:
            pair = (path.map_value(key), path.missing_map_entry())
            self.mismatch = ObjectPathPair(*(pair if left_has else pair[::-1]))
        return False

    def _foreign(self, a: Any, b: Any, map_free: bool, path: Any) -> bool:
        """Values that are neither nodes nor plain, and pairs of different kinds."""
        if isinstance(a, _Short):
            at = min(a, b)
            pair = (path.array_index(at), path.missing_array_element(at))
            self.mismatch = ObjectPathPair(*(pair if a > b else pair[::-1]))
            return False
        if type(a) is not type(b):
            return isinstance(a, SymExpr) and a == b
        if hasattr(a, "tobytes") and hasattr(a, "dtype"):
            return same_data(a, b)
        if isinstance(a, (list, tuple)):
            return self._sequence(tuple(a), tuple(b), map_free, path)
        return a is b or bool(a == b)


class _Short(int):
    """Stands for the length of a sequence that differs from the other's."""


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two nodes are equal by structure.

    With ``map_free_vars``, free variables may stand for one another, each for one.
    """
    if lhs is rhs:
        return True
    return _Comparison(trace=False).run(lhs, rhs, map_free_vars)


def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False
) -> ObjectPathPair | None:
    """Paths to the first difference on each side; None where the two are equal."""
    if structural_equal(lhs, rhs, map_free_vars):
        return None
    walk = _Comparison(trace=True)
    walk.run(lhs, rhs, map_free_vars)
    return walk.mismatch


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raise ValueError with the path to the first difference and both sides there, if any."""
    pair = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    if pair is not None:
        raise ValueError(
            f"StructuralEqual check failed, caused by lhs at {pair.lhs_path}:\n"
            f"{_shown(lhs, pair.lhs_path)}\nand rhs at {pair.rhs_path}:\n"
            f"{_shown(rhs, pair.rhs_path)}"
        )


def _shown(root: Any, path: ObjectPath) -> str:
    """The value at a path, briefly; its place in the program where that is known."""
    value, span = root, None
    for kind, step in path._steps()[1:]:
        span = getattr(value, "span", None) or span
        try:
            value = _follow(value, kind, step)
        except (AttributeError, IndexError, KeyError, TypeError):
            value = None
            break
    span = getattr(value, "span", None) or span
    text = plain_repr(value) if isinstance(value, Node) else repr(value)
    return f"  {text[:500]}" + (f"  (from {span})" if span is not None else "")


def _follow(value: Any, kind: str, step: Any) -> Any:
    if kind == "attr":
        names: Iterable[str] = type(value)._compared
        return dict(zip(names, type(value)._structure(value), strict=False))[step]
    if kind in ("index", "key"):
        return value[step]
    raise KeyError(step)


__all__ = [
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "same_data",
    "same_float",
    "structural_equal",
]
