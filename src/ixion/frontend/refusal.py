"""What both importers do with what they cannot import: collect it, and name each place."""

from __future__ import annotations

from collections.abc import Iterable

Row = tuple[str, int, list[str]]

#: What hostile numbers make numpy and Python raise inside a converter.
BAD_NUMBERS = (
    ValueError, TypeError, IndexError, KeyError, AttributeError, ArithmeticError, MemoryError,
)  # fmt: skip


def gathered(refused: Iterable[Row]) -> list[Row]:
    """Equal names counted together, most frequent first."""
    total: dict[str, tuple[int, list[str]]] = {}
    for name, count, places in refused:
        before, seen = total.get(name, (0, []))
        total[name] = (before + count, [*seen, *places])
    rows = [(name, count, places) for name, (count, places) in total.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))
