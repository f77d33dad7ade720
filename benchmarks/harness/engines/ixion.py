"""Ixion itself."""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, ClassVar

from harness.engines.engine import Array, Engine

if TYPE_CHECKING:
    from ixion.driver.executable import CompiledExecutable

#: Rooms that compiling and running never enter.
_APART = ("ixion.cli", "ixion.compat", "ixion.interop", "ixion.train", "ixion.__main__")


class Ixion(Engine):
    """`ixion.compile`, with whatever cache IXION_CACHE_DIR holds."""

    packages: ClassVar[tuple[str, ...]] = ("ixion",)

    @classmethod
    def version(cls) -> str:
        from ixion.base.version import VERSION

        return VERSION

    def imports(self) -> None:
        import ixion

        for module in pkgutil.walk_packages(ixion.__path__, "ixion."):
            if not module.name.startswith(_APART):
                import_module(module.name)

    def load(self, model: Path, work: Path) -> None:
        from ixion import driver

        exe: Any = driver.compile(model, target=self.target, threads=self.threads)
        self.exe: CompiledExecutable = exe

    def bind(self, feeds: Mapping[str, Array]) -> None:
        self.feeds = dict(feeds)

    def run(self) -> object:
        return self.exe.run(self.feeds)

    def outputs(self) -> Mapping[str, Array]:
        return self.exe.run(self.feeds)

    def facts(self) -> dict[str, object]:
        """What the program looks like: steps, host steps, bytes."""
        program = self.exe.native.program
        return {
            "steps": len(program.steps),
            "host_steps": [program.hosts[s.host].op for s in program.steps if s.kind == "host"],
            "arena_bytes": program.arena_size,
            "constant_bytes": sum(array.nbytes for array in program.constants),
        }

    def overhead(self, rounds: int = 40, calls: int = 500) -> dict[str, float]:
        """Median microseconds of `exe.run` and of the native call inside it, taking turns."""
        native = self.exe.native
        self.run()
        context = native._free[-1]
        taken: dict[str, list[float]] = {"run_us": [], "native_us": []}
        for _ in range(rounds):
            for _ in range(calls):
                start = time.perf_counter()
                self.exe.run(self.feeds)
                taken["run_us"].append(time.perf_counter() - start)
            for _ in range(calls):
                start = time.perf_counter()
                native._call(context.record)
                taken["native_us"].append(time.perf_counter() - start)
        found = {name: median(times) * 1e6 for name, times in taken.items()}
        return {**found, "overhead_us": found["run_us"] - found["native_us"]}


class IxionAvx2(Ixion):
    """The same for 256-bit vectors."""

    target: ClassVar[str] = "avx2"
