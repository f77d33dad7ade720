"""Imports every built-in schedule, so that each is registered."""

from ixion.kernel import (
    schedule_attention,
    schedule_choose,
    schedule_concat,
    schedule_conv,
    schedule_dense,
    schedule_gated,
    schedule_generic,
    schedule_keep,
    schedule_layer_norm,
    schedule_matmul,
    schedule_nms,
    schedule_pool,
    schedule_put_slice,
    schedule_recurrent,
    schedule_scan,
    schedule_scatter,
    schedule_search,
    schedule_separable,
    schedule_slice,
    schedule_softmax,
    schedule_sort,
    schedule_state,
    schedule_stem,
    schedule_unique,
    schedule_winograd,
)

__all__ = [
    "schedule_attention", "schedule_choose", "schedule_concat", "schedule_conv", "schedule_dense",
    "schedule_gated", "schedule_generic", "schedule_keep", "schedule_layer_norm", "schedule_matmul",
    "schedule_nms", "schedule_pool", "schedule_put_slice", "schedule_recurrent", "schedule_scan",
    "schedule_scatter", "schedule_search", "schedule_separable", "schedule_slice",
    "schedule_softmax", "schedule_sort", "schedule_state", "schedule_stem", "schedule_unique",
    "schedule_winograd",
]  # fmt: skip
