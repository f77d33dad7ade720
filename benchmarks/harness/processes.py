"""Worker processes as the command sees them: asked, stopped, let go on, ended."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parents[1]
#: Old OpenBLAS builds need these, a current one is slowed by them.
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


class Worker:
    """One process running `harness.worker`; a context manager that ends it.

    A stopped worker takes no processor time, so its library's spinning threads cannot slow others.
    """

    def __init__(self, cache: Path, stopped: bool = False) -> None:
        """`cache`: Ixion's cache folder. `stopped`: whether it rests between requests."""
        self._stopped = stopped
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=environment(cache), cwd=HERE, bufsize=0,
        )  # fmt: skip
        self._rest: bytes = b""

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def ask(self, do: str, timeout: float = 600, **arguments: Any) -> dict[str, Any]:
        """The answer to one request; a crash or a time-out is an answer without `ok`."""
        self._signal(signal.SIGCONT)
        request = json.dumps({"do": do, **arguments}) + "\n"
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(request.encode())
        except BrokenPipeError:
            return self._dead()
        line = self._line(timeout)
        if line is None:
            self._process.kill()
            return {"ok": False, "reason": f"no answer in {timeout:.0f} s"}
        if not line:
            return self._dead()
        if self._stopped:
            self._signal(signal.SIGSTOP)
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """Kill the process; engines may hang when they exit."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()

    def _line(self, timeout: float) -> bytes | None:
        """The next line; empty at the end of the stream, None when time is up."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(timeout):
                    return None
                more = os.read(self._process.stdout.fileno(), 1 << 16)
                if not more:
                    return b""
                self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _dead(self) -> dict[str, Any]:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        last = f": {lines[-1][:160]}" if lines else ""
        what = f"signal {-code}" if code < 0 else f"exit code {code}"
        return {"ok": False, "reason": f"the process died with {what}{last}"}

    def _signal(self, number: signal.Signals) -> None:
        if self._stopped and self._process.poll() is None:
            self._process.send_signal(number)


def environment(cache: Path) -> dict[str, str]:
    """Variables of a worker: the package and this harness on the path, a cache of its own."""
    inherited = {k: v for k, v in os.environ.items() if k not in _UNSET}
    paths = [str(HERE), inherited.get("PYTHONPATH", "")]
    source = HERE.parent / "src"
    if (source / "ixion").is_dir():
        paths.insert(1, str(source))
    inherited["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    inherited["IXION_CACHE_DIR"] = str(cache)
    return inherited
