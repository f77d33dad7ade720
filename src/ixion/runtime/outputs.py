"""Results of a run: where kernels write them and how they reach the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base import dtype as dtypes
from ixion.base.errors import InputError
from ixion.runtime.context import Context
from ixion.runtime.inputs import usable_in_place
from ixion.runtime.program import Program, Slot, TensorSpec

Array = npt.NDArray[Any]


def place_of(program: Program, index: int) -> Slot | None:
    """Where output `index` lies after a run, if not in a buffer of its own."""
    return program.output_places[index] if program.output_places else None


Out = Sequence[Array | None]  # None: a new array


def check_out(out: Out, specs: Sequence[TensorSpec]) -> None:
    """Raise InputError unless `out` are writable arrays of the outputs' shapes and dtypes."""
    if len(out) != len(specs):
        raise InputError("wrong number of output arrays", expected=len(specs), found=len(out))
    for array, spec in zip(out, specs, strict=True):
        if array is None:
            continue
        right = array.dtype == dtypes.to_numpy(spec.dtype) and array.shape == spec.shape
        if not right or not array.flags.writeable:
            found = f"{array.dtype}{list(array.shape)}, writable: {array.flags.writeable}"
            what = f"output array for '{spec.name}' does not fit"
            raise InputError(what, expected=f"writable {spec.dtype}{list(spec.shape)}", found=found)


def bind_outputs(
    context: Context, program: Program, inputs: Sequence[Array], out: Out | None
) -> list[Array | None]:
    """Give every large output a place: the caller's array if kernels can work in it, or a new one.

    A caller's array that may overlap an input is not written before the run is over.
    """
    written: list[Array | None] = []
    for index, spec in enumerate(program.outputs):
        if context.outputs[index] is not None or place_of(program, index) is not None:
            written.append(None)
            continue
        given = None if out is None else out[index]
        array = None if given is None else _in_place(given, inputs)
        if array is None:
            array = np.empty(spec.shape, dtypes.to_numpy(spec.dtype))
        context.bind("output", index, array)
        written.append(array)
    return written


def collect(
    context: Context, program: Program, written: Sequence[Array | None], out: Out | None
) -> list[Array]:
    """Results as arrays of the caller's: those of `out`, filled, or new ones."""
    results = []
    for index, spec in enumerate(program.outputs):
        array, given = written[index], None if out is None else out[index]
        if array is None:
            array = result_view(context, program, index, spec)
            array = array.copy() if given is None else array
        if given is not None and given is not array:
            given[...] = array
            array = given
        results.append(array)
    return results


def result_view(context: Context, program: Program, index: int, spec: TensorSpec) -> Array:
    """Output `index` as it lies in the context after a run."""
    place = place_of(program, index)
    return context.view(Slot("output", index) if place is None else place, spec)


def _in_place(array: Array, inputs: Sequence[Array]) -> Array | None:
    overlaps = any(np.may_share_memory(array, value) for value in inputs)
    return array if usable_in_place(array) and not overlaps else None
