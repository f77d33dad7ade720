"""The side table of a text: nodes that the text form has no syntax for, named ``meta[Key][i]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ixion.base.dim import SymExpr


class MetaTable(Mapping[str, Sequence[Any]]):
    """Nodes by type key and index, each once.

    One table may serve several texts: printed with ``astext(..., constants=table)``, every large
    constant is entered here instead of being written out, and ``parse(text,
    init_meta_table=table)`` finds the very same node again.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, list[Any]] = {}
        self._indices: dict[tuple[str, Any], int] = {}

    def reference(self, key: str, node: Any) -> str:
        """``meta[key][i]`` for a node, entered if it is new.

        Texts, numbers and symbolic dimensions are told apart by value, all else by identity.
        """
        same = node if isinstance(node, (str, float, SymExpr)) else id(node)
        index = self._indices.get((key, same))
        if index is None:
            nodes = self._nodes.setdefault(key, [])
            index = self._indices[key, same] = len(nodes)
            nodes.append(node)
        return f"meta[{key}][{index}]"

    def __getitem__(self, key: str) -> Sequence[Any]:
        return self._nodes[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def to_json(self) -> str:
        """The text of the metadata section."""
        from ixion.ir.json import save_json

        return save_json({key: tuple(nodes) for key, nodes in self._nodes.items()})


__all__ = ["MetaTable"]
