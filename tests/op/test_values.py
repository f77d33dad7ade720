"""Symbolic values: shape arithmetic as exporters write it gives symbolic dims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.analysis import evaluate
from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymVar
from ixion.base.errors import TypeInferenceError
from ixion.ir import IRModule, structural_equal, var
from ixion.ir.op import Op
from ixion.ir.types import TensorType, TupleType
from ixion.op import strided_slice
from ixion.op.define import InferArgs, Inferred
from ixion.transform import InferType

N, S = SymVar("n"), SymVar("s")


def infer(name: str, types: Any, values: Any = (), **attrs: Any) -> Inferred:
    op = Op.get(name)
    made = op.attrs_type(**attrs) if op.attrs_type else None
    padded = tuple(values) + (None,) * (len(types) - len(values))
    return op.get_attr("FInfer")(InferArgs(name, tuple(types), made, padded))


def vector(size: int, dtype: str = "int64") -> TensorType:
    return TensorType((size,), dtype)


def scalar(dtype: str = "int64") -> TensorType:
    return TensorType((), dtype)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def test_flatten_as_exported() -> None:
    """reshape(x, concat(shape(x)[0:1], [-1]))"""
    x = TensorType((N, 8, 4, 4))
    shape = infer("shape_of", [x], dtype="int64")
    first = infer("strided_slice", [shape.type], [shape.value], begin=[0], end=[1])
    pair = TupleType([first.type, vector(1)])
    target = infer("concatenate", [pair], [(first.value, ints(-1))], axis=0)
    out = infer("dyn.reshape", [x, target.type], [None, target.value], newshape=())
    assert out.type == TensorType((N, 128))


def test_heads_split_and_merged() -> None:
    x = TensorType((N, S, 768))
    shape = infer("shape_of", [x], dtype="int64")
    batch = infer("take", [shape.type, scalar()], [shape.value, np.int64(0).reshape(())], axis=0)
    length = infer("take", [shape.type, scalar()], [shape.value, np.int64(1).reshape(())], axis=0)
    parts = [infer("expand_dims", [v.type], [v.value], axis=0) for v in (batch, length)]
    fields = TupleType([p.type for p in parts] + [vector(2)])
    target = infer("concatenate", [fields], [(*(p.value for p in parts), ints(12, 64))], axis=0)
    split = infer("dyn.reshape", [x, target.type], [None, target.value], newshape=())
    assert split.type == TensorType((N, S, 12, 64))
    merged = infer("reshape", [split.type], newshape=(0, 0, -1))
    assert merged.type == x


def test_arithmetic_on_shapes() -> None:
    shape = infer("shape_of", [TensorType((N, S))], dtype="int64")
    doubled = infer("multiply", [shape.type, vector(2)], [shape.value, ints(2, 3)])
    assert list(doubled.value) == [N * 2, S * 3]
    halved = infer("divide", [doubled.type, vector(2)], [doubled.value, ints(2, 3)])
    assert list(halved.value) == [N, S]
    product = infer("prod", [shape.type], [shape.value], axis=[0])
    assert product.value.ravel()[0] == N * S
    same = infer("equal", [shape.type, vector(2)], [shape.value, shape.value])
    assert list(same.value) == [True, True]


def test_expand_where_idiom() -> None:
    """torch's expand: where(shape == -1, ones, shape) decides the target."""
    shape = np.array([N, -1], dtype=object)
    minus = infer("equal", [vector(2), vector(2)], [ints(5, -1), ints(-1, -1)])
    chosen = infer(
        "where", [TensorType((2,), "bool"), vector(2), vector(2)], [minus.value, ints(1, 1), shape]
    )
    assert list(chosen.value) == [N, 1]


def test_arange_over_a_symbolic_length() -> None:
    values = [np.zeros((), np.int64), np.array(S, dtype=object), np.ones((), np.int64)]
    out = infer("arange", [scalar()] * 3, values, dtype="int64")
    assert out.type == TensorType((S,), "int64")


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [([0], [2**31 - 1], S), ([1], [2**31 - 1], S - 1), ([0], [S], S), ([S - 1], [S], 1)],
)
def test_slices_of_symbolic_axes(begin: Any, end: Any, expected: Any) -> None:
    out = infer("strided_slice", [TensorType((S,))], begin=begin, end=end)
    assert out.type == TensorType((expected,))


def test_table_cut_to_a_symbolic_length() -> None:
    out = infer("strided_slice", [TensorType((1, 512))], begin=[0, 0], end=[1, S])
    assert out.type == TensorType((1, S))


def test_unknown_values_leave_unknown_dims() -> None:
    out = infer("dyn.reshape", [TensorType((N, 4)), vector(3)], newshape=())
    assert out.type == TensorType((AnyDim(),) * 3)
    assert infer("dyn.broadcast_to", [TensorType((1,)), vector(2)]).type.shape == (AnyDim(),) * 2


