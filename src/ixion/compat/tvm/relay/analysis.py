"""``tvm.relay.analysis``: questions about programs."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import type_solver as _ffi_api
from ixion.ir import (
    all_type_vars,
    all_vars,
    bound_type_vars,
    bound_vars,
    free_type_vars,
    free_vars,
    post_order_visit,
)


def __getattr__(name: str) -> Any:
    import ixion.analysis

    return getattr(ixion.analysis, name)


__all__ = [
    "_ffi_api",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "free_type_vars",
    "free_vars",
    "post_order_visit",
]
