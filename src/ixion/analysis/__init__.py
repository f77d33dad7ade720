"""Read-only questions about programs. Every public name is loaded on first use."""

from __future__ import annotations

import importlib
from typing import Any

_FILES: dict[str, str] = {
    "evaluate": "Closure ConstructorValue RefValue call_op evaluate",
    "dominators": "ForwardGraph ForwardNode PostDominators",
    "unmatched_cases": "unmatched_cases",
    "well_formed": "check_well_formed well_formed",
    "liveness": "last_uses use_counts",
    "cost": "Cost cost_of get_total_mac_number list_op_freqs",
    "purity": "Purity PurityAnalysis",
    "constants": "check_constant is_scalar_constant scalar_value",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ixion.analysis' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ixion.analysis.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
