"""Operators: importing this fills the registry and gives Relay-style functions that build calls.

Functions stand where Relay has them: ``op.add``, ``op.nn.conv2d``, ``op.image.resize2d``.
"""

from ixion.op import image, nn, vision
from ixion.op.abroad import Names, by_aten_name, by_onnx_name, by_pnnx_name
from ixion.op.activation import clip
from ixion.op.binary import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
    trunc_divide,
    trunc_mod,
    where,
)
from ixion.op.blocks import layout_transform
from ixion.op.call import call
from ixion.op.compare import Accumulation, Exact, Ulp, mismatch
from ixion.op.conversion import cast, cast_like, reinterpret
from ixion.op.create import (
    arange,
    full,
    full_like,
    meshgrid,
    ndarray_size,
    ones,
    shape_of,
    trilu,
    zeros,
)
from ixion.op.define import InferArgs, Inferred, OpPattern, define, moves
from ixion.op.expand import broadcast_to, broadcast_to_like, collapse_sum_like, collapse_sum_to
from ixion.op.index import (
    adv_index,
    gather,
    gather_nd,
    invert_permutation,
    one_hot,
    take,
    unravel_index,
)
from ixion.op.join import concatenate, split, stack
from ixion.op.ordering import argsort, searchsorted, sort, topk
from ixion.op.reduce import (
    all,
    any,
    argmax,
    argmin,
    max,
    mean,
    min,
    prod,
    sum,
    variance,
)
from ixion.op.repeats import flip, repeat, reverse, reverse_sequence, tile
from ixion.op.reshapes import contrib_reverse_reshape, reshape, reshape_like, reverse_reshape
from ixion.op.scan import argwhere, cumprod, cumsum, sequence_mask, unique
from ixion.op.scatter import scatter_elements, scatter_nd, sparse_to_dense
from ixion.op.shape import expand_dims, squeeze, transpose
from ixion.op.slice import slice_like, strided_set, strided_slice
from ixion.op.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    ceil,
    checkpoint,
    copy,
    cos,
    cosh,
    erf,
    exp,
    fast_erf,
    fast_exp,
    fast_tanh,
    floor,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    logical_not,
    negative,
    ones_like,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    stop_fusion,
    tan,
    tanh,
    trunc,
    zeros_like,
)
