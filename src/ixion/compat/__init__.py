"""Other people's words: modules under the names that existing programs import.

``python -m ixion.compat tvm -m pytest FILE`` runs a module or a script with ``import tvm`` meaning
``ixion.compat.tvm``. The adapters are thin: every name stands for Ixion's own object.
"""

from __future__ import annotations

from ixion.compat.alias import install

__all__ = ["install"]
