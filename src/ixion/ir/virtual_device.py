"""Where a value lives: Relay's description of a device, as far as a program says."""

from __future__ import annotations

from typing import Any

from ixion.ir.node import Node, field, register_node

UNKNOWN = -1


def _scope(value: Any) -> Any:
    return value or ""


@register_node("VirtualDevice", graph=False)
class VirtualDevice(Node):
    """A device type and number, a target and a memory scope; each may be left open.

    An expression whose device is entirely open has None in its place.
    """

    device_type_int: int = field(default=UNKNOWN)
    virtual_device_id: int = field(default=UNKNOWN)
    target: Any = field(default=None)
    memory_scope: Any = field(default="", convert=_scope)

    @property
    def device_type(self) -> int:
        """DLPack's number of the device type, or -1."""
        return self.device_type_int

    @property
    def is_unconstrained(self) -> bool:
        """Nothing is said about the device."""
        return (
            self.device_type_int == UNKNOWN
            and self.virtual_device_id == UNKNOWN
            and self.target is None
            and not self.memory_scope
        )


__all__ = ["UNKNOWN", "VirtualDevice"]
