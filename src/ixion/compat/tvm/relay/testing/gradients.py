"""Gradients against differences of the function's values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.compat.tvm.relay.build_module import create_executor
from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir import Function, IRModule
from ixion.op.typed import dtype_of, shape_of

Array = npt.NDArray[Any]


def check_grad(
    func: Function,
    inputs: Sequence[Array] | None = None,
    test_inputs: Sequence[Array] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Any = None,
    executor_kind: str = "debug",
) -> None:
    """Compare ``relay.transform.gradient`` with central differences; AssertionError where they
    differ.

    ``inputs`` are random of standard deviation ``scale`` (10 * eps) if not given; the gradients by
    ``test_inputs``, which are some of them, are looked at.
    """
    from ixion.compat.tvm.relay import transform

    forward = _typed(func)
    values = list(inputs) if inputs is not None else _random(forward, scale or 10 * eps, mean)
    run = create_executor(executor_kind).evaluate(forward)
    back = create_executor(executor_kind).evaluate(_typed(transform.gradient(forward, mode=mode)))
    found = back(*values)[1]
    tested = values if test_inputs is None else test_inputs
    assert tested, "no input to test"
    for tensor in tested:
        position = next(i for i, value in enumerate(values) if value is tensor)
        wanted = _differences(run, values, tensor, eps)
        np.testing.assert_allclose(found[position].numpy(), wanted, rtol=rtol, atol=atol)


def _typed(func: Function) -> Function:
    return InferType()(IRModule.from_expr(func))["main"]  # type: ignore[no-any-return]


def _random(func: Function, scale: float, mean: float) -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        np.asarray(mean + scale * rng.standard_normal(shape_of(param))).astype(dtype_of(param))
        for param in func.params
    ]


def _differences(
    run: Callable[..., Any], values: Sequence[Array], tensor: Array, eps: float
) -> Array:
    """The sum of the result's change by each element of ``tensor``, which is one of the values."""
    slopes = np.zeros(tensor.shape)
    for at in np.ndindex(*tensor.shape):
        kept = tensor[at]
        ends = []
        for step in (eps, -eps):
            tensor[at] = kept + step
            ends.append(run(*values).numpy().astype(np.float64))
        tensor[at] = kept
        slopes[at] = np.sum(ends[0] - ends[1]) / (2 * eps)
    return slopes


__all__ = ["check_grad"]
