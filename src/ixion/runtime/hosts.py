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
    specs = (*host.inputs, *host.outputs)
    tensors = [context.view(slot, spec) for slot, spec in zip(step.slots, specs, strict=True)]
    do_host(host, function, tensors, number, step.label)


def do_host(
    host: HostStep, function: HostFunction, tensors: Sequence[Array], number: int, label: str
) -> None:
    """Do an operator on tensors in memory, arguments first. Raises as ``run_host``."""
    arguments = list(tensors[: len(host.inputs)])
    for argument in arguments:
        argument.flags.writeable = False
    try:
        results = function(arguments)
        for place, result in zip(tensors[len(host.inputs) :], results, strict=True):
            _store(place, np.asarray(result))
    except IxionError:
        raise
    except Exception as error:
        message = f"host operator '{host.op}' failed: {error}"
        raise KernelError(message, step=number, node=label) from error


def _store(place: npt.NDArray[Any], value: npt.NDArray[Any]) -> None:
    if value.shape != place.shape or value.dtype != place.dtype:
        expected = f"{place.dtype}{list(place.shape)}"
        raise ValueError(f"result is {value.dtype}{list(value.shape)}, expected {expected}")
    place[...] = value
