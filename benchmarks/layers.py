#!/usr/bin/env python3
"""One layer at a time through Ixion's schedules: GFLOP/s and share of the peak, for kernel work.

A layer is written as

    conv:CxHxW-OkK[sS][gG][dD]   C channels of H x W to O outputs by a K x K window, stride S,
                                 G groups (gC: one a channel), dilation D, padded to keep the
                                 size; bias and ReLU are fused
    dense:MxKxN                  M rows of K values to N outputs, with bias
    attention:HxQxKxD            softmax(q k' / sqrt D) v of H heads, Q queries, K keys, D values

Times are medians of the kernel's own steps; conversions of layout before and after it are shown
apart, since inside a network they are mostly not there. Winograd passes 100% of the peak.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), *([str(ROOT / "src")] if (ROOT / "src" / "ixion").is_dir() else [])]

from ixion import driver, ir, op  # noqa: E402
from ixion.base.target import Target  # noqa: E402
from ixion.cli.bench import random_feeds  # noqa: E402
from ixion.cli.profile import KernelReport, make_report  # noqa: E402
from ixion.driver.executable import CompiledExecutable  # noqa: E402
from ixion.driver.roofline import Roofline, measure  # noqa: E402

LAYERS = (
    "conv:3x224x224-64k7s2",
    "conv:64x56x56-64k3",
    "conv:128x28x28-128k3",
    "conv:256x14x14-256k3",
    "conv:512x7x7-512k3",
    "conv:256x56x56-64k1",
    "conv:512x28x28-1024k1s2",
    "conv:96x112x112-96k3s2gC",
    "conv:144x56x56-144k3gC",
    "conv:240x28x28-240k5gC",
    "conv:24x56x56-144k1",
    "conv:960x7x7-160k1",
    "dense:1x2048x1000",
    "dense:128x768x3072",
    "dense:197x768x768",
    "attention:12x128x128x64",
    "attention:12x197x197x64",
)
_CONV = re.compile(r"(\d+)x(\d+)x(\d+)-(\d+)k(\d+)(?:s(\d+))?(?:g(\d+|C))?(?:d(\d+))?$")
_NUMBERS = re.compile(r"\d+(x\d+)*$")


@dataclass(frozen=True)
class Measured:
    """The layer's own kernels, and milliseconds of everything else in its program."""

    kernels: list[KernelReport]
    other_ms: float

    @property
    def ms(self) -> float:
        return sum(kernel.ms for kernel in self.kernels)

    @property
    def flops(self) -> int:
        return sum(kernel.flops for kernel in self.kernels)


def build(layer: str) -> ir.Function:
    """The function of a layer, random weights inside. Raises ValueError for another text."""
    kind, _, text = layer.partition(":")
    makers: dict[str, Callable[[str], ir.Function]] = {
        "conv": _conv,
        "dense": _dense,
        "attention": _attention,
    }
    if kind not in makers:
        raise ValueError(f"unknown layer {layer!r}: expected {', '.join(makers)}")
    return makers[kind](text)


def _conv(text: str) -> ir.Function:
    found = _CONV.match(text)
    if found is None:
        raise ValueError(f"not a convolution: {text!r}")
    channels, height, width, outputs, window = (int(found[i]) for i in range(1, 6))
    stride, dilation = int(found[6] or 1), int(found[8] or 1)
    groups = channels if found[7] == "C" else int(found[7] or 1)
    data = ir.var("data", shape=(1, channels, height, width), dtype="float32")
    weight = _random(outputs, channels // groups, window, window)
    pad = dilation * (window - 1) // 2
    made = op.nn.conv2d(
        data, weight, strides=(stride, stride), padding=(pad, pad), groups=groups,
        dilation=(dilation, dilation), channels=outputs, kernel_size=(window, window),
    )  # fmt: skip
    return ir.Function([data], op.nn.relu(op.add(made, _random(outputs, 1, 1))))


def _dense(text: str) -> ir.Function:
    rows, depth, columns = _numbers(text, 3)
    data = ir.var("data", shape=(rows, depth), dtype="float32")
    made = op.nn.dense(data, _random(columns, depth))
    return ir.Function([data], op.add(made, _random(columns)))


def _attention(text: str) -> ir.Function:
    heads, queries, keys, size = _numbers(text, 4)
    q, k, v = (
        ir.var(name, shape=(heads, length, size), dtype="float32")
        for name, length in (("q", queries), ("k", keys), ("v", keys))
    )
    scores = op.nn.batch_matmul(q, k, transpose_b=True)
    scaled = op.multiply(scores, ir.const(np.float32(size**-0.5)))
    weights = op.nn.softmax(scaled, axis=-1)
    return ir.Function([q, k, v], op.nn.batch_matmul(weights, v, transpose_b=False))


def _random(*shape: int) -> ir.Constant:
    rng = np.random.default_rng(sum(shape))
    return ir.const(rng.standard_normal(shape).astype(np.float32) * 0.1)


def _numbers(text: str, count: int) -> list[int]:
    numbers = [int(part) for part in text.split("x")] if _NUMBERS.match(text) else []
    if len(numbers) != count:
        raise ValueError(f"expected {count} numbers such as 1x2x3, not {text!r}")
    return numbers


def run(layer: str, target: Target, roofline: Roofline, runs: int) -> Measured:
    """Compile and profile one layer. Raises ValueError or IxionError."""
    exe = driver.compile(build(layer), target, threads=roofline.threads)
    assert isinstance(exe, CompiledExecutable)
    values = list(random_feeds(exe).values())
    exe.native.profile(values, 3)
    profiles = [exe.native.profile(values, 1) for _ in range(runs)]
    report = make_report(profiles, exe.native.program, roofline)
    own = [kernel for kernel in report.kernels if set(kernel.ops) - {"copy", "reshape"}]
    return Measured(own, report.ms - sum(kernel.ms for kernel in own))


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("layers", nargs="*", default=list(LAYERS), metavar="LAYER")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--target", default="native", help="native, avx512, avx2, neon, generic")
    parser.add_argument("--runs", type=int, default=50, help="runs to measure (default: 50)")
    parser.add_argument("--steps", action="store_true", help="show every step of a kernel")
    return parser.parse_args(argv)


def line(layer: str, found: Measured, roofline: Roofline) -> str:
    """One row of the table."""
    rate = found.flops / found.ms / 1e6
    least = sum((kernel.roofline or 0) * kernel.ms for kernel in found.kernels)
    steps = sum(len(kernel.steps) for kernel in found.kernels)
    return (
        f"{layer:28s} {found.ms:9.4f} {rate:9.1f} {rate * 1e9 / roofline.flops:8.0%} "
        f"{least / found.ms:9.0%} {steps:6d} {found.other_ms:9.4f}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    target = Target.parse(options.target)
    roofline = measure(target, options.threads)
    print(f"peak {roofline.flops / 1e9:.1f} GFLOP/s, threads: {options.threads}, {target.name}")
    print(f"{'layer':28s} {'ms':>9s} {'GFLOP/s':>9s} {'of peak':>8s} {'of roof':>9s} "
          f"{'steps':>6s} {'other ms':>9s}")  # fmt: skip
    for layer in options.layers:
        try:
            found = run(layer, target, roofline, options.runs)
        except ValueError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(line(layer, found, roofline))
        for step in (s for k in found.kernels for s in k.steps if options.steps):
            print(
                f"  {step.step:3d} {step.kernel[:20]:21s} {step.ms:9.4f} ms {step.tasks:5d} tasks"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
