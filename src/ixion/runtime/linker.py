"""Linking object files into this process without LLVM.

A cached model then loads without llvmlite, whose import takes longer than everything else: one
mapping takes all sections, relocations are applied array-wise, and code pages become executable
(never writable at once). Understands what LLVM emits for x86-64 in the small code model; says so
when it meets anything else, for the caller to let LLVM link.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ixion.base.errors import CodegenError
from ixion.runtime import elf
from ixion.runtime.arena import address_of, allocate, keep_forever
from ixion.runtime.elf import ObjectFile, Relocations, Section

# x86-64 psABI, table of relocation types.
_ABSOLUTE_64 = 1
_RELATIVE_32 = (2, 4)  # PC32; PLT32, the same for a symbol within reach
_GOT_RELATIVE_32 = (9, 41, 42)  # GOTPCREL and its relaxable forms
_RELATIVE_64 = 24
_STUB = bytes.fromhex("ff25000000000000")  # jmp *0(%rip), over the padding: see _Stubs
_STUB_SIZE = 16
_PAGE = mmap.PAGESIZE
_READ, _EXECUTE = 1, 4


class UnlinkableError(CodegenError):
    """Object files beyond this linker, though LLVM may know what to do with them."""


class LinkedCode:
    """Object files linked into memory; addresses are valid while this is referenced."""

    def __init__(self, memory: npt.NDArray[np.uint8], symbols: dict[str, int]) -> None:
        self._memory = memory
        self._symbols = symbols

    def address(self, symbol: str) -> int:
        """Address of `symbol`. Raises CodegenError when no object defines it."""
        if symbol not in self._symbols:
            raise CodegenError(f"no object file defines '{symbol}'")
        return self._symbols[symbol]

    def keep_forever(self) -> None:
        """Never unload this code: a thread may be in it as long as the process lives."""
        keep_forever(self._memory)
