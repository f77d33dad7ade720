"""Marks that passes leave in a program; their value is the argument's."""

from __future__ import annotations

from typing import Any

import numpy as np

from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.op.broadcast import elementwise, infer_same
from ixion.op.call import call
from ixion.op.compare import Exact, Ulp
from ixion.op.define import OpPattern, define
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import Sample, array, shape


@register_attrs("relay.attrs.CompilerAttrs")
class CompilerAttrs(Attrs):
    compiler: str = attr(doc="name of the external compiler")


@register_attrs("relay.attrs.CastHintAttrs")
class CastHintAttrs(Attrs):
    dtype: str = attr(doc="dtype that quantization should cast to")


@register_attrs("relay.attrs.SimulatedQuantizeAttrs")
class SimulatedQuantizeAttrs(Attrs):
    kind: int = attr(doc="what the tensor is: 1 input, 2 weight, 3 activation")
    sign: bool = attr(True, "whether the integers are signed")
    rounding: str = attr(
        "round", "how to round", choices=("round", "floor", "ceil", "stochastic_round")
    )


_MARKS: dict[str, tuple[type[Attrs] | None, dict[str, Any]]] = {
    "annotation.compiler_begin": (CompilerAttrs, {"compiler": "any"}),
    "annotation.compiler_end": (CompilerAttrs, {"compiler": "any"}),
    "annotation.cast_hint": (CastHintAttrs, {"dtype": "int8"}),
    "annotation.bitpack_start": (None, {}),
    "annotation.bitpack_end": (None, {}),
}

for _name, (_attrs, _sample_attrs) in _MARKS.items():
    define(
        _name,
        attrs=_attrs,
        inputs=("data",),
        pattern=OpPattern.OPAQUE,
        level=10,
        infer=infer_same,
        reference=lambda attrs, ins, out: ins[0],
        compute=elementwise(lambda x: x),
        compare=Exact(),
        samples=lambda draw, given=_sample_attrs: Sample(  # type: ignore[misc]
            (array(draw, shape(draw)),), dict(given)
        ),
        doc="The argument itself.",
    )


def _simulated(attrs: SimulatedQuantizeAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    x, scale, low, high = (wide(v) for v in inputs)
    # An identity mark (kind 0) leaves the data alone.
    if attrs.kind == 0:
        return inputs[0]
    fold = {"floor": np.floor, "ceil": np.ceil}.get(attrs.rounding, np.rint)
    return narrow(fold(np.clip(x / scale, low, high)) * scale, out_type.dtype)


define(
    "relay.op.annotation.simulated_quantize",
    attrs=SimulatedQuantizeAttrs,
    inputs=("data", "dom_scale", "clip_min", "clip_max"),
    pattern=OpPattern.ELEMWISE,
    level=11,
    infer=infer_same,
    reference=_simulated,
    compare=Ulp(1),
    samples=lambda draw: Sample(
        (array(draw, shape(draw)), np.array(0.25, np.float32), np.array(-7, np.float32),
         np.array(7, np.float32)),
        {"kind": draw.integer(0, 3)},
    ),
    doc="Data as it would be after quantization: scaled, rounded, clipped, scaled back.",
)  # fmt: skip


def compiler_begin(data: Expr, compiler: str) -> Call:
    return call("annotation.compiler_begin", data, compiler=compiler)


def compiler_end(data: Expr, compiler: str) -> Call:
    return call("annotation.compiler_end", data, compiler=compiler)
