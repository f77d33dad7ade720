"""Where a flat row number is along the dims that make rows."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.kernel.sizes import as_extent, is_static, product, top
from ixion.te.expr import Expr, Var
from ixion.te.tensor import Extent


class RowIndex:
    """``index`` along ``dims`` in terms of variables with ``ranges``; ``at(row)`` gives these.

    With sizes known at run time every dim has a variable of its own, whose range proves that the
    index lies inside; the divisions come when a row takes its place, and most vanish in addresses.
    """

    def __init__(self, dims: Sequence[Extent]) -> None:
        self.dims = [as_extent(n) for n in dims]
        self.open = not is_static(*self.dims)
        self.index: list[Expr] = []
        self.ranges: dict[Var, tuple[int, Extent]] = {}
        if self.open:
            self.variables = [Var(f"r{d}") for d in range(len(self.dims))]
            self.index.extend(self.variables)
            self.ranges = {v: (0, top(n)) for v, n in zip(self.variables, self.dims, strict=True)}
        else:
            self.row = Var("orow")
            self.index = unflatten(self.row, self.dims)
            self.ranges = {self.row: (0, top(product(self.dims)))}

    def at(self, row: Expr) -> dict[Var, Expr]:
        """The variables' values for a row."""
        if not self.open:
            return {self.row: row}
        found: dict[Var, Expr] = {}
        for variable, n in zip(reversed(self.variables), reversed(self.dims), strict=True):
            first = variable is self.variables[0]
            found[variable] = row if first else row % n
            row = row // n
        return found


def unflatten(row: Expr, dims: Sequence[Extent]) -> list[Expr]:
    """Logical indices of flat row number ``row``."""
    index: list[Expr] = []
    for d, n in enumerate(dims):
        inner = product(dims[d + 1 :])
        part = row // inner
        index.append(part % n if d else part)
    return index
