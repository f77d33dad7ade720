"""`ixion run`: results, comparison, and refusal of everything that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ixion import data

RUN = ("--executor", "reference")


@pytest.fixture(scope="module")
def logits() -> np.ndarray:
    """Logits of the first held-out digit, by the convolution's definition."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(data.digits_model())
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in model.graph.initializer}
    x = data.held_out_digits()[0][0].astype(np.float64)
    for name in ("conv1", "conv2"):
        x = np.maximum(conv3x3(x, weights[f"{name}.weight"], weights[f"{name}.bias"]), 0)
    x = x.reshape(32, 4, 2, 4, 2).max((2, 4)).reshape(-1)
    return (weights["fc.weight"] @ x + weights["fc.bias"])[None]


def conv3x3(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    out = np.zeros((len(weight), 8, 8)) + bias[:, None, None]
    for dy in range(3):
        for dx in range(3):
            window = padded[:, dy : dy + 8, dx : dx + 8]
            out += np.tensordot(weight[:, :, dy, dx], window, 1)
    return out


@pytest.mark.parametrize("name", ["digits.onnx", "digits.pnnx.param"])
@pytest.mark.parametrize("executor", ["reference", "compiled"])
def test_outputs_are_right(cli, folder: Path, logits, name: str, executor: str) -> None:
    np.savez(folder / "want.npz", out0=logits)
    done = cli(
        *("run", folder / name, "--inputs", folder / "in.npz", "--expect", folder / "want.npz"),
        *("-o", folder / "out.npz", "--executor", executor, "--rtol", "1e-4", "--json"),
    )
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["ok"] is True
    assert report["outputs"][0]["shape"] == [1, 10]
    assert report["outputs"][0]["largest_error"] < 1e-3
    with np.load(folder / "out.npz") as stored:
        assert stored.files == [report["outputs"][0]["name"]]
        np.testing.assert_allclose(stored[stored.files[0]], logits, rtol=1e-4, atol=1e-4)


def test_outside_tolerance_is_exit_code_1(cli, folder: Path, logits: np.ndarray) -> None:
    np.savez(folder / "want.npz", **{"out:logits": logits + 1})
    files = ("--inputs", folder / "in.npz", "--expect", folder / "want.npz")
    done = cli("run", folder / "digits.onnx", *files, *RUN)
    assert done.code == 1
    assert "outside" in done.out
    assert "logits" in done.out
    assert done.err == ""
    within = cli("run", folder / "digits.onnx", *files, *RUN, "--atol", 1.01)
    assert within.code == 0


def test_one_file_may_hold_inputs_and_expected_outputs(cli, folder: Path, logits) -> None:
    with np.load(folder / "in.npz") as stored:
        image = stored["in0"]
    np.savez(folder / "io.npz", **{"in:image": image, "out:logits": logits})
    both = ("--inputs", folder / "io.npz", "--expect", folder / "io.npz")
    assert cli("run", folder / "digits.onnx", *both, *RUN).code == 0


def test_without_expectation_the_outputs_are_listed(cli, folder: Path) -> None:
    done = cli("run", folder / "digits.onnx", "--inputs", folder / "in.npz", *RUN)
    assert done.code == 0
    assert "logits" in done.out
    assert "float32[1, 10]" in done.out


# --- refusals ------------------------------------------------------------------------------------


def refuse(cli, folder: Path, model: str, *words: str, inputs: str = "in.npz") -> None:
    """The run must end with one clear error and leave the folder as it was."""
    before = contents(folder)
    files = ("--inputs", folder / inputs, "-o", folder / "out.npz")
    cli("run", folder / model, *files, *RUN).refuses(*words)
    assert contents(folder) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_missing_model(cli, folder: Path) -> None:
    refuse(cli, folder, "digit.onnx", "digits.onnx")
    refuse(cli, folder, "nowhere/digits.onnx", "nowhere")


def test_a_folder_is_no_model(cli, folder: Path) -> None:
    (folder / "model.onnx").mkdir()
    refuse(cli, folder, "model.onnx")


def test_unknown_extension(cli, folder: Path) -> None:
    (folder / "model.h5").write_bytes(b"\x89HDF")
    refuse(cli, folder, "model.h5", "model.h5")


def test_missing_inputs(cli, folder: Path) -> None:
    refuse(cli, folder, "digits.onnx", "im.npz", inputs="im.npz")


def test_nowhere_to_write(cli, folder: Path) -> None:
    done = cli(
        *("run", folder / "digits.onnx", "--inputs", folder / "in.npz", *RUN),
        *("-o", folder / "none" / "out.npz"),
    )
    done.refuses("none")


@pytest.mark.parametrize("share", [0, 0.001, 0.01, 0.2, 0.5, 0.9, 0.999])
def test_truncated_onnx(cli, folder: Path, share: float) -> None:
    path = folder / "digits.onnx"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    refuse(cli, folder, "digits.onnx", "digits.onnx")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["digits.onnx", "digits.pnnx.param", "digits.pnnx.bin"])
