"""Read-only questions about programs. Every public name is loaded on first use."""

from __future__ import annotations

import importlib
from typing import Any

# Loaded at once: the file and the function share their name, and the function must win.
from ixion.analysis.evaluate import evaluate

_FILES: dict[str, str] = {
    "evaluate": "Closure ConstructorValue RefValue call_op",
    "dominators": "ForwardGraph ForwardNode PostDominators",
    "match_cases": "unmatched_cases",
    "well_formedness": "check_typed check_well_formed well_formed",
    "features": "Feature detect_feature",
    "binding": "recursive_vars",
    "dependency_scopes": "DependencyScopes check_basic_block_normal_form",
    "liveness": "Liveness last_uses use_counts",
    "cost": "Cost cost_of cost_of_call get_total_mac_number list_op_freqs",
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


__all__ = ["evaluate"]
