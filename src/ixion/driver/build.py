"""Machine code for assembled programs, through the object cache."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from ixion.base import config
from ixion.base.target import Target
from ixion.base.version import VERSION
from ixion.runtime import native
from ixion.runtime.cache import ObjectCache, key_of
from ixion.te.stmt import Kernel

# Part of every cache key: change it when the same input gives other code.
FORMAT = "1"


@cache
def versions() -> str:
    """What compiled code depends on besides its input."""
    return f"{FORMAT}:{VERSION}:{_llvmlite()}:{_source_stamp()}"


def _llvmlite() -> str:
    """The state of the llvmlite package, without the cost of importing it or its metadata."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return ""
    version = Path(spec.origin).with_name("_version.py")
    return version.read_text(encoding="utf-8") if version.exists() else spec.origin


def _source_stamp() -> str:
    """State of the package's files where it is worked on (not installed), else empty."""
    root = Path(__file__).parents[1]
    if "site-packages" in root.parts:
        return ""
    files = sorted(root.glob("*/**/*.py"))
    return key_of(*(f"{f.name}:{f.stat().st_mtime_ns}" for f in files))


def install_native() -> None:
    """Tells the runtime how to link and where its own machine code comes from (once)."""
    if native.installed():
        return
    native.install(_link, _sequencer)


def _link(objects: Sequence[bytes]) -> native.LoadedCode:
    """LLJIT, imported only where the runtime's own linker does not do."""
    from ixion.codegen.llvm import load_objects

    return load_objects(objects)


def _sequencer() -> bytes:
    target = Target.parse("native")
    known = _known_sequencer(target)
    if known is None:
        from ixion.codegen.llvm import compile_text
        from ixion.codegen.sequencer import sequencer_text

        known = compile_text(sequencer_text(target), target)
        _keep_sequencer(target, known)
    return known


# The sequencer where a worker made it and there is no cache.
_made: dict[str, bytes] = {}


def _known_sequencer(target: Target) -> bytes | None:
    key = object_key("sequencer", target)
    return _made.get(key) or (ObjectCache().get(key) if config.get("cache") else None)


def _keep_sequencer(target: Target, code: bytes) -> None:
    key = object_key("sequencer", target)
    _made[key] = code
    if config.get("cache"):
        ObjectCache().put(key, code)


def object_key(symbol: str, target: Target) -> str:
    """The cache key of the object file that holds ``symbol``."""
    return key_of("object", symbol, target.key(), versions())


def objects_of(kernels: dict[str, Kernel], target: Target) -> list[bytes]:
    """One object file per kernel, from the cache where it is known.

    Uses the kernels up: each is let go, with what was noted about it, once its text is written.
    """
    order = list(kernels)
    cache_ = ObjectCache() if config.get("cache") else None
    objects: dict[str, bytes] = {}
    for symbol in kernels if cache_ is not None else ():
        known = cache_.get(object_key(symbol, target)) if cache_ is not None else None
        if known is not None:
            objects[symbol] = known
    for symbol in objects:
        del kernels[symbol]
    for symbol, code in _compiled(kernels, target).items():
        objects[symbol] = code
        if cache_ is not None:
            cache_.put(object_key(symbol, target), code)
    return [objects[s] for s in order]


def _compiled(kernels: dict[str, Kernel], target: Target) -> dict[str, bytes]:
    if not kernels:
        return {}
    from ixion.driver.compile_workers import compile_in_workers, worker_count

    workers = worker_count(len(kernels))
    texts = _texts(kernels, target)
    if not workers:
        return _compiled_here(texts)
    native = Target.parse("native")
    if not native_code_ready(native):
        texts = chain(texts, _sequencer_job(native))
    objects, here = compile_in_workers(texts, workers)
    objects |= _compiled_here(here)
    sequencer = objects.pop("sequencer", None)
    if sequencer is not None:
        _keep_sequencer(native, sequencer)
    return objects


def native_code_ready(target: Target) -> bool:
    """Whether the runtime's own machine code is known."""
    return _known_sequencer(target) is not None


def _texts(kernels: dict[str, Kernel], target: Target) -> Iterator[tuple[str, str, Target]]:
    from ixion.codegen.emit import emit_kernel

    for symbol in list(kernels):
        yield symbol, emit_kernel(kernels.pop(symbol), target, symbol), target
        gc.collect(0)  # what a writer leaves are cycles, and collection may be paused


def _sequencer_job(target: Target) -> Iterator[tuple[str, str, Target]]:
    from ixion.codegen.sequencer import sequencer_text

    yield "sequencer", sequencer_text(target), target


def _compiled_here(texts: Iterable[tuple[str, str, Target]]) -> dict[str, bytes]:
    objects: dict[str, bytes] = {}
    for symbol, text, target in texts:
        from ixion.codegen.llvm import compile_text

        objects[symbol] = compile_text(text, target)
    return objects
