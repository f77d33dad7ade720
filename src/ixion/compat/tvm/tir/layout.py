"""Layouts as text, and the way between two of them."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.dim import Dim
from ixion.op.layout import convert_shape


class BijectiveLayout:
    """Two layouts of the same axes."""

    def __init__(self, src_layout: str, dst_layout: str) -> None:
        self.src_layout = src_layout
        self.dst_layout = dst_layout

    def forward_shape(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """A shape in the first layout as one in the second; IxionError where a block does not
        divide.
        """
        return convert_shape(shape, self.src_layout, self.dst_layout)

    def backward_shape(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """A shape in the second layout as one in the first."""
        return convert_shape(shape, self.dst_layout, self.src_layout)


def bijective_layout(src_layout: str, dst_layout: str) -> BijectiveLayout:
    """The way from one layout to another of the same axes."""
    return BijectiveLayout(src_layout, dst_layout)


__all__ = ["BijectiveLayout", "bijective_layout"]
