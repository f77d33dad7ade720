"""The command line in this process, and a folder with the embedded model and its arrays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ixion import data
from ixion.cli.main import main


@dataclass(frozen=True)
class Finished:
    """Exit code and both streams of one command."""

    code: int
    out: str
    err: str

    def refuses(self, *words: str) -> None:
        """Assert one clear error: exit code 2, a message and a hint, no traceback."""
        assert self.code == 2, self.out + self.err
        assert self.err.startswith("error: "), self.err
        assert self.err.count("error: ") == 1
        assert "hint: " in self.err or "help: " in self.err, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err, self.err


Cli = Callable[..., Finished]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: object) -> Finished:
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        code = stopped.value.code
        streams = capsys.readouterr()
        return Finished(0 if code is None else int(code), streams.out, streams.err)

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """digits.onnx, digits.pnnx.param, digits.pnnx.bin and in.npz with one image."""
    for name in ("digits.onnx", "digits.pnnx.param", "digits.pnnx.bin"):
        shutil.copy(data.HERE / name, tmp_path / name)
    images, _ = data.held_out_digits()
    np.savez(tmp_path / "in.npz", in0=images[:1])
    return tmp_path
