"""What machine to compile for, as data: vector width, registers, features, caches."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path

from ixion.base import dtype as dtypes
from ixion.base.errors import ConfigError, did_you_mean

# LLVM feature names that a kernel may ask for, beside what the x86-64 level already means. The
# /proc/cpuinfo spelling is given where it differs.
_X86_FEATURES = {
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avxvnni": "avx_vnni",
    "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
}
_ARM_FEATURES = {"dotprod": "asimddp", "fullfp16": "asimdhp", "bf16": "bf16", "i8mm": "i8mm"}
_V3 = ("avx2", "fma", "f16c", "bmi2", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Target:
    """One CPU. ``features`` are LLVM feature names beyond what ``cpu`` implies.

    ``vector_registers`` counts architectural vector registers, caches are in bytes (``l2`` per
    core, ``l3`` shared; 0 where there is none), ``cores`` is how many this process may use.

    ``far_rate`` is how many bytes come from beyond the L2 in the time of one multiply-add of
    vectors, about; code that streams its weights is chosen by it.
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    fma: bool
    l1: int
    l2: int
    l3: int
    cores: int
    far_rate: float = 8.0

    @staticmethod
    def parse(text: str | Target) -> Target:
        """A target by name: ``native``, ``avx512``, ``avx2``, ``generic`` or ``neon``."""
        return text if isinstance(text, Target) else _named(text.strip().lower())

    def lanes(self, dtype: str) -> int:
        """Elements of a dtype in one vector register."""
        return max(1, self.vector_bits // (8 * dtypes.itemsize(dtype)))

    def has(self, feature: str) -> bool:
        """The CPU has an LLVM feature beyond its level."""
        return feature in self.features

    def key(self) -> str:
        """A short text that is equal for targets that get the same code."""
        caches = (self.l1, self.l2, self.l3, self.far_rate)
        parts = (self.triple, self.cpu, self.features, self.vector_bits, caches)
        digest = hashlib.blake2b(repr(parts).encode(), digest_size=6).hexdigest()
        return f"{self.cpu}-{digest}"

    @property
    def is_x86(self) -> bool:
        """An x86-64 CPU."""
        return self.triple.startswith("x86_64")


@functools.cache
def _named(name: str) -> Target:
    makers = {
        "native": _native,
        "avx512": _avx512,
        "avx2": _avx2,
        "generic": _generic,
        "neon": _neon,
    }
    if name not in makers:
        raise ConfigError(
            f"unknown target {name!r}",
            expected=", ".join(makers),
            hint=did_you_mean(name, makers),
        )
    return makers[name]()


def _x86(name: str, cpu: str, bits: int, registers: int, fma: bool) -> Target:
    l1, l2, l3 = cache_sizes()
    triple = "x86_64-unknown-linux-gnu"
    cores, far = usable_cores(), _far_rate()
    return Target(name, triple, cpu, (), bits, registers, fma, l1, l2, l3, cores, far)


def _far_rate() -> float:
    """Measured: Zen 4 does one multiply-add a cycle, Intel's server cores two, from slower caches.

    12 GB/s for 5.8 G multiply-adds a second on Emerald Rapids, 30 for 3.65 on Zen 4.
    """
    return 2.2 if "GenuineIntel" in _vendor() else 8.0


def _avx512() -> Target:
    return _x86("avx512", "x86-64-v4", 512, 32, True)


def _avx2() -> Target:
    return _x86("avx2", "x86-64-v3", 256, 16, True)


def _neon() -> Target:
    l1, l2, l3 = cache_sizes()
    triple = "aarch64-unknown-linux-gnu"
    return Target("neon", triple, "generic", (), 128, 32, True, l1, l2, l3, usable_cores())


def _generic() -> Target:
    if _is_arm():
        return replace(_neon(), name="generic")
    return _x86("generic", "x86-64", 128, 16, False)


def _native() -> Target:
    flags = cpu_flags()
    if _is_arm():
        found = tuple(sorted(name for name, flag in _ARM_FEATURES.items() if flag in flags))
        return replace(_neon(), name="native", features=found)
    found = tuple(sorted(name for name, flag in _X86_FEATURES.items() if flag in flags))
    if flags.issuperset(_V4):
        base = _avx512()
    elif flags.issuperset(_V3):
        base = _avx2()
        found = tuple(name for name in found if not name.startswith("avx512"))
    else:
        base, found = _generic(), ()
    return replace(base, name="native", features=found)


def _is_arm() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")


def cpu_flags() -> frozenset[str]:
    """Feature flags of the first CPU, as Linux spells them; empty where /proc does not tell."""
    found = _cpu_info()
    return frozenset((found.get("flags") or found.get("Features") or "").split())


def _vendor() -> str:
    return _cpu_info().get("vendor_id", "")


@functools.cache
def _cpu_info() -> dict[str, str]:
    """The first CPU's lines of /proc/cpuinfo by name."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    lines = text.split("\n\n")[0].splitlines()
    return {name.strip(): value for name, _, value in (line.partition(":") for line in lines)}


@functools.cache
def cache_sizes() -> tuple[int, int, int]:
    """(L1 data, L2, L3) bytes of the first CPU; usual sizes where /sys does not tell."""
    found = {1: 32 << 10, 2: 512 << 10, 3: 0}
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level = int((entry / "level").read_text())
            kind = (entry / "type").read_text().strip()
            size = (entry / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified") and level in found:
            found[level] = _bytes(size)
    return found[1], found[2], found[3]


def _bytes(text: str) -> int:
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:].upper(), 1)
    return int(text.rstrip("KMGkmg")) * scale


def usable_cores() -> int:
    """Cores this process may use: its affinity, and its cgroup's CPU quota rounded up."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, count if quota is None else min(count, quota))


def _cgroup_quota() -> int | None:
    for path in ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        try:
            words = Path(path).read_text().split()
            if len(words) == 1:
                words.append(Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text())
            quota, period = int(words[0]), int(words[1])
        except (OSError, ValueError):
            continue
        if quota > 0 and period > 0:
            return -(-quota // period)
    return None
