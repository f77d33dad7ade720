"""A process that loads engines and runs them on request: one JSON object a line each way.

Requests have a `do` (the name of a function below) and its arguments. An answer has `ok`, and then
either facts or `reason`. Engines may print: their output goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from harness.engines import find
from harness.engines.engine import Engine, Unavailable
from harness.networks import TOLERANCE, read_inputs, worst_error
from harness.timing import burst

Answer = dict[str, Any]
_LOADED: dict[str, Engine] = {}


def prepare(engine: str, model: str, work: str) -> Answer:
    """Convert a network for an engine that has a format of its own."""
    return {"made": find(engine).prepare(Path(model), Path(work))}


def load(
    engine: str,
    threads: int,
    model: str,
    inputs: str,
    expect: str,
    work: str,
    imports: bool = True,
) -> Answer:
    """Load a network and run it once: seconds of each part, peak memory, and the error.

    Without `imports` nothing is imported that loading does not ask for: the memory of a program
    that only does this.
    """
    loaded = find(engine)(threads)
    begin = time.perf_counter()
    if imports:
        loaded.imports()
    feeds = read_inputs(Path(inputs))
    ready = time.perf_counter()
    loaded.load(Path(model), Path(work))
    done = time.perf_counter()
    loaded.bind(feeds)
    loaded.run()
    first = time.perf_counter()
    peak = peak_memory()
    error = worst_error(loaded.outputs(), Path(expect))
    if not error <= TOLERANCE:
        raise Unavailable(f"wrong output: error {error:.2g} of what the input moves")
    _LOADED[engine] = loaded
    facts: Answer = getattr(loaded, "facts", dict)()
    return {
        "import_s": ready - begin, "load_s": done - ready, "first_s": first - done,
        "peak_bytes": peak, "error": error, **facts,
    }  # fmt: skip


def measure(engine: str, seconds: float) -> Answer:
    """A burst of runs of a loaded engine."""
    return asdict(burst(_LOADED[engine].run, seconds))


def overhead(engine: str) -> Answer:
    """Call overhead of an engine that can tell."""
    found: Answer = _LOADED[engine].overhead()  # type: ignore[attr-defined]
    return found


def peak(target: str, threads: int) -> Answer:
    """Float32 operations a second that multiply-adds reach."""
    from ixion.base.target import Target
    from ixion.driver.roofline import peak_flops

    return {"flops": peak_flops(Target.parse(target), threads, 0.5)}


def peak_memory() -> int:
    """Most bytes this process has had in memory at once (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


ACTIONS: dict[str, Callable[..., Answer]] = {
    "prepare": prepare, "load": load, "measure": measure, "overhead": overhead, "peak": peak
}  # fmt: skip


def answer(request: dict[str, Any]) -> Answer:
    """Do one request; whatever an engine raises becomes a reason."""
    action = ACTIONS[request.pop("do")]
    try:
        return {"ok": True, **action(**request)}
    except Unavailable as error:
        return {"ok": False, "reason": str(error)}
    except Exception as error:  # noqa: BLE001 - a foreign engine may raise anything
        text = str(error).strip().splitlines() or [""]
        return {"ok": False, "reason": f"{type(error).__name__}: {text[0]}"[:200]}


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer until the requests end."""
    for line in requests:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


def main() -> None:
    private = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, private)


if __name__ == "__main__":
    main()
