"""ONNX to ncnn's and PyTorch's words by the pnnx converter, once per network."""

from __future__ import annotations

import subprocess
from pathlib import Path

from harness.engines.engine import Unavailable

_SECONDS = 900


def converted(model: Path, work: Path) -> Path:
    """The folder with NAME.ncnn.param, NAME.ncnn.bin, NAME_pnnx.py and NAME.pnnx.bin.

    Weights stay FP32. Raises Unavailable if the converter fails; later calls say so at once.
    """
    folder = work / "pnnx" / model.stem
    verdict = folder / "verdict.txt"
    if not verdict.exists():
        folder.mkdir(parents=True, exist_ok=True)
        verdict.write_text(_convert(model, folder), encoding="utf-8")
    reason = verdict.read_text(encoding="utf-8")
    if reason:
        raise Unavailable(reason)
    return folder


def _convert(model: Path, folder: Path) -> str:
    """An empty text, or why it failed."""
    import pnnx

    source = folder / model.name
    source.unlink(missing_ok=True)
    source.symlink_to(model.resolve())
    command = [pnnx.EXEC_PATH, str(source), "fp16=0"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pnnx took more than {_SECONDS} s"
    for waste in folder.glob("*.onnx"):
        waste.unlink()
    if done.returncode < 0:
        return f"pnnx died with signal {-done.returncode}"
    if done.returncode != 0:
        return f"pnnx failed with exit code {done.returncode}"
    return "" if (folder / f"{model.stem}_pnnx.py").exists() else "pnnx wrote nothing"
