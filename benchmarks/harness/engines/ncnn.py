"""ncnn in FP32 with its Winograd and packed layouts, from pnnx's conversion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness.engines.conversion import converted
from harness.engines.engine import Array, Engine, Unavailable


class Ncnn(Engine):
    """Inputs are wrapped, not copied; batch is no dimension there."""

    packages: ClassVar[tuple[str, ...]] = ("ncnn", "pnnx")

    @classmethod
    def prepare(cls, model: Path, work: Path) -> str:
        return str(converted(model, work))

    def imports(self) -> None:
        import ncnn  # noqa: F401

    def load(self, model: Path, work: Path) -> None:
        import ncnn

        folder = converted(model, work)
        net = ncnn.Net()
        options = net.opt
        options.num_threads = self.threads
        options.use_vulkan_compute = False
        options.use_winograd_convolution = True
        options.use_sgemm_convolution = True
        options.use_packing_layout = True
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = False
        if net.load_param(str(folder / f"{model.stem}.ncnn.param")) != 0:
            raise Unavailable("ncnn has no layer for some operator (load_param failed)")
        if net.load_model(str(folder / f"{model.stem}.ncnn.bin")) != 0:
            raise Unavailable("ncnn refuses the weights (load_model failed)")
        self.net = net
        self.inputs, self.results = list(net.input_names()), list(net.output_names())

    def bind(self, feeds: Mapping[str, Array]) -> None:
        import ncnn

        if len(feeds) != len(self.inputs):
            raise Unavailable("the conversion changed the number of inputs")
        # An integer tensor is a Mat of int32 there; the arrays must outlive the wrappers.
        self.arrays = [
            np.ascontiguousarray(a[0] if a.ndim > 1 else a).astype(
                np.float32 if a.dtype.kind == "f" else np.int32
            )
            for a in feeds.values()
        ]
        self.mats = [ncnn.Mat(array) for array in self.arrays]

    def run(self) -> object:
        extractor = self.net.create_extractor()
        for name, mat in zip(self.inputs, self.mats, strict=True):
            extractor.input(name, mat)
        found = [extractor.extract(name) for name in self.results]
        if any(code != 0 for code, _ in found):
            raise Unavailable("ncnn failed to run a layer")
        return found

    def outputs(self) -> Sequence[Array]:
        found: list[tuple[int, object]] = self.run()  # type: ignore[assignment]
        return [np.array(mat) for _, mat in found]