def test_random_bytes(cli, folder: Path, name: str, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, 3000, np.uint8).tobytes()
    (folder / name).write_bytes(noise)
    refuse(cli, folder, name.replace(".bin", ".param"))


@pytest.mark.parametrize("share", [0, 0.01, 0.2, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("name", ["digits.pnnx.param", "digits.pnnx.bin"])
def test_truncated_pnnx(cli, folder: Path, name: str, share: float) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: int(len(whole) * share)])
    refuse(cli, folder, "digits.pnnx.param")


def test_weights_that_are_missing(cli, folder: Path) -> None:
    (folder / "digits.pnnx.bin").unlink()
    refuse(cli, folder, "digits.pnnx.param", "digits.pnnx.bin")


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("conv2                    1 1 2 3", "conv2                    1 1 9 3", "9"),
        ("conv2                    1 1 2 3", "conv2                    1 1 4 3", "conv2"),
        ("nn.ReLU                  relu2", "nn.RleU                  relu2", "nn.RleU"),
        ("@weight=(32,16,3,3)f32", "@weight=(32,16,3,4)f32", "conv2"),
        ("@weight=(16,1,3,3)f32", "@weight=(16,2,3,3)f32", "conv1"),
        ("7767517", "7767516", "7767517"),
        ("relu1                    1 1 1 2", "relu1                    1 7 1 2", "param:5"),
    ],
    ids=["dangling", "cyclic", "unsupported", "weight-size", "weight-shape", "magic", "counts"],
)
def test_wrong_pnnx_text(cli, folder: Path, old: str, new: str, word: str) -> None:
    path = folder / "digits.pnnx.param"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    refuse(cli, folder, "digits.pnnx.param", word)


def edit_onnx(folder: Path, change) -> None:
    onnx = pytest.importorskip("onnx")
    path = folder / "digits.onnx"
    model = onnx.load(path)
    change({node.name: node for node in model.graph.node}, model)
    path.write_bytes(model.SerializeToString())


def test_onnx_with_a_cycle(cli, folder: Path) -> None:
    def change(nodes, _model) -> None:
        nodes["conv2"].input[0] = "r2"

    edit_onnx(folder, change)
    refuse(cli, folder, "digits.onnx", "conv2")


def test_onnx_with_a_dangling_name(cli, folder: Path) -> None:
    def change(nodes, _model) -> None:
        nodes["conv2"].input[0] = "nowhere"

    edit_onnx(folder, change)
    refuse(cli, folder, "digits.onnx", "nowhere", "conv2")


def test_onnx_with_a_dangling_output(cli, folder: Path) -> None:
    def change(_nodes, model) -> None:
        model.graph.output[0].name = "logit"

    edit_onnx(folder, change)
    refuse(cli, folder, "digits.onnx", "logit")


def test_unsupported_operators_are_named_all_at_once(cli, folder: Path) -> None:
    def change(nodes, _model) -> None:
        nodes["relu1"].op_type = nodes["relu2"].op_type = "Rleu"
        nodes["pool"].op_type = "Puddle"

    edit_onnx(folder, change)
    refuse(cli, folder, "digits.onnx", "Rleu", "Puddle", "relu1", "relu2", "pool")