@pytest.mark.parametrize(
    ("shapes", "axis", "expected"),
    [
        (((AnyDim(), 3), (AnyDim(), AnyDim())), 0, (AnyDim(), 3)),
        (((AnyDim(), 3), (AnyDim(), AnyDim())), 1, (AnyDim(), AnyDim())),
        (((1, 3), (1, AnyDim())), 0, (2, AnyDim())),
        (((1, 3), (1, AnyDim())), 1, (1, AnyDim())),
        (((N, 3), (N, 3)), 0, (2 * N, 3)),
    ],
)
def test_unknown_sizes_of_what_is_joined(shapes: Any, axis: int, expected: Any) -> None:
    parts = TupleType([TensorType(s, "float32") for s in shapes])
    found = infer("concatenate", [parts], axis=axis)
    assert structural_equal(found.type, TensorType(expected, "float32"))


@pytest.mark.parametrize("strides", [None, (2,), (1, 1, -1)])
def test_slice_whose_bounds_are_expressions(strides: Any) -> None:
    x = var("x", shape=(3, 4, 5))
    begin, end = (var(name, shape=(3,), dtype="int64") for name in ("begin", "end"))
    module = InferType()(IRModule.from_expr(strided_slice(x, begin, end, strides)))
    assert structural_equal(module["main"].ret_type, TensorType((AnyDim(),) * 3))
    data = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    backwards = strides is not None and len(strides) == 3
    first, last = ints(0, 1, 4 if backwards else 0), ints(3, 3, 1 if backwards else 4)
    steps = (*(strides or ()), 1, 1, 1)[:3]
    wanted = data[tuple(slice(*each) for each in zip(first, last, steps, strict=True))]
    assert np.array_equal(evaluate(module, [data, first, last]), wanted)


def test_convolution_of_a_symbolic_image() -> None:
    data, weight = TensorType((N, 3, S, S)), TensorType((8, 3, 3, 3))
    out = infer("nn.conv2d", [data, weight], strides=(2, 2), padding=(1, 1, 1, 1))
    assert out.type == TensorType((N, 8, (S - 1) // 2 + 1, (S - 1) // 2 + 1))


def test_arguments_without_types_are_completed() -> None:
    data = TensorType((1, 3, 8, 8))
    out = infer("nn.conv2d", [data, None], channels=4, kernel_size=(3, 3))
    assert out.arg_types == (data, TensorType((4, 3, 3, 3)))
    assert out.type == TensorType((1, 4, 6, 6))
    dense = infer("nn.dense", [TensorType((2, 5)), None], units=3)
    assert dense.arg_types[1] == TensorType((3, 5))
    norm = infer("nn.batch_norm", [data, None, None, None, None])
    assert norm.arg_types[1:] == (TensorType((3,)),) * 4
    assert infer("nn.conv2d", [data, None]) is None


@pytest.mark.parametrize(
    ("name", "types", "attrs", "words"),
    [
        ("add", [TensorType((2, 3)), TensorType((4,))], {}, ["(2, 3)", "(4)", "broadcast"]),
        ("add", [TensorType((2,)), TensorType((2,), "int32")], {}, ["float32", "int32"]),
        ("nn.dense", [TensorType((2, 3)), TensorType((4, 5))], {}, ["3", "5"]),
        ("nn.conv2d", [TensorType((1, 3, 8, 8)), TensorType((4, 2, 3, 3))], {}, ["3", "2 * 1"]),
        ("reshape", [TensorType((2, 3))], {"newshape": (4, 2)}, ["(2, 3)", "(4, 2)"]),
        ("squeeze", [TensorType((2, 3))], {"axis": [0]}, ["size 1", "2"]),
        (
            "concatenate",
            [TupleType([TensorType((2, 3)), TensorType((2, 4))])],
            {"axis": 0},
            ["3", "4"],
        ),
        ("transpose", [TensorType((2, 3))], {"axes": [0, 0]}, ["repeat"]),
        ("split", [TensorType((5,))], {"indices_or_sections": 2}, ["5", "2"]),
        ("nn.max_pool2d", [TensorType((1, 1, 2, 2))], {"pool_size": (3, 3)}, ["larger"]),
    ],
)
def test_mismatches_name_both_sides(name: str, types: Any, attrs: Any, words: list[str]) -> None:
    with pytest.raises(TypeInferenceError) as raised:
        infer(name, types, **attrs)
    text = str(raised.value)
    assert name in text
    for word in words:
        assert word in text, text


def test_reshapes_of_open_sizes_look_at_few_axes() -> None:
    from ixion.base.dim import SymVar
    from ixion.op.reshapes import aligned

    b, s = SymVar("b"), SymVar("s")

    def pieces(source: tuple, target: tuple) -> list[tuple[list[int], list[int]]]:
        return [(list(a), list(z)) for a, z in aligned(source, target)]

    assert pieces((b, s, 384), (b, s, 12, 32)) == [([0], [0]), ([1], [1]), ([2], [2, 3])]
    assert pieces((b, 12, s, s), (12 * b, s, s)) == [([0, 1], [0]), ([2], [1]), ([3], [2])]
    assert pieces((b, s, 4), (s, b, 4)) == [([0, 1], [0, 1]), ([2], [2])]
    assert pieces((b, s), (s, 2, b)) == [([0, 1], [0, 1, 2])]
    assert pieces((1, 1), ()) == [([0, 1], [])]
