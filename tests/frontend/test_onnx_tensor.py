"""Every encoding of a TensorProto, against the numbers that onnx itself reads."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx.tensor import read_tensor
from ixion.frontend.onnx.wire import BytesSource, Piece


def read(proto):
    data = proto.SerializeToString()
    return read_tensor(Piece(BytesSource(data), 0, len(data)), None)


CODES = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
SAMPLE = [0, 1, 2, 3, 1, 0]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("raw", [False, True])
def test_numbers_of_every_type(code, raw):
    dtype = helper.tensor_dtype_to_np_dtype(code)
    want = np.array(SAMPLE, dtype).reshape(2, 3)
    if raw:
        proto = TensorProto(name="t", dims=(2, 3), data_type=code, raw_data=want.tobytes())
    else:
        proto = helper.make_tensor("t", code, (2, 3), want.reshape(-1))
    got = read(proto).numpy()
    assert got.dtype == want.dtype
    assert got.shape == (2, 3)
    np.testing.assert_array_equal(got.astype(np.complex128), want.astype(np.complex128))
    assert got.flags.aligned
    assert got.flags.writeable


@pytest.mark.parametrize("code", [TensorProto.INT64, TensorProto.INT32, TensorProto.INT8])
def test_negative_numbers(code):
    values = [-1, -128, 127, 0, 5]
    got = read(helper.make_tensor("t", code, (5,), values)).numpy()
    assert got.tolist() == values


def test_wide_unsigned_numbers():
    proto = helper.make_tensor("t", TensorProto.UINT64, (2,), [2**64 - 1, 3])
    assert read(proto).numpy().tolist() == [2**64 - 1, 3]


def test_bit_patterns_of_narrow_floats():
    proto = TensorProto(name="t", dims=(2,), data_type=TensorProto.BFLOAT16)
    proto.int32_data.extend([0x3F80, 0xC000])
    got = read(proto).numpy()
    assert got.dtype == ml_dtypes.bfloat16
    assert got.astype(np.float32).tolist() == [1.0, -2.0]


@pytest.mark.parametrize("raw", [False, True])
def test_four_bit_numbers_are_unpacked(raw):
    proto = TensorProto(name="t", dims=(3,), data_type=TensorProto.INT4)
    if raw:
        proto.raw_data = bytes([0x8F, 0x07])
    else:
        proto.int32_data.extend([0x8F, 0x07])
    assert read(proto).numpy().astype(np.int8).tolist() == [-1, -8, 7]


def test_strings():
    got = read(helper.make_tensor("t", TensorProto.STRING, (2,), [b"a", b"bc"])).numpy()
    assert got.tolist() == [b"a", b"bc"]


def test_numbers_written_one_field_each():
    # onnx.proto says packed, but a reader must take both (protobuf's rule).
    proto = helper.make_tensor("t", TensorProto.FLOAT, (2,), [1.5, -2.0])
    data = proto.SerializeToString()
    packed = bytes([4 << 3 | 2, 8]) + np.array([1.5, -2.0], "<f4").tobytes()
    single = b"".join(bytes([4 << 3 | 5]) + np.array(v, "<f4").tobytes() for v in (1.5, -2.0))
    assert packed in data
    data = data.replace(packed, single)
    tensor = read_tensor(Piece(BytesSource(data), 0, len(data)), None)
    assert tensor.numpy().tolist() == [1.5, -2.0]


def test_long_packed_list():
    values = np.random.default_rng(0).integers(-(2**62), 2**62, 300_000)
    proto = TensorProto(name="t", dims=values.shape, data_type=TensorProto.INT64)
    proto.int64_data.extend(values.tolist())
    np.testing.assert_array_equal(read(proto).numpy(), values)


def test_scalar_and_empty():
    assert read(numpy_helper.from_array(np.float32(3), "t")).numpy() == 3
    assert read(numpy_helper.from_array(np.zeros((0, 4), np.float32), "t")).numpy().shape == (0, 4)


@pytest.mark.parametrize(
    "proto",
    [
        TensorProto(name="t", dims=(4,), data_type=1, raw_data=b"1234"),
        TensorProto(name="t", dims=(1 << 40,), data_type=1, raw_data=b"1234"),
        TensorProto(name="t", dims=(3,), data_type=1, float_data=[1.0]),
        TensorProto(name="t", dims=(2,), data_type=TensorProto.INT4, raw_data=b""),
        TensorProto(name="t", dims=(1,), data_type=TensorProto.STRING),
    ],
)
def test_data_that_does_not_fit_the_shape(proto):
    with pytest.raises(ModelFormatError, match="does not fit the shape"):
        read(proto).numpy()


@pytest.mark.parametrize(
    "proto",
    [
        TensorProto(name="t", dims=(-1,), data_type=1),
        TensorProto(name="t", dims=(1 << 40, 1 << 40), data_type=1),
        TensorProto(name="t", dims=(1,), data_type=99),
        TensorProto(name="t", dims=(1,) * 40, data_type=1),
    ],
)
def test_impossible_headers(proto):
    with pytest.raises(ModelFormatError):
        read(proto)


def test_onnx_agrees_on_its_own_arrays():
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64, np.int32, np.uint8, np.float16, np.bool_):
        want = rng.integers(0, 2, (3, 2, 2)).astype(dtype)
        got = read(onnx.numpy_helper.from_array(want, "t")).numpy()
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
