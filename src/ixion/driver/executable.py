"""What ``compile()`` gives back: one interface over compiled, reference and shape-free models."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ixion.base import config
from ixion.base.dtype import to_numpy
from ixion.base.errors import ConfigError
from ixion.runtime.inputs import as_array, in_order
from ixion.runtime.program import Program, TensorSpec

if TYPE_CHECKING:
    from ixion.ir import Function, IRModule
    from ixion.runtime.executable import Executable as Native
    from ixion.runtime.open_executable import OpenExecutable
    from ixion.runtime.outline import Outline
    from ixion.runtime.session import Session

Array = np.ndarray[Any, np.dtype[Any]]


class Executable:
    """A model ready to run.

    ``inputs`` and ``outputs`` have ``name``, ``shape`` and ``dtype``; open sizes show by name.
    ``program`` is the compiled program, or None where there is none (yet).  Calls from several
    threads at once are safe.
    """

    inputs: Sequence[TensorSpec]
    outputs: Sequence[TensorSpec]

    @property
    def program(self) -> Program | None:
        return None

    def run_flat(self, values: Sequence[object]) -> list[Array]:
        """Inputs in order to outputs in order."""
        raise TypeError(type(self).__name__)

    def run(self, values: Mapping[str, object]) -> dict[str, Array]:
        """Inputs by name to outputs by name.

        Raises InputError for a wrong name, shape or dtype, KernelError for a fault on the way.
        """
        results = self.run_flat(in_order(values, list(self.inputs)))
        return {spec.name: r for spec, r in zip(self.outputs, results, strict=True)}

    def __call__(self, *values: object) -> Array | tuple[Array, ...]:
        """One array per input, or a single tuple of them; one array or a tuple of them back."""
        if len(values) == 1 and isinstance(values[0], (tuple, list)) and len(self.inputs) != 1:
            values = tuple(values[0])
        elif len(values) == 1 and isinstance(values[0], tuple):
            values = values[0]
        results = self.run_flat(values)
        return results[0] if len(results) == 1 else tuple(results)


class CompiledExecutable(Executable):
    """Native code: a thin cover over the runtime's executable."""

    def __init__(self, native: Native) -> None:
        self.native = native
        self.inputs, self.outputs = native.program.inputs, native.program.outputs
        self.run_flat = native.run_flat  # type: ignore[method-assign]
        self._input_names = tuple(s.name for s in self.inputs)
        self._output_names = tuple(s.name for s in self.outputs)
        single = native.single_runner()
        if single is not None:
            self.run = single  # type: ignore[method-assign, assignment]

    def run(self, values: Mapping[str, object]) -> dict[str, Array]:
        # As in the base class; every microsecond here is one of each run of a small model.
        names = self._input_names
        if len(values) != len(names):
            return super().run(values)
        try:
            ordered = [values[name] for name in names]
        except KeyError:
            return super().run(values)
        return dict(zip(self._output_names, self.run_flat(ordered), strict=True))

    @property
    def program(self) -> Program:
        return self.native.program


class OpenCompiledExecutable(Executable):
    """Native code for all sizes: a thin cover over the runtime's open executable."""

    def __init__(self, native: OpenExecutable) -> None:
        self.native = native
        self.inputs, self.outputs = native.inputs, native.outputs
        self.run_flat = native.run_flat  # type: ignore[method-assign]

    @property
    def outline(self) -> Outline:
        return self.native.outline

    def session(self) -> Session:
        """A run of calls that hand state on; ConfigError where the model has none."""
        from ixion.runtime.session import Carried, Session

        states = self.outline.meta.get("states")
        if not states:
            raise ConfigError(
                "the model was compiled without states",
                hint="compile(model, states={input: output})",
            )
        return Session(self.native, [Carried(**row) for row in states])

    @property
    def plans(self) -> int:
        """How many combinations of sizes have been planned so far."""
        return self.native.plans


class ReferenceExecutable(Executable):
    """The numpy interpreter; any program, slowly."""

    def __init__(
        self,
        module: IRModule,
        function: Function,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
    ) -> None:
        self.module, self.function = module, function
        self.inputs, self.outputs = inputs, outputs

    def run_flat(self, values: Sequence[object]) -> list[Array]:
        from ixion.analysis.evaluate import evaluate
        from ixion.runtime.inputs import check_count

        check_count(values, self.inputs)
        arrays = [as_array(v, s) for v, s in zip(values, self.inputs, strict=True)]
        return flattened(evaluate(self.function, arrays, self.module))


def _open_array(value: object, spec: TensorSpec) -> Array:
    """An array whose dtype and rank fit a spec with open sizes."""
    shape = getattr(value, "shape", spec.shape)
    own = tuple(shape) if len(shape) == len(spec.shape) else spec.shape
    return as_array(value, TensorSpec(spec.name, own, spec.dtype))


def flattened(value: Any) -> list[Array]:
    """The arrays of a nested tuple, in order."""
    stack, out = [value], []
    while stack:
        top = stack.pop()
        if isinstance(top, (tuple, list)):
            stack.extend(reversed(top))
        else:
            out.append(np.asarray(top))
    return out


class ShapeFreeExecutable(Executable):
    """A model with open sizes: one executable per combination of input shapes, recent ones kept.

    ``outputs`` may be empty until the first run, where a model tells them only for known sizes.
    Option ``shape_cache`` says how many are kept.
    """

    def __init__(
        self,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        specialise: Callable[[dict[str, tuple[int, ...]]], Executable],
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self._specialise = specialise
        self._known: OrderedDict[tuple[tuple[int, ...], ...], Executable] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, values: Mapping[str, object]) -> dict[str, Array]:
        arrays = self._arrays(in_order(values, list(self.inputs)))
        exe = self._for(tuple(tuple(a.shape) for a in arrays))
        names = [s.name for s in exe.outputs]
        return dict(zip(names, exe.run_flat(arrays), strict=True))

    def run_flat(self, values: Sequence[object]) -> list[Array]:
        arrays = self._arrays(values)
        return self._for(tuple(tuple(a.shape) for a in arrays)).run_flat(arrays)

    def _arrays(self, values: Sequence[object]) -> list[Array]:
        from ixion.runtime.inputs import check_count

        check_count(values, self.inputs)
        return [_open_array(v, s) for v, s in zip(values, self.inputs, strict=True)]

    def _for(self, shapes: tuple[tuple[int, ...], ...]) -> Executable:
        with self._lock:
            found = self._known.get(shapes)
            if found is None:
                named = {s.name: shape for s, shape in zip(self.inputs, shapes, strict=True)}
                found = self._known[shapes] = self._specialise(named)
                self.outputs = self.outputs or found.outputs
                while len(self._known) > config.get("shape_cache"):
                    self._known.popitem(last=False)
            self._known.move_to_end(shapes)
            return found


def zeros_like(spec: TensorSpec) -> Array:
    """An input of zeros that fits a spec."""
    return np.zeros(spec.shape, to_numpy(spec.dtype))
