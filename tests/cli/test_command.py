"""The command itself: verbs, version, usage errors, and that no traceback reaches the user."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ixion

VERBS = ("run", "info", "print", "bench", "profile", "demo")


def test_version(cli) -> None:
    assert cli("--version").out == f"ixion {ixion.__version__}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_speaks_json(cli, verb: str) -> None:
    done = cli(verb, "--help")
    assert done.code == 0
    assert "--json" in done.out


@pytest.mark.parametrize("arguments", [["frob"], ["run"], ["print", "m.onnx", "--stage", "ast"]])
def test_usage_errors_are_exit_code_2(cli, arguments: list[str]) -> None:
    assert cli(*arguments).code == 2


@pytest.mark.parametrize("verb", ["info", "print", "bench"])
def test_missing_model(cli, folder: Path, verb: str) -> None:
    cli(verb, folder / "digit.onnx").refuses("digits.onnx")
    assert cli(verb, folder / "digit.onnx", "--json").out == ""


@pytest.mark.parametrize("verb", ["info", "print", "bench"])
def test_broken_model(cli, folder: Path, verb: str) -> None:
    (folder / "digits.onnx").write_bytes(b"\x00\xff" * 300)
    cli(verb, folder / "digits.onnx").refuses("digits.onnx")


def test_as_a_process(folder: Path) -> None:
    command = [sys.executable, "-m", "ixion", "run", "none.onnx", "--inputs", "in.npz"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_info(cli, folder: Path) -> None:
    done = cli("info", folder / "digits.onnx", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["inputs"] == [{"name": "image", "shape": [1, 1, 8, 8], "dtype": "float32"}]
    assert found["outputs"] == [{"name": "logits", "shape": [1, 10], "dtype": "float32"}]
    assert found["operators"]["nn.conv2d"] == 2
    assert found["parameters"] == 9930
    macs = 64 * 9 * 16 + 64 * 9 * 16 * 32 + 512 * 10
    assert found["macs"] == macs
    assert found["flops"] > 2 * macs
    assert found["host_steps"] == []
    assert found["planned_bytes"] > 0
    assert found["unsupported"] == []


def test_info_for_people(cli, folder: Path) -> None:
    done = cli("info", folder / "digits.pnnx.param")
    assert done.code == 0, done.err
    for word in ("float32[1, 1, 8, 8]", "nn.conv2d", "9,930", "host steps", "none"):
        assert word in done.out


def test_info_lists_unsupported_operators(cli, folder: Path) -> None:
    path = folder / "digits.pnnx.param"
    path.write_text(path.read_text().replace("nn.ReLU", "nn.Nope").replace("nn.Linear", "nn.Lines"))
    done = cli("info", path, "--json")
    done.refuses("nn.Nope", "nn.Lines")
    listed = {row["operator"]: row["count"] for row in json.loads(done.out)["unsupported"]}
    assert listed == {"nn.Nope": 2, "nn.Lines": 1}


@pytest.mark.parametrize("stage", ["ir", "kernels", "plan", "loops", "llvm", "asm"])
def test_print_every_stage(cli, folder: Path, stage: str) -> None:
    done = cli("print", folder / "digits.onnx", "--stage", stage, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["text"].strip()


def test_print_after_a_pass(cli, folder: Path) -> None:
    done = cli("print", folder / "digits.onnx", "--after", "InferType")
    assert done.code == 0, done.err
    assert "nn.conv2d" in done.out
    cli("print", folder / "digits.onnx", "--after", "InferTipe").refuses("InferType")


def test_bench(cli, folder: Path) -> None:
    done = cli("bench", folder / "digits.onnx", "--rounds", 3, "--threads", 1, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [timing["engine"] for timing in found["timings"]] == ["ixion"]
    assert found["timings"][0]["rounds"] == 3


def test_bench_beside_onnxruntime(cli, folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    beside = ("--vs", "onnxruntime", "--rounds", 3, "--threads", 1)
    done = cli("bench", folder / "digits.onnx", *beside, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["ratio"] > 0
    assert found["largest_difference"] < 1e-3
    cli("bench", folder / "digits.pnnx.param", *beside).refuses("ONNX")


def test_demo(cli) -> None:
    done = cli("demo", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["images"] == 360
    assert found["accuracy"] > 0.985
    assert found["largest_difference_from_reference"] < 1e-3


@pytest.mark.parametrize("form", ["onnx", "pnnx"])
def test_demo_shows_pictures_and_answers(cli, form: str) -> None:
    done = cli("demo", "--form", form, "--pictures", 6)
    assert done.code == 0, done.err
    assert "\u2588" in done.out
    assert "98.89%" in done.out
    assert "largest difference to reference" in done.out
