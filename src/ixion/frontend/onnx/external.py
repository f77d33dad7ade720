"""Weights that lie in files beside the model.

A model names those files itself, so the name is hostile until shown otherwise: it may not be
absolute, climb with `..`, or lead out of the model's folder through a link, and what it names must
be a regular file that holds the bytes asked for (ONNX's external-data specification; the escapes
are those of CVE-2022-25882 and CVE-2024-5187).
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx.wire import FileSource, Piece


def external_piece(entries: dict[str, str], folder: Path | None, where: str) -> Piece:
    """The range of the file that external-data `entries` name, opened for reading.

    ModelFormatError if the file is missing, outside `folder`, or too short.
    """
    location = entries.get("location", "")
    source = FileSource(_inside(location, folder, where))
    start = _count(entries, "offset", 0, where)
    length = _count(entries, "length", source.size - start, where)
    if start + length > source.size or length < 0:
        raise ModelFormatError(
            "external data reaches past the end of its file",
            where=where,
            expected=f"bytes {start} to {start + length} of {location!r}",
            found=f"{source.size} bytes",
            hint="the data file is truncated or belongs to another model",
        )
    return Piece(source, start, start + length)


def _count(entries: dict[str, str], key: str, default: int, where: str) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ModelFormatError(
            f"external data with a bad {key}", where=where, expected="a number", found=repr(text)
        )
    return int(text)


def _inside(location: str, folder: Path | None, where: str) -> Path:
    if folder is None:
        raise ModelFormatError(
            "the model keeps weights in another file, but it was not loaded from a folder",
            where=where,
            hint="load the model by its path",
        )
    # A backslash or a drive letter is a path on the machine that wrote the file.
    parts = (*PurePosixPath(location).parts, *PureWindowsPath(location).parts)
    absolute = location.startswith(("/", "\\")) or bool(PureWindowsPath(location).drive)
    if not location or "\0" in location or absolute or ".." in parts:
        raise _escapes(location, where)
    root = Path(os.path.realpath(folder))
    path = Path(os.path.realpath(root / location))
    if not path.is_relative_to(root):
        raise _escapes(location, where)
    if not path.exists():
        raise ModelFormatError(
            f"the file {location!r} with the model's weights is missing",
            where=where,
            hint="keep the data file in the folder of the .onnx file",
        )
    return path


def _escapes(location: str, where: str) -> ModelFormatError:
    return ModelFormatError(
        "external data outside the model's folder",
        where=where,
        expected="a relative path inside the folder of the .onnx file",
        found=repr(location),
        hint="a link out of the folder counts as outside; put the file itself beside the model",
    )
