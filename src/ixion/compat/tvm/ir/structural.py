"""Structural comparison of whatever TVM programs compare: nodes, and lists and numbers of the loop
level.
"""

from __future__ import annotations

from typing import Any

from ixion import ir
from ixion.compat.tvm.tir.expr import FloatImm, IntImm


def _plain(value: Any) -> Any:
    """Lists as tuples and scalars with a dtype as numbers."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(item) for item in value)
    if isinstance(value, IntImm):
        return int(value)
    return float(value) if isinstance(value, FloatImm) else value


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two values are equal by structure."""
    return ir.structural_equal(_plain(lhs), _plain(rhs), map_free_vars)


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """ValueError with the path to the first difference, if there is one."""
    ir.assert_structural_equal(_plain(lhs), _plain(rhs), map_free_vars)


def get_first_structural_mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False) -> Any:
    """The paths to the first difference, or None."""
    pair = ir.get_first_structural_mismatch(_plain(lhs), _plain(rhs), map_free_vars)
    return None if pair is None else (pair.lhs_path, pair.rhs_path)


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that agrees with ``structural_equal``."""
    return ir.structural_hash(_plain(node), map_free_vars)


__all__ = [
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "structural_equal",
    "structural_hash",
]
