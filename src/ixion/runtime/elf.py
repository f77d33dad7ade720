"""Reading relocatable ELF object files, as LLVM writes them: sections, symbols, relocations.

Only what linking needs, and nothing is believed: every offset is checked against the file. Layouts
are those of the System V ABI, 64-bit little-endian.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from ixion.base.errors import CodegenError

X86_64 = 62
WRITE, ALLOC, EXECUTE = 1, 2, 4
UNDEFINED = 0

_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_LOCAL = 0
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_CLASS_64_LITTLE = b"\x7fELF\x02\x01"
_RELOCATABLE = 1
_LARGEST_ALIGNMENT = 4096


class Section(NamedTuple):
    """A section; `data` is empty for one that is all zeros or takes no part in linking."""

    flags: int
    size: int
    align: int
    data: memoryview


class Symbol(NamedTuple):
    """A name for a place: `value` bytes into section number `section`."""

    name: str
    section: int
    value: int
    is_local: bool


class Relocation(NamedTuple):
    """A place in a section to be filled in."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """The parts of one object file, sections and symbols by their number in it.

    `relocations` are (section number, its relocations) of the sections that take part.
    """

    machine: int
    sections: list[Section]
    symbols: list[Symbol]
    relocations: list[tuple[int, list[Relocation]]]


class _Row(NamedTuple):
    """An entry of the section table."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry_size: int


def read_object(image: bytes) -> ObjectFile:
    """Take an object file apart. Raises CodegenError for anything that is not one."""
    try:
        return _read(memoryview(image))
    except (ValueError, LookupError, struct.error) as error:
        raise CodegenError(f"not an object file: {error}") from error


def _read(data: memoryview) -> ObjectFile:
    header = _HEADER.unpack_from(data)
    ident, kind, machine, offset, count = header[0], header[1], header[2], header[6], header[12]
    if ident[:6] != _CLASS_64_LITTLE or kind != _RELOCATABLE:
        raise ValueError("not a relocatable 64-bit little-endian ELF file")
    table = _part(data, offset, count * _SECTION.size)
    rows = [_Row(*row) for row in _SECTION.iter_unpack(table)]
    sections = [_section(data, row) for row in rows]
    symbols: list[Symbol] = []
    relocations = []
    for row in rows:
        if row.kind == _SYMTAB:
            symbols = _symbols(data, row, rows[row.link])
        elif row.kind == _RELA and sections[row.info].flags & ALLOC:
            entries = _RELOCATION.iter_unpack(_part(data, row.offset, row.size))
            relocations.append((row.info, [Relocation(*entry) for entry in entries]))
    return ObjectFile(machine, sections, symbols, relocations)


def _part(data: memoryview, offset: int, size: int) -> memoryview:
    if offset + size > len(data):
        raise ValueError("a part lies outside the file")
    return data[offset : offset + size]


def _section(data: memoryview, row: _Row) -> Section:
    align = max(1, row.align)
    if not row.flags & ALLOC:
        return Section(0, 0, 1, data[:0])
    if align & (align - 1) or align > _LARGEST_ALIGNMENT:
        raise ValueError("a section has an impossible alignment")
    part = data[:0] if row.kind == _NOBITS else _part(data, row.offset, row.size)
    return Section(row.flags, row.size, align, part)


def _symbols(data: memoryview, row: _Row, names: _Row) -> list[Symbol]:
    text = bytes(_part(data, names.offset, names.size))
    return [
        Symbol(_name(text, name), section, value, info >> 4 == _LOCAL)
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(
            _part(data, row.offset, row.size)
        )
    ]


def _name(text: bytes, offset: int) -> str:
    return text[offset : text.index(b"\0", offset)].decode()
