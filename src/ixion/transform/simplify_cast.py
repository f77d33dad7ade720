"""SimplifyExpr: casts and clips that change nothing."""

from __future__ import annotations

from typing import Any

from ixion.analysis.constants import value_range
from ixion.base import dtype as dtypes
from ixion.ir import Call, Expr, Op, TensorType
from ixion.op.call import call
from ixion.transform.rewriting import Place

__all__ = ["drop_cast", "drop_clip", "merge_casts", "merge_clip_casts"]

_CASTS = ("cast", "cast_like")
# Relay leaves these clips for its oneDNN patterns.
_KEEPS_CLIP = ("qnn.requantize", "qnn.add")


def _dtype(expr: Expr) -> str:
    kind = expr.checked_type
    assert isinstance(kind, TensorType)
    return kind.dtype


def _calls(expr: Expr, *names: str) -> bool:
    return isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in names


def drop_cast(cast: Call, place: Place) -> Expr | None:
    """A cast to the dtype the value has."""
    return cast.args[0] if _dtype(cast) == _dtype(cast.args[0]) else None


def merge_casts(outer: Call, place: Place) -> Expr | None:
    """A cast after one that loses nothing is a cast of the original value."""
    inner = outer.args[0]
    if not isinstance(inner, Call) or not _calls(inner, *_CASTS) or not place.only_here(inner):
        return None
    data = inner.args[0]
    if not _widens(_dtype(data), _dtype(inner)):
        return None
    return call("cast", data, dtype=_dtype(outer), span=outer.span)


def _kind_rank(dtype: str) -> int:
    """Relay's order of type codes: int, uint (bool too), float."""
    if dtypes.is_float(dtype):
        return 2
    return 0 if dtypes.is_signed(dtype) else 1


def _widens(source: str, target: str) -> bool:
    """Whether a cast keeps all values, up to Relay's loose order int, uint, float of one width."""
    narrower = dtypes.bits(source) <= dtypes.bits(target)
    if source == target:
        return True
    if "bfloat16" in (source, target) or "float8" in source or "float8" in target:
        return False
    return narrower and _kind_rank(source) <= _kind_rank(target)


def merge_clip_casts(root: Call, place: Place) -> Expr | None:
    """Casts after a clip whose bounds their dtype holds are left out, but for the last dtype."""
    casts = [root]
    below: Expr = root.args[0]
    while isinstance(below, Call) and _calls(below, "cast") and place.only_here(below):
        casts.append(below)
        below = below.args[0]
    if not isinstance(below, Call) or not _calls(below, "clip") or not place.only_here(below):
        return None
    attrs: Any = below.attrs
    needed = [_dtype(cast) for cast in casts if not _holds(_dtype(cast), attrs)][::-1]
    last = needed[-1] if needed else _dtype(below)
    if last != _dtype(root):
        needed.append(_dtype(root))
    if len(needed) >= len(casts):
        return None
    result: Expr = below
    for dtype in needed:
        result = call("cast", result, dtype=dtype)
    return result


def _holds(dtype: str, clip: Any) -> bool:
    low, high = value_range(dtype)
    return bool(clip.a_max <= high and clip.a_min >= low)


def drop_clip(clip: Call, place: Place) -> Expr | None:
    """A clip to at least the range of its dtype."""
    data = clip.args[0]
    if _calls(data, *_KEEPS_CLIP):
        return None
    attrs: Any = clip.attrs
    low, high = value_range(_dtype(clip))
    return data if attrs.a_max >= high and attrs.a_min <= low else None
