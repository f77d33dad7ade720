"""The `.pnnx.bin` beside a `.param`: a zip of raw little-endian tensors, one entry a weight.

Both writers are read: plain zip with 32-bit sizes, and zip64. Entries are stored, never
compressed, so a small file cannot unfold into a large one. Each entry's existence, size and
checksum are checked.
"""

from __future__ import annotations

import zipfile
import zlib
from collections import defaultdict
from pathlib import Path
from types import TracebackType

import numpy as np

from ixion.base import dtype as dtypes
from ixion.base.errors import ModelFormatError, nearest
from ixion.frontend.pnnx.param import Operator, Shape
from ixion.runtime.arena import empty_tensor

#: Names that are compared with a missing one.
_MOST_NAMES = 5000
_HINT = "the .bin is truncated or belongs to another .param; copy or export both again"
#: What zipfile raises on bytes that are no zip; RuntimeError is an encrypted entry, and as the base
#: of NotImplementedError also a compression method that zipfile does not know.
_ZIP_ERRORS = (
    zipfile.BadZipFile, EOFError, OSError, ValueError, OverflowError,
    RuntimeError, zlib.error, UnicodeDecodeError, IndexError, KeyError,
)  # fmt: skip


class Archive:
    """The weights of one network, read when asked for.

    At optimisation level 0 two operators may have one name: their entries then follow each
    other in the order of the operators.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._entries: dict[str, list[zipfile.ZipInfo]] = defaultdict(list)
        if not self.path.is_file():
            raise ModelFormatError(
                "the file with the weights is missing",
                where=str(self.path),
                hint="keep NAME.pnnx.bin in the folder of NAME.pnnx.param",
            )
        try:
            self._zip = zipfile.ZipFile(self.path)
        except _ZIP_ERRORS as error:
            raise self._broken(f"not a readable zip: {error}") from error
        for entry in self._zip.infolist():
            self._entries[entry.filename].append(entry)

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def weight(self, op: Operator, key: str, occurrence: int = 0) -> np.ndarray:
        """Weight `key` of `op` as a fresh array of the shape and dtype its line states.

        `occurrence` counts the operators of the same name before this one.
        ModelFormatError if the entry is missing, compressed, of another size, or damaged.
        """
        shape = op.weights[key]
        entry = self._entry(f"{op.name}.{key}", occurrence)
        out = self._empty(op, key, shape)
        if not entry.file_size == entry.compress_size == out.nbytes:
            raise self._broken(
                f"the weight {entry.filename!r} has the wrong size",
                expected=f"{out.nbytes} bytes",
                found=f"{entry.file_size} bytes",
            )
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise self._broken(f"the entry {entry.filename!r} is compressed or encrypted")
        self._read(entry, out)
        return out

    def _read(self, entry: zipfile.ZipInfo, out: np.ndarray) -> None:
        view = out.reshape(-1).view(np.uint8).data if out.size else memoryview(bytearray())
        try:
            with self._zip.open(entry) as stream:
                assert isinstance(stream, zipfile.ZipExtFile)
                done = 0
                while done < len(view):
                    count = stream.readinto(view[done:])
                    if not count:
                        raise EOFError("the entry ends early")
                    done += count
                stream.read(1)  # reaching the end is what makes zipfile compare the checksum
        except _ZIP_ERRORS as error:
            raise self._broken(f"the entry {entry.filename!r} is damaged: {error}") from error

    def _empty(self, op: Operator, key: str, shape: Shape) -> np.ndarray:
        dims = tuple(dim for dim in shape.dims if dim is not None)
        try:
            storage = dtypes.to_numpy(shape.dtype)
        except (ValueError, TypeError, KeyError) as error:
            message = f"the weight {op.name}.{key} has dtype {shape.dtype or 'null'!r}"
            raise ModelFormatError(message, where=str(self.path)) from error
        if shape.size * storage.itemsize > self.path.stat().st_size:
            raise self._broken(f"the weight {op.name}.{key} is larger than the file")
        return empty_tensor(dims, storage)

    def _entry(self, name: str, occurrence: int) -> zipfile.ZipInfo:
        found = self._entries.get(name)
        if not found:
            near = nearest(name, list(self._entries)[:_MOST_NAMES])
            note = f"nearest entry {near!r}" if near else None
            raise self._broken(f"no weight {name!r}", found=note)
        return found[min(occurrence, len(found) - 1)]

    def _broken(
        self, message: str, expected: str | None = None, found: str | None = None
    ) -> ModelFormatError:
        return ModelFormatError(
            message, where=str(self.path), expected=expected, found=found, hint=_HINT
        )
