"""Random weights for a network whose weights are parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.compat.tvm.nd import NDArray, array
from ixion.compat.tvm.relay.infer_type import InferType
from ixion.ir import Function, IRModule, TensorType


class Initializer:
    """Fills an array by the role its name tells: weight, bias, gamma, beta, mean, var."""

    def __call__(self, desc: str, arr: npt.NDArray[Any]) -> None:
        if desc.endswith("weight"):
            self.init_weight(arr)
        elif desc.endswith(("gamma", "var")):
            arr[...] = 1
        else:
            arr[...] = 0

    def init_weight(self, arr: npt.NDArray[Any]) -> None:
        """Fill a weight."""
        raise TypeError(f"{type(self).__name__} does not say how weights are made")


class Xavier(Initializer):
    """Uniform weights with a spread by fan-in and fan-out (Glorot and Bengio, 2010)."""

    def __init__(self, magnitude: float = 3.0, seed: int = 0) -> None:
        self.magnitude = magnitude
        self.random = np.random.default_rng(seed)

    def init_weight(self, arr: npt.NDArray[Any]) -> None:
        """Fill a weight of one or more dimensions, the first two being outputs and inputs."""
        window = float(np.prod(arr.shape[2:]))
        fan_out = arr.shape[0] * window
        fan_in = (arr.shape[1] if arr.ndim > 1 else arr.shape[0]) * window
        scale = np.sqrt(self.magnitude / ((fan_in + fan_out) / 2))
        arr[...] = self.random.random(arr.shape, dtype=np.float32) * (2 * scale) - scale


class Constant(Initializer):
    """Weights that are all one value."""

    def __init__(self, value: float) -> None:
        self.value = value

    def init_weight(self, arr: npt.NDArray[Any]) -> None:
        """Fill a weight."""
        arr[...] = self.value


def create_workload(
    net: Function, initializer: Initializer | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module of a network and values for every parameter but ``data``."""
    module = InferType()(IRModule.from_expr(net))
    fill = Xavier(seed=seed) if initializer is None else initializer
    params = {}
    for variable in module["main"].params:
        if variable.name_hint == "data":
            continue
        kind = variable.checked_type
        assert isinstance(kind, TensorType)
        values = np.zeros(kind.concrete_shape, kind.dtype)
        fill(variable.name_hint, values)
        params[variable.name_hint] = array(values)
    return module, params


__all__ = ["Constant", "Initializer", "Xavier", "create_workload"]
