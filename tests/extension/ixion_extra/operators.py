"""`extra.squash`: x / (1 + |x|), at first with a reference only."""

from __future__ import annotations

import numpy as np

from ixion import te
from ixion.ir import Call, Expr, register_op
from ixion.op import call
from ixion.op.broadcast import infer_same
from ixion.op.define import Names, OpPattern, define

NAME = "extra.squash"


def squash_reference(attrs: object, inputs: tuple[np.ndarray, ...], out_type) -> np.ndarray:
    """Float64 inside, rounded once."""
    x = inputs[0].astype(np.float64)
    return (x / (1 + np.abs(x))).astype(out_type.dtype)


def squash_compute(attrs: object, ins: tuple[te.Tensor, ...], out_type) -> te.Tensor:
    """One element at a time; the compiler makes, fuses and vectorises the loops."""
    x = ins[0]
    one = te.const(1.0, x.dtype)
    return te.compute(x.shape, lambda *i: x(*i) / (one + te.intrinsic("abs", x(*i))), name="squash")


define(
    NAME,
    inputs=("data",),
    pattern=OpPattern.OPAQUE,
    level=10,
    infer=infer_same,
    reference=squash_reference,
    names=Names(onnx="Squash", pnnx=("extra.Squash",)),
    doc="x / (1 + |x|), elementwise.",
)


def give_compute() -> None:
    """From here on calls of squash become native code."""
    op = register_op(NAME)
    op.set_attr("FTVMCompute", squash_compute)
    op.set_attr("TOpPattern", OpPattern.ELEMWISE, plevel=11)


def squash(data: Expr) -> Call:
    """A call of `extra.squash`."""
    return call(NAME, data)
