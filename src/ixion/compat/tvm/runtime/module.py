"""``tvm.runtime.Module``: the part of a built program that is kept as a library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ixion.base.errors import ModelFormatError

_MAGIC = b"ixion program "


class Module:
    """Names the program it was built from.

    Kernels are made, or found in the cache of objects, when a program is loaded: no library needs
    to carry them, and one file serves every CPU.
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.type_key = "ixion"

    def export_library(self, file_name: Any, **options: Any) -> None:
        """Write the library to a file."""
        Path(file_name).write_bytes(_MAGIC + self.digest.encode() + b"\n")


def load_module(path: Any, fmt: str = "") -> Module:
    """The library in a file; ModelFormatError for any other file."""
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(256)
    except OSError as error:
        raise ModelFormatError("cannot read the library", where=str(path), found=error) from error
    digest = content[len(_MAGIC) :].strip()
    if not content.startswith(_MAGIC) or not digest.isalnum():
        raise ModelFormatError("not a library of a program", where=str(path))
    return Module(digest.decode())


__all__ = ["Module", "load_module"]
