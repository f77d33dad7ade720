"""The training script: its gradients, and that the files it writes hold the network it trained."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ixion
from ixion import data

SCRIPT = Path(__file__).parents[1] / "examples" / "train_digits.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_digits", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def params(script: ModuleType) -> dict[str, np.ndarray]:
    return script.initial(np.random.default_rng(1))


def test_gradients_against_finite_differences(script, params) -> None:
    rng = np.random.default_rng(2)
    x, labels = rng.random((6, 1, 8, 8)), rng.integers(0, 10, 6)
    exact = {name: value.astype(np.float64) for name, value in params.items()}
    found = script.gradients(exact, x, labels)
    for name, value in exact.items():
        direction = rng.standard_normal(value.shape)
        step = 1e-6
        losses = []
        for sign in (1, -1):
            moved = {**exact, name: value + sign * step * direction}
            losses.append(cross_entropy(script.forward(moved, x)[0], labels))
        slope = (losses[0] - losses[1]) / (2 * step)
        assert (found[name] * direction).sum() == pytest.approx(slope, rel=1e-4, abs=1e-7), name


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    log_sum = np.log(np.exp(logits).sum(1))
    return float((log_sum - logits[np.arange(len(labels)), labels]).mean())


def test_shifts_move_ink_by_one_pixel_at_most(script) -> None:
    x = np.zeros((50, 1, 8, 8), np.float32)
    x[:, 0, 4, 4] = 1
    moved = script.shifted(x, np.random.default_rng(0))
    places = np.argwhere(moved[:, 0])
    assert len(places) == 50
    assert set(places[:, 1]) == {3, 4, 5}
    assert set(places[:, 2]) == {3, 4, 5}


@pytest.mark.parametrize("form", ["onnx", "pnnx"])
def test_written_files_hold_the_network(script, params, tmp_path: Path, form: str) -> None:
    if form == "onnx":
        pytest.importorskip("onnx")
        path = tmp_path / "digits.onnx"
        script.write_onnx(params, path)
    else:
        path = tmp_path / "digits.pnnx.param"
        script.write_pnnx(params, path)
    x = np.random.default_rng(3).random((1, 1, 8, 8)).astype(np.float32)
    logits, _ = script.forward(params, x)
    got = ixion.compile(path, executor="reference")(x)
    np.testing.assert_allclose(got, logits, rtol=1e-4, atol=1e-5)


def test_held_out_digits_are_those_of_the_package(script) -> None:
    pytest.importorskip("sklearn")
    _, _, images, labels = script.load_digits()
    stored, stored_labels = data.held_out_digits()
    np.testing.assert_array_equal(script.to_input(images), stored)
    np.testing.assert_array_equal(labels, stored_labels)
