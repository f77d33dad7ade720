"""Constants, and values made from sizes: Shape, Size, ConstantOfShape, Range."""

from __future__ import annotations

import numpy as np

from ixion.base import dim as dims
from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import broadcast_to, narrow, reshape
from ixion.frontend.onnx.convert import Site, converts, dtype_of
from ixion.frontend.onnx.model import SparseTensor
from ixion.frontend.term import Term, at_most, static

_CONSTANTS = {
    "value_float": "float32", "value_floats": "float32", "value_int": "int64", "value_ints": "int64"
}  # fmt: skip
#: A constant made out of a size and one number stays a call beyond this.
_MOST_ELEMENTS = 1 << 16


@converts("Constant")
def constant(site: Site) -> Term:
    for name, dtype in _CONSTANTS.items():
        if site.has(name):
            return site.emit.constant(site.attr(name), dtype)
    if site.has("sparse_value"):
        from ixion.frontend.onnx.importer import dense_array

        sparse = site.attr("sparse_value")
        if not isinstance(sparse, SparseTensor):
            raise ModelFormatError("the attribute 'sparse_value' is no sparse tensor")
        return Term.constant(dense_array(sparse))
    if site.has("value"):
        return Term.constant(site.tensor("value").numpy())
    return site.unsupported("of strings")


@converts("Shape")
def shape(site: Site) -> Term:
    x = site.input(0)
    start, stop = site.attr("start", 0), site.attr("end", x.rank)
    chosen = x.shape[slice(start, stop)]
    if not any(isinstance(dim, dims.Any) for dim in chosen):
        return site.emit.sizes(chosen)
    first, last, _ = slice(start, stop).indices(x.rank)
    return narrow(site.emit, site.call("shape_of", x, dtype="int64"), 0, first, last)


@converts("Size")
def size(site: Site) -> Term:
    return site.call("ndarray_size", site.input(0), dtype="int64")


@converts("ConstantOfShape")
def constant_of_shape(site: Site) -> Term:
    wanted = site.dims(0, "a shape")
    fill = np.zeros(1, np.float32)
    if site.has("value"):
        fill = site.tensor("value").numpy()
    value = Term.constant(fill.reshape(()))
    if all(isinstance(dim, int) for dim in wanted) and int(np.prod(wanted)) <= _MOST_ELEMENTS:
        return Term.constant(np.full(tuple(wanted), fill.reshape(-1)[0], fill.dtype))
    return site.call("full", value, shape=tuple(wanted), dtype=value.dtype)


@converts("Range")
def range_(site: Site) -> Term:
    start, stop, step = (site.input(index) for index in range(3))
    bounds = [term.array if term.known else None for term in (start, stop, step)]
    if all(bound is not None for bound in bounds):
        first, last, by = (np.asarray(bound).reshape(-1)[0].item() for bound in bounds)
        return site.emit.arange(first, last, by, start.dtype)
    values = [term.dims() for term in (start, stop, step)]
    if all(value is not None and len(value) == 1 for value in values):
        first, end, by = (value[0] for value in values if value is not None)
        return site.emit.arange(first, end, by, start.dtype)
    return site.call(
        "arange",
        start, stop, step,
        start=start.expr, stop=stop.expr, step=step.expr, dtype=start.dtype,
    )  # fmt: skip


@converts("EyeLike")
def eye_like(site: Site) -> Term:
    x = site.input(0)
    rows, columns = (static(dim) for dim in x.shape)
    at_most(1 << 24, rows * columns, "elements of an identity matrix")
    dtype = dtype_of(site.attr("dtype")) if site.has("dtype") else x.dtype
    return site.emit.constant(np.eye(rows, columns, site.attr("k", 0)), dtype)


@converts("RandomNormalLike", "RandomUniformLike", "RandomNormal", "RandomUniform", "Bernoulli")
def random(site: Site) -> Term:
    return site.unsupported("(random numbers)")


@converts("CenterCropPad")
def center_crop_pad(site: Site) -> Term:
    from ixion.frontend.build.movement import pad

    x = site.input(0)
    axes = site.axes(2, list(range(x.rank))) or []
    wanted = site.ints(1, "a shape")
    widths = [(0, 0)] * x.rank
    for axis, target in zip(axes, wanted, strict=True):
        extra = target - static(x.shape[axis])
        before = extra // 2 if extra >= 0 else -(-extra // 2)
        widths[axis] = (before, extra - before)
    return pad(site.emit, x, widths)


def broadcast_scalar(site: Site, value: Term, like: Term) -> Term:
    """A scalar repeated to another term's shape."""
    return broadcast_to(site.emit, reshape(site.emit, value, ()), like.shape)
