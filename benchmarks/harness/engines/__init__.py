"""Engines by name. An adapter imports its library only in the process that measures it."""

from __future__ import annotations

from importlib import import_module

from harness.engines.engine import Engine

#: In the order of tables. Ixion's own variants are no peers.
ENGINES = {
    "ixion": "harness.engines.ixion:Ixion",
    "ixion-avx2": "harness.engines.ixion:IxionAvx2",
    "onnxruntime": "harness.engines.onnxruntime:OnnxRuntime",
    "openvino": "harness.engines.openvino:OpenVino",
    "ncnn": "harness.engines.ncnn:Ncnn",
    "torch": "harness.engines.torch:Torch",
    "torch-cl": "harness.engines.torch:TorchChannelsLast",
}
DEFAULT = ("ixion", "onnxruntime", "openvino", "ncnn", "torch", "torch-cl")


def find(name: str) -> type[Engine]:
    """The class of an engine: one of ENGINES, or `module:Class`. Raises LookupError."""
    place = ENGINES.get(name, name)
    module, mark, attribute = place.partition(":")
    if not mark:
        raise LookupError(f"unknown engine {name!r}: expected one of {', '.join(ENGINES)}")
    found: type[Engine] = getattr(import_module(module), attribute)
    return found


def is_peer(name: str) -> bool:
    """Whether an engine is somebody else's."""
    return not name.startswith("ixion")
