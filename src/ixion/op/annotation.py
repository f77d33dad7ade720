"""The functions Relay has in ``relay.annotation``."""

from ixion.op.annotate import compiler_begin, compiler_end
from ixion.op.unary import checkpoint, stop_fusion

__all__ = [
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "stop_fusion",
]
