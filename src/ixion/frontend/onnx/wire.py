"""The protobuf wire format, walked in place.

A message is a run of fields, each a varint tag (`field number << 3 | wire type`) and a payload
(protobuf.dev/programming-guides/encoding). Nothing is decoded before it is asked for: a
length-delimited payload comes back as a `Piece`, a range of the source, so stepping over a
400 MB weight costs one addition. Every read is checked against the range it lies in.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Protocol

import numpy as np

from ixion.base.errors import ModelFormatError

VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5

#: A piece up to this size is read whole before its fields are walked.
_INLINE = 1 << 18
#: Read-ahead of a file source: headers and small messages come out of one window.
_WINDOW = 1 << 16
#: Longest tag and length in front of a payload: two ten-byte varints.
_HEADER = 20
#: Packed numbers are decoded by this many bytes at a time.
_CHUNK = 1 << 20


class Source(Protocol):
    """Random access to the bytes of one file."""

    name: str
    size: int

    def read(self, start: int, stop: int) -> bytes:
        """The bytes `[start, stop)`; ModelFormatError if they are not all there."""

    def read_into(self, start: int, out: memoryview) -> None:
        """Fill the byte view `out` from offset `start`; ModelFormatError if too few bytes."""


class BytesSource:
    """A source over bytes in memory."""

    __slots__ = ("data", "name", "size")

    def __init__(self, data: bytes, name: str = "<bytes>") -> None:
        self.data = data
        self.name = name
        self.size = len(data)

    def read(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= self.size:
            raise _cut(self.name, stop, self.size)
        return self.data[start:stop]

    def read_into(self, start: int, out: memoryview) -> None:
        out[:] = self.read(start, start + len(out))


class FileSource:
    """A source over an open regular file. It reads: a file cut under a map kills the process."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            regular = S_ISREG(path.stat().st_mode)
            self._file = path.open("rb", buffering=0) if regular else None
        except OSError as error:
            raise ModelFormatError(
                f"cannot read the file: {error.strerror or error}", where=self.name
            ) from error
        if self._file is None:
            raise ModelFormatError("not a regular file", where=self.name)
        self.size = path.stat().st_size
        self._start = 0
        self._window = b""

    def read(self, start: int, stop: int) -> bytes:
        if not 0 <= start <= stop <= self.size:
            raise _cut(self.name, stop, self.size)
        offset = start - self._start
        if offset >= 0 and stop - self._start <= len(self._window):
            return self._window[offset : offset + stop - start]
        if stop - start > _WINDOW:
            out = bytearray(stop - start)
            self.read_into(start, memoryview(out))
            return bytes(out)
        window = bytearray(min(_WINDOW, self.size - start))
        self.read_into(start, memoryview(window))
        self._start, self._window = start, bytes(window)
        return self._window[: stop - start]

    def read_into(self, start: int, out: memoryview) -> None:
        assert self._file is not None
        try:
            self._file.seek(start)
            done = 0
            while done < len(out):
                count = self._file.readinto(out[done:])
                if not count:
                    raise _cut(self.name, start + len(out), start + done)
                done += count
        except OSError as error:
            raise ModelFormatError(f"cannot read the file: {error}", where=self.name) from error

    def close(self) -> None:
        """Give the file descriptor back; later reads fail."""
        if self._file is not None:
            self._file.close()

    def __del__(self) -> None:
        # Tensors read lazily share the source, so it closes with the last of them.
        if getattr(self, "_file", None) is not None:
            self.close()


def _cut(name: str, needed: int, size: int) -> ModelFormatError:
    return ModelFormatError(
        "the file ends inside a field",
        where=name,
        expected=f"at least {needed} bytes",
        found=f"{size} bytes",
        hint="the file is truncated or is not a protobuf file; copy or export it again",
    )


