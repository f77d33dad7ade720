"""FoldExplicitPadding: a pad before a convolution or pooling becomes its padding attribute."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ixion.analysis.constants import equal_scalars, scalar_value, value_range
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.ir import Call, Constant, Expr, Function, IRModule, Op
from ixion.op.call import two_sided
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.pass_infra import FunctionPass
from ixion.transform.registry import register_pass
from ixion.transform.rewriting import Place, Rule, apply_rules

__all__ = ["FoldExplicitPadding"]

_SPATIAL = "DHW"


@register_pass("FoldExplicitPadding")
@dataclass(frozen=True)
class FoldExplicitPadding(FunctionPass):
    """Zero padding goes into convolutions and average pooling, the least value into max pooling,
    the zero point into quantised convolutions. Padding of other axes stays.
    """

    info = PassInfo(0, "FoldExplicitPadding", ["InferType"])

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return apply_rules(func, _RULES)


def _pad(user: Call, place: Place) -> Call | None:
    """The constant pad that computes the data of ``user``, if nothing else uses it."""
    pad = user.args[0]
    if not isinstance(pad, Call) or not isinstance(pad.op, Op) or pad.op.name != "nn.pad":
        return None
    attrs: Any = pad.attrs
    constant = attrs.pad_mode == "constant" and isinstance(pad.args[1], Constant)
    return pad if constant and place.only_here(pad) else None


def _spatial_widths(pad: Call, layout: str) -> list[Dim] | None:
    """Widths before, then after, along the spatial axes; None if another axis is padded."""
    attrs: Any = pad.attrs
    if len(layout) != len(attrs.pad_width):
        return None
    pairs = list(zip(layout, attrs.pad_width, strict=True))
    if any(tuple(width) != (0, 0) for axis, width in pairs if axis not in _SPATIAL):
        return None
    return [width[side] for side in (0, 1) for axis, width in pairs if axis in _SPATIAL]


def _combined(pad: Call, attrs: Any, layout: str) -> tuple[Dim, ...] | None:
    widths = _spatial_widths(pad, layout)
    if widths is None:
        return None
    own = two_sided(attrs.padding, len(widths) // 2)
    return tuple(a + b for a, b in zip(widths, own, strict=True))


def _with_padding(user: Call, pad: Call, padding: tuple[Dim, ...], **changes: Any) -> Call:
    attrs: Any = user.attrs
    args = (pad.args[0], *user.args[1:])
    return Call(user.op, args, attrs.copy(padding=padding, **changes), (), user.span)


def _into_conv(conv: Call, place: Place) -> Expr | None:
    pad = _pad(conv, place)
    if pad is None or scalar_value(pad.args[1]) != 0:
        return None
    attrs: Any = conv.attrs
    padding = _combined(pad, attrs, attrs.data_layout)
    return None if padding is None else _with_padding(conv, pad, padding)


def _into_quantised_conv(conv: Call, place: Place) -> Expr | None:
    pad = _pad(conv, place)
    if pad is None or not equal_scalars(pad.args[1], conv.args[2]):
        return None
    attrs: Any = conv.attrs
    padding = _combined(pad, attrs, attrs.data_layout)
    return None if padding is None else _with_padding(conv, pad, padding)


def _into_average_pool(pool: Call, place: Place) -> Expr | None:
    """The divisor must go on counting what was padding."""
    pad = _pad(pool, place)
    attrs: Any = pool.attrs
    if pad is None or scalar_value(pad.args[1]) != 0:
        return None
    if not attrs.count_include_pad and any(width != 0 for width in attrs.padding):
        return None
    padding = _combined(pad, attrs, attrs.layout)
    return None if padding is None else _with_padding(pool, pad, padding, count_include_pad=True)


def _into_max_pool(pool: Call, place: Place) -> Expr | None:
    pad = _pad(pool, place)
    if pad is None or not _is_least(pad.args[1]):
        return None
    attrs: Any = pool.attrs
    padding = _combined(pad, attrs, attrs.layout)
    return None if padding is None else _with_padding(pool, pad, padding)


def _is_least(value: Expr) -> bool:
    number = scalar_value(value)
    if number is None:
        return False
    assert isinstance(value, Constant)
    least, _ = value_range(dtypes.from_numpy(value.data.dtype))
    return bool(number in (-math.inf, least))


_RULES: dict[str, list[Rule]] = {
    **{f"nn.conv{n}d": [_into_conv] for n in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": [_into_conv],
    "qnn.conv2d": [_into_quantised_conv],
    **{f"nn.avg_pool{n}d": [_into_average_pool] for n in (1, 2, 3)},
    **{f"nn.max_pool{n}d": [_into_max_pool] for n in (1, 2, 3)},
}
