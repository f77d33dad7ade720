"""Greedy decoding with a key-value cache as state, beside recomputing the whole sequence.

GPT-2's layers are built through the IR with random weights.  One program, compiled once, takes any
number of new tokens after any number of old ones; keys and values stay in the session.

    python examples/gpt2_decode.py                    GPT-2 small: 12 layers, width 768
    python examples/gpt2_decode.py --layers 2 --width 64 --vocabulary 500
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import ixion
from ixion import op
from ixion.base.dim import SymVar
from ixion.ir import Expr, Function, IRModule, TensorType, Tuple, Var, const
from ixion.op.sizes import iota

HEAD = 64  # width of one attention head
POSITIONS = 1024


class Builder:
    """GPT-2 (Radford et al., Language Models are Unsupervised Multitask Learners, 2019)."""

    def __init__(self, layers: int, width: int, vocabulary: int, seed: int = 0) -> None:
        self.layers, self.width, self.heads = layers, width, width // HEAD
        rng = np.random.default_rng(seed)

        def random(*shape: int, scale: float = 0.02) -> np.ndarray:
            return rng.standard_normal(shape, np.float32) * np.float32(scale)

        self.tokens, self.places = random(vocabulary, width), random(POSITIONS, width)
        # One of its own: with the embedding's, random layers would repeat the last token for ever.
        self.head = random(vocabulary, width)
        self.weights = [
            {
                "attn": random(3 * width, width), "proj": random(width, width),
                "up": random(4 * width, width), "down": random(width, 4 * width),
            }
            for _ in range(layers)
        ]  # fmt: skip

    def module(self, cached: bool) -> IRModule:
        """``ids: (1, n)`` to the logits of the last token, ``(1, vocabulary)``.

        With ``cached`` there are inputs ``keys0``, ``values0``, ...: ``(1, heads, past, 64)`` and
        outputs of the same with the new tokens' behind, named ``next_keys0``, ...
        """
        new = SymVar("new")
        past: Any = SymVar("past") if cached else 0
        ids = Var("ids", TensorType((1, new), "int64"))
        params, names, outputs = [ids], ["logits"], []
        here = iota(new, past)
        token = op.take(const(self.tokens), ids, axis=0)
        place = op.take(const(self.places), here, axis=0)
        x = op.add(token, place)
        later = op.greater(op.expand_dims(iota(new + past), 0), op.expand_dims(here, 1))
        mask = op.multiply(op.cast(later, "float32"), const(np.float32(-1e9)))
        for number, layer in enumerate(self.weights):
            kept: list[Var] = []
            if cached:
                kind = TensorType((1, self.heads, past, HEAD), "float32")
                kept = [Var(f"{n}{number}", kind) for n in ("keys", "values")]
                names += [f"next_{v.name_hint}" for v in kept]
            x, memory = self.block(x, layer, mask, kept)
            params += kept
            outputs += memory
        last = op.strided_slice(self.norm(x), [-1], [2**31 - 1], [1], axes=[1])
        logits = op.nn.dense(op.reshape(last, [1, self.width]), const(self.head))
        function = Function(params, Tuple((logits, *outputs)) if cached else logits)
        module = IRModule.from_expr(function)
        inputs = [p.name_hint for p in params]
        return module.with_attrs({"input_names": inputs, "output_names": names})

    def block(
        self, x: Expr, layer: dict[str, np.ndarray], mask: Expr, kept: list[Var]
    ) -> tuple[Expr, list[Expr]]:
        parts = op.split(op.nn.dense(self.norm(x), const(layer["attn"])), 3, axis=-1)
        query, keys, values = (
            op.transpose(op.reshape(p, [0, 0, self.heads, HEAD]), [0, 2, 1, 3]) for p in parts
        )
        memory = [keys, values]
        if kept:
            memory = [
                op.concatenate(Tuple((v, m)), axis=2) for v, m in zip(kept, memory, strict=True)
            ]
        k, v = (op.reshape(m, [-3, -2]) for m in memory)
        scores = op.nn.batch_matmul(op.reshape(query, [-3, -2]), k, transpose_b=True)
        scores = op.add(op.multiply(scores, const(np.float32(HEAD**-0.5))), mask)
        mixed = op.nn.batch_matmul(op.nn.softmax(scores, axis=-1), v, transpose_b=False)
        mixed = op.transpose(op.reshape(mixed, [-4, 1, self.heads, -2]), [0, 2, 1, 3])
        x = op.add(x, op.nn.dense(op.reshape(mixed, [0, 0, self.width]), const(layer["proj"])))
        up = op.nn.dense(self.norm(x), const(layer["up"]))
        return op.add(x, op.nn.dense(gelu(up), const(layer["down"]))), memory if kept else []

    def norm(self, x: Expr) -> Expr:
        one = np.ones(self.width, np.float32)
        return op.nn.layer_norm(x, const(one), const(np.zeros_like(one)), axis=-1, epsilon=1e-5)


def gelu(x: Expr) -> Expr:
    cube = op.multiply(op.multiply(x, x), x)
    inner = op.add(x, op.multiply(cube, const(np.float32(0.044715))))
    factor = op.add(
        op.tanh(op.multiply(inner, const(np.float32((2 / np.pi) ** 0.5)))), const(np.float32(1))
    )
    return op.multiply(op.multiply(x, const(np.float32(0.5))), factor)


def decode_with_cache(builder: Builder, prompt: np.ndarray, count: int, threads: int) -> Any:
    """Tokens, and seconds without the compilation."""
    states = {f"{n}{i}": f"next_{n}{i}" for i in range(builder.layers) for n in ("keys", "values")}
    model = ixion.compile(builder.module(cached=True), states=states, threads=threads)
    session = model.session()
    session.run({"ids": prompt})
    session.reset()
    start, fed, tokens = time.perf_counter(), prompt, []
    for _ in range(count):
        tokens.append(int(session.run({"ids": fed})["logits"].argmax()))
        fed = np.array([tokens[-1:]], np.int64)
    return tokens, time.perf_counter() - start


def decode_again_and_again(builder: Builder, prompt: np.ndarray, count: int, threads: int) -> Any:
    """The same from the whole sequence each time."""
    model = ixion.compile(builder.module(cached=False), threads=threads)
    model.run({"ids": prompt})
    start, tokens = time.perf_counter(), list(prompt[0])
    for _ in range(count):
        tokens.append(int(model.run({"ids": np.array([tokens], np.int64)})["logits"].argmax()))
    return tokens[prompt.shape[1] :], time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (
        ("layers", 12), ("width", 768), ("vocabulary", 50257), ("prompt", 64), ("tokens", 64),
        ("threads", 1),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
    builder = Builder(args.layers, args.width, args.vocabulary)
    prompt = np.random.default_rng(1).integers(0, args.vocabulary, (1, args.prompt))
    kept, quick = decode_with_cache(builder, prompt, args.tokens, args.threads)
    whole, slow = decode_again_and_again(builder, prompt, args.tokens, args.threads)
    print(f"{args.tokens} tokens after {args.prompt}")
    print(f"with a cache {quick:.2f} s, without {slow:.2f} s")
    print(f"the same tokens: {kept == whole}; {slow / quick:.1f} times as fast")


if __name__ == "__main__":
    main()
