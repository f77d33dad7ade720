"""Host steps: the reference of an operator, found by name when a program is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion.runtime.program import HostStep

Array = np.ndarray[Any, np.dtype[Any]]


def resolve_host(step: HostStep) -> Callable[[list[Array]], Sequence[Array]]:
    """The reference of ``step``'s operator; RegistryError when it is not registered."""
    import ixion.op  # noqa: F401 - registers the built-in operators
    from ixion.ir import Op, TensorType, TupleType

    op = Op.get(step.op)
    reference = op.get_attr("FReference")
    attrs = op.attrs_type(**step.attrs) if op.attrs_type is not None else None
    kinds = tuple(TensorType(s.shape, s.dtype) for s in step.outputs)
    kind: Any = kinds[0] if len(kinds) == 1 else TupleType(kinds)

    def run(inputs: list[Array]) -> Sequence[Array]:
        out = reference(attrs, tuple(inputs), kind)
        return out if isinstance(out, (tuple, list)) else (out,)

    return run
