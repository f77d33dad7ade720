"""References against onnxruntime where an op has an ONNX counterpart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.base import dtype as dtypes
from ixion.ir.op import Op
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.define import InferArgs

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(7)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def run_onnx(
    kind: str, inputs: list[Any], outputs: int = 1, opset: int = 17, **attrs: Any
) -> list[Any]:
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    outs = [f"y{i}" for i in range(outputs)]
    node = onnx.helper.make_node(kind, names, outs, **attrs)
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [
            onnx.helper.make_tensor_value_info(
                n, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for n, x in zip(names, inputs, strict=True)
            if x is not None
        ],
        [onnx.ValueInfoProto(name=o) for o in outs],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, {n: x for n, x in zip(names, inputs, strict=True) if x is not None})


def type_of(value: Any) -> Type:
    if isinstance(value, tuple):
        return TupleType([type_of(v) for v in value])
    return TensorType(value.shape, dtypes.from_numpy(value.dtype))


def run_op(name: str, args: tuple[Any, ...], **attrs: Any) -> list[Any]:
    op = Op.get(name)
    made = op.attrs_type(**attrs) if op.attrs_type else None
    values = tuple(a if not isinstance(a, tuple) and a.dtype.kind in "iub" else None for a in args)
    kind = op.get_attr("FInfer")(InferArgs(name, tuple(map(type_of, args)), made, values)).type
    flat: list[Any] = []
    for a in args:
        flat.extend(a if isinstance(a, tuple) else (a,))
    out = op.get_attr("FReference")(made, tuple(flat), kind)
    return list(out) if isinstance(out, tuple) else [out]


def same(got: list[Any], want: list[Any], tolerance: float = 1e-5) -> None:
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 2, 2, 0)])
def test_conv2d(groups: int, pads: tuple[int, ...]) -> None:
    x, w = f32(2, 4, 9, 8), f32(8, 4 // groups, 3, 2)
    want = run_onnx("Conv", [x, w], group=groups, pads=pads, strides=[2, 1], dilations=[1, 2])
    got = run_op("nn.conv2d", (x, w), groups=groups, padding=pads, strides=[2, 1], dilation=[1, 2])
    same(got, want)


@pytest.mark.parametrize(("rank", "name"), [(1, "nn.conv1d"), (3, "nn.conv3d")])
def test_conv_other_ranks(rank: int, name: str) -> None:
    x, w = f32(1, 3, *[6] * rank), f32(2, 3, *[3] * rank)
    pads = [1] * (2 * rank)
    want = run_onnx("Conv", [x, w], pads=pads, strides=[2] * rank)
    same(run_op(name, (x, w), padding=pads, strides=[2] * rank), want)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("extra", [(0, 0), (1, 1)])
def test_conv2d_transpose(groups: int, extra: tuple[int, int]) -> None:
    x, w = f32(2, 4, 5, 4), f32(4, 3, 3, 2)
    shared = {"strides": [2, 3], "output_padding": extra}
    want = run_onnx(
        "ConvTranspose", [x, w], group=groups, pads=[1, 0, 0, 1], dilations=[2, 1], **shared
    )
    got = run_op(
        "nn.conv2d_transpose",
        (x, w),
        groups=groups,
        padding=[1, 0, 0, 1],
        dilation=[2, 1],
        **shared,
    )
    same(got, want)


@pytest.mark.parametrize("ceil", [0, 1])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 1, 1)])
def test_pools(ceil: int, pads: tuple[int, ...]) -> None:
    x = f32(1, 2, 8, 7)
    shared = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": pads, "ceil_mode": ceil}
    own = {"pool_size": [3, 2], "strides": [2, 2], "padding": pads, "ceil_mode": bool(ceil)}
    same(run_op("nn.max_pool2d", (x,), **own), run_onnx("MaxPool", [x], **shared))
    same(run_op("nn.avg_pool2d", (x,), **own), run_onnx("AveragePool", [x], opset=19, **shared))
    want = run_onnx("AveragePool", [x], opset=19, count_include_pad=1, **shared)
    same(run_op("nn.avg_pool2d", (x,), count_include_pad=True, **own), want)


def test_max_pool_dilation() -> None:
    x = f32(1, 2, 9, 9)
    want = run_onnx("MaxPool", [x], kernel_shape=[3, 3], dilations=[2, 2], strides=[1, 2])
    same(run_op("nn.max_pool2d", (x,), pool_size=[3, 3], dilation=[2, 2], strides=[1, 2]), want)


@pytest.mark.parametrize("size", [3, 5])
def test_lrn(size: int) -> None:
    x = f32(2, 6, 3, 3)
    want = run_onnx("LRN", [x], size=size, alpha=0.1, beta=0.75, bias=1.5)
    same(run_op("nn.lrn", (x,), size=size, alpha=0.1, beta=0.75, bias=1.5), want)


def test_norms() -> None:
    x, gamma, beta = f32(2, 4, 3, 5), f32(4), f32(4)
    want = run_onnx("InstanceNormalization", [x, gamma, beta], epsilon=1e-4)
    same(run_op("nn.instance_norm", (x, gamma, beta), epsilon=1e-4), want)
    last, bias = f32(5), f32(5)
    want = run_onnx("LayerNormalization", [x, last, bias], axis=-1, epsilon=1e-4)
    same(run_op("nn.layer_norm", (x, last, bias), epsilon=1e-4), want)
    mean, var = f32(4), np.abs(f32(4)) + 0.1
    want = run_onnx("BatchNormalization", [x, gamma, beta, mean, var], epsilon=1e-3)
    same(run_op("nn.batch_norm", (x, gamma, beta, mean, var), epsilon=1e-3)[:1], want)


@pytest.mark.parametrize(
    "mode", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("size", [(3, 7), (8, 4), (1, 1)])
def test_resize(mode: str, method: str, size: tuple[int, int]) -> None:
    x = f32(1, 2, 5, 4)
    more = {"nearest_mode": "floor"} if method == "nearest" else {}
    want = run_onnx(
        "Resize", [x, None, None, i64(1, 2, *size)],
        mode=method, coordinate_transformation_mode=mode, cubic_coeff_a=-0.6, **more,
    )  # fmt: skip
    own = {"nearest": "nearest_neighbor"}.get(method, method)
    got = run_op(
        "image.resize2d", (x,), size=size, method=own, coordinate_transformation_mode=mode,
        rounding_method="floor", cubic_alpha=-0.6,
    )  # fmt: skip
    same(got, want)


@pytest.mark.parametrize("scale", [0.6, 1.7])
@pytest.mark.parametrize("method", ["nearest", "linear"])
def test_interpolate_follows_the_scale(scale: float, method: str) -> None:
    x = f32(1, 1, 5, 7)
    size = [int(5 * scale), int(7 * scale)]
    scales = np.array([1, 1, scale, scale], np.float32)
    want = run_onnx(
        "Resize", [x, None, scales], mode=method, nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    own = {"nearest": "nearest_neighbor"}.get(method, method)
    got = run_op(
        "image.interpolate", (x,), size=size, scales=[float(np.float32(scale))] * 2, method=own,
        coordinate_transformation_mode="asymmetric", rounding_method="floor", layout="NCHW",
    )  # fmt: skip
    same(got, want)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(padding: str, method: str, align: int) -> None:
    x, grid = f32(2, 3, 4, 5), RNG.uniform(-1.6, 1.6, (2, 3, 4, 2)).astype(np.float32)
    want = run_onnx(
        "GridSample", [x, grid], mode=method, padding_mode=padding, align_corners=align, opset=16
    )
    got = run_op(
        "image.grid_sample", (x, np.ascontiguousarray(grid.transpose(0, 3, 1, 2))),
        method=method, padding_mode=padding, align_corners=bool(align),
    )  # fmt: skip
    same(got, want, 1e-4)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(half: bool, ratio: int) -> None:
    x = f32(2, 2, 6, 7)
    boxes = np.array(
        [[0.5, 1.0, 4.0, 5.5], [0.0, 0.0, 0.3, 0.2], [-1.0, 2.0, 8.0, 9.0]], np.float32
    )
    owners = i64(0, 1, 1)
    mode = "half_pixel" if half else "output_half_pixel"
    want = run_onnx(
        "RoiAlign", [x, boxes, owners], output_height=2, output_width=3, sampling_ratio=ratio,
        spatial_scale=0.9, coordinate_transformation_mode=mode,
    )  # fmt: skip
    rois = np.concatenate([owners[:, None].astype(np.float32), boxes], axis=1)
    name = "vision.roi_align_half_pixel" if half else "vision.roi_align"
    got = run_op(name, (x, rois), pooled_size=(2, 3), spatial_scale=0.9, sample_ratio=ratio or -1)
    same(got, want)


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_scatter(reduction: str) -> None:
    x, updates = f32(4, 5), f32(2, 5)
    own = "update" if reduction == "none" else reduction
    indices = RNG.integers(-4, 4, (2, 5))
    if reduction == "none":
        indices[1] = (indices[0] + 1) % 4
    want = run_onnx("ScatterElements", [x, indices, updates], axis=0, reduction=reduction)
    same(run_op("scatter_elements", (x, indices, updates), axis=0, reduction=own), want)
    places = i64([3], [1])
    want = run_onnx("ScatterND", [x, places, updates], reduction=reduction)
    same(run_op("scatter_nd", (x, places.T.copy(), updates), mode=own), want)


def test_gathers() -> None:
    x = f32(3, 4, 5)
    indices = RNG.integers(0, 4, (3, 2, 5))
    want = run_onnx("GatherElements", [x, indices], axis=1)
    same(run_op("gather", (x, indices), axis=1), want)
    rows = RNG.integers(0, 4, (3, 2, 1))
    want = run_onnx("GatherND", [x, rows], batch_dims=1)
    moved = np.ascontiguousarray(np.moveaxis(rows, -1, 0))
    same(run_op("gather_nd", (x, moved), batch_dims=1), want)


@pytest.mark.parametrize("exclusive", [0, 1])
def test_cumsum(exclusive: int) -> None:
    x = f32(3, 4)
    want = run_onnx("CumSum", [x, np.array(1, np.int64)], exclusive=exclusive)
    same(run_op("cumsum", (x,), axis=1, exclusive=bool(exclusive)), want)


@pytest.mark.parametrize("largest", [0, 1])
def test_topk(largest: int) -> None:
    x = np.round(f32(3, 7))
    want = run_onnx("TopK", [x, i64(4)], outputs=2, axis=1, largest=largest)
    got = run_op("topk", (x,), k=4, axis=1, is_ascend=not largest, dtype="int64")
    same(got, want)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode: str) -> None:
    x = f32(4, 5)
    want = run_onnx("Pad", [x, i64(2, 1, 0, 3), np.array(1.5, np.float32)], mode=mode)
    got = run_op(
        "nn.pad", (x, np.array(1.5, np.float32)), pad_width=((2, 0), (1, 3)), pad_mode=mode
    )
    same(got, want)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    x = f32(2, 12, 3, 2)
    want = run_onnx("DepthToSpace", [x], blocksize=2, mode=mode)
    same(run_op("nn.depth_to_space", (x,), block_size=2, mode=mode), want)
    y = f32(1, 2, 4, 6)
    want = run_onnx("SpaceToDepth", [y], blocksize=2)
    same(run_op("nn.space_to_depth", (y,), block_size=2), want)


@pytest.mark.parametrize(
    "equation", ["bij,bjk->bik", "ij,jk", "...ij,...jk->...ik", "ii->i", "i,j->ij"]
)
def test_einsum(equation: str) -> None:
    shapes = {
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 2)],
        "ij,jk": [(3, 4), (4, 2)],
        "...ij,...jk->...ik": [(2, 2, 3, 4), (1, 2, 4, 5)],
        "ii->i": [(3, 3)],
        "i,j->ij": [(3,), (4,)],
    }[equation]
    parts = [f32(*s) for s in shapes]
    same(
        run_op("einsum", (tuple(parts),), equation=equation),
        run_onnx("Einsum", parts, equation=equation),
    )


def test_non_max_suppression() -> None:
    corner = RNG.uniform(0, 4, (2, 8, 2)).astype(np.float32)
    boxes = np.concatenate(
        [corner, corner + RNG.uniform(0.5, 3, (2, 8, 2)).astype(np.float32)], axis=2
    )
    scores = RNG.uniform(0, 1, (2, 3, 8)).astype(np.float32)
    limits = (i64(3), np.array([0.3], np.float32), np.array([0.2], np.float32))
    want = run_onnx("NonMaxSuppression", [boxes, scores, *limits])[0]
    rows, count = run_op("vision.all_class_non_max_suppression", (boxes, scores, *limits))
    np.testing.assert_array_equal(rows[: int(count[0])], want)


def test_integer_division_and_remainder() -> None:
    a, b = i64(7, -7, 7, -7, 9), i64(2, 2, -2, -2, 11)
    same(run_op("divide", (a, b)), run_onnx("Div", [a, b]))
    same(run_op("floor_mod", (a, b)), run_onnx("Mod", [a, b]))
    x, y = f32(20), f32(20)
    same(run_op("trunc_mod", (x, y)), run_onnx("Mod", [x, y], fmod=1))


def test_unique() -> None:
    x = i64(2, 1, 1, 3, 4, 3)
    for rising in (0, 1):
        want = run_onnx("Unique", [x], outputs=4, sorted=rising)
        got = run_op("unique", (x,), sorted=bool(rising), return_counts=True)
        for g, w in zip((got[0], got[1], got[2], got[4]), want, strict=True):
            np.testing.assert_array_equal(g, w)
