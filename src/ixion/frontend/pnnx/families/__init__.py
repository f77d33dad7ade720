"""Converters by operator family; what maps one to one needs none (its operator names itself)."""

from importlib import import_module

_FAMILIES = (
    "activation", "attention", "aten", "detect", "elementwise", "indexing", "linear", "movement",
    "normalization", "ordering", "padding", "recurrent", "reduction", "resizing", "slicing",
    "structure", "unfold", "window",
)  # fmt: skip


def load_families() -> None:
    """Register all converters."""
    for name in _FAMILIES:
        import_module(f"ixion.frontend.pnnx.families.{name}")
