"""``tvm.testing``: what test files call themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])


def main() -> None:
    """Run the tests of the calling script."""
    import pytest

    caller = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([caller, *sys.argv[1:]]))


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """numpy's, with the shapes compared too."""
    np.testing.assert_equal(np.shape(actual), np.shape(desired))
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def enabled_targets() -> list[tuple[str, Any]]:
    """The targets tests run on: the CPU."""
    from ixion.compat.tvm.nd import cpu

    return [("llvm", cpu(0))]


def device_enabled(target: Any) -> bool:
    """Whether tests run on a target."""
    return str(target).split()[0] in {name for name, _ in enabled_targets()}


def parametrize_targets(*targets: Any) -> Any:
    """Run a test for each target given, or for each enabled one; skipped where it is not here."""
    import pytest

    from ixion.compat.tvm.nd import device

    if not targets or callable(targets[0]):
        mark = pytest.mark.parametrize(("target", "dev"), enabled_targets())
        return mark(targets[0]) if targets else mark
    missing = pytest.mark.skip(reason="the target is not here")
    rows = [
        pytest.param(name, device(name), marks=() if device_enabled(name) else missing)
        for name in targets
    ]
    return pytest.mark.parametrize(("target", "dev"), rows)


def known_failing_targets(*targets: str) -> Callable[[Any], Any]:
    """Expect a failure on these targets."""
    import pytest

    failing = any(device_enabled(name) for name in targets)
    return pytest.mark.xfail(reason="known to fail on the target") if failing else _same


def exclude_targets(*targets: str) -> Callable[[Any], Any]:
    """Do not run a test on these targets."""
    import pytest

    excluded = any(device_enabled(name) for name in targets)
    return pytest.mark.skip(reason="not meant for the target") if excluded else _same


def _same(test: Any) -> Any:
    return test


def __getattr__(name: str) -> Any:
    # pytest is needed by those who write tests only.
    if name not in ("fixture", "parameter", "parameters"):
        raise AttributeError(f"tvm.testing has no {name}")
    from ixion.compat.tvm.testing import parametrize

    return getattr(parametrize, name)


def _unchanged(*_: Any) -> Callable[[_F], _F]:
    return lambda func: func


def _skipped(reason: str) -> Callable[..., Any]:
    def mark(func: Any = None) -> Any:
        import pytest

        skip = pytest.mark.skip(reason=reason)
        return skip(func) if func is not None else [skip]

    return mark


def requires_llvm(func: _F) -> _F:
    """Always so."""
    return func


uses_gpu = requires_x86 = requires_llvm
requires_package = _unchanged
requires_gpu = _skipped("needs a GPU")
requires_cuda = _skipped("needs CUDA")
requires_opencl = _skipped("needs OpenCL")

__all__ = [
    "assert_allclose",
    "device_enabled",
    "enabled_targets",
    "exclude_targets",
    "known_failing_targets",
    "main",
    "parametrize_targets",
    "requires_cuda",
    "requires_gpu",
    "requires_llvm",
    "requires_opencl",
    "requires_package",
    "requires_x86",
    "uses_gpu",
]
