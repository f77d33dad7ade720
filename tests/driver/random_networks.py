"""Random convolutional networks, compiled and compared with the reference.

    python -m tests.driver.random_networks SEED COUNT [TARGET]

runs in a process of its own, because wrong machine code may end it.  Prints the seed of the first
network that differs.
"""

from __future__ import annotations

import random
import sys

import numpy as np

import ixion
from ixion import op
from ixion.ir import Expr, Function, IRModule, Tuple, TupleGetItem, const, var
from ixion.op.typed import shape_of
from ixion.transform.infer_type import infer_expr


class Generator:
    """Grows a network by one random operator at a time from values that fit."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        size = self.rng.randint(5, 20)
        self.input_shape = (self.rng.choice([1, 1, 2]), self.rng.choice([3, 8, 16, 20]), size,
                            self.rng.randint(4, 20))  # fmt: skip
        self.input = var("x", shape=self.input_shape)
        infer_expr(op.call("copy", self.input))
        self.values: list[Expr] = [self.input]

    def weight(self, *shape: int, scale: float = 0.3) -> Expr:
        return const((self.numbers.standard_normal(shape) * scale).astype(np.float32))

    def network(self, steps: int) -> IRModule:
        for _ in range(steps):
            source = self.rng.choice(self.values[-3:])
            made = self.rng.choice(self.MAKERS)(self, source, shape_of(source))
            if made is not None:
                self.values.append(infer_expr(made))
        results = self.rng.sample(self.values[-3:], k=min(2, len(self.values)))
        body = results[0] if len(results) == 1 else Tuple(results)
        return IRModule.from_expr(Function([self.input], body))

    def conv(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        kernel = self.rng.choice([1, 1, 3, 3, 5, 2])
        stride, dilation = self.rng.choice([1, 1, 2]), self.rng.choice([1, 1, 1, 2])
        pad = self.rng.randint(0, kernel // 2 + 1)
        if min(shape[2:]) + 2 * pad < (kernel - 1) * dilation + 1:
            return None
        groups = self.rng.choice([1, 1, 1, shape[1], 2])
        groups = groups if shape[1] % groups == 0 else 1
        outs = shape[1] if groups == shape[1] else groups * self.rng.randint(1, 34 // groups)
        y = op.call(
            "nn.conv2d", x, self.weight(outs, shape[1] // groups, kernel, kernel),
            strides=(stride, stride), padding=(pad,) * 4, dilation=(dilation, dilation),
            groups=groups, channels=outs, kernel_size=(kernel, kernel),
        )  # fmt: skip
        return op.call("add", y, self.weight(outs, 1, 1)) if self.rng.random() < 0.7 else y

    def deconv(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        if shape[2] * shape[3] > 300:
            return None
        kernel, stride = self.rng.randint(1, 4), self.rng.randint(1, 3)
        outs = self.rng.randint(1, 20)
        return op.call(
            "nn.conv2d_transpose", x, self.weight(shape[1], outs, kernel, kernel),
            strides=(stride, stride), channels=outs, kernel_size=(kernel, kernel),
        )  # fmt: skip

    def pool(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        size = self.rng.randint(1, 3)
        if min(shape[2:]) < size:
            return None
        kind, extra = self.rng.choice([
            ("max", {}), ("avg", {"count_include_pad": self.rng.random() < 0.5})
        ])  # fmt: skip
        return op.call(
            f"nn.{kind}_pool2d", x, pool_size=(size, size), strides=(self.rng.randint(1, 2),) * 2,
            padding=(size // 2,) * 4, ceil_mode=self.rng.random() < 0.3, **extra,
        )  # fmt: skip

    def elementwise(self, x: Expr, shape: tuple[int, ...]) -> Expr:
        kind = self.rng.choice(["nn.relu", "sigmoid", "tanh", "clip", "swish", "scale", "hard"])
        if kind == "clip":
            return op.call("clip", x, a_min=-0.5, a_max=2.0)
        if kind == "swish":
            return op.call("multiply", x, op.call("sigmoid", x))
        if kind == "scale":
            return op.call("multiply", x, self.weight(shape[1], 1, 1, scale=1.0))
        if kind == "hard":
            inner = op.call("clip", op.call("add", x, const(np.float32(3))), a_min=0.0, a_max=6.0)
            return op.call("multiply", x, inner)
        return op.call(kind, x)

    def meet(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        others = [v for v in self.values if shape_of(v) == shape and v is not x]
        kind = self.rng.choice(["add", "subtract", "multiply", "maximum"])
        return op.call(kind, x, self.rng.choice(others)) if others else None

    def join(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        axis = self.rng.choice([1, 1, 2, 3])
        alike = [
            v for v in self.values
            if [n for d, n in enumerate(shape_of(v)) if d != axis]
            == [n for d, n in enumerate(shape) if d != axis]
        ]  # fmt: skip
        parts = [x, *self.rng.choices(alike, k=self.rng.randint(1, 2))]
        if sum(shape_of(p)[axis] for p in parts) > 80:
            return None
        return op.call("concatenate", Tuple(parts), axis=axis)

    def part(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        axis = self.rng.choice([1, 1, 2, 3])
        if shape[axis] < 2:
            return None
        cut = self.rng.randint(1, shape[axis] - 1)
        pieces = op.call("split", x, indices_or_sections=(cut,), axis=axis)
        return TupleGetItem(pieces, self.rng.randint(0, 1))

    def shuffle(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        if shape[1] % 2:
            return None
        n, c, h, w = shape
        y = op.call("reshape", x, newshape=(n, 2, c // 2, h, w))
        return op.call(
            "reshape", op.call("transpose", y, axes=(0, 2, 1, 3, 4)), newshape=(n, c, h, w)
        )

    def gate(self, x: Expr, shape: tuple[int, ...]) -> Expr:
        pooled = op.call("mean", x, axis=(2, 3), keepdims=True)
        inner = op.call("nn.conv2d", pooled, self.weight(shape[1], shape[1], 1, 1),
                        channels=shape[1], kernel_size=(1, 1))  # fmt: skip
        return op.call("multiply", x, op.call("sigmoid", inner))

    def resize(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        if shape[2] * shape[3] > 200:
            return None
        return op.call("nn.upsampling", x, scale_h=2.0, scale_w=2.0)

    def turn(self, x: Expr, shape: tuple[int, ...]) -> Expr | None:
        return op.call("transpose", x, axes=(0, 1, 3, 2))

    MAKERS = (
        conv, conv, conv, deconv, pool, elementwise, elementwise, meet, meet, join, part, shuffle,
        gate, resize, turn,
    )  # fmt: skip


def check(seed: int, target: str) -> None:
    """One network on one target, at one and two threads; AssertionError where it differs."""
    generator = Generator(seed)
    module = generator.network(generator.rng.randint(3, 12))
    x = generator.numbers.standard_normal(generator.input_shape).astype(np.float32)
    want = ixion.compile(module, executor="reference").run_flat([x])
    one = ixion.compile(module, target=target, threads=1).run_flat([x])
    two = ixion.compile(module, target=target, threads=2).run_flat([x])
    for w, a, b in zip(want, one, two, strict=True):
        scale = max(1.0, float(np.abs(w).max()))
        np.testing.assert_allclose(a, w, rtol=1e-3, atol=2e-4 * scale)
        np.testing.assert_array_equal(a, b)


def main() -> int:
    start, count = int(sys.argv[1]), int(sys.argv[2])
    targets = sys.argv[3:] or ["native", "avx2", "generic"]
    for seed in range(start, start + count):
        print(f"seed {seed}", flush=True)
        check(seed, targets[seed % len(targets)])
    print("all equal", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
