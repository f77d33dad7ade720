"""One operator whose result sizes depend on data, compiled to run by itself.

A program that meets such an operator runs it as a segment of its own: results come back in their
true sizes, and what follows is sized by them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base import config
from ixion.base.errors import InputError
from ixion.base.target import Target
from ixion.lower.bounded import bounded_function, open_arguments, result_names
from ixion.op.typed import dtype_of, op_name
from ixion.runtime.bounded import cut
from ixion.runtime.inputs import as_array
from ixion.runtime.program import Program, TensorSpec

if TYPE_CHECKING:
    from ixion.ir import Call
    from ixion.runtime.executable import Executable as Native

Array = np.ndarray[Any, np.dtype[Any]]
Shapes = tuple[tuple[int, ...], ...]


class BoundedOp:
    """Arrays in, arrays of their true sizes out.

    One executable for each combination of input shapes is made as it is met; option
    ``shape_cache`` says how many are kept.  Calls from several threads at once are safe.
    """

    def __init__(self, call: Call, target: Target, threads: int | None) -> None:
        self.call, self.target, self.threads = call, target, threads
        self.dtypes = [dtype_of(call.args[i]) for i in open_arguments(call)]
        self._known: OrderedDict[Shapes, Native] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, *values: object) -> list[Array]:
        """Results for the call's arguments that are no constants, in order.

        Raises InputError for arguments that do not fit, KernelError for data that the operator does
        not accept (an index or ``k`` out of range).
        """
        if len(values) != len(self.dtypes):
            raise InputError(
                f"{op_name(self.call)} takes another number of arguments",
                expected=str(len(self.dtypes)), found=str(len(values)),
            )  # fmt: skip
        arrays = [
            as_array(v, TensorSpec(f"x{i}", (), d))
            for i, (v, d) in enumerate(zip(values, self.dtypes, strict=True))
        ]
        native = self.executable(tuple(a.shape for a in arrays))
        *buffers, extents = native.run_flat(arrays)
        return [_own(r, b) for r, b in zip(cut(buffers, extents), buffers, strict=True)]

    def executable(self, shapes: Shapes) -> Native:
        """The compiled form for some input shapes: its outputs are the buffers, then extents."""
        with self._lock:
            found = self._known.get(shapes)
            if found is None:
                found = self._known[shapes] = self._compiled(shapes)
                while len(self._known) > config.get("shape_cache"):
                    self._known.popitem(last=False)
            self._known.move_to_end(shapes)
            return found

    def program(self, shapes: Shapes) -> Program:
        """The program for some input shapes."""
        from ixion.driver.build import objects_of
        from ixion.lower.assemble import assemble

        function = bounded_function(self.call, shapes)
        names = [f"x{i}" for i in range(len(function.params))]
        assembled = assemble(function, self.target, names, result_names(function))
        assembled.outline.objects = objects_of(assembled.kernels, self.target)
        return assembled.outline.program({})

    def _compiled(self, shapes: Shapes) -> Native:
        from ixion.driver.build import install_native
        from ixion.driver.hosts import resolve_host
        from ixion.runtime.executable import Executable as Native

        install_native()
        return Native(self.program(shapes), self.threads, resolve_host)


def compile_bounded(
    call: Call, target: str | Target = "native", threads: int | None = None
) -> BoundedOp:
    """The compiled form of a typed call of an operator that states ``FResultBound``.

    Argument types may have open sizes.  Raises RegistryError for an operator without a bound.
    """
    return BoundedOp(call, Target.parse(target), threads)


def _own(result: Array, buffer: Array) -> Array:
    """The result without the rest of a buffer that is much larger."""
    return result if 2 * prod(result.shape) >= buffer.size else result.copy()


