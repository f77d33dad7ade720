"""onnxruntime with all graph optimisations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from harness.engines.engine import Array, Engine


class OnnxRuntime(Engine):
    """The CPU execution provider, intra-op threads only."""

    packages: ClassVar[tuple[str, ...]] = ("onnxruntime",)

    def imports(self) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)

    def load(self, model: Path, work: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        self.session = onnxruntime.InferenceSession(
            str(model), options, providers=["CPUExecutionProvider"]
        )
        self.names = [output.name for output in self.session.get_outputs()]

    def bind(self, feeds: Mapping[str, Array]) -> None:
        self.feeds = dict(feeds)

    def run(self) -> object:
        return self.session.run(None, self.feeds)

    def outputs(self) -> Mapping[str, Array]:
        return dict(zip(self.names, self.session.run(None, self.feeds), strict=True))
