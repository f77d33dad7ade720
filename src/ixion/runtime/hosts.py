"""Host steps: operators a program leaves to Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base.errors import ConfigError, IxionError, KernelError
from ixion.runtime.context import Array, Context
from ixion.runtime.program import HostStep, Step

HostFunction = Callable[[list[Array]], Sequence[npt.ArrayLike]]
Resolver = Callable[[HostStep], HostFunction]

_RESOLVERS: list[Resolver] = []


def install_resolver(resolver: Resolver) -> None:
    """Say how host steps find their function, where an executable is not told otherwise.

    The function gets read-only views of the arguments and returns the results, whose shapes and
    dtypes must be those of the step.
    """
    _RESOLVERS[:] = [resolver]


def resolve(hosts: Sequence[HostStep], resolver: Resolver | None) -> list[HostFunction]:
    """The functions of a program's host steps. Raises ConfigError when nobody resolves them."""
    if not hosts:
        return []
    if resolver is None and not _RESOLVERS:
        names = ", ".join(sorted({host.op for host in hosts}))
        raise ConfigError(f"nothing resolves the host operators {names}")
    chosen = resolver or _RESOLVERS[0]
    return [chosen(host) for host in hosts]


def run_host(
    context: Context, number: int, step: Step, host: HostStep, function: HostFunction
) -> None:
    """Do a host step. Raises KernelError, naming the step, for whatever the operator raises."""
    split = len(host.inputs)
    arguments = [context.view(s, t) for s, t in zip(step.slots, host.inputs, strict=False)]
    for argument in arguments:
        argument.flags.writeable = False
    try:
        results = function(arguments)
        pairs = zip(step.slots[split:], host.outputs, results, strict=True)
        for slot, spec, result in pairs:
            _store(context.view(slot, spec), np.asarray(result))
    except IxionError:
        raise
    except Exception as error:
        message = f"host operator '{host.op}' failed: {error}"
        raise KernelError(message, step=number, node=step.label) from error


def _store(place: npt.NDArray[Any], value: npt.NDArray[Any]) -> None:
    if value.shape != place.shape or value.dtype != place.dtype:
        expected = f"{place.dtype}{list(place.shape)}"
        raise ValueError(f"result is {value.dtype}{list(value.shape)}, expected {expected}")
    place[...] = value
