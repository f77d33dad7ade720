"""Kernels compiled in processes of our own beside the one that writes their text.

LLVM holds one lock in a process, so threads would wait for each other; and what it allocates in
another process does not stay in this one.  A worker is a fresh interpreter that runs a module of
this package: the user's script is not run again, as multiprocessing would.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from queue import Queue

from ixion.base import config
from ixion.base.target import Target, usable_cores
from ixion.codegen.blocks import read_block, write_block

FEWEST = 12  # kernels for which starting a process pays
EACH = 8  # kernels per process
MOST = 4  # processes
WAITING = 3  # texts a process, written ahead: they are large

Job = tuple[str, str, Target]  # symbol, LLVM text, what to compile it for


def worker_count(kernels: int) -> int:
    """How many processes should compile so many kernels; 0 where this one should."""
    jobs = config.get("compile_jobs") or usable_cores()
    name = Path(sys.executable or "").name
    if kernels < FEWEST or jobs < 2 or not name.startswith("python"):
        return 0
    return min(jobs, -(-kernels // EACH), MOST)


def start_ahead(kernels: int) -> None:
    """Starts workers for about so many kernels while their text is not there yet."""
    while len(_ready) < worker_count(kernels):
        worker = _start()
        if worker is None:
            return
        _ready.append(worker)


# Workers that wait for their first job.
_ready: list[subprocess.Popen[bytes]] = []


def dismiss() -> None:
    """Ends the workers that nobody needed."""
    while _ready:
        _stop(_ready.pop())


def compile_in_workers(
    texts: Iterable[Job], count: int
) -> tuple[dict[str, bytes], list[Job]]:
    """Object files by symbol, and the jobs that no worker could do."""
    jobs: Queue[Job | None] = Queue(WAITING * count)
    objects: dict[str, bytes] = {}
    failed: list[Job] = []
    threads = [
        threading.Thread(target=_feed, args=(jobs, objects, failed), daemon=True)
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for job in texts:
            jobs.put(job)
    finally:
        for _ in threads:
            jobs.put(None)
        for thread in threads:
            thread.join()
    return objects, failed


def _feed(
    jobs: Queue[Job | None], objects: dict[str, bytes], failed: list[Job]
) -> None:
    """One worker's jobs, one after another, until None."""
    worker: subprocess.Popen[bytes] | None
    try:
        worker = _ready.pop()
    except IndexError:
        worker = _start()
    while (job := jobs.get()) is not None:
        reply = b""
        if worker is not None and worker.stdin is not None and worker.stdout is not None:
            try:
                write_block(worker.stdin, json.dumps(asdict(job[2])).encode())
                write_block(worker.stdin, job[1].encode())
                reply = read_block(worker.stdout) or b""
            except OSError:
                _stop(worker)
                worker = None
        if reply:
            objects[job[0]] = reply
        else:
            failed.append(job)
    if worker is not None:
        _stop(worker)


def _start() -> subprocess.Popen[bytes] | None:
    import ixion

    root = str(Path(ixion.__file__).parents[1])
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join((root, known)) if known else root
    try:
        return subprocess.Popen(
            (sys.executable, "-m", "ixion.codegen.worker"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
    except OSError:
        return None


def _stop(worker: subprocess.Popen[bytes]) -> None:
    for stream in (worker.stdin, worker.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    worker.wait()
