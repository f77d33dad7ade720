"""Where the windows of convolutions and poolings read along one spatial axis."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ixion.kernel.sizes import as_extent, is_static
from ixion.te.expr import Expr, maximum, minimum, wrap
from ixion.te.simplify import Linear, linear
from ixion.te.symbolic import never_negative
from ixion.te.tensor import Extent

FURTHEST = 512  # inputs past the end of an axis that a window may reach and still be understood


@dataclass(frozen=True)
class Taps:
    """One spatial axis: output ``q`` reads inputs ``q * step + first + t * delta``, t < taps.

    Reads outside ``[0, extent)`` are padding.  Output ``q`` lands at ``start + q * stride``.
    ``count`` (outputs) and ``extent`` may be known at run time only.
    """

    count: Extent
    step: int
    first: int
    delta: int
    taps: int
    extent: Extent
    start: int = 0
    stride: int = 1

    @property
    def is_open(self) -> bool:
        """Whether it is known at run time only how long the axis is."""
        return not is_static(self.count, self.extent)

    def valid(self, q: int, t: int) -> bool:
        """Whether tap ``t`` of output ``q`` lies inside an axis of known length."""
        assert isinstance(self.extent, int)
        return 0 <= q * self.step + self.first + t * self.delta < self.extent

    def interior(self, q: int) -> bool:
        return self.valid(q, 0) and self.valid(q, self.taps - 1)

    @cached_property
    def all_interior(self) -> bool:
        if self.is_open:
            return self.first >= 0 and self.overhangs is not None and self.overhangs[1] <= 0
        assert isinstance(self.count, int)
        return self.interior(0) and self.interior(self.count - 1)

    def bounds(self, q: Expr) -> tuple[Expr, Expr]:
        """First tap inside the image and one past the last, for output ``q``."""
        if self.all_interior:
            return wrap(0), wrap(self.taps)
        origin = q * self.step + self.first
        lo = maximum((wrap(self.delta - 1) - origin) // self.delta, 0)
        hi = minimum((wrap(self.extent - 1 + self.delta) - origin) // self.delta, self.taps)
        return lo, hi

    # An axis whose length is known at run time only.

    @property
    def overhang(self) -> Extent:
        """How far the last output's last tap lies past the last input; negative before it."""
        last = wrap(self.count) * self.step - self.step + self.first
        return as_extent(last + (self.taps - 1) * self.delta + 1 - self.extent)

    @cached_property
    def overhangs(self) -> tuple[int, int] | None:
        """Bounds of the overhang for all lengths; None where they are not found."""
        over = self.overhang
        if isinstance(over, int):
            return over, over
        form = linear(over, {})
        most = next((n for n in range(-self.step, FURTHEST) if _reaches(n, form.scaled(-1))), None)
        if most is None:
            return None
        lowest = range(most, most - 2 * self.step, -1)
        least = next((n for n in lowest if _reaches(-n, form)), None)
        return None if least is None else (least, most)

    def ends_before(self, limit: Extent) -> bool:
        """Whether the last output's last tap certainly lies below ``limit``."""
        last = (wrap(self.count) - 1) * self.step + self.first + (self.taps - 1) * self.delta
        room = linear(wrap(limit), {}).plus(linear(last, {}).scaled(-1))
        return _reaches(-1, room)

    @property
    def left(self) -> int:
        """Outputs at the start that some tap of reads before the axis."""
        return max(0, -(self.first // self.step)) if self.first < 0 else 0

    def right(self, overhang: int) -> int:
        """Outputs at the end that some tap of reads past it, for an overhang."""
        return max(0, -(-overhang // self.step))

    def valid_from_left(self, q: int, t: int) -> bool:
        return q * self.step + self.first + t * self.delta >= 0

    def valid_from_right(self, q: int, t: int, overhang: int) -> bool:
        """Of the ``q``-th output before the last one."""
        return overhang - q * self.step - (self.taps - 1 - t) * self.delta <= 0


def _reaches(constant: int, form: Linear) -> bool:
    return never_negative(form.plus(Linear(constant, {})), {})
