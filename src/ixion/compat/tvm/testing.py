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


def parametrize_targets(*targets: Any) -> Any:
    """Run a test for each target that can be used here."""
    import pytest

    mark = pytest.mark.parametrize(("target", "dev"), enabled_targets())
    return mark(targets[0]) if len(targets) == 1 and callable(targets[0]) else mark


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
    "enabled_targets",
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
