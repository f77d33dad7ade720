"""The cache of whole compiled models, keyed by content, options, versions and target."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ixion.base import config
from ixion.base.target import Target
from ixion.driver.build import versions
from ixion.runtime.cache import ObjectCache, ProgramCache, key_of
from ixion.runtime.machine_file import AnyProgram

SETTLED = 3_000_000_000  # nanoseconds after which a file's times are trusted


def model_key(
    path: Path,
    target: Target,
    opt_level: int,
    shapes: Mapping[str, Sequence[int | None]] | None,
    states: Mapping[str, str] | None = None,
) -> str | None:
    """The key of a model file under these options; None where it cannot be read."""
    if not config.get("cache"):
        return None
    try:
        contents = [part for file in _files(path) for part in (file.name, *_content(file))]
    except OSError:
        return None
    bound = json.dumps({k: list(v) for k, v in sorted((shapes or {}).items())})
    bound += json.dumps(sorted((states or {}).items()))
    return key_of(*contents, target.key(), str(opt_level), bound, versions(), _user_ops())


def _files(path: Path) -> list[Path]:
    if path.suffix == ".param":
        weights = path.with_suffix(".bin")
        return [path, weights] if weights.exists() else [path]
    return [path]


def _content(file: Path) -> tuple[str, str]:
    """The digest of a file, and the state of its neighbours where it keeps tensors in them.

    Both are remembered by the file's identity and times, so that a large file is read once.  A
    file that changed in the last seconds is read anyway: its times cannot tell two writes apart.
    """
    state = file.stat()
    times = (state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    memory = ObjectCache()
    key = key_of("content", str(file.absolute()), repr((state.st_dev, state.st_ino, *times)))
    settled = time.time_ns() - max(times[1:]) > SETTLED
    known = memory.get(key) if settled else None
    if known is None:
        digest, outside = _read(file)
        known = json.dumps([digest, outside]).encode()
        if settled:
            memory.put(key, known)
    digest, outside = json.loads(known)
    return digest, _neighbours(file) if outside else ""


def _read(file: Path) -> tuple[str, bool]:
    """Digest of a file in pieces, and whether an ONNX file may name files beside it."""
    digest, outside, tail = hashlib.sha256(), False, b""
    onnx = file.suffix == ".onnx"
    with file.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
            outside = outside or (onnx and b"location" in tail + piece)
            tail = piece[-8:]
    return digest.hexdigest(), outside


def _neighbours(file: Path) -> str:
    entries = sorted(p for p in file.parent.iterdir() if p.is_file())
    return repr([(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in entries])


def _user_ops() -> str:
    """Operators that other packages registered: a program depends on what they can do."""
    import sys

    if "ixion.op" not in sys.modules:  # nobody can have registered any
        return ""
    from ixion.ir.op import OP_TABLE
    from ixion.op import BUILTIN

    own = sorted((n, o) for n, o in OP_TABLE.items() if n not in BUILTIN)
    return repr([(n, o.get_attr("FTVMCompute") is not None, o.get_attr("TNames")) for n, o in own])


def find(key: str | None) -> AnyProgram | None:
    """The compiled model of that key, if it is there and sound."""
    return ProgramCache().get(key) if key is not None and config.get("cache") else None


def keep(key: str | None, program: AnyProgram) -> None:
    if key is not None and config.get("cache"):
        ProgramCache().put(key, program)
