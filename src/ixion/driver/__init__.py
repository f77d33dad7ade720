"""The way from a model to something that runs: ``compile()``, ``load()`` and their pipelines."""

from ixion.driver.compilation import compile, load
from ixion.driver.executable import Executable
from ixion.driver.stages import stages

__all__ = ["Executable", "compile", "load", "stages"]
