"""``tvm.contrib``: what surrounds programs."""

from __future__ import annotations

import sys

from ixion.compat.tvm.contrib import directories
from ixion.compat.tvm.contrib import directories as utils

# TVM's name for the file, which says nothing about what is in it.
sys.modules[f"{__name__}.utils"] = directories

__all__ = ["directories", "utils"]
