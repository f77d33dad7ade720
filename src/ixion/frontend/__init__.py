"""Foreign model files into the IR: ONNX and PNNX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ixion.base.errors import ModelFormatError

if TYPE_CHECKING:
    from ixion.ir import IRModule, TensorType

__all__ = ["inputs", "load"]


def load(path: str | Path, shapes: Mapping[str, Sequence[int]] | None = None) -> IRModule:
    """The module of a model file, by the file's name: `.onnx`, or `.param` with its `.bin` beside.

    `shapes` gives sizes to inputs that the file leaves open. The module has one function `main`,
    whose parameters are the inputs in order; `attrs` holds `input_names` and `output_names`.
    Raises ModelFormatError for a missing, broken or unknown file, UnsupportedOpError naming all
    operators that have no import, InputError for shapes that do not fit.
    """
    if _is_onnx(path):
        from ixion.frontend.onnx.importer import load_onnx

        return load_onnx(path, shapes)
    from ixion.frontend.pnnx.importer import load_pnnx

    return load_pnnx(path, shapes)


def inputs(path: str | Path) -> dict[str, TensorType]:
    """Input types of a model file by name, in order, without importing its operators.

    Sizes that the file leaves open are symbols: a model whose operators need numbers for them
    (a pad that follows a size, a range) loads only with `shapes`. Raises ModelFormatError.
    """
    if _is_onnx(path):
        from ixion.frontend.onnx.importer import onnx_inputs

        return onnx_inputs(path)
    from ixion.frontend.pnnx.importer import pnnx_inputs

    return pnnx_inputs(path)


def _is_onnx(path: str | Path) -> bool:
    suffix = Path(path).suffix
    if suffix in (".onnx", ".param"):
        return suffix == ".onnx"
    raise ModelFormatError(
        "a file of unknown kind",
        where=str(path),
        expected="a name that ends in .onnx or .pnnx.param",
        hint="of a PNNX pair, give the .param file" if suffix == ".bin" else None,
    )
