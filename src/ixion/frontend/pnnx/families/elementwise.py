"""torch.* arithmetic, comparison, logic, casts, where, clamp."""

from __future__ import annotations

from ixion.base import dtype as dtypes
from ixion.frontend.pnnx.arithmetic import apply, compare, unary
from ixion.frontend.pnnx.convert import Converter, Site, converts
from ixion.frontend.pnnx.expression import BINARY, UNARY
from ixion.frontend.pnnx.promote import Item, as_term, cast, promoted, result_dtype, torch_dtype
from ixion.frontend.term import Term

_RENAMED = {
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
    "bitwise_left_shift": "lshift", "bitwise_right_shift": "rshift",
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub",
}  # fmt: skip
_COMPARISONS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip


def pair(site: Site) -> tuple[Item, Item]:
    """`input` and `other`, each an operand, a parameter, or the next operand without a name."""
    rest = iter(site.positional)
    found = []
    for name in ("input", "other"):
        stated = name in site.op.arguments or name in site.op.params
        found.append(site.arg(name) if stated else next(rest, None))
    return found[0], found[1]


def _unary(name: str) -> Converter:
    return lambda site: unary(site.emit, name, site.x)


def _binary(name: str) -> Converter:
    return lambda site: apply(site.emit, name, pair(site))


def _comparison(name: str) -> Converter:
    return lambda site: compare(site.emit, name, *pair(site))


for _name in (*sorted(UNARY - {"int"}), "log2"):
    converts(f"torch.{_name}", f"aten::{_name}")(_unary(_name))
for _name in sorted(BINARY - {"max", "min", "add", "sub"}):
    converts(f"torch.{_name}")(_binary(_name))
for _name, _plain in _RENAMED.items():
    converts(f"torch.{_name}")(_binary(_plain))
for _name, _relay in _COMPARISONS.items():
    converts(f"torch.{_name}", f"aten::{_name}")(_comparison(_relay))


def scaled_sum(site: Site, name: str, a: Item, b: Item, alpha: Item) -> Item:
    """`a + alpha * b` or `a - alpha * b`."""
    if isinstance(alpha, (int, float)) and alpha != 1:
        b = apply(site.emit, "mul", (b, alpha))
    return apply(site.emit, name, (a, b))


@converts("torch.add", "torch.sub")
def add(site: Site) -> Item:
    name = site.op.kind.removeprefix("torch.")
    return scaled_sum(site, name, *pair(site), site.arg("alpha", 1))


@converts("torch.rsub")
def reversed_subtract(site: Site) -> Item:
    a, b = pair(site)
    return scaled_sum(site, "sub", b, a, site.arg("alpha", 1))


def _as_bool(site: Site, item: Item) -> Term:
    x = as_term(site.emit, item)
    return x if x.dtype == "bool" else site.call("not_equal", x, 0)


@converts("torch.logical_and", "torch.logical_or", "torch.logical_xor")
def logic(site: Site) -> Term:
    a, b = (_as_bool(site, item) for item in pair(site))
    return site.call(site.op.kind.removeprefix("torch."), a, b)


@converts("torch.logical_not")
def logical_not(site: Site) -> Term:
    return site.call("logical_not", _as_bool(site, site.x))


@converts("torch.bitwise_not")
def bitwise_not(site: Site) -> Term:
    name = "logical_not" if site.x.dtype == "bool" else "bitwise_not"
    return site.call(name, site.x)


@converts("torch.isnan", "torch.isinf", "torch.isfinite")
def kind_of_number(site: Site) -> Term:
    return site.call(site.op.kind.removeprefix("torch."), site.x)


@converts("Tensor.to", "Tensor.type")
def to(site: Site) -> Term:
    dtype = site.arg("dtype", None)
    return site.x if dtype is None else cast(site.emit, site.x, torch_dtype(str(dtype)))


@converts("Tensor.type_as")
def type_as(site: Site) -> Term:
    other = site.operand("other")
    return cast(site.emit, site.x, other.dtype)


@converts("torch.where")
def where(site: Site) -> Term:
    rest = iter(site.positional)
    items = []
    for name in ("condition", "input", "other"):
        stated = name in site.op.arguments or name in site.op.params
        items.append(site.arg(name) if stated else next(rest, None))
    chosen = promoted(site.emit, [_number(item) for item in items[1:]])
    return site.call("where", _as_bool(site, items[0]), *chosen)


def _number(item: Item) -> Item:
    return float(item) if isinstance(item, str) else item


@converts("Tensor.masked_fill", "torch.masked_fill")
def masked_fill(site: Site) -> Term:
    x, mask = site.x, site.operand("mask")
    value = as_term(site.emit, _number(site.arg("value")), x.dtype)
    return site.call("where", _as_bool(site, mask), value, x)


@converts("torch.clamp", "torch.clip")
def clamp(site: Site) -> Term:
    return clamped(site, site.x, site.arg("min", None), site.arg("max", None))


def clamped(site: Site, x: Item, low: Item, high: Item) -> Term:
    """min(max(x, low), high) in the common dtype; a bound may be None."""
    low, high = _number(low), _number(high)
    dtype = result_dtype([item for item in (x, low, high) if item is not None])
    out = as_term(site.emit, x, dtype)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and dtypes.is_float(dtype):
        return site.call("clip", out, a_min=float(low), a_max=float(high))
    if low is not None:
        out = site.call("maximum", out, as_term(site.emit, low, dtype))
    return out if high is None else site.call("minimum", out, as_term(site.emit, high, dtype))
