"""The cache of whole compiled models, keyed by content, options, versions and target."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ixion.base import config
from ixion.base.target import Target
from ixion.driver.build import versions
from ixion.runtime.cache import ProgramCache, key_of
from ixion.runtime.program import Program


def model_key(
    path: Path, target: Target, opt_level: int, shapes: Mapping[str, Sequence[int]] | None
) -> str | None:
    """The key of a model file under these options; None where it cannot be read."""
    try:
        parts = [part for file in _files(path) for part in (file.name, file.read_bytes())]
    except OSError:
        return None
    bound = json.dumps({k: list(v) for k, v in sorted((shapes or {}).items())})
    neighbours = _neighbours(path, parts[1]) if parts else ""
    return key_of(*parts, neighbours, target.key(), str(opt_level), bound, versions(), _user_ops())


def _user_ops() -> str:
    """Operators that other packages registered: a program depends on what they can do."""
    import sys

    if "ixion.op" not in sys.modules:  # nobody can have registered any
        return ""
    from ixion.ir.op import OP_TABLE
    from ixion.op import BUILTIN

    own = sorted((n, o) for n, o in OP_TABLE.items() if n not in BUILTIN)
    return repr([(n, o.get_attr("FTVMCompute") is not None, o.get_attr("TNames")) for n, o in own])


def _files(path: Path) -> list[Path]:
    if path.suffix == ".param":
        weights = path.with_suffix(".bin")
        return [path, weights] if weights.exists() else [path]
    return [path]


def _neighbours(path: Path, data: str | bytes) -> str:
    """State of the files beside a model that keeps tensors outside itself."""
    if path.suffix != ".onnx" or not isinstance(data, bytes) or b"location" not in data:
        return ""
    entries = sorted(p for p in path.parent.iterdir() if p.is_file())
    return repr([(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in entries])


def find(key: str | None) -> Program | None:
    """The compiled model of that key, if it is there and sound."""
    return ProgramCache().get(key) if key is not None and config.get("cache") else None


def keep(key: str | None, program: Program) -> None:
    if key is not None and config.get("cache"):
        ProgramCache().put(key, program)
