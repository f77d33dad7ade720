"""Converters by operator family; what maps one to one needs none (its operator names itself)."""

from importlib import import_module

_FAMILIES = (
    "control", "elementwise", "indexing", "linear", "movement", "normalization", "quantization",
    "recurrent", "reduction", "resizing", "shape", "window",
)  # fmt: skip


def load_families() -> None:
    """Register all converters."""
    for name in _FAMILIES:
        import_module(f"ixion.frontend.onnx.families.{name}")
