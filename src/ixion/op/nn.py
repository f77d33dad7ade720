"""The functions Relay has in ``relay.nn``."""

from ixion.op.activation import leaky_relu, prelu, relu
from ixion.op.blocks import batch_to_space_nd, depth_to_space, space_to_batch_nd, space_to_depth
from ixion.op.conv import conv1d, conv2d, conv3d
from ixion.op.conv_special import (
    contrib_conv2d_nchwc,
    contrib_depthwise_conv2d_nchwc,
    correlation,
    deformable_conv2d,
)
from ixion.op.conv_transpose import conv1d_transpose, conv2d_transpose, conv3d_transpose
from ixion.op.dense import batch_matmul, bias_add, dense, matmul
from ixion.op.gradients import avg_pool2d_grad, conv2d_backward_weight, max_pool2d_grad
from ixion.op.loss import cross_entropy, cross_entropy_with_logits, nll_loss
from ixion.op.norm import batch_norm, group_norm, instance_norm, layer_norm
from ixion.op.norm_other import dropout, dropout_raw, l2_normalize, lrn
from ixion.op.pad import dilate, mirror_pad, pad
from ixion.op.pool import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from ixion.op.pool_global import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    global_avg_pool1d,
    global_avg_pool2d,
    global_avg_pool3d,
    global_max_pool1d,
    global_max_pool2d,
    global_max_pool3d,
)
from ixion.op.recurrent import gru_sequence, lstm_sequence, rnn_sequence
from ixion.op.reshapes import batch_flatten
from ixion.op.resize import upsampling, upsampling3d
from ixion.op.signal import fifo_buffer
from ixion.op.softmax import fast_softmax, log_softmax, softmax

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool2d_grad",
    "avg_pool3d",
    "batch_flatten",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "contrib_conv2d_nchwc",
    "contrib_depthwise_conv2d_nchwc",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_backward_weight",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "correlation",
    "cross_entropy",
    "cross_entropy_with_logits",
    "deformable_conv2d",
    "dense",
    "depth_to_space",
    "dilate",
    "dropout",
    "dropout_raw",
    "fast_softmax",
    "fifo_buffer",
    "global_avg_pool1d",
    "global_avg_pool2d",
    "global_avg_pool3d",
    "global_max_pool1d",
    "global_max_pool2d",
    "global_max_pool3d",
    "group_norm",
    "gru_sequence",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "lstm_sequence",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool2d_grad",
    "max_pool3d",
    "mirror_pad",
    "nll_loss",
    "pad",
    "prelu",
    "relu",
    "rnn_sequence",
    "softmax",
    "space_to_batch_nd",
    "space_to_depth",
    "upsampling",
    "upsampling3d",
]
