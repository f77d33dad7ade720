"""The binary interface of native code: kernels, step table, run, worker and pool records.

A kernel is `i32 kernel(ptr ctx, ptr slots, i64 task_lo, i64 task_hi)`: ctx is a worker record,
slots the step's window of int64 words. It returns 0 or a Fault, having written the offending index
to ERROR_INDEX. All words are int64 unless said otherwise, numbers are byte offsets.
"""

from __future__ import annotations

from enum import IntEnum

STEP_WORDS = 8
STEP_BYTES = STEP_WORDS * 8


class Fault(IntEnum):
    """Nonzero results of a kernel; any other number means a fault of its own."""

    INDEX = 1  # an index read from data is out of range
    SHAPE = 2  # sizes known only at run time do not fit
    VALUE = 3  # a value the operator does not accept
    MEMORY = 4  # a buffer is too small


class Opcode(IntEnum):
    """First word of a step."""

    END = 0
    CALL = 1
    HOST = 2
    JUMP = 3
    BRANCH = 4
    LOOP = 5
    NEXT = 6
    SOLO = 7
    TOGETHER = 8


class StepWord:
    """Byte offsets in a step of the table."""

    OPCODE = 0
    KERNEL = 8  # CALL: entry address
    SLOTS = 16  # CALL, BRANCH, LOOP: byte offset of the step's window of slots
    TASKS = 24  # CALL: number of tasks
    LIMIT = 32  # CALL: most workers that take part
    BARRIER = 40  # CALL: 1 when every worker waits for the others after this step
    WEIGHT = 48  # CALL: expected nanoseconds, decides how often the clock is read
    TARGET = 56  # JUMP, BRANCH, LOOP, NEXT: step to go to; SOLO: where workers wait
    WIDTH = 8  # BRANCH, LOOP: bytes to read at the address in slot 0; LOOP: 0 = the slot itself
    COUNTER = 24  # LOOP, NEXT: byte offset of the loop counter in the worker record


class RunWord:
    """Byte offsets in a run record, the argument of `ix_run`."""

    TABLE = 0
    SLOTS = 8
    STEP = 16  # in: step to start at; out: step that ended this call (0 after END)
    WORKERS = 24  # address of the first worker record
    THREADS = 32
    POOL = 40  # 0: run alone
    PROFILE = 48
    BUDGET = 56  # nanoseconds after which a call returns YIELD; 0: never
    STOP = 64  # nonzero: leave at the next step
    CODE = 72  # first nonzero kernel result
    ERROR_STEP = 80
    ERROR_WORKER = 88
    YIELD = 96  # the caller wants to leave at the next barrier
    SPIN = 104  # pauses before a waiting worker sleeps
    SIZE = 128


class WorkerWord:
    """Byte offsets in a worker record, the `ctx` of a kernel, which may use the first two words."""

    SCRATCH = 0  # address of this worker's scratch, 64-byte aligned
    ERROR_INDEX = 8
    COUNTERS = 64  # MAX_LOOPS pairs (round, trip count); kernels may read them
    SIZE = 128


MAX_LOOPS = 4
MAX_THREADS = 64


class PoolWord:
    """Byte offsets in the pool record. What different workers write lies on different lines."""

    EPOCH = 0  # i32, one more at each launch
    QUIT = 4  # i32
    SPIN = 8  # of the last run
    EPOCH_SLEEPERS = 128  # i32
    BUSY = 256  # i32
    SEQUENCE = 264  # last tag used in CLAIMS
    RUN = 272  # run record
    THREADS = 280  # most members
    TEAM = 384  # members that arrived (16 bits) | members << 16 | phase << 32; no members: closed
    PHASE = 388  # i32, the upper half of TEAM
    PLACES = 392  # for even and odd phases: step, tag, members at its beginning, halt flag
    PLACE_SIZE = 24
    COUNTERS = 512  # loop counters for even and odd phases
    PHASE_SLEEPERS = 640  # i32
    CALLER_SLEEPS = 644  # i32
    CLAIMS = 768  # one line per worker: tag << 32 | tasks of its range not yet claimed
    CLAIM_STRIDE = 128
    SIZE = CLAIMS + MAX_THREADS * CLAIM_STRIDE


class PlaceWord:
    """Byte offsets in a place: where a phase begins."""

    STEP = 0
    TAG = 8
    PARTS = 16  # i32
    HALT = 20  # i32


class ProfileWord:
    """Byte offsets in the profile record of a step, nanoseconds of the monotonic clock."""

    COUNT = 0
    TOTAL = 8
    START = 16  # of the last execution
    END = 24
    SIZE = 32


class Status(IntEnum):
    """What `ix_run` returns when it is not the index of a host step."""

    DONE = -1
    FAILED = -2
    STOPPED = -3
    YIELD = -4


CLOCK_WEIGHT = 1_000_000  # expected nanoseconds between two looks at the clock
