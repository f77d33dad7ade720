"""Linking object files into this process without LLVM.

A cached model then loads without llvmlite, whose import takes longer than everything else: one
mapping takes all sections, relocations are applied, and code pages become executable (never
writable at once). Understands what LLVM emits for x86-64 in the small code model; says so
when it meets anything else, for the caller to let LLVM link.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ixion.base.errors import CodegenError
from ixion.runtime import elf
from ixion.runtime.arena import address_of, allocate, keep_forever
from ixion.runtime.elf import ObjectFile, Relocation, Symbol

# Relocation types of the x86-64 psABI.
_ABSOLUTE_64 = 1
_RELATIVE_64 = 24
_RELATIVE_32 = (2, 4)  # PC32, and PLT32: the same for a symbol within reach
_TABLE_32 = (9, 41, 42)  # GOTPCREL and its relaxable forms
_KNOWN = (_ABSOLUTE_64, _RELATIVE_64, *_RELATIVE_32, *_TABLE_32)
# A stub is `jmp *2(%rip)`, two bytes of filling, and an address: both a jump to a symbol out of
# reach and its entry in the global offset table.
_STUB = bytes.fromhex("ff25020000006690")
_STUB_SIZE = 16
_HALF, _WORD = struct.Struct("<i"), struct.Struct("<q")
_LARGEST = 1 << 30
_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4


class UnlinkableError(CodegenError):
    """Object files beyond this linker; LLVM may know what to do with them."""


class LinkedCode:
    """Object files linked into memory; addresses are valid while this is referenced."""

    def __init__(self, memory: npt.NDArray[np.uint8], symbols: dict[str, int]) -> None:
        self._memory = memory
        self._symbols = symbols

    def address(self, symbol: str) -> int:
        """Address of `symbol`. Raises CodegenError when no object file defines it."""
        if symbol not in self._symbols:
            raise CodegenError(f"no object file defines '{symbol}'")
        return self._symbols[symbol]

    def keep_forever(self) -> None:
        """Never unload this code: a thread may be in it as long as the process lives."""
        keep_forever(self._memory)


def link(images: Sequence[bytes]) -> LinkedCode:
    """Link object files as one library; they may use each other's symbols and the process's.

    Raises CodegenError for a broken file or a symbol defined twice, UnlinkableError for another
    machine or kind of relocation.
    """
    files = [elf.read_object(image) for image in images]
    if platform.machine() != "x86_64" or any(f.machine != elf.X86_64 for f in files):
        raise UnlinkableError("only x86-64 code is linked here")
    try:
        return _Linking(files).finish()
    except struct.error as error:
        raise UnlinkableError(f"a symbol is out of reach: {error}") from error
    except IndexError as error:
        raise CodegenError("a relocation of an unknown symbol") from error


class _Linking:
    """One linking: places of sections and symbols, then the bytes."""

    def __init__(self, files: list[ObjectFile]) -> None:
        self._files = files
        self._places: dict[tuple[int, int], int] = {}  # (file, section): offset in the memory
        self._groups: list[tuple[int, int, int]] = []  # offset, size, protection
        self._stub_names = sorted({name for file in files for name in _stub_names(file)})
        self._memory = allocate(self._lay_out())
        self._bytes = memoryview(self._memory.data)
        self._base = address_of(self._memory)
        self._globals = self._global_symbols()
        self._stubs: dict[str, int] = {}

    def finish(self) -> LinkedCode:
        """Fill in and protect the memory."""
        for (file, section), place in self._places.items():
            data = self._files[file].sections[section].data
            self._bytes[place : place + len(data)] = data
        self._write_stubs()
        for file, parts in enumerate(self._files):
            for section, relocations in parts.relocations:
                self._relocate(file, section, relocations)
        for place, size, protection in self._groups:
            _protect(self._base + place, size, protection)
        return LinkedCode(self._memory, self._globals)

    def _lay_out(self) -> int:
        """Stubs and code, constants, variables, each from a page boundary; the size of all."""
        end = _STUB_SIZE * len(self._stub_names)
        begin = 0
        for flags, protection in (
            (elf.EXECUTE, _PROT_READ | _PROT_EXEC),
            (0, _PROT_READ),
            (elf.WRITE, _PROT_READ | _PROT_WRITE),
        ):
            end = self._lay_out_group(flags, end)
            self._groups.append((begin, end - begin, protection))
            begin = end = _round_up(end, mmap.PAGESIZE)
        if end > _LARGEST:
            raise UnlinkableError("more than the small code model can address", found=end)
        return end

    def _lay_out_group(self, flags: int, end: int) -> int:
        for file, parts in enumerate(self._files):
            for number, section in enumerate(parts.sections):
                kind = section.flags & (elf.EXECUTE | elf.WRITE)
                if section.flags & elf.ALLOC and kind == flags:
                    self._places[file, number] = end = _round_up(end, section.align)
                    end += section.size
        return end

    def _global_symbols(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for file, parts in enumerate(self._files):
            for symbol in parts.symbols:
                if symbol.is_local or symbol.section == elf.UNDEFINED:
                    continue
                if symbol.name in found:
                    raise CodegenError(f"symbol '{symbol.name}' is defined twice")
                found[symbol.name] = self._own_address(file, symbol)
        return found

    def _own_address(self, file: int, symbol: Symbol) -> int:
        place = self._places.get((file, symbol.section))
        if place is None:
            raise UnlinkableError(f"symbol '{symbol.name}' lies in no section")
        return self._base + place + symbol.value

    def _write_stubs(self) -> None:
        for number, name in enumerate(self._stub_names):
            place = number * _STUB_SIZE
            target = self._globals.get(name) or _process_symbol(name)
            self._bytes[place : place + _STUB_SIZE] = _STUB + target.to_bytes(8, "little")
            self._stubs[name] = self._base + place

    def _relocate(self, file: int, number: int, relocations: list[Relocation]) -> None:
        place = self._places[file, number]
        size = self._files[file].sections[number].size
        symbols = self._files[file].symbols
        for offset, kind, symbol, addend in relocations:
            if kind not in _KNOWN:
                raise UnlinkableError(f"relocation of type {kind}")
            cell = _WORD if kind in (_ABSOLUTE_64, _RELATIVE_64) else _HALF
            if offset + cell.size > size:
                raise CodegenError("a relocation lies outside its section")
            value = self._target(file, kind, symbols[symbol]) + addend
            if kind != _ABSOLUTE_64:
                value -= self._base + place + offset
            cell.pack_into(self._bytes, place + offset, value)

    def _target(self, file: int, kind: int, symbol: Symbol) -> int:
        """What a relocation refers to: a symbol's address, or its entry in the table."""
        if kind in _TABLE_32:
            return self._stubs[symbol.name] + len(_STUB)
        if symbol.section != elf.UNDEFINED:
            return self._own_address(file, symbol)
        own = self._globals.get(symbol.name)
        if own is not None:
            return own
        return _process_symbol(symbol.name) if kind == _ABSOLUTE_64 else self._stubs[symbol.name]


def _stub_names(file: ObjectFile) -> set[str]:
    """Symbols that may need a stub: those from elsewhere and those reached by a table."""
    names = {s.name for s in file.symbols if s.section == elf.UNDEFINED and s.name}
    for _, relocations in file.relocations:
        names.update(file.symbols[r.symbol].name for r in relocations if r.kind in _TABLE_32)
    return names


def _process_symbol(name: str) -> int:
    """Address of a function of the process. Raises CodegenError when there is none."""
    try:
        found = getattr(ctypes.CDLL(None), name)
    except AttributeError as error:
        raise CodegenError(f"nothing defines symbol '{name}'") from error
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def _protect(address: int, size: int, protection: int) -> None:
    if size == 0:
        return
    mprotect = ctypes.CDLL(None, use_errno=True).mprotect
    mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if mprotect(address, size, protection) != 0:
        raise UnlinkableError(f"the system refuses protection {protection} for code pages")


def _round_up(value: int, boundary: int) -> int:
    return -(-value // boundary) * boundary
