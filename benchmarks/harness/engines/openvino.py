"""OpenVINO's CPU plugin in FP32 (its default on CPUs with BF16 is BF16), tuned for latency."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from harness.engines.engine import Array, Engine


class OpenVino(Engine):
    """One stream; inputs and outputs are shared, not copied."""

    packages: ClassVar[tuple[str, ...]] = ("openvino",)

    def imports(self) -> None:
        import openvino

        openvino.Core()

    def load(self, model: Path, work: Path) -> None:
        import openvino

        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
        }
        compiled = openvino.Core().compile_model(str(model), "CPU", options)
        self.names = [output.get_any_name() for output in compiled.outputs]
        self.request = compiled.create_infer_request()

    def bind(self, feeds: Mapping[str, Array]) -> None:
        self.feeds = dict(feeds)

    def run(self) -> object:
        return self.request.infer(self.feeds, share_inputs=True, share_outputs=True)

    def outputs(self) -> Mapping[str, Array]:
        self.run()
        tensors = (self.request.get_output_tensor(i) for i in range(len(self.names)))
        return {n: np.array(t.data) for n, t in zip(self.names, tensors, strict=True)}
