"""Reduce*, ArgMax, ArgMin, CumSum, Softmax and its kin."""

from __future__ import annotations

from ixion.base import dim as dims
from ixion.frontend.build.movement import reshape
from ixion.frontend.onnx.convert import Converter, Site, converts
from ixion.frontend.term import Term


def _axes(site: Site, x: Term) -> list[int] | None:
    """Axes to reduce: all if none are given, none at all (None) for an explicit no-op."""
    axes = site.axes(1)
    if axes:
        return axes
    return None if site.attr("noop_with_empty_axes", 0) else list(range(x.rank))


def _reduce(site: Site, name: str, x: Term, axes: list[int] | None) -> Term:
    if axes is None:
        return x
    keep = bool(site.attr("keepdims", 1))
    return site.call(name, x, axis=tuple(axis % x.rank for axis in axes), keepdims=keep)


def _plain(op_type: str, name: str) -> Converter:
    @converts(op_type)
    def convert(site: Site) -> Term:
        x = site.input(0)
        return _reduce(site, name, x, _axes(site, x))

    return convert


for _op_type, _name in (
    ("ReduceSum", "sum"), ("ReduceMean", "mean"), ("ReduceProd", "prod"),
):  # fmt: skip
    _plain(_op_type, _name)


@converts("ReduceMax", "ReduceMin")
def extreme(site: Site) -> Term:
    x = site.input(0)
    largest = site.node.op_type == "ReduceMax"
    if x.dtype == "bool":
        return _reduce(site, "any" if largest else "all", x, _axes(site, x))
    return _reduce(site, "max" if largest else "min", x, _axes(site, x))


@converts("ReduceL1")
def l1(site: Site) -> Term:
    x = site.input(0)
    return _reduce(site, "sum", site.call("abs", x), _axes(site, x))


@converts("ReduceSumSquare")
def sum_square(site: Site) -> Term:
    x = site.input(0)
    return _reduce(site, "sum", site.call("multiply", x, x), _axes(site, x))


@converts("ReduceL2")
def l2(site: Site) -> Term:
    return site.call("sqrt", sum_square(site))


@converts("ReduceLogSum")
def log_sum(site: Site) -> Term:
    x = site.input(0)
    return site.call("log", _reduce(site, "sum", x, _axes(site, x)))


@converts("ReduceLogSumExp")
def log_sum_exp(site: Site) -> Term:
    """Shifted by the largest value, so that nothing overflows."""
    x = site.input(0)
    axes = _axes(site, x)
    if axes is None:
        return x
    over = tuple(axis % x.rank for axis in axes)
    top = site.call("max", x, axis=over, keepdims=True)
    rest = site.call("exp", site.call("subtract", x, top))
    total = site.call("log", site.call("sum", rest, axis=over, keepdims=True))
    out = site.call("add", total, top)
    return out if site.attr("keepdims", 1) else site.call("squeeze", out, axis=over)


@converts("ArgMax", "ArgMin")
def arg_extreme(site: Site) -> Term:
    x = site.input(0)
    found = site.call(
        site.node.op_type.lower(),
        x,
        axis=(site.attr("axis", 0) % x.rank,),
        keepdims=bool(site.attr("keepdims", 1)),
        select_last_index=bool(site.attr("select_last_index", 0)),
    )
    return found if found.dtype == "int64" else site.call("cast", found, dtype="int64")


@converts("CumSum")
def cumulative_sum(site: Site) -> Term:
    x = site.input(0)
    axis = int(site.ints(1, "an axis")[0]) % x.rank
    reverse, exclusive = bool(site.attr("reverse", 0)), bool(site.attr("exclusive", 0))
    if reverse:
        x = site.call("reverse", x, axis=axis)
    out = site.call("cumsum", x, axis=axis, dtype=x.dtype, exclusive=exclusive)
    return site.call("reverse", out, axis=axis) if reverse else out


def _flat(site: Site, name: str) -> Term:
    """Before opset 13 these see a matrix: everything from `axis` on is one row."""
    x, axis = site.input(0), site.attr("axis", 1)
    axis %= max(x.rank, 1)
    if axis == x.rank - 1:
        return site.call(name, x, axis=-1)
    flat = (dims.prod(x.shape[:axis]), dims.prod(x.shape[axis:]))
    out = site.call(name, reshape(site.emit, x, flat), axis=-1)
    return reshape(site.emit, out, x.shape)


@converts("Softmax")
def softmax_flat(site: Site) -> Term:
    return _flat(site, "nn.softmax")


@converts("LogSoftmax")
def log_softmax_flat(site: Site) -> Term:
    return _flat(site, "nn.log_softmax")


@converts("Softmax", since=13)
def softmax(site: Site) -> Term:
    return site.call("nn.softmax", site.input(0), axis=site.attr("axis", -1))


@converts("LogSoftmax", since=13)
def log_softmax(site: Site) -> Term:
    return site.call("nn.log_softmax", site.input(0), axis=site.attr("axis", -1))


def _hot(site: Site, x: Term, axis: int) -> Term:
    """1 at the first largest element of each row, 0 elsewhere."""
    place = site.call("argmax", x, axis=(axis,), keepdims=False)
    size = x.shape[axis]
    on, off = site.emit.constant(1.0, x.dtype), site.emit.constant(0.0, x.dtype)
    return site.call("one_hot", place, on, off, depth=size, axis=axis, dtype=x.dtype)


@converts("Hardmax")
def hardmax_flat(site: Site) -> Term:
    x, axis = site.input(0), site.attr("axis", 1)
    axis %= max(x.rank, 1)
    flat = (dims.prod(x.shape[:axis]), dims.prod(x.shape[axis:]))
    return reshape(site.emit, _hot(site, reshape(site.emit, x, flat), 1), x.shape)


@converts("Hardmax", since=13)
def hardmax(site: Site) -> Term:
    x = site.input(0)
    return _hot(site, x, site.attr("axis", -1) % x.rank)
