"""PyTorch eager, on the program that pnnx writes for it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from harness.engines.conversion import converted
from harness.engines.engine import Array, Engine, Unavailable


class Torch(Engine):
    """Inference mode, contiguous tensors."""

    packages: ClassVar[tuple[str, ...]] = ("torch", "pnnx")
    channels_last: ClassVar[bool] = False

    @classmethod
    def prepare(cls, model: Path, work: Path) -> str:
        return str(converted(model, work))

    def imports(self) -> None:
        import torch

        torch.set_num_threads(self.threads)

    def load(self, model: Path, work: Path) -> None:
        import torch

        network = _network(converted(model, work), model.stem).eval()
        for parameter in network.parameters():
            parameter.requires_grad_(False)
            if self.channels_last and parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        self.network = network

    def bind(self, feeds: Mapping[str, Array]) -> None:
        import torch

        tensors = [torch.from_numpy(array) for array in feeds.values()]
        if self.channels_last:
            if not any(tensor.ndim == 4 for tensor in tensors):
                raise Unavailable("no input has channels to put last")
            form = torch.channels_last
            tensors = [t.contiguous(memory_format=form) if t.ndim == 4 else t for t in tensors]
        self.tensors = tensors

    def run(self) -> Any:
        import torch

        with torch.inference_mode():
            return self.network(*self.tensors)

    def outputs(self) -> Sequence[Array]:
        found = self.run()
        tensors = found if isinstance(found, (tuple, list)) else (found,)
        return [tensor.numpy() for tensor in tensors]


class TorchChannelsLast(Torch):
    """The same with channels last, which its convolutions prefer."""

    channels_last: ClassVar[bool] = True


def _network(folder: Path, name: str) -> Any:
    """The converted model; its program reads the weights from the current folder."""
    path = folder / f"{name}_pnnx.py"
    spec = importlib.util.spec_from_file_location(f"pnnx_{name}", path)
    if spec is None or spec.loader is None:
        raise Unavailable("pnnx wrote no PyTorch program")
    module = importlib.util.module_from_spec(spec)
    before = Path.cwd()
    os.chdir(folder)
    try:
        spec.loader.exec_module(module)
        return module.Model()
    except Exception as error:
        raise Unavailable(f"pnnx's PyTorch program fails: {type(error).__name__}") from error
    finally:
        os.chdir(before)
