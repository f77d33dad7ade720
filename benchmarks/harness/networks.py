"""The networks: skeletons with recipes for weights, reproducible inputs, stored samples of outputs.

A folder of skeletons holds `index.json`, `NAME.skeleton.onnx`, `NAME.expect.npz` and
`materialize.py`, whose own functions fill in the weights here.
"""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
#: Open sizes: no peer takes it at its best, so it is no part of the comparison.
APART = ("minilm_l6_dynamic",)
#: Largest error accepted, as a share of what another input changes.
TOLERANCE = 5e-3


@dataclass(frozen=True)
class Network:
    """One network on disk. `gflop` counts two operations a multiply-add."""

    name: str
    gflop: float
    model: Path
    inputs: Path
    expect: Path


class NoModels(Exception):
    """The folder of skeletons is not there; the message says what to do."""


def index(models: Path) -> dict[str, dict[str, Any]]:
    """What the folder holds. Raises NoModels."""
    path = models / "index.json"
    if not path.exists():
        raise NoModels(
            f"no networks in {models}: index.json is missing.\n"
            "The skeletons (weightless ONNX files with materialize.py) are not part of this "
            "repository; say where they are with --models FOLDER."
        )
    found: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def choose(models: Path, names: Sequence[str]) -> list[str]:
    """The named networks, or all fixed-shape ones. Raises NoModels or LookupError."""
    known = index(models)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise LookupError(f"no network {', '.join(unknown)}: there are {', '.join(known)}")
    return list(names) or [name for name in known if name not in APART]


def materialise(models: Path, name: str, work: Path) -> Network:
    """The network with its weights in `work`, made if it is not there yet."""
    model, inputs = work / f"{name}.onnx", work / f"{name}.npz"
    if not (model.exists() and inputs.exists()):
        _make(_recipes(models), models, name, work)
    gflop = float(index(models)[name]["gflop"])
    return Network(name, gflop, model, inputs, models / f"{name}.expect.npz")


def _make(recipes: ModuleType, models: Path, name: str, work: Path) -> None:
    import onnx

    work.mkdir(parents=True, exist_ok=True)
    half = work / f"{name}.part"
    onnx.save(recipes.fill(onnx.load(models / f"{name}.skeleton.onnx")), half)
    np.savez(work / f"{name}.npz", **recipes.make_inputs(index(models)[name]["inputs"]))
    half.replace(work / f"{name}.onnx")


def _recipes(models: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("materialize", models / "materialize.py")
    if spec is None or spec.loader is None:
        raise NoModels(f"no materialize.py in {models}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_inputs(path: Path) -> dict[str, Array]:
    """Inputs by name, in the model's order."""
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def worst_error(found: Mapping[str, Array] | Sequence[Array], expect: Path) -> float:
    """Largest error of a strided sample of the outputs, as a share of what another input moves.

    Outputs without names are taken in order. Raises LookupError or ValueError for a missing output
    or another number of elements.
    """
    with np.load(expect) as stored:
        want = {name: stored[name] for name in stored.files}
    names = [name for name in want if not name.startswith("alt:")]
    if not isinstance(found, Mapping):
        found = dict(zip(names, found, strict=True))
    return max(_error(found[n], want[n], want[f"alt:{n}"]) for n in names)


def _error(found: Array, want: Array, other: Array) -> float:
    flat = np.asarray(found).reshape(-1)
    got = flat[:: max(1, flat.size // 4096)][:4096].astype(np.float64)
    if got.shape != want.shape:
        raise ValueError(f"an output of {flat.size} elements, which cannot be")
    moved = float(np.abs(want.astype(np.float64) - other).max())
    scale = max(moved, 0.02 * (float(np.abs(want).max()) or 1.0))
    error = float(np.abs(got - want).max() / scale)
    return float("inf") if math.isnan(error) else error
