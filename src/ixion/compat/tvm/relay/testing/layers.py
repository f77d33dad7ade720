"""Layers whose weights are fresh parameters named after the layer."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay.op import nn
from ixion.ir import Expr, Function, free_vars, var
from ixion.ir.expr import TupleWrapper


def batch_norm_infer(
    data: Expr,
    gamma: Expr | None = None,
    beta: Expr | None = None,
    moving_mean: Expr | None = None,
    moving_var: Expr | None = None,
    **kwargs: Any,
) -> Expr:
    """A batch normalisation's first result."""
    name = kwargs.pop("name")
    parts = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    given = [var(f"{name}_{key}") if part is None else part for key, part in parts.items()]
    result: TupleWrapper = nn.batch_norm(data, *given, **kwargs)
    return result[0]


def _weighted(layer: str, data: Expr, weight: Expr | None, options: dict[str, Any]) -> Expr:
    name = options.pop("name")
    weight = var(f"{name}_weight") if weight is None else weight
    return getattr(nn, layer)(data, weight, **options)  # type: ignore[no-any-return]


def conv2d(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """A convolution."""
    return _weighted("conv2d", data, weight, kwargs)


def conv3d(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """A convolution over three dimensions."""
    return _weighted("conv3d", data, weight, kwargs)


def conv2d_transpose(data: Expr, weight: Expr | None = None, **kwargs: Any) -> Expr:
    """A transposed convolution."""
    return _weighted("conv2d_transpose", data, weight, kwargs)


def dense_add_bias(
    data: Expr,
    weight: Expr | None = None,
    bias: Expr | None = None,
    units: int | None = None,
    **kwargs: Any,
) -> Expr:
    """A matrix product with a bias."""
    name = kwargs.pop("name")
    weight = var(f"{name}_weight") if weight is None else weight
    bias = var(f"{name}_bias") if bias is None else bias
    return nn.bias_add(nn.dense(data, weight, units, **kwargs), bias, axis=-1)  # type: ignore[no-any-return]


_KERNEL_LAYOUTS = {
    ("NCHW", False): "OIHW", ("NCHW", True): "OIHW", ("NCDHW", False): "OIDHW",
    ("NHWC", False): "HWIO", ("NHWC", True): "HWOI", ("NDHWC", False): "DHWIO",
    ("NDHWC", True): "DHWOI",
}  # fmt: skip


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The kernel layout that goes with a data layout; KeyError for an unknown one."""
    return _KERNEL_LAYOUTS[data_layout, is_depthwise]


def closed(body: Expr) -> Function:
    """A function of everything that is free in ``body``, in order of first use."""
    return Function(tuple(free_vars(body)), body)


__all__ = [
    "batch_norm_infer", "closed", "conv2d", "conv2d_transpose", "conv3d",
    "conv_kernel_layout", "dense_add_bias",
]  # fmt: skip
