"""The functions Relay has in ``relay.qnn.op``."""

from ixion.op.qnn_float import (
    abs,
    add,
    avg_pool2d,
    concatenate,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    mul,
    rsqrt,
    sigmoid,
    softmax,
    sqrt,
    subtract,
    tanh,
)
from ixion.op.qnn_linear import batch_matmul, conv2d, conv2d_transpose, dense
from ixion.op.qnn_scale import dequantize, quantize, requantize

__all__ = [
    "abs",
    "add",
    "avg_pool2d",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leaky_relu",
    "log",
    "mul",
    "quantize",
    "requantize",
    "rsqrt",
    "sigmoid",
    "softmax",
    "sqrt",
    "subtract",
    "tanh",
]
