"""Directories for a while: ``tvm.contrib.utils``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


class TempDirectory:
    """A directory that is gone with the object, or when it is removed."""

    def __init__(self, custom_path: str | None = None) -> None:
        if custom_path is not None:
            Path(custom_path).mkdir(parents=True)
        self.temp_dir: str | None = custom_path or tempfile.mkdtemp()
        self.path = Path(self.temp_dir or "")

    def remove(self) -> None:
        """Delete the directory and what is in it; a second call does nothing."""
        if self.temp_dir is not None:
            shutil.rmtree(self.temp_dir, ignore_errors=True)
            self.temp_dir = None

    def __del__(self) -> None:
        self.remove()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def relpath(self, name: str) -> str:
        """The path of a file in the directory."""
        return str(self.path / name)

    def listdir(self) -> list[str]:
        """The names in the directory."""
        return sorted(each.name for each in self.path.iterdir())


def tempdir(custom_path: str | None = None) -> TempDirectory:
    """A new directory."""
    return TempDirectory(custom_path)


__all__ = ["TempDirectory", "tempdir"]
