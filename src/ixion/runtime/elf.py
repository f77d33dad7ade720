"""Reading relocatable ELF object files, as LLVM writes them: sections, symbols, relocations.

Only what linking needs, and nothing is believed: every offset is checked against the file. Layouts
are those of the System V ABI, 64-bit little-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ixion.base.errors import CodegenError

X86_64 = 62

PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
WRITE, ALLOC, EXECUTE = 1, 2, 4
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
LOCAL = 0

_HEADER = np.dtype(
    [
        ("ident", "S16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"),
        ("entry", "<u8"), ("phoff", "<u8"), ("shoff", "<u8"), ("flags", "<u4"),
        ("ehsize", "<u2"), ("phentsize", "<u2"), ("phnum", "<u2"), ("shentsize", "<u2"),
        ("shnum", "<u2"), ("shstrndx", "<u2"),
    ]
)  # fmt: skip
_SECTION = np.dtype(
    [
        ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
        ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("align", "<u8"), ("entsize", "<u8"),
    ]
)  # fmt: skip
_SYMBOL = np.dtype(
    [
        ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
        ("size", "<u8"),
    ]
)  # fmt: skip
_RELOCATION = np.dtype(
    [("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")]
)
_CLASS_64_LITTLE = b"\x7fELF\x02\x01"
_RELOCATABLE = 1


@dataclass(frozen=True)
class Section:
    """A section that takes part in linking; `data` is empty for one that is all zeros."""

    kind: int
    flags: int
    size: int
    align: int
    data: npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Symbol:
    """A name for a place: `value` bytes into section number `section`."""

    name: str
    section: int
    value: int
    is_local: bool


@dataclass(frozen=True)
class Relocations:
    """Places in section number `section` to be filled in: parallel arrays."""

    section: int
    offsets: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    symbols: npt.NDArray[np.int64]
    addends: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ObjectFile:
    """The parts of one object file, sections and symbols by their number in it."""

    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[Relocations]


def read_object(image: bytes) -> ObjectFile:
    """Take an object file apart. Raises CodegenError for anything that is not one."""
    try:
        return _read(np.frombuffer(image, np.uint8))
    except (ValueError, IndexError, UnicodeDecodeError) as error:
        raise CodegenError(f"not an object file: {error}") from error


def _read(data: npt.NDArray[np.uint8]) -> ObjectFile:
    header = _rows(data, 0, 1, _HEADER)[0]
    if header["ident"][:6] != _CLASS_64_LITTLE or header["type"] != _RELOCATABLE:
        raise ValueError("not a relocatable 64-bit little-endian ELF file")
    rows = _rows(data, int(header["shoff"]), int(header["shnum"]), _SECTION)
    sections = [_section(data, row) for row in rows]
    symbols: list[Symbol] = []
    relocations = []
    for row in rows:
        if row["type"] == SYMTAB:
            symbols = _symbols(data, row, rows[int(row["link"])])
        elif row["type"] == RELA and sections[int(row["info"])].flags & ALLOC:
            relocations.append(_relocations(data, row))
    return ObjectFile(int(header["machine"]), sections, symbols, relocations)


def _rows(data: npt.NDArray[np.uint8], offset: int, count: int, dtype: Any) -> npt.NDArray[Any]:
    return _part(data, offset, count * dtype.itemsize).view(dtype)


def _part(data: npt.NDArray[np.uint8], offset: int, size: int) -> npt.NDArray[np.uint8]:
    if not 0 <= offset <= offset + size <= len(data):
        raise ValueError("a part lies outside the file")
    return data[offset : offset + size]


def _section(data: npt.NDArray[np.uint8], row: Any) -> Section:
    stored = row["flags"] & ALLOC and row["type"] != NOBITS
    size, align = int(row["size"]), max(1, int(row["align"]))
    if align & (align - 1) or align > 4096:
        raise ValueError("a section has an impossible alignment")
    part = _part(data, int(row["offset"]), size if stored else 0) if stored else data[:0]
    return Section(int(row["type"]), int(row["flags"]), size, align, part)


def _symbols(data: npt.NDArray[np.uint8], row: Any, names: Any) -> list[Symbol]:
    table = _table(data, row, _SYMBOL)
    text = _part(data, int(names["offset"]), int(names["size"])).tobytes()
    return [
        Symbol(
            _name(text, int(symbol["name"])),
            int(symbol["section"]),
            int(symbol["value"]),
            symbol["info"] >> 4 == LOCAL,
        )
        for symbol in table
    ]


def _name(text: bytes, offset: int) -> str:
    return text[offset : text.index(b"\0", offset)].decode()


def _relocations(data: npt.NDArray[np.uint8], row: Any) -> Relocations:
    table = _table(data, row, _RELOCATION)
    columns = [table[name].astype(np.int64) for name in ("offset", "kind", "symbol", "addend")]
    return Relocations(int(row["info"]), *columns)


def _table(data: npt.NDArray[np.uint8], row: Any, dtype: Any) -> npt.NDArray[Any]:
    return _rows(data, int(row["offset"]), int(row["size"]) // dtype.itemsize, dtype)
