"""Calls of ``dyn.*`` operators, whose sizes are operands, as calls with sizes in attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion.ir import Call, Constant, Expr
from ixion.op.call import call as make_call
from ixion.op.typed import attrs_of, op_name

__all__ = ["static_call"]

# The values of a call's operands: object arrays of numbers and dims, None where one is not known.
Values = Sequence[Any]
Maker = Callable[[Call, Values], Call | None]


def static_call(call: Call, values: Values) -> Call | None:
    """What a call of a ``dyn.*`` operator is when its size operands have these values.

    None for other operators and where a value that is needed is not known.
    """
    maker = _MAKERS.get(op_name(call))
    return None if maker is None else maker(call, values)


def _flat(value: Any) -> list[Any]:
    return np.asarray(value, object).reshape(-1).tolist()


def _carried(call: Call, *names: str) -> dict[str, Any]:
    attrs = attrs_of(call)
    return {name: getattr(attrs, name) for name in names}


def _sized(name: str, at: int, attribute: str, *kept: str) -> Maker:
    """``name`` of the operands before ``at``, with the value at ``at`` as an attribute."""

    def make(call: Call, values: Values) -> Call | None:
        if values[at] is None:
            return None
        more = {attribute: _flat(values[at]), **_carried(call, *kept)}
        return make_call(name, *call.args[:at], **more, span=call.span)

    return make


def _reshape(call: Call, values: Values) -> Call | None:
    if values[1] is None:
        return None
    codes = _flat(values[1])
    # A symbol is a size, even one that turns out to be 0; a code 0 copies.
    numbers = all(isinstance(code, int) for code in codes)
    zero = attrs_of(call).allowzero or not (numbers or 0 in codes)
    return make_call("reshape", call.args[0], newshape=codes, allowzero=zero, span=call.span)


def _strided_slice(call: Call, values: Values) -> Call | None:
    if any(value is None for value in values[1:4]):
        return None
    strides = _flat(values[3])
    if not all(isinstance(step, int) for step in strides):
        return None
    begin, end = _flat(values[1]), _flat(values[2])
    more = {"begin": begin, "end": end, "strides": strides}
    kept = _carried(call, "slice_mode", "axes")
    return make_call("strided_slice", call.args[0], **more, **kept, span=call.span)


def _expand_dims(call: Call, values: Values) -> Call | None:
    axis = [] if values[1] is None else _flat(values[1])
    if len(axis) != 1 or not isinstance(axis[0], int):
        return None
    more = _carried(call, "num_newaxis")
    return make_call("expand_dims", call.args[0], axis=axis[0], **more, span=call.span)


def _one(name: str, at: int, attribute: str, *kept: str) -> Maker:
    """As ``_sized`` for an attribute of one value."""

    def make(call: Call, values: Values) -> Call | None:
        value = [] if values[at] is None else _flat(values[at])
        if len(value) != 1:
            return None
        more = {attribute: value[0], **_carried(call, *kept)}
        return make_call(name, *call.args[:at], **more, span=call.span)

    return make


def _pad(call: Call, values: Values) -> Call | None:
    if values[1] is None:
        return None
    widths = np.asarray(values[1], object).reshape(-1, 2).tolist()
    kept = _carried(call, "pad_mode")
    return make_call(
        "nn.pad", call.args[0], call.args[2], pad_width=widths, **kept, span=call.span
    )


def _floats(expr: Expr) -> list[float] | None:
    if not isinstance(expr, Constant):
        return None
    return [float(value) for value in expr.data.reshape(-1)]


def _resize(call: Call, values: Values) -> Call | None:
    region = _floats(call.args[2])
    if values[1] is None or region is None:
        return None
    kept = dict(attrs_of(call).items()) | {"size": _flat(values[1]), "roi": region or None}
    return make_call("image.resize2d", call.args[0], **kept, span=call.span)


def _upsampling(name: str, *factors: str) -> Maker:
    def make(call: Call, values: Values) -> Call | None:
        found = [_floats(arg) for arg in call.args[1:]]
        if any(one is None or len(one) != 1 for one in found):
            return None
        scales = {key: one[0] for key, one in zip(factors, found, strict=True) if one}
        kept = dict(attrs_of(call).items()) | scales
        return make_call(name, call.args[0], **kept, span=call.span)

    return make


_MAKERS: dict[str, Maker] = {
    "dyn.reshape": _reshape,
    "dyn.broadcast_to": _sized("broadcast_to", 1, "shape"),
    "dyn.full": _sized("full", 1, "shape", "dtype"),
    "dyn.zeros": _sized("zeros", 0, "shape", "dtype"),
    "dyn.ones": _sized("ones", 0, "shape", "dtype"),
    "dyn.tile": _sized("tile", 1, "reps"),
    "dyn.squeeze": _sized("squeeze", 1, "axis"),
    "dyn.expand_dims": _expand_dims,
    "dyn.strided_slice": _strided_slice,
    "dyn.one_hot": _one("one_hot", 3, "depth", "axis", "dtype"),
    "dyn.topk": _one("topk", 1, "k", "axis", "ret_type", "is_ascend", "dtype"),
    "dyn.nn.pad": _pad,
    "dyn.image.resize2d": _resize,
    "dyn.nn.upsampling": _upsampling("nn.upsampling", "scale_h", "scale_w"),
    "dyn.nn.upsampling3d": _upsampling("nn.upsampling3d", "scale_d", "scale_h", "scale_w"),
}
