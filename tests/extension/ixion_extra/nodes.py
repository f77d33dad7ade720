"""A node kind that also has a scope: `with calibration(scale=2.0):` sets the current one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ixion.ir import Node, field, register_node


@register_node("extra.Calibration")
class Calibration(Node):
    """How values are scaled; `note` is a remark and no part of what it is."""

    scale: float = field(default=1.0)
    channels: tuple[int, ...] = field(default=())
    note: str = field(default="", compare=False)


_current: ContextVar[Calibration] = ContextVar("calibration")


def current() -> Calibration:
    """The innermost calibration, or the default one."""
    return _current.get(Calibration())


@contextmanager
def calibration(**fields) -> Iterator[Calibration]:
    """The current calibration with some fields changed, inside the block."""
    node = current().copy(**fields)
    token = _current.set(node)
    try:
        yield node
    finally:
        _current.reset(token)
