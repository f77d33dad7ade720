"""Numbers that a kernel is given beside its sizes: what follows from them, computed once a plan."""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.te.expr import Expr, Size, Var, substitute
from ixion.te.tensor import Extent


@dataclass(eq=False)
class Scalars:
    """Variables of a kernel's body and what they are, expressions over sizes."""

    values: dict[Var, Expr] = field(default_factory=dict)

    def named(self, name: str, extent: Extent) -> Extent:
        """The extent as a variable of its own where it is an expression to be computed."""
        if isinstance(extent, (int, Size)):
            return extent
        var = Var(name)
        value = self.value(extent)
        assert isinstance(value, Expr)
        self.values[var] = value
        return var

    def value(self, extent: Extent) -> Extent:
        """An extent over these variables in terms of sizes."""
        return extent if isinstance(extent, int) else substitute(extent, dict(self.values))
