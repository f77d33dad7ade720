"""Pointwise convolution of channels times a gate, as after squeeze and excitation.

``conv(x * gate)`` with one gate per channel is a convolution with gated weights.  A task multiplies
its panel of weights once, in private memory: fewer than the elements of ``x`` wherever the image
has more pixels than the convolution has results, and ``x`` needs no pass of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ixion.base.target import Target
from ixion.ir import Call
from ixion.kernel.access import Operand
from ixion.kernel.conv_direct import ConvNest
from ixion.kernel.group import Group
from ixion.kernel.layout import Layout
from ixion.kernel.schedule import Lowered, Pack, channel_block, register_schedule
from ixion.kernel.schedule_conv import DirectConv
from ixion.kernel.spatial import SpatialNest
from ixion.op.conv_chain import gate_of
from ixion.op.typed import op_name
from ixion.te.expr import Expr, Var, binary, broadcast
from ixion.te.simplify import simplify
from ixion.te.stmt import Buffer, For, Stmt, seq
from ixion.te.tensor import Extent


@dataclass(eq=False)
class GatedNest(ConvNest):
    """A pointwise convolution; ``gate`` holds one factor for each image and channel in blocks."""

    gate: Buffer | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.weights is not None
        self.packed = self.weights
        self.wide = self.tile.blocks * self.block
        self.panel = self.in_blocks * self.block * self.wide
        at = self.raw.size * 4
        self.weights = Buffer("gated", self.packed.dtype, "scratch", self.panel, offset=at)

    def body(self) -> Stmt:
        return seq(self._gated(), super().body())

    def _gated(self) -> Stmt:
        """This task's panel of weights, times the gates."""
        assert self.gate is not None
        assert self.weights is not None
        k = Var("k")
        gate = self.gate.load(simplify(self.n * (self.in_blocks * self.block) + k))
        stores = []
        for b in range(self.tile.blocks):
            at = k * self.wide + b * self.block
            weight = self.packed.load(simplify(self.og * self.panel + at), self.block)
            product = binary("mul", weight, broadcast(gate, self.block))
            stores.append(self.weights.store(simplify(at), product))
        return For(k, 0, self.in_channels, seq(*stores))

    def _weights_at(self, ib: Var, t: Var) -> Expr:
        return simplify(ib * (self.block * self.wide))

    @property
    def private(self) -> list[Buffer]:
        assert self.weights is not None
        return [*super().private, self.weights]

    @property
    def scratch(self) -> Extent:
        assert self.weights is not None
        return self.weights.offset + 4 * self.panel


@register_schedule("nn.conv2d")
class GatedConv(DirectConv):
    """A convolution whose data operand is a product with a gate, inside the kernel."""

    rank = 5
    nest = GatedNest

    @classmethod
    def accepts(cls, group: Group, target: Target) -> bool:
        product = None if group.head is None else group.head.args[0]
        if not isinstance(product, Call) or not any(product is c for c in group.calls):
            return False
        return op_name(product) == "multiply" and gate_of(product) is not None

    def __init__(self, group: Group, target: Target) -> None:
        super().__init__(group, target)
        product = self.head.args[0]
        assert isinstance(product, Call)
        gate = gate_of(product)
        assert gate is not None
        self.gate = group.position[id(product.args[gate])]
        self.data = group.position[id(product.args[1 - gate])]

    def wanted(self, i: int) -> Layout | None:
        return channel_block(self.target) if i in (self.gate, self.data) else None

    def finished(
        self, name: str, nests: list[SpatialNest], place: Operand, buffers: list[Buffer],
        packs: dict[int, Pack],
    ) -> Lowered:  # fmt: skip
        for nest in nests:
            assert isinstance(nest, GatedNest)
            nest.gate = buffers[self.gate]
        return super().finished(name, nests, place, buffers, packs)