def test_weights_of_the_wrong_shape(cli, folder: Path) -> None:
    def change(nodes, _model) -> None:
        nodes["conv2"].input[1] = "conv1.weight"

    edit_onnx(folder, change)
    refuse(cli, folder, "digits.onnx", "conv2")


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"imag": np.zeros((1, 1, 8, 8), np.float32)}, ("image", "imag")),
        ({"image": np.zeros((1, 1, 8, 9), np.float32)}, ("image", "1, 1, 8, 8")),
        ({"image": np.zeros((1, 8, 8), np.float32)}, ("image", "1, 8, 8")),
        ({"image": np.zeros((1, 1, 8, 8), np.int64)}, ("image", "float32", "int64")),
        ({"image": np.zeros((1, 1, 8, 8), "U3")}, ("image", "float32")),
        ({"image": np.zeros((1, 1, 8, 8), np.float32), "x": np.zeros(1)}, ("x",)),
    ],
    ids=["name", "shape", "rank", "dtype", "text", "extra"],
)
@pytest.mark.parametrize("executor", ["reference", "compiled"])
def test_wrong_inputs(cli, folder: Path, feeds, words, executor: str) -> None:
    np.savez(folder / "feeds.npz", **feeds)
    done = cli(
        *("run", folder / "digits.onnx", "--inputs", folder / "feeds.npz"),
        *("-o", folder / "out.npz", "--executor", executor),
    )
    done.refuses(*words)
    assert not (folder / "out.npz").exists()


def test_expectation_for_no_output(cli, folder: Path) -> None:
    np.savez(folder / "want.npz", lgits=np.zeros((1, 10)))
    files = ("--inputs", folder / "in.npz", "--expect", folder / "want.npz")
    done = cli("run", folder / "digits.onnx", *files, *RUN, "-o", folder / "out.npz")
    done.refuses("'logits'", "lgits")
    assert not (folder / "out.npz").exists()


def test_expectation_of_another_shape_is_outside(cli, folder: Path) -> None:
    np.savez(folder / "want.npz", logits=np.zeros((10, 1)))
    files = ("--inputs", folder / "in.npz", "--expect", folder / "want.npz")
    done = cli("run", folder / "digits.onnx", *files, *RUN)
    assert done.code == 1
    assert "(10, 1)" in done.out


def test_unknown_target(cli, folder: Path) -> None:
    files = ("--inputs", folder / "in.npz")
    cli("run", folder / "digits.onnx", *files, "--target", "avx51").refuses("avx512")


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", ["digits.onnx", "digits.pnnx.param", "digits.pnnx.bin"])
def test_damaged_files_run_or_are_refused(cli, folder: Path, name: str, seed: int) -> None:
    """A few changed, lost or repeated bytes: a right answer to the new file, or one error."""
    rng = np.random.default_rng(seed)
    content = bytearray((folder / name).read_bytes())
    for start in rng.integers(0, min(900, len(content)), rng.integers(1, 4)):
        end = start + int(rng.integers(1, 20))
        lost, noise, twice = b"", rng.integers(0, 256, 5, np.uint8).tobytes(), content[start:end]
        content[start:end] = [lost, noise, twice * 2][rng.integers(0, 3)]
    (folder / name).write_bytes(content)
    model = folder / name.replace(".bin", ".param")
    done = cli("run", model, "--inputs", folder / "in.npz", *RUN)
    if done.code:
        done.refuses()


# --- programs as text ----------------------------------------------------------------------------

PROGRAM = """#[version = "0.0.5"]
def @main(%a: Tensor[(2, 2), float32], %b: Tensor[(2, 2), float32]) {
  (add(%a, %b), nn.relu(%a))
}
"""


def test_relay_text(cli, folder: Path) -> None:
    (folder / "sum.relay").write_text(PROGRAM)
    a = np.array([[1, -2], [3, -4]], np.float32)
    np.savez(folder / "io.npz", a=a, b=2 * a, out0=3 * a, out1=np.maximum(a, 0))
    both = ("--inputs", folder / "io.npz", "--expect", folder / "io.npz")
    for executor in ("reference", "compiled"):
        done = cli("run", folder / "sum.relay", *both, "--executor", executor)
        assert done.code == 0, done.err


def test_relay_text_with_a_mistake(cli, folder: Path) -> None:
    (folder / "sum.relay").write_text(PROGRAM.replace("nn.relu(%a)", "nn.rleu(%a)"))
    refuse(cli, folder, "sum.relay", "nn.rleu", "sum.relay:3")


def test_relay_text_that_has_no_type(cli, folder: Path) -> None:
    (folder / "sum.relay").write_text(PROGRAM.replace("%b: Tensor[(2, 2)", "%b: Tensor[(2, 3)"))
    refuse(cli, folder, "sum.relay", "sum.relay:3")
