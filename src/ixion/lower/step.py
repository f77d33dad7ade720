"""Steps while a program is lowered: over storages, before they have places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ixion.base.dim import Dim
from ixion.ir import Call
from ixion.lower.storage import Storage, Value
from ixion.te.stmt import Kernel

PlannedKind = Literal["call", "host", "mark", "jump", "branch", "loop", "next", "solo", "together"]


@dataclass(eq=False)
class PlannedStep:
    """A kernel call (or, with ``host``, an operator done in Python) on storages.

    Steps of control have a ``kind`` of their own: "mark" does nothing and is what others, by
    ``target``, go to.  ``carries``: a copy that can be left out if both are the same memory.
    """

    label: str
    reads: list[Value]
    writes: list[Value]
    places: list[Storage]
    kernel: Kernel | None = None
    host: Call | None = None
    kind: PlannedKind = "call"
    target: PlannedStep | None = None
    counter: int = 0
    carries: bool = False
    in_place: list[int] = field(default_factory=list)
    copy_to: Dim | None = None  # byte offset in the result, where the step is a plain copy
    products: Dim = 0
    # The operators of the formed kernel; the same object in all its steps.
    calls: Sequence[Call] = ()
