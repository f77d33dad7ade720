"""Which chains of pointwise and depthwise convolutions become one kernel: a matter of shapes.

Of ``1x1, depthwise, 1x1`` the first two always gain: the tensor between them, the largest of the
chain, stays in a near cache, and a panel of channels needs no rows of its neighbours.  The second
``1x1`` needs all channels, so a task with it is a band of rows: the rows that bands share are
expanded twice, and each band reads all weights.  That pays where the depthwise result would not
stay in a second-level cache and the weights do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ixion.ir import Call, Constant
from ixion.kernel.group import extents_of
from ixion.kernel.samples import usual_side
from ixion.kernel.separable_plan import LANES, separable_plan
from ixion.kernel.sizes import fixed
from ixion.op.conv_chain import chain_kind, gate_of
from ixion.op.typed import op_name, shape_of

FAR = 768 << 10  # bytes of a depthwise result that are written and read again from afar
NEAR = 256 << 10  # bytes of weights that stay near while bands go by
CHAINS = (("pointwise", "depthwise", "pointwise"), ("depthwise", "pointwise"))


@dataclass(eq=False)
class Chain:
    """Convolutions in a row, each the only reader of the one before."""

    calls: list[Call] = field(default_factory=list)
    kinds: tuple[str, ...] = ()

    def take(self, call: Call) -> bool:
        """Adds the next convolution, if such a chain may have it."""
        kinds = (*self.kinds, chain_kind(call))
        if not any(kinds == c[: len(kinds)] for c in CHAINS):
            return False
        self.calls.append(call)
        self.kinds = kinds
        return True

    def worthwhile(self) -> bool:
        """Whether what there is so far should be one kernel."""
        if "depthwise" not in self.kinds or len(self.kinds) == 1:
            return False
        if separable_plan(self.calls, LANES, 2) is None:
            return False
        return self.kinds[-1] == "depthwise" or self._projects()

    def _projects(self) -> bool:
        products = [c for c, k in zip(self.calls, self.kinds, strict=True) if k == "pointwise"]
        weights = 4 * sum(prod(shape_of(c.args[1])) for c in products)
        _, channels, height, width = extents_of(self.calls[-1].args[0])
        between = fixed(channels) * usual_side(height) * usual_side(width)
        return 4 * between >= FAR and weights <= NEAR


def takes_gate(product: Call, conv: Call) -> bool:
    """Whether a convolution should multiply its weights by the gates that ``product`` applies.

    A task multiplies all weights of its results: fewer than the elements of the image where that
    has more pixels than the convolution has results.
    """
    if op_name(product) != "multiply" or gate_of(product) is None:
        return False
    if conv.args[0] is not product or chain_kind(conv) != "pointwise":
        return False
    known = any(isinstance(x, Constant) for x in product.args)
    _, outs, height, width = extents_of(conv)
    return not known and usual_side(height) * usual_side(width) >= fixed(outs)
