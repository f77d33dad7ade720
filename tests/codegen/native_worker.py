"""Runs native kernels for the tests, in a process of its own so that a crash is only a failure.

Requests on stdin, answers on stdout: a line of JSON, then the raw bytes it announces. Each array
lies next to a canary and a page that cannot be touched: once just behind it, once just before.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys

PAGE = mmap.PAGESIZE
CANARY = bytes((i * 37 + 11) % 256 for i in range(64))
PROT_NONE, PROT_ALL = 0, 3


class Guarded:
    """Bytes with a forbidden page right behind them (or right before)."""

    def __init__(self, data: bytes, behind: bool) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        pages = -(-(len(data) + len(CANARY)) // PAGE)
        self.map = mmap.mmap(-1, (pages + 2) * PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.size, self.behind = len(data), behind
        inner = self.base + PAGE
        self.address = inner + pages * PAGE - len(data) if behind else inner
        near = self.address - len(CANARY) if behind else self.address + len(data)
        self.canary = near
        ctypes.memmove(near, CANARY, len(CANARY))
        ctypes.memmove(self.address, data, len(data))
        forbidden = inner + pages * PAGE if behind else self.base
        if libc.mprotect(ctypes.c_void_p(forbidden), PAGE, PROT_NONE):
            raise OSError("mprotect failed")

    def read(self) -> bytes:
        if ctypes.string_at(self.canary, len(CANARY)) != CANARY:
            raise RuntimeError("a byte next to an array was overwritten")
        return ctypes.string_at(self.address, self.size)


KIND = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


def once(function, request, arrays, behind):
    places = [Guarded(data, behind) for data in arrays]
    slots = (ctypes.c_int64 * (len(places) + len(request["scalars"]) + 1))(
        *(p.address for p in places), *request["scalars"]
    )
    scratch = Guarded(bytes(request["scratch"]), behind)
    context = (ctypes.c_int64 * 2)(scratch.address, -1)
    code = function(ctypes.addressof(context), ctypes.addressof(slots), *request["tasks"])
    scratch.read()
    return code, context[1], [p.read() for p in places]


def answer(request, arrays):
    from ixion.base.target import Target
    from ixion.codegen.llvm import asm_text, compile_text, load_objects

    target = Target.parse(request["target"])
    library = load_objects([compile_text(request["text"], target)])
    function = KIND(library.address(request["symbol"]))
    first = once(function, request, arrays, True)
    second = once(function, request, arrays, False)
    if first != second:
        raise RuntimeError("the result depends on where the arrays lie")
    return (*first, asm_text(request["text"], target) if request["asm"] else "")


def main() -> None:
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    while line := stdin.readline():
        request = json.loads(line)
        arrays = [stdin.read(n) for n in request["sizes"]]
        try:
            code, index, results, asm = answer(request, arrays)
            reply = {"code": code, "index": index, "error": None, "asm": asm}
        except Exception as error:  # noqa: BLE001 - reported to the test
            results, reply = [], {"error": repr(error)}
        reply["sizes"] = [len(r) for r in results]
        stdout.write(json.dumps(reply).encode() + b"\n" + b"".join(results))
        stdout.flush()


if __name__ == "__main__":
    main()
