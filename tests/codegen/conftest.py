"""Native kernels against the numpy evaluation of the same loop nest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ixion.base.target import Target, cpu_flags
from ixion.codegen.emit import emit_kernel
from ixion.te.evaluate import run_kernel
from ixion.te.stmt import Kernel
from ixion.te.text import kernel_text

NEEDS = {"avx512": "avx512bw", "avx2": "avx2", "generic": None}
AVAILABLE = [name for name, flag in NEEDS.items() if flag is None or flag in cpu_flags()]
WORKER = Path(__file__).with_name("native_worker.py")


class Native:
    """Compiles and runs kernels in another process."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(
        self, kernel: Kernel, arrays: Sequence[np.ndarray], target: str, *,
        scalars: Sequence[int] = (), tasks: range | None = None, asm: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Changes ``arrays`` in place as the kernel does; the worker's reply."""
        tasks = range(kernel.tasks) if tasks is None else tasks
        text = emit_kernel(kernel, Target.parse(target), "k")
        request = {
            "text": text, "target": target, "symbol": "k", "sizes": [a.nbytes for a in arrays],
            "scalars": list(scalars), "scratch": kernel.scratch,
            "tasks": [tasks.start, tasks.stop], "asm": asm,
        }  # fmt: skip
        reply, results = self._exchange(request, [a.tobytes() for a in arrays])
        if reply["error"]:
            pytest.fail(f"{reply['error']}\n{kernel_text(kernel)}\n{text}")
        for array, data in zip(arrays, results, strict=True):
            array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
        return reply

    def _exchange(
        self, request: dict[str, Any], data: Sequence[bytes]
    ) -> tuple[dict[str, Any], list[bytes]]:
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        pipe_in, pipe_out = self.process.stdin, self.process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        try:
            pipe_in.write(json.dumps(request).encode() + b"\n" + b"".join(data))
            pipe_in.flush()
            line = pipe_out.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            code = self.process.wait()
            self.process = None
            return {"error": f"the native process died ({code})"}, []
        reply = json.loads(line)
        return reply, [pipe_out.read(n) for n in reply["sizes"]]

    def close(self) -> None:
        if self.process is not None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()

    def check(
        self, kernel: Kernel, arrays: Sequence[np.ndarray], target: str, *,
        scalars: Sequence[int] = (), tasks: range | None = None, asm: bool = False,
    ) -> str:  # fmt: skip
        """Native and numpy results are equal (NaN equals NaN); the assembly if asked for."""
        expected = [a.copy() for a in arrays]
        found = [a.copy() for a in arrays]
        run_kernel(kernel, expected, scalars, tasks)
        reply = self.run(kernel, found, target, scalars=scalars, tasks=tasks, asm=asm)
        assert reply["code"] == 0
        for number, (e, f) in enumerate(zip(expected, found, strict=True)):
            same = (e == f) | ((e != e) & (f != f))
            assert same.all(), (
                f"{kernel_text(kernel)}param {number} differs at {np.flatnonzero(~same)[:8]}: "
                f"{f[~same][:8]} for {e[~same][:8]}\n{emit_kernel(kernel, Target.parse(target))}"
            )
        return str(reply["asm"])


@pytest.fixture(scope="session")
def native() -> Iterator[Native]:
    runner = Native()
    yield runner
    runner.close()


@pytest.fixture(scope="session", params=list(NEEDS))
def target(request: pytest.FixtureRequest) -> str:
    if request.param not in AVAILABLE:
        pytest.skip(f"this CPU has no {request.param}")
    return str(request.param)
