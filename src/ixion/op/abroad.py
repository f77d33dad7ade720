"""What other formats call our operators, for imports that are one to one."""

from __future__ import annotations

from dataclasses import dataclass

Spelling = str | tuple[str, ...]


@dataclass(frozen=True)
class Names:
    """Foreign names of an op whose arguments and attributes carry over unchanged.

    ``onnx``: operator type; ``aten``: torch operator without overload; ``pnnx``: operator types.
    """

    onnx: Spelling = ()
    aten: Spelling = ()
    pnnx: Spelling = ()


_ONNX: dict[str, str] = {}
_ATEN: dict[str, str] = {}
_PNNX: dict[str, str] = {}


def add(op: str, names: Names) -> None:
    """Enters ``names`` for ``op``; the first op to claim a foreign name keeps it."""
    for table, spelling in ((_ONNX, names.onnx), (_ATEN, names.aten), (_PNNX, names.pnnx)):
        for one in (spelling,) if isinstance(spelling, str) else spelling:
            table.setdefault(one, op)


def by_onnx_name(name: str) -> str | None:
    return _ONNX.get(name)


def by_aten_name(name: str) -> str | None:
    return _ATEN.get(name)


def by_pnnx_name(name: str) -> str | None:
    return _PNNX.get(name)
