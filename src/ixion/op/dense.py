"""Matrix products: dense, matmul, batch_matmul, and bias_add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion import te
from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op import accumulate
from ixion.op.accumulate import accumulator, raised
from ixion.op.axes import checked_axis
from ixion.op.broadcast import join_dims, read_broadcast
from ixion.op.call import call
from ixion.op.compare import Accumulation, Ulp
from ixion.op.conv import conv_dtype
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import extents
from ixion.op.rounding import Array, narrow, wide
from ixion.op.sample import FLOATS, Draw, Sample, array, choice, flag, shape


@register_attrs("relay.attrs.DenseAttrs")
class DenseAttrs(Attrs):
    units: Dim | None = attr(None, "rows of the weight")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")


@register_attrs("relay.attrs.MatmulAttrs")
class MatmulAttrs(Attrs):
    units: Dim | None = attr(None, "columns of the result")
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")
    transpose_a: bool = attr(False, "tensor_a holds its transpose")
    transpose_b: bool = attr(False, "tensor_b holds its transpose")


@register_attrs("relay.attrs.BatchMatmulAttrs")
class BatchMatmulAttrs(Attrs):
    out_dtype: str | None = attr(None, "dtype of the output; none means the input's")
    transpose_a: bool = attr(False, "tensor_a holds its transpose")
    transpose_b: bool = attr(False, "tensor_b holds its transpose")


@register_attrs("relay.attrs.BiasAddAttrs")
class BiasAddAttrs(Attrs):
    axis: int = attr(1, "the axis the bias belongs to")


def _sides(attrs: Any) -> tuple[bool, bool]:
    """Whether each operand is stored transposed; a dense weight always is."""
    if isinstance(attrs, DenseAttrs):
        return False, True
    return attrs.transpose_a, attrs.transpose_b


def _rows(shape: Sequence[Dim], transposed: bool) -> tuple[Dim, Dim]:
    """The last two dims as (rows, columns) of the matrix that is multiplied."""
    return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])


def _check_depth(args: InferArgs, a: TensorType, b: TensorType, left: Dim, right: Dim) -> None:
    rule = f"the summed dims differ ({left} and {right})"
    args.agree(left, right, rule, expected=a.shape, found=b.shape)


def _completes_matmul(args: InferArgs) -> tuple[Type | None, ...]:
    data, attrs = args.types[0], args.attrs
    if not isinstance(data, TensorType) or attrs.units is None or len(data.shape) < 1:
        return args.types
    transpose_a, transpose_b = _sides(attrs)
    depth = data.shape[-2] if transpose_a and len(data.shape) > 1 else data.shape[-1]
    shape = (attrs.units, depth) if transpose_b else (depth, attrs.units)
    return (data, TensorType(shape, data.dtype))


def _infer_matmul(args: InferArgs) -> Type:
    a, b, attrs = args.tensor(0), args.tensor(1), args.attrs
    if not a.shape or len(b.shape) != 2:
        args.fail("needs data of rank 1 or more and a matrix", found=f"{a.shape} and {b.shape}")
    transpose_a, transpose_b = _sides(attrs)
    lead = a.shape[:-1]
    depth = a.shape[-1]
    if transpose_a and len(a.shape) > 1:
        lead, depth = (*a.shape[:-2], a.shape[-1]), a.shape[-2]
    inner, units = _rows(b.shape, transpose_b)
    _check_depth(args, a, b, depth, inner)
    if attrs.units is not None:
        args.agree(attrs.units, units, "weight does not have the units")
    return TensorType((*lead, units), conv_dtype(attrs, a))


def _matmul_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    a, b = inputs
    transpose_a, transpose_b = _sides(attrs)
    left = a.swapaxes(-1, -2) if transpose_a and a.ndim > 1 else a
    return accumulate.matmul(left, b.T if transpose_b else b, out_type.dtype)


def _matmul_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    a, b = ins
    transpose_a, transpose_b = _sides(attrs)
    transpose_a = transpose_a and a.ndim > 1
    dtype = accumulator(out_type.dtype)
    depth = a.shape[-2] if transpose_a else a.shape[-1]

    def body(*i: te.Expr) -> te.Expr:
        k = te.reduce_axis(depth, "rk")
        lead, column = i[:-1], i[-1]
        left = a(*lead[:-1], k.var, lead[-1]) if transpose_a else a(*lead, k.var)
        right = b(column, k.var) if transpose_b else b(k.var, column)
        return te.cast(te.sum(raised(left, dtype) * raised(right, dtype), [k]), out_type.dtype)

    return te.compute(extents(out_type), body, "matmul")


def _matmul_macs(attrs: Any, types: Sequence[Any], out_type: Any) -> Dim:
    transpose_a, _ = _sides(attrs)
    shape = types[0].shape
    depth: Dim = shape[-2] if transpose_a and len(shape) > 1 else shape[-1]
    return dims.multiply(dims.prod(out_type.shape), depth)


def _operands(
    draw: Draw, a: Sequence[int], b: Sequence[int]
) -> tuple[Array, Array, dict[str, Any]]:
    dtype = choice(draw, (*FLOATS, "int8"))
    attrs = {"out_dtype": "int32"} if dtype == "int8" else {}
    return array(draw, a, dtype), array(draw, b, dtype), attrs


def _dense_samples(draw: Draw) -> Sample:
    depth, units = draw.integer(1, 5), draw.integer(1, 5)
    a, b, attrs = _operands(draw, (*shape(draw, 0, 2), depth), (units, depth))
    return Sample((a, b), {**attrs, "units": choice(draw, (None, units))})


def _matmul_samples(draw: Draw) -> Sample:
    depth, units, rows = draw.integer(1, 5), draw.integer(1, 5), draw.integer(1, 5)
    ta, tb = flag(draw), flag(draw)
    left, right = (depth, rows) if ta else (rows, depth), (units, depth) if tb else (depth, units)
    a, b, attrs = _operands(draw, (*shape(draw, 0, 1), *left), right)
    return Sample((a, b), {**attrs, "transpose_a": ta, "transpose_b": tb})


for _name, _attrs, _inputs, _samples in (
    ("nn.dense", DenseAttrs, (("data", "nD Tensor"), ("weight", "2D Tensor")), _dense_samples),
    (
        "nn.matmul", MatmulAttrs,
        (("tensor_a", "nD Tensor"), ("tensor_b", "2D Tensor")), _matmul_samples,
    ),
):  # fmt: skip
    define(
        _name,
        attrs=_attrs,
        inputs=_inputs,
        pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
        level=1,
        infer=_infer_matmul,
        completes=_completes_matmul,
        reference=_matmul_reference,
        compute=_matmul_compute,
        compare=Accumulation(),
        macs=_matmul_macs,
        samples=_samples,
        doc="data @ weight.T." if _name == "nn.dense" else "Product of matrices.",
    )


def _infer_batch(args: InferArgs) -> Type:
    a, b, attrs = args.tensor(0), args.tensor(1), args.attrs
    if len(a.shape) != 3 or len(b.shape) != 3:
        args.fail("both operands have rank 3", found=f"{a.shape} and {b.shape}")
    rows, depth = _rows(a.shape, attrs.transpose_a)
    inner, columns = _rows(b.shape, attrs.transpose_b)
    _check_depth(args, a, b, depth, inner)
    batch = join_dims(a.shape[0], b.shape[0])
    if batch is None:
        args.fail("batch sizes are equal or 1", expected=a.shape[0], found=b.shape[0])
    return TensorType((batch, rows, columns), conv_dtype(attrs, a))


def _batch_reference(attrs: Any, inputs: tuple[Array, ...], out_type: Any) -> Array:
    a = inputs[0].swapaxes(1, 2) if attrs.transpose_a else inputs[0]
    b = inputs[1].swapaxes(1, 2) if attrs.transpose_b else inputs[1]
    return accumulate.matmul(a, b, out_type.dtype)


def _batch_compute(attrs: Any, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    a, b = ins
    dtype = accumulator(out_type.dtype)

    def body(n: te.Expr, row: te.Expr, column: te.Expr) -> te.Expr:
        k = te.reduce_axis(a.shape[1] if attrs.transpose_a else a.shape[2], "rk")
        na = te.const(0, "int64") if a.shape[0] == 1 else n
        nb = te.const(0, "int64") if b.shape[0] == 1 else n
        left = a(na, k.var, row) if attrs.transpose_a else a(na, row, k.var)
        right = b(nb, column, k.var) if attrs.transpose_b else b(nb, k.var, column)
        return te.cast(te.sum(raised(left, dtype) * raised(right, dtype), [k]), out_type.dtype)

    return te.compute(extents(out_type), body, "batch_matmul")


def _batch_samples(draw: Draw) -> Sample:
    batch, rows, depth, columns = (draw.integer(1, 4) for _ in range(4))
    ta, tb = flag(draw), flag(draw)
    left = (depth, rows) if ta else (rows, depth)
    right = (columns, depth) if tb else (depth, columns)
    a, b, attrs = _operands(
        draw, (choice(draw, (1, batch)), *left), (choice(draw, (1, batch)), *right)
    )
    return Sample((a, b), {**attrs, "transpose_a": ta, "transpose_b": tb})


define(
    "nn.batch_matmul",
    attrs=BatchMatmulAttrs,
    inputs=(("tensor_a", "3D Tensor"), ("tensor_b", "3D Tensor")),
    pattern=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    infer=_infer_batch,
    reference=_batch_reference,
    compute=_batch_compute,
    compare=Accumulation(),
    macs=_matmul_macs,
    samples=_batch_samples,
    doc="Products of two stacks of matrices; a stack of one is reused.",
)


def _bias_completes(args: InferArgs) -> tuple[Type | None, ...]:
    data = args.types[0]
    if not isinstance(data, TensorType):
        return args.types
    return (data, TensorType((data.shape[args.attrs.axis],), data.dtype))


def _infer_bias(args: InferArgs) -> Type:
    data, bias = args.tensor(0), args.tensor(1)
    axis = checked_axis(args, args.attrs.axis, len(data.shape))
    size, rule = data.shape[axis], "the bias has one value per channel"
    args.agree_all([size], bias.shape, rule, expected=size, found=bias.shape)
    return data


def _infer_bias_at_run_time(args: InferArgs) -> Type:
    """As Relay's shape function: where inference could not count the channels, one value may stand
    for all of them.
    """
    single = args.tensor(1).shape == (1,)
    return args.tensor(0) if single else _infer_bias(args)


def _bias_reference(attrs: BiasAddAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    data, bias = wide(inputs[0]), wide(inputs[1])
    line = [1] * data.ndim
    line[attrs.axis] = -1
    return narrow(data + bias.reshape(line), out_type.dtype)


def _bias_compute(attrs: BiasAddAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    data, bias = ins
    axis = attrs.axis % data.ndim
    shape = extents(out_type)

    def body(*i: te.Expr) -> te.Expr:
        return data(*i) + read_broadcast(bias, (i[axis],), (shape[axis],))

    return te.compute(shape, body, "bias_add")


def _bias_samples(draw: Draw) -> Sample:
    dtype, dims_ = choice(draw, (*FLOATS, "int32")), shape(draw, 1, 4)
    axis = draw.integer(-len(dims_), len(dims_) - 1)
    return Sample((array(draw, dims_, dtype), array(draw, (dims_[axis],), dtype)), {"axis": axis})


define(
    "nn.bias_add",
    attrs=BiasAddAttrs,
    inputs=(("data", "nD Tensor"), ("bias", "1D Tensor")),
    pattern=OpPattern.BROADCAST,
    level=1,
    infer=_infer_bias,
    completes=_bias_completes,
    FShapeFunc=_infer_bias_at_run_time,
    reference=_bias_reference,
    compute=_bias_compute,
    compare=Ulp(1),
    samples=_bias_samples,
    doc="data plus one value per position of an axis.",
)


def dense(data: Expr, weight: Expr, units: Any = None, out_dtype: str = "") -> Call:
    return call("nn.dense", data, weight, units=units, out_dtype=out_dtype or None)


def matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    units: Any = None,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> Call:
    """Relay's builder: with only ``transpose_b`` it makes the dense op, the same product."""
    if not transpose_a and transpose_b:
        return dense(tensor_a, tensor_b, units, out_dtype)
    return call(
        "nn.matmul", tensor_a, tensor_b, units=units, out_dtype=out_dtype or None,
        transpose_a=transpose_a, transpose_b=transpose_b,
    )  # fmt: skip


def batch_matmul(
    tensor_a: Expr,
    tensor_b: Expr,
    out_dtype: str = "",
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Call:
    """Relay's builder: ``transpose_b`` is on by default here and off in the attribute."""
    return call(
        "nn.batch_matmul", tensor_a, tensor_b, out_dtype=out_dtype or None,
        transpose_a=transpose_a, transpose_b=transpose_b,
    )  # fmt: skip


def bias_add(data: Expr, bias: Expr, axis: int = 1) -> Call:
    return call("nn.bias_add", data, bias, axis=axis)
