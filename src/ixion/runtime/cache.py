"""Two caches on disk: object files by key, whole programs by key.

Entries are files named by the SHA-256 of their key, under option `cache_dir` or the user's cache
folder. Writers put a whole file in place at once, readers verify it and delete what does not
verify, so any number of processes can share a folder. Beyond `cache_limit_mb` the entries used
longest ago go.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ixion.base import config
from ixion.base.errors import CacheError
from ixion.runtime.atomic_file import replacing
from ixion.runtime.machine_file import AnyProgram, load_any, save_any
from ixion.runtime.machine_program import MachineProgram

_DIGEST_SIZE = 32
#: Share of the limit that is kept when entries have to go.
_KEEP = 0.75
#: Bytes a process writes before it measures the folder again.
_MEASURE_EVERY = 64 << 20


def cache_folder() -> Path:
    """Where the caches lie: option `cache_dir`, else the user's cache folder."""
    chosen = config.get("cache_dir")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("ixion", appauthor=False))


def key_of(*parts: str | bytes) -> str:
    """A key of any number of parts; different parts give different keys."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


class ObjectCache:
    """Object files by key. Reading never raises: what cannot be read is not there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._files = _Files(folder, "objects")

    def get(self, key: str) -> bytes | None:
        """The object file, or None."""
        path = self._files.find(key)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        digest, image = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
        if hashlib.sha256(image).digest() == digest:
            return image
        self._files.drop(path)
        return None

    def put(self, key: str, image: bytes) -> None:
        """Store an object file; a folder that cannot be written is ignored."""
        self._files.put(key, len(image), lambda path: _write_image(path, image))


class ProgramCache:
    """Programs by key. Reading never raises: what cannot be read is not there."""

    def __init__(self, folder: Path | None = None) -> None:
        self._files = _Files(folder, "programs")

    def get(self, key: str, verify: bool = False) -> AnyProgram | None:
        """The program of whatever kind, or None. `verify` checks its constants too."""
        path = self._files.find(key)
        if path is None:
            return None
        try:
            return load_any(path, verify)
        except CacheError:
            self._files.drop(path)
            return None

    def put(self, key: str, program: AnyProgram) -> None:
        """Store a program; a folder that cannot be written is ignored."""
        self._files.put(key, _size(program), lambda path: save_any(program, path))


def load_object(key: str) -> bytes | None:
    """An object file from the user's cache, or None."""
    return _OBJECTS.get(key)


def save_object(key: str, image: bytes) -> None:
    """Store an object file in the user's cache."""
    _OBJECTS.put(key, image)


def load_model(key: str, verify: bool = False) -> AnyProgram | None:
    """A compiled model from the user's cache, or None."""
    return _MODELS.get(key, verify)


def save_model(key: str, program: AnyProgram) -> None:
    """Store a compiled model in the user's cache."""
    _MODELS.put(key, program)


class _Files:
    """The files of one cache. `folder` None: the folder of the options, at each use."""

    def __init__(self, folder: Path | None, kind: str) -> None:
        self._folder = folder
        self._kind = kind
        # The first entry a process writes makes it measure the folder.
        self._written = _MEASURE_EVERY

    def find(self, key: str) -> Path | None:
        """The file of `key`, marked as used now, if there is one."""
        if not config.get("cache"):
            return None
        path = self._path(key)
        try:
            os.utime(path)
        except FileNotFoundError:
            return None
        except OSError:
            return path if path.exists() else None
        return path

    def put(self, key: str, size: int, write: Callable[[Path], None]) -> None:
        """Have an entry of about `size` bytes written; now and then drop old ones."""
        if not config.get("cache"):
            return
        path = self._path(key)
        with contextlib.suppress(OSError, CacheError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
            self._shrink(size)

    def drop(self, path: Path) -> None:
        """Delete an entry; somebody else may have."""
        with contextlib.suppress(OSError):
            path.unlink()

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._root() / self._kind / name[:2] / name

    def _root(self) -> Path:
        return self._folder or cache_folder()

    def _shrink(self, written: int) -> None:
        """The limit holds for all caches of the folder together."""
        limit = int(config.get("cache_limit_mb")) << 20
        self._written += written
        if self._written < min(_MEASURE_EVERY, limit // 8):
            return
        self._written = 0
        entries = sorted(_entries(self._root()))
        total = sum(size for _, size, _ in entries)
        wanted = limit if total <= limit else int(limit * _KEEP)
        for _, size, path in entries:
            if total <= wanted:
                return
            self.drop(path)
            total -= size


def _size(program: AnyProgram) -> int:
    """About how many bytes a program takes on disk."""
    if isinstance(program, MachineProgram):
        constants = sum(array.nbytes for array in program.arrays)
        return constants + sum(_size(s.program) for s in program.segments if s.program is not None)
    size = sum(array.nbytes for array in program.constants)
    return size + sum(len(image) for image in program.objects)


def _write_image(path: Path, image: bytes) -> None:
    with replacing(path) as file:
        file.write(hashlib.sha256(image).digest() + image)


def _entries(root: Path) -> Iterator[tuple[float, int, Path]]:
    """(last use, size, path) of every file."""
    for path in root.glob("*/*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            yield status.st_mtime, status.st_size, path


_OBJECTS = ObjectCache()
_MODELS = ProgramCache()
