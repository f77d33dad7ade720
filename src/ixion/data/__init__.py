"""The embedded default: a digit classifier and real digits that its training never saw.

Input `image` is float32 [1, 1, 8, 8], ink 0 to 1; output `logits` is float32 [1, 10].
`examples/train_digits.py` makes every file in this folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

HERE = Path(__file__).parent

Array = np.ndarray[Any, Any]


def digits_model(form: Literal["onnx", "pnnx"] = "onnx") -> Path:
    """Path of the model file; the PNNX weights lie beside it."""
    return HERE / ("digits.onnx" if form == "onnx" else "digits.pnnx.param")


def held_out_digits() -> tuple[Array, Array]:
    """360 digits: inputs float32 [360, 1, 8, 8] in 0..1 and labels uint8 [360]."""
    with np.load(HERE / "digits_heldout.npz", allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    return images[:, None].astype(np.float32) / np.float32(16), labels
