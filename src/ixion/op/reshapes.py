"""The same elements in row-major order under another shape: reshape and its kin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.axes import shape_text, static_sizes
from ixion.op.call import call, known_ints, unary_builder
from ixion.op.compare import Exact
from ixion.op.define import Infer, InferArgs, Inferred, OpPattern, Reference, define, moves
from ixion.op.extent import Extent, dims_of, extents, is_one, product
from ixion.op.rounding import Array
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, shape


@register_attrs("relay.attrs.ReshapeAttrs")
class ReshapeAttrs(Attrs):
    newshape: tuple[Dim, ...] = attr(doc="dims, or codes 0, -1, -2, -3, -4")
    allowzero: bool = attr(False, "0 means a dim of size 0")


@register_attrs("relay.attrs.ReshapeLikeAttrs")
class ReshapeLikeAttrs(Attrs):
    lhs_begin: int = attr(0, "first dim of data that is replaced")
    lhs_end: int | None = attr(None, "one past the last")
    rhs_begin: int = attr(0, "first dim of shape_like that is taken")
    rhs_end: int | None = attr(None, "one past the last")


def resolve_newshape(
    args: InferArgs, source: Sequence[Dim], codes: Sequence[Any], allowzero: bool
) -> tuple[Dim, ...]:
    """The shape Relay's reshape codes stand for.

    0 copies a dim, -1 is inferred, -2 copies the rest, -3 merges two dims, -4 splits one into the
    two numbers that follow.  Raises TypeInferenceError when the element counts provably differ.
    """
    out: list[Dim] = []
    # Input dims that appear unchanged in the output cancel out of an inferred dim.
    copied: set[int] = set()
    plain: list[Dim] = []
    hole, at, i = -1, 0, 0

    def take() -> Dim:
        nonlocal at
        if at >= len(source):
            args.fail("newshape copies more dims than the data has", expected=source, found=codes)
        at += 1
        return source[at - 1]

    while i < len(codes):
        code = codes[i]
        if not isinstance(code, int) or code > 0 or (code == 0 and allowzero):
            out.append(code)
            plain.append(code)
            at += 1
        elif code == 0:
            copied.add(at)
            out.append(take())
        elif code == -1:
            if hole >= 0:
                args.fail("newshape has more than one -1", found=codes)
            hole = len(out)
            out.append(1)
            at += 1
        elif code == -2:
            while at < len(source):
                copied.add(at)
                out.append(take())
        elif code == -3:
            copied.update((at, at + 1))
            out.append(take() * take())
        elif code == -4:
            copied.add(at)
            out.extend(_split(args, take(), codes[i + 1 : i + 3]))
            i += 2
        else:
            args.fail("unknown code in newshape", found=code)
        i += 1
    left = dims.prod(d for j, d in enumerate(source) if j not in copied)
    _fill(args, source, out, left, dims.prod(plain), hole)
    return tuple(out)


def _split(args: InferArgs, whole: Dim, parts: Sequence[Any]) -> list[Dim]:
    if len(parts) != 2:
        args.fail("-4 in newshape needs two numbers after it", found=parts)
    first, second = parts
    if first == -1:
        first = whole // second
    elif second == -1:
        second = whole // first
    rule = "-4 in newshape splits a dim unevenly"
    args.agree(whole, first * second, rule, expected=whole, found=f"{first}*{second}")
    return [first, second]


def _fill(
    args: InferArgs, source: Sequence[Dim], out: list[Dim], left: Dim, given: Dim, hole: int
) -> None:
    """Infers the -1 and compares element counts."""
    if hole >= 0:
        if isinstance(given, int) and given == 0:
            args.fail("-1 cannot be inferred beside a dim of size 0", found=out)
        out[hole] = left // given
        rule = "newshape does not divide the data"
        args.agree(left, out[hole] * given, rule, expected=source, found=out)
    else:
        shapes = {"expected": shape_text(source), "found": shape_text(out)}
        args.agree(left, given, "element counts differ", **shapes)


def strides_of(shape: Sequence[Extent]) -> list[Extent]:
    """Row-major strides in elements."""
    return [product(shape[d + 1 :]) for d in range(len(shape))]


def flat_index(index: Sequence[te.Expr], shape: Sequence[Extent]) -> te.Expr:
    """Position of ``index`` in row-major order."""
    total: te.Expr = te.const(0, "int64")
    for i, stride in zip(index, strides_of(shape), strict=True):
        total = total + i * stride
    return total


def index_of_flat(flat: te.Expr, shape: Sequence[Extent]) -> list[te.Expr]:
    """Inverse of ``flat_index``."""
    out = []
    for d, (size, stride) in enumerate(zip(shape, strides_of(shape), strict=True)):
        out.append(flat // stride if d == 0 else flat // stride % size)
    return out


def reshape_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    """Row-major elements of the first input in the output's shape.

    Where a size is a symbol, axes that only change among themselves are looked at alone: indices
    then divide by numbers, not by sizes that are known at run time.
    """
    x, target = ins[0], extents(out_type)
    if all(isinstance(size, int) for size in (*x.shape, *target)):

        def whole(*i: te.Expr) -> te.Expr:
            return x(*index_of_flat(flat_index(i, target), x.shape))

        return te.compute(target, whole, "reshape")
    pieces = aligned(dims_of(x.shape), out_type.shape)

    def body(*i: te.Expr) -> te.Expr:
        at: list[te.Expr] = [te.const(0, "int64")] * x.ndim
        for source, wanted in pieces:
            own = [a for a in source if not is_one(x.shape[a])]
            axes = [a for a in wanted if not is_one(target[a])]
            places = [i[a] for a in axes]
            if len(own) != 1 or len(axes) != 1:
                flat = flat_index(places, [target[a] for a in axes])
                places = index_of_flat(flat, [x.shape[a] for a in own])
            for a, place in zip(own, places, strict=True):
                at[a] = place
        return x(*at)

    return te.compute(target, body, "reshape")


def aligned(source: Sequence[Dim], target: Sequence[Dim]) -> list[tuple[range, range]]:
    """Ranges of axes of two shapes, in order, that hold the same elements: as short as can be
    seen, and together all axes.
    """
    pieces: list[tuple[range, range]] = []
    i = j = 0
    for stop in range(1, len(source) + 1):
        for other in range(j + 1, len(target) + 1):
            if dims.same(dims.prod(source[i:stop]), dims.prod(target[j:other])):
                pieces.append((range(i, stop), range(j, other)))
                i, j = stop, other
                break
    if i < len(source) or j < len(target) or not pieces:
        pieces.append((range(i, len(source)), range(j, len(target))))
    return pieces


def shaped_by(infer: Infer) -> Reference:
    """A reference giving the first input the shape that ``infer`` derives from all inputs."""

    def reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
        data, *sizes = inputs
        types = (
            TensorType(data.shape, out_type.dtype), *(TensorType(x.shape, "int64") for x in sizes)
        )  # fmt: skip
        found = infer(InferArgs("reshape", types, attrs, (None, *sizes)))
        kind = found.type if isinstance(found, Inferred) else found
        assert isinstance(kind, TensorType)
        return inputs[0].reshape(static_sizes(kind.shape))

    return reference


def _infer_reshape(args: InferArgs) -> Type:
    data = args.tensor()
    codes, zero = args.attrs.newshape, args.attrs.allowzero
    return TensorType(resolve_newshape(args, data.shape, codes, zero), data.dtype)


def _reshape_samples(draw: Draw) -> Sample:
    dims = shape(draw, 1, 4)
    x = array(draw, dims, choice(draw, (*FLOATS, "int64")))
    options: list[tuple[int, ...]] = [(-1,), (0, -1), (-2,), dims[::-1], (*dims, 1), (1, -1)]
    if len(dims) > 1:
        options += [(-3, -2), (-4, 1, -1, -2)]
    if len(dims) > 2:
        options.append((0, -3, *(0,) * (len(dims) - 3)))
    newshape = choice(draw, options)
    return Sample((x,), {"newshape": newshape})


define(
    "reshape",
    attrs=ReshapeAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_reshape,
    reference=shaped_by(_infer_reshape),
    compute=reshape_compute,
    compare=Exact(),
    symbolic=moves(),
    samples=_reshape_samples,
    TReshapeOp=True,
    doc="The same elements in row-major order under another shape.",
)


def _reverse_codes(codes: Sequence[int]) -> list[int]:
    """Codes read from the right, a -4 keeping the two numbers it splits into."""
    out: list[int] = []
    rest = list(codes)
    while rest:
        if len(rest) >= 3 and rest[-3] == -4:
            out += [-4, rest[-1], rest[-2]]
            del rest[-3:]
        else:
            out.append(rest.pop())
    return out


def _infer_reverse_reshape(args: InferArgs) -> Type:
    data = args.tensor()
    codes = _reverse_codes(args.attrs.newshape)
    found = resolve_newshape(args, data.shape[::-1], codes, args.attrs.allowzero)
    return TensorType(found[::-1], data.dtype)


define(
    "contrib_reverse_reshape",
    attrs=ReshapeAttrs,
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=10,
    infer=_infer_reverse_reshape,
    reference=shaped_by(_infer_reverse_reshape),
    compute=reshape_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (2, 3, 4)),), {"newshape": (-1, 0)}),
    TReshapeOp=True,
    doc="Reshape with the codes matched from the last dim on.",
)


def _infer_reshape_like(args: InferArgs) -> Type:
    data, like, a = args.tensor(0), args.tensor(1), args.attrs
    head = data.shape[: a.lhs_begin % (len(data.shape) + 1) if a.lhs_begin < 0 else a.lhs_begin]
    lhs_end = len(data.shape) if a.lhs_end is None else a.lhs_end
    rhs_end = len(like.shape) if a.rhs_end is None else a.rhs_end
    tail = data.shape[lhs_end:] if a.lhs_end is not None else ()
    out = (*head, *like.shape[a.rhs_begin : rhs_end], *tail)
    args.agree(
        dims.prod(data.shape), dims.prod(out), "element counts differ",
        expected=shape_text(data.shape), found=shape_text(out),
    )  # fmt: skip
    return TensorType(out, data.dtype)


define(
    "reshape_like",
    attrs=ReshapeLikeAttrs,
    inputs=("data", "shape_like"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_reshape_like,
    reference=shaped_by(_infer_reshape_like),
    compute=reshape_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, (2, 6)), array(draw, (3, 4)))),
    doc="Data in the shape of another tensor, or with a range of its dims so replaced.",
)


def _infer_flatten(args: InferArgs) -> Type:
    data = args.tensor()
    if not data.shape:
        args.fail("a scalar has no batch axis", found="()")
    return TensorType((data.shape[0], dims.prod(data.shape[1:])), data.dtype)


define(
    "nn.batch_flatten",
    inputs=("data",),
    pattern=OpPattern.INJECTIVE,
    level=2,
    infer=_infer_flatten,
    reference=shaped_by(_infer_flatten),
    compute=reshape_compute,
    compare=Exact(),
    samples=lambda draw: Sample((array(draw, shape(draw, 1, 4)),)),
    TReshapeOp=True,
    doc="(n, a, b, ...) as (n, a * b * ...).",
)


def _infer_dyn_reshape(args: InferArgs) -> Type:
    data, target = args.tensor(0), args.tensor(1)
    codes = args.value(1)
    if len(target.shape) != 1 or not isinstance(target.shape[0], int):
        args.fail("the new shape must be a vector of known length", found=shape_text(target.shape))
    if codes is None:
        return TensorType((dims.Any(),) * target.shape[0], data.dtype)
    found = resolve_newshape(args, data.shape, list(codes), args.attrs.allowzero)
    return TensorType(found, data.dtype)


define(
    "dyn.reshape",
    attrs=ReshapeAttrs,
    inputs=("data", "newshape"),
    pattern=OpPattern.INJECTIVE,
    level=3,
    infer=_infer_dyn_reshape,
    reference=shaped_by(_infer_dyn_reshape),
    compute=reshape_compute,
    compare=Exact(),
    symbolic=moves(1),
    samples=lambda draw: Sample(
        (array(draw, (2, 6)), np.array([3, -1], np.int64)), {"newshape": ()}
    ),
    TReshapeOp=True,
    doc="Reshape to a shape computed at run time.",
)


def reshape(data: Expr, newshape: Any, allowzero: bool = False) -> Call:
    """Relay's reshape; a shape given as an expression makes the dynamic op."""
    newshape = known_ints(newshape)
    if isinstance(newshape, Expr):
        return call("dyn.reshape", data, newshape, newshape=(), allowzero=allowzero)
    newshape = [newshape] if isinstance(newshape, int) else newshape
    return call("reshape", data, newshape=newshape, allowzero=allowzero)


def reshape_to(data: Expr, shape: Sequence[Dim], **more: Any) -> Call:
    """A reshape to exactly these sizes: numbers, and symbols that may turn out to be 0."""
    literal = any(not isinstance(dim, int) or dim == 0 for dim in shape)
    return call("reshape", data, newshape=shape, allowzero=literal, **more)


def contrib_reverse_reshape(data: Expr, newshape: Sequence[int]) -> Call:
    return call("contrib_reverse_reshape", data, newshape=newshape)


reverse_reshape = contrib_reverse_reshape


def reshape_like(
    data: Expr,
    shape_like: Expr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Call:
    ranges = {
        "lhs_begin": lhs_begin,
        "lhs_end": lhs_end,
        "rhs_begin": rhs_begin,
        "rhs_end": rhs_end,
    }
    return call("reshape_like", data, shape_like, **ranges)


batch_flatten = unary_builder("nn.batch_flatten")
