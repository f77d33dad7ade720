"""Blocks of bytes over pipes: a length (8 bytes, little endian) and so many bytes."""

from __future__ import annotations

from typing import IO


def read_block(stream: IO[bytes]) -> bytes | None:
    """The next block of a stream; None at its end."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "little")
    data = stream.read(size)
    return data if len(data) == size else None


def write_block(stream: IO[bytes], data: bytes) -> None:
    """Raises OSError where nobody reads any more."""
    stream.write(len(data).to_bytes(8, "little"))
    stream.write(data)
    stream.flush()
