"""Operators: the registry filled in, and Relay-style functions that build calls."""

from ixion.op.abroad import Names, by_aten_name, by_onnx_name, by_pnnx_name
from ixion.op.activation import clip
from ixion.op.binary import (
    add,
    where,
)
from ixion.op import reshape, shape, conv, unary, binary
from ixion.op.call import call
from ixion.op.cast import cast, cast_like, reinterpret
from ixion.op.compare import Accumulation, Exact, Ulp
from ixion.op.define import InferArgs, Inferred, OpPattern, define, moves
from ixion.op import conv_transpose, pool, pool_global
from ixion.op import dense, reduce, softmax
from ixion.op import norm
from ixion.op import join, slice
from ixion.op import index, scatter
from ixion.op import create, expand, tile
from ixion.op import resize