class Piece:
    """The bytes `[start, stop)` of a source: a sub-message, a string, or packed numbers."""

    __slots__ = ("source", "start", "stop")

    def __init__(self, source: Source, start: int, stop: int) -> None:
        self.source = source
        self.start = start
        self.stop = stop

    def __len__(self) -> int:
        return self.stop - self.start

    def bytes(self) -> bytes:
        """A copy of the bytes."""
        return self.source.read(self.start, self.stop)

    def text(self) -> str:
        """The bytes as UTF-8; ModelFormatError if they are not."""
        try:
            return self.bytes().decode()
        except UnicodeDecodeError as error:
            raise self.broken("a name is not UTF-8 text") from error

    def broken(self, message: str, hint: str | None = None) -> ModelFormatError:
        """An error that names this place of the file."""
        where = f"{self.source.name}, byte {self.start}"
        return ModelFormatError(message, where=where, hint=hint)

    def fields(self) -> Iterator[tuple[int, int, int | Piece]]:
        """Field number, wire type and payload of each field of this message, in file order.

        The payload of a varint or fixed field is its bit pattern as an unsigned integer.
        ModelFormatError if the bytes are no message.
        """
        source = self.source
        if isinstance(source, BytesSource):
            return _walk(source, source.data, self.start, self.stop)
        if len(self) <= _INLINE:
            inner = BytesSource(self.bytes(), source.name)
            return _walk(inner, inner.data, 0, inner.size)
        return self._walk_file()

    def _walk_file(self) -> Iterator[tuple[int, int, int | Piece]]:
        position = self.start
        while position < self.stop:
            head = self.source.read(position, min(position + _HEADER, self.stop))
            number, wire, value, used = _header(self, head, 0)
            position += used
            if wire != LEN:
                yield number, wire, value
                continue
            stop = position + value
            if stop > self.stop:
                raise self.broken("a field is longer than the message it lies in")
            yield number, wire, Piece(self.source, position, stop)
            position = stop


def _walk(
    source: BytesSource, data: bytes, start: int, stop: int
) -> Iterator[tuple[int, int, int | Piece]]:
    # One- and two-byte headers are decoded in place: they are nearly all of them.
    message = Piece(source, start, stop)
    position = start
    while position < stop:
        tag = data[position]
        if tag < 0x80 and tag & 7 == LEN and position + 1 < stop and data[position + 1] < 0x80:
            number, wire, value = tag >> 3, LEN, data[position + 1]
            position += 2
            if number == 0:
                raise message.broken("field number 0")
        else:
            head = data[position : min(position + _HEADER, stop)]
            number, wire, value, used = _header(message, head, position - start)
            position += used
        if wire != LEN:
            yield number, wire, value
            continue
        end = position + value
        if end > stop:
            raise message.broken("a field is longer than the message it lies in")
        yield number, wire, Piece(source, position, end)
        position = end


def _header(message: Piece, head: bytes, offset: int) -> tuple[int, int, int, int]:
    """Field number, wire type, value (of LEN: its length) and the number of bytes used."""
    tag, used = _varint(message, head, 0)
    number, wire = tag >> 3, tag & 7
    if number == 0 or number > 0x1FFFFFFF:
        raise message.broken(f"field number {number} at offset {offset}", _NOT_PROTOBUF)
    if wire in (VARINT, LEN):
        value, used = _varint(message, head, used)
        return number, wire, value, used
    if wire in (FIXED32, FIXED64):
        width = 4 if wire == FIXED32 else 8
        if len(head) < used + width:
            raise message.broken("the message ends inside a number", _NOT_PROTOBUF)
        return number, wire, int.from_bytes(head[used : used + width], "little"), used + width
    raise message.broken(f"wire type {wire} at offset {offset}", _NOT_PROTOBUF)


_NOT_PROTOBUF = "the file is truncated or is not an ONNX file"


def _varint(message: Piece, data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
    raise message.broken("a variable-length number does not end", _NOT_PROTOBUF)


def packed_varints(piece: Piece) -> np.ndarray:
    """All varints of a packed field as an int64 array (two's complement).

    Groups of bytes are found by their clear top bit and joined with `reduceat`, a million bytes at
    a time, so a long list costs neither a Python step a number nor many times its size in memory.
    """
    raw = np.frombuffer(piece.bytes(), np.uint8)
    parts = []
    start = 0
    while start < raw.size:
        window = raw[start : start + _CHUNK]
        ends = np.flatnonzero(window < 0x80)
        if ends.size == 0 or (start + window.size == raw.size and ends[-1] != window.size - 1):
            raise piece.broken("a packed list ends inside a number")
        parts.append(_join_varints(piece, window[: ends[-1] + 1], ends))
        start += int(ends[-1]) + 1
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _join_varints(piece: Piece, raw: np.ndarray, ends: np.ndarray) -> np.ndarray:
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if int(lengths.max()) > 10:
        raise piece.broken("a number in a packed list is longer than ten bytes")
    place = np.arange(raw.size) - np.repeat(starts, lengths)
    bits = (raw & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, starts).view(np.int64)
