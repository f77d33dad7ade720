"""Sessions: what one run leaves for the next stays where it is.

A state that grows (a key-value cache) lies in a buffer with room for more; a run writes behind what
is there, and when the room is used up the buffer doubles, so that copying costs a constant an
element in the long run.  A state that is replaced (that of a recurrent layer) has two buffers: a
run reads one and writes the other.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim
from ixion.base.errors import InputError, did_you_mean
from ixion.runtime.arena import allocate
from ixion.runtime.context import Array
from ixion.runtime.inputs import as_array, check_dtype, in_order
from ixion.runtime.open_executable import OpenExecutable
from ixion.runtime.program import TensorSpec
from ixion.runtime.sizes import sizes_of

LEAST = 64  # elements along the axis of a growing state that there is room for at first


@dataclass(frozen=True)
class Carried:
    """A state: input ``name``, number ``index``, and what follows it.

    One that grows has ``axis`` and ``length``, the symbol for how many elements there are, and
    ``added``, how many a run adds, as a dim or its text.  Else ``output`` is the number of the
    result to take.
    """

    name: str
    index: int
    output: int = -1
    axis: int = -1
    length: str = ""
    added: int | str = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(eq=False)
class _Buffers:
    """Memory of one state: ``now`` is read (and written, where it grows), ``then`` written."""

    now: Array
    then: Array | None = None


@dataclass(eq=False)
class Session:
    """Runs a program with state from call to call; one run at a time.

    ``inputs`` and ``outputs`` are those that are not state.  A new session begins with empty
    growing states and zeros in all others.
    """

    executable: OpenExecutable
    carried: Sequence[Carried]
    _buffers: dict[str, _Buffers] = field(default_factory=dict, init=False)
    _lengths: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._by_name = {c.name: c for c in self.carried}
        self._lock = threading.Lock()
        specs, outputs = self.executable.inputs, self.executable.outputs
        taken = {c.output for c in self.carried if c.output >= 0}
        self.inputs = [s for s in specs if s.name not in self._by_name]
        self.outputs = [s for i, s in enumerate(outputs) if i not in taken]
        self._shown = [i for i in range(len(outputs)) if i not in taken]
        self.reset()

    def reset(self) -> None:
        """Back to the beginning."""
        self._buffers.clear()
        self._lengths = {c.length: 0 for c in self.carried if c.length}

    def run(self, values: Mapping[str, object]) -> dict[str, Array]:
        """Inputs that are not state by name to outputs that are not state by name.

        Raises InputError for values or sizes that don't fit, KernelError for a fault; the state is
        then what it was before, but for elements after its end.
        """
        with self._lock:
            return self._run(in_order(values, self.inputs))

    def state(self, name: str) -> Array:
        """A copy of a state as it is now; InputError for another name or before the first run."""
        one = self._known(name)
        if name not in self._buffers:
            raise InputError(f"state '{name}' has no value before the first run")
        return self._front(one, self._buffers[name].now).copy()

    def set_state(self, name: str, value: object) -> None:
        """Puts a value in the place of a state.

        States that grow together must be given values of one length, all before the next run.
        """
        one = self._known(name)
        spec = self.executable.inputs[one.index]
        array = as_array(value, spec)
        check_dtype(array, spec)
        if array.ndim != len(spec.shape):
            raise InputError(f"state '{name}' has the wrong rank", expected=len(spec.shape))
        if not one.length:
            self._buffers[name] = _Buffers(_like(array), _like(array))
        else:
            self._lengths[one.length] = length = array.shape[one.axis]
            shape = list(array.shape)
            shape[one.axis] = _capacity(length)
            self._buffers[name] = _Buffers(_empty(shape, spec.dtype))
        self._front(one, self._buffers[name].now)[...] = array

    def _known(self, name: str) -> Carried:
        if name not in self._by_name:
            raise InputError(
                f"there is no state '{name}'", expected=", ".join(self._by_name),
                hint=did_you_mean(name, self._by_name),
            )  # fmt: skip
        return self._by_name[name]

    def _run(self, values: Sequence[object]) -> dict[str, Array]:
        arrays = [as_array(v, s) for v, s in zip(values, self.inputs, strict=True)]
        sizes = sizes_of(self.inputs, [a.shape for a in arrays], ()) | self._lengths
        for one in self.carried:
            self._prepare(one, sizes)
        given = iter(arrays)
        everything = [
            self._buffers[s.name].now if s.name in self._by_name else next(given)
            for s in self.executable.inputs
        ]
        out: list[Array | None] = [None] * len(self.executable.outputs)
        for one in self.carried:
            if one.output >= 0:
                out[one.output] = self._buffers[one.name].then
        results = self.executable.run_flat(everything, out, self._lengths)
        self._advance(sizes)
        return {self.executable.outputs[i].name: results[i] for i in self._shown}

    def _advance(self, sizes: Mapping[str, int]) -> None:
        for one in self.carried:
            buffers = self._buffers[one.name]
            if one.output >= 0:
                assert buffers.then is not None
                buffers.now, buffers.then = buffers.then, buffers.now
        added = {c.length: dims.evaluate(_dim(c.added), sizes) for c in self.carried if c.length}
        for length, more in added.items():
            self._lengths[length] += more

    def _prepare(self, one: Carried, sizes: Mapping[str, int]) -> None:
        """Memory for a state: as its other sizes want it, and room for what a run adds."""
        spec = self.executable.inputs[one.index]
        known = self._buffers.get(one.name)
        shape = [
            0 if d == one.axis else dims.evaluate(dim, sizes) for d, dim in enumerate(_dims(spec))
        ]
        if not one.length:
            if known is None:
                pair = (np.zeros(shape, dtypes.to_numpy(spec.dtype)) for _ in range(2))
                self._buffers[one.name] = _Buffers(*(_like(a) for a in pair))
            return
        need = self._lengths[one.length] + dims.evaluate(_dim(one.added), sizes)
        if known is not None and known.now.shape[one.axis] >= need:
            return
        shape[one.axis] = _capacity(need)
        new = _Buffers(_empty(shape, spec.dtype))
        if known is not None and known.now.ndim == len(shape):
            old = self._front(one, known.now)
            if all(a == b for d, (a, b) in enumerate(zip(old.shape, shape, strict=True))
                   if d != one.axis):  # fmt: skip
                self._front(one, new.now)[...] = old
        self._buffers[one.name] = new

    def _front(self, one: Carried, array: Array) -> Array:
        """The elements that count."""
        if not one.length:
            return array
        place: list[Any] = [slice(None)] * array.ndim
        place[one.axis] = slice(0, self._lengths[one.length])
        front: Array = array[tuple(place)]
        return front


def _dim(value: int | str) -> Dim:
    return value if isinstance(value, int) else dims.parse(value)


def _dims(spec: TensorSpec) -> tuple[Dim, ...]:
    return spec.shape


def _capacity(need: int) -> int:
    return max(LEAST, 1 << (need - 1).bit_length())


def _empty(shape: Sequence[int], dtype: str) -> Array:
    kind = dtypes.to_numpy(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.ndarray(tuple(shape), kind, allocate(size))


def _like(array: Array) -> Array:
    """A copy in memory of ours."""
    made = _empty(array.shape, dtypes.from_numpy(array.dtype))
    made[...] = array
    return made
