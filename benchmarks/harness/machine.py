"""What was measured where: CPU, system, versions, and the peak of multiply-adds."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness.engines import find
from harness.processes import Worker

_BESIDE = ("numpy", "llvmlite", "onnx", "pnnx")


def describe(engines: Sequence[str]) -> dict[str, Any]:
    """CPU, cores, system, and versions of engines and of what they stand on."""
    found = {"python": platform.python_version()}
    for package in _BESIDE:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    for engine in engines:
        found[engine] = find(engine).version()
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "load_average": os.getloadavg()[0],
        "versions": found,
    }


def cpu_name() -> str:
    """The model name, with what virtual machines leave of it."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, text = line.partition(":")
        fields.setdefault(key.strip(), text.strip())
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f" (family {fields['cpu family']}, model {fields['model']})"
    return name


def peaks(
    engines: Sequence[str], threads: Sequence[int], cache: Path
) -> dict[str, dict[str, float]]:
    """GFLOP/s of float32 multiply-adds, by target and number of threads."""
    found: dict[str, dict[str, float]] = {}
    for target in dict.fromkeys(find(engine).target for engine in engines):
        for count in threads:
            with Worker(cache) as worker:
                answer = worker.ask("peak", target=target, threads=count)
            if answer["ok"]:
                found.setdefault(target, {})[str(count)] = answer["flops"] / 1e9
    return found
