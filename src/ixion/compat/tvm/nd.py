"""``tvm.nd``: tensors on a device. They are numpy arrays with Relay's methods."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ixion.base.dtype import to_numpy


class Device(NamedTuple):
    """A device by type and number; only the CPU computes."""

    device_type: int
    device_id: int

    def __str__(self) -> str:
        return f"{'cpu' if self.exist else self.device_type}({self.device_id})"

    @property
    def exist(self) -> bool:
        """Whether the device can be used here."""
        return self.device_type == _CPU


def cpu(dev_id: int = 0) -> Device:
    """The CPU."""
    return Device(_CPU, dev_id)


_CPU = 1  # DLPack's number
_TYPES = {
    "cpu": 1, "llvm": 1, "stackvm": 1, "cuda": 2, "gpu": 2, "opencl": 4, "vulkan": 7, "metal": 8,
}  # fmt: skip


def device(dev_type: str | int, dev_id: int = 0) -> Device:
    """A device by name or DLPack number; ValueError for an unknown name."""
    if isinstance(dev_type, int):
        return Device(dev_type, dev_id)
    name = dev_type.split()[0]
    if name not in _TYPES:
        raise ValueError(f"Unknown device type {dev_type}")
    return Device(_TYPES[name], dev_id)


class NDArray(np.ndarray[Any, np.dtype[Any]]):
    """A numpy array with the methods TVM programs call."""

    def numpy(self) -> npt.NDArray[Any]:
        """A copy as a plain numpy array."""
        return np.array(self)

    asnumpy = numpy

    @property
    def device(self) -> Device:  # type: ignore[override]
        """Where the data is."""
        return cpu()

    def same_as(self, other: object) -> bool:
        """The same memory with the same shape and dtype."""
        if not isinstance(other, np.ndarray):
            return False
        mine, theirs = self.__array_interface__, other.__array_interface__
        return all(mine[key] == theirs[key] for key in ("data", "shape", "typestr", "strides"))

    def copyfrom(self, source: npt.ArrayLike) -> Self:
        """Overwrite the elements; ValueError where the shapes differ."""
        values = np.asarray(source)
        if values.shape != self.shape:
            raise ValueError(f"array shape {values.shape} does not match {self.shape}")
        self[...] = values
        return self

    def copyto(self, target: Any, mem_scope: str | None = None) -> NDArray:
        """Copy into another array, or to a new one on a device."""
        if isinstance(target, np.ndarray):
            target[...] = self
            return target.view(NDArray)
        return array(self)


def array(
    arr: npt.ArrayLike, device: Device | None = None, mem_scope: str | None = None
) -> NDArray:
    """A copy of ``arr`` as an NDArray."""
    return np.array(arr).view(NDArray)


def empty(
    shape: Any, dtype: str = "float32", device: Device | None = None, mem_scope: str | None = None
) -> NDArray:
    """An NDArray whose elements are undefined."""
    return np.empty(shape, to_numpy(dtype)).view(NDArray)


def from_dlpack(source: Any) -> NDArray:
    """An NDArray sharing memory with a DLPack tensor."""
    return np.from_dlpack(source).view(NDArray)


__all__ = ["Device", "NDArray", "array", "cpu", "device", "empty", "from_dlpack"]
