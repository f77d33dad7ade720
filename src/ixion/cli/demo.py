"""`ixion demo`: the embedded digit classifier, compiled and run on digits it has never seen."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ixion.cli import options
from ixion.cli.screen import Screen

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ixion.cli.arrays import Array
    from ixion.driver import Executable

Form = Literal["onnx", "pnnx"]


@dataclass(frozen=True)
class Demonstration:
    """What the demo measured."""

    images: int
    correct: int
    accuracy: float
    compile_ms: float
    microseconds_per_image: float
    largest_difference_from_reference: float
    answers: list[int]
    labels: list[int]


def demonstrate(form: Form, settings: options.Settings, *, screen: Screen) -> Demonstration:
    """Compile the classifier, run every held-out digit, and repeat it on the reference."""
    import numpy as np

    from ixion import data

    images, labels = data.held_out_digits()
    model = data.digits_model(form)
    start = time.perf_counter()
    with screen.working("compiling"):
        exe = settings.compile(model)
    compiled = time.perf_counter() - start
    logits, seconds = classify(exe, images, "classifying", screen)
    oracle = options.Settings(executor="reference").compile(model)
    expected, _ = classify(oracle, images, "checking", screen)
    answers = logits.argmax(1)
    correct = int((answers == labels).sum())
    return Demonstration(
        images=len(images),
        correct=correct,
        accuracy=correct / len(images),
        compile_ms=compiled * 1e3,
        microseconds_per_image=seconds * 1e6,
        largest_difference_from_reference=float(np.abs(logits - expected).max()),
        answers=answers.tolist(),
        labels=labels.tolist(),
    )


def classify(exe: Executable, images: Array, text: str, screen: Screen) -> tuple[Array, float]:
    """Logits [N, 10] of images run one at a time, and the median seconds of one run."""
    import numpy as np

    name, out = exe.inputs[0].name, exe.outputs[0].name
    exe.run({name: images[:1]})
    rows, seconds = [], []
    with screen.working(text, total=len(images)) as advance:
        for image in images:
            start = time.perf_counter()
            result = exe.run({name: image[None]})
            seconds.append(time.perf_counter() - start)
            rows.append(result[out])
            advance()
    return np.concatenate(rows), median(seconds)


def draw(console: Console, result: Demonstration, pictures: int) -> None:
    from rich.columns import Columns

    from ixion import data

    images, _ = data.held_out_digits()
    wrong = [i for i, a in enumerate(result.answers) if a != result.labels[i]]
    # Two mistakes among the pictures, if there are any: they are the interesting ones.
    right = [i for i in range(result.images) if i not in wrong]
    chosen = sorted(right[: max(0, pictures - 2)] + wrong[:2])[:pictures]
    cards = [_card(console, images[i, 0], result, i) for i in chosen]
    console.print(Columns(cards, padding=(1, 3)))
    console.print()
    console.print(
        f"accuracy on held-out digits      {result.accuracy:.2%} "
        f"({result.correct} of {result.images})"
    )
    console.print(f"compile time                     {result.compile_ms:.1f} ms")
    console.print(f"time per image                   {result.microseconds_per_image:.1f} us")
    console.print(
        f"largest difference to reference  {result.largest_difference_from_reference:.3g}"
    )


def _card(console: Console, image: Array, result: Demonstration, index: int) -> Text:
    """A picture with the answer to its right."""
    from rich.text import Text

    from ixion.cli.picture import half_blocks

    answer, label = result.answers[index], result.labels[index]
    lines = half_blocks(image, colour=console.color_system is not None).split("\n")
    verdict = Text(" right", "green") if answer == label else Text(f" is {label}", "red")
    notes = [Text(), Text(f" {answer}", "bold"), verdict, Text()]
    rows = [line + note for line, note in zip(lines, notes, strict=True)]
    for row in rows:
        row.pad_right(15 - row.cell_len)
    return Text("\n").join(rows)


def command(
    form: Annotated[
        options.Form, typer.Option("--form", help="Which embedded file to load.")
    ] = options.Form.PNNX,
    pictures: Annotated[int, typer.Option("--pictures", min=0, help="Pictures to show.")] = 12,
    threads: options.Threads = 1,
    target: options.Target = "native",
    executor: options.ExecutorOption = options.Executor.COMPILED,
    opt_level: options.OptLevel = 3,
    as_json: options.Json = False,
) -> None:
    """Classify real handwritten digits with the embedded network."""
    screen = Screen(as_json=as_json)
    settings = options.Settings(target, opt_level, threads, executor.value)
    result = demonstrate("pnnx" if form is options.Form.PNNX else "onnx", settings, screen=screen)
    screen.show(asdict(result), lambda console: draw(console, result, pictures))
