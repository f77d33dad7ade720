"""The outside of the package, in seconds: run this first."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import ixion
from ixion import data


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return data.held_out_digits()[0][:20]


def test_importing_the_package_loads_no_compiler() -> None:
    heavy = ("llvmlite", "onnx", "typer", "rich", "torch", "ml_dtypes", "scipy")
    code = f"import sys, ixion; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("form", ["onnx", "pnnx"])
@pytest.mark.parametrize("target", ["native", "generic"])
def test_compiled_equals_reference(images: np.ndarray, form: str, target: str) -> None:
    model = data.digits_model(form)
    exe = ixion.compile(model, target=target)
    oracle = ixion.compile(model, executor="reference")
    for image in images[:, None]:
        np.testing.assert_allclose(exe(image), oracle(image), rtol=1e-4, atol=1e-4)


def test_the_digits_are_read() -> None:
    images, labels = data.held_out_digits()
    exe = ixion.compile(data.digits_model())
    answers = [int(exe(image[None]).argmax()) for image in images]
    assert (np.array(answers) == labels).mean() > 0.985


def test_operands_say_what_they_are() -> None:
    exe = ixion.compile(data.digits_model())
    (image,), (logits,) = exe.inputs, exe.outputs
    assert (image.name, image.shape, image.dtype) == ("image", (1, 1, 8, 8), "float32")
    assert (logits.name, logits.shape, logits.dtype) == ("logits", (1, 10), "float32")
    assert exe.program is not None


def test_run_takes_and_gives_names(images: np.ndarray) -> None:
    exe = ixion.compile(data.digits_model())
    results = exe.run({"image": images[:1]})
    assert list(results) == ["logits"]
    np.testing.assert_array_equal(results["logits"], exe(images[:1]))


def test_outputs_are_fresh(images: np.ndarray) -> None:
    exe = ixion.compile(data.digits_model())
    first = exe(images[:1])
    kept = first.copy()
    exe(images[1:2])
    np.testing.assert_array_equal(first, kept)


def test_thread_counts_agree_bit_for_bit(images: np.ndarray) -> None:
    one, two = (ixion.compile(data.digits_model(), threads=n) for n in (1, 2))
    for image in images[:, None]:
        np.testing.assert_array_equal(one(image), two(image))


def test_many_threads_may_call_one_executable(images: np.ndarray) -> None:
    exe = ixion.compile(data.digits_model(), threads=1)
    want = [exe(image) for image in images[:, None]]
    wrong: list[int] = []

    def work() -> None:
        for i, image in enumerate(images[:, None]):
            if not np.array_equal(exe(image), want[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_every_pass_keeps_the_value() -> None:
    ixion.compile(data.digits_model(), verify=True)


def test_text_round_trip() -> None:
    module = ixion.load(data.digits_model())
    again = ixion.parse(module.astext())
    ixion.ir.assert_structural_equal(again, module)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (np.zeros((1, 1, 8, 9), np.float32), "1, 1, 8, 8"),
        (np.zeros((1, 1, 8, 8), np.float64), "float32"),
    ],
)
@pytest.mark.parametrize("executor", ["compiled", "reference"])
def test_wrong_inputs_are_explained(wrong: np.ndarray, word: str, executor: str) -> None:
    exe = ixion.compile(data.digits_model(), executor=executor)
    with pytest.raises(ixion.IxionError) as caught:
        exe(wrong)
    assert "image" in str(caught.value)
    assert word in str(caught.value)
