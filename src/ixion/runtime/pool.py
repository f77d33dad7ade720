"""The process's worker threads.

Workers are Python threads that called the native worker loop once and stay there, without the
interpreter lock, until the process ends. The pool's record is never freed. A forked child has no
workers, so it starts without a pool.
"""

from __future__ import annotations

import os
import threading

from ixion.base import config
from ixion.base.abi import MAX_THREADS, PoolWord
from ixion.base.errors import ConfigError
from ixion.base.target import usable_cores
from ixion.runtime import native
from ixion.runtime.arena import address_of, allocate, keep_forever

# About 25 ns each on the CPUs measured; only the order of magnitude matters.
_PAUSES_PER_MICROSECOND = 40


class Pool:
    """Worker threads around one record. `address` is the record's."""

    def __init__(self) -> None:
        self._block = allocate(PoolWord.SIZE)
        keep_forever(self._block)
        self.address = address_of(self._block)
        self._lock = threading.Lock()
        self._workers = 0

    def grow(self, threads: int) -> None:
        """Have at least `threads - 1` workers."""
        with self._lock:
            while self._workers < threads - 1:
                self._workers += 1
                self._start(self._workers)

    def _start(self, number: int) -> None:
        serve = native.sequencer().worker
        name = f"ixion-worker-{number}"
        threading.Thread(target=serve, args=(self.address,), name=name, daemon=True).start()


_LOCK = threading.Lock()
_POOLS: list[Pool] = []
_ABANDONED: list[Pool] = []
_FORKED: list[bool] = []


def pool_for(threads: int) -> Pool:
    """The process's pool, with workers for runs of `threads` threads."""
    with _LOCK:
        if not _POOLS:
            _POOLS.append(Pool())
        pool = _POOLS[0]
    pool.grow(threads)
    return pool


def spin_of(threads: int) -> int:
    """Pauses before a worker of a run sleeps; with more threads than cores it does so at once."""
    pauses = int(config.get("spin_us")) * _PAUSES_PER_MICROSECOND
    return pauses if threads <= usable_cores() else 1


def default_threads() -> int:
    """Option `threads`, else all usable cores; in a forked child 1."""
    chosen = config.get("threads")
    if chosen is not None:
        return checked_threads(int(chosen))
    return 1 if _FORKED else min(usable_cores(), MAX_THREADS)


def checked_threads(threads: int) -> int:
    """`threads`, if it is a possible number. Raises ConfigError."""
    if not 1 <= threads <= MAX_THREADS:
        expected = f"1 to {MAX_THREADS}"
        raise ConfigError("impossible number of threads", expected=expected, found=threads)
    return threads


def _after_fork() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    _ABANDONED.extend(_POOLS)  # a run that goes on in the child may still refer to its record
    _POOLS.clear()
    _FORKED[:] = [True]


os.register_at_fork(after_in_child=_after_fork)
