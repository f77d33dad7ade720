"""From nodes to the records of graph JSON; see ``json.py`` for the layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymExpr
from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.ir.containers import Map
from ixion.ir.node import Field, Node

Record: TypeAlias = "dict[str, Any]"
SPAN_FIELDS = ("line", "column", "end_line", "end_column")
_INT32 = range(-(2**31), 2**31)


class Writer:
    """Gives every value an index when it is first met, and a record later; never recurses."""

    def __init__(self) -> None:
        self.records: list[Record] = [{"type_key": ""}]
        self.arrays: list[Any] = []
        self._index: dict[Any, int] = {}
        self._array_index: dict[int, int] = {}
        self._pending: list[tuple[int, Any]] = []
        self._alive: list[Any] = []

    def write(self, root: Any) -> int:
        """The index of ``root``, all below it being written too."""
        index = self.ref(root)
        while self._pending:
            at, value = self._pending.pop()
            self.records[at] = self._record(value)
        return index

    def ref(self, value: Any) -> int:
        """The index of a value; plain values that are equal share one."""
        if value is None:
            return 0
        kind = type(value)
        plain = kind in (int, bool, float, str)
        key: Any = (kind, repr(value) if kind is float else value) if plain else id(value)
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.records)
            self.records.append({})
            self._alive.append(value)
            self._pending.append((found, value))
        return found

    def array_ref(self, array: Any) -> int:
        """The index of an array among the arrays."""
        found = self._array_index.get(id(array))
        if found is None:
            found = self._array_index[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return found

    def _record(self, value: Any) -> Record:
        if isinstance(value, Node):
            return self._node_record(value)
        for kind, write in _WRITE_VALUE:
            if isinstance(value, kind):
                return write(self, value)
        if hasattr(value, "tobytes") and hasattr(value, "dtype"):
            attrs = {"data": str(self.array_ref(value))}
            return {"type_key": "runtime.NDArray", "attrs": attrs}
        raise TypeError(f"a {type(value).__name__} cannot be saved as JSON: {value!r}")

    def _node_record(self, node: Node) -> Record:
        by_name = getattr(node, "_json_repr", None)
        if by_name is not None:
            return {"type_key": node.type_key, "repr_str": by_name()}
        if node._by_identity:
            return {"type_key": node.type_key, "repr_str": str(getattr(node, "name", ""))}
        own = getattr(node, "_json_fields", None)
        if own is not None:
            attrs = {name: str(self.ref(value)) for name, value in own().items()}
            return {"type_key": node.type_key, "attrs": attrs}
        attrs = {s.name: self._text(s, getattr(node, s.name)) for s in node._fields}
        for name, (slot, kind) in node._stored_slots.items():
            value = getattr(node, slot, None)
            if value is not None:
                attrs[name] = str(value) if kind == "int" else str(self.ref(value))
        return {"type_key": node.type_key, "attrs": attrs}

    def _text(self, spec: Field, value: Any) -> str:
        match spec.stored:
            case "int":
                return str(int(value))
            case "bool":
                return "1" if value else "0"
            case "float":
                return repr(float(value))
            case "str":
                return str(value)
            case "tensor":
                return str(self.array_ref(value))
        return str(self.ref(value))


def _write_map(writer: Writer, value: Map) -> Record:
    if all(isinstance(key, str) for key in value):
        data = [writer.ref(item) for item in value.values()]
        return {"type_key": "Map", "keys": list(value), "data": data}
    pairs = [writer.ref(part) for item in value.items() for part in item]
    return {"type_key": "Map", "data": pairs}


def _write_span(writer: Writer, span: Span) -> Record:
    attrs = {name: str(getattr(span, name)) for name in SPAN_FIELDS}
    return {
        "type_key": "Span",
        "attrs": {"source_name": str(writer.ref(span.source_name)), **attrs},
    }


def _write_int(writer: Writer, value: int) -> Record:
    dtype = "bool" if isinstance(value, bool) else "int32" if value in _INT32 else "int64"
    return {"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": str(int(value))}}


def _write_float(writer: Writer, value: float) -> Record:
    attrs = {"dtype": "float64", "span": "0", "value": repr(float(value))}
    return {"type_key": "FloatImm", "attrs": attrs}


def _write_sequence(writer: Writer, value: Any) -> Record:
    return {"type_key": "Array", "data": [writer.ref(item) for item in value]}


def _write_sequential(writer: Writer, span: SequentialSpan) -> Record:
    return {"type_key": "SequentialSpan", "attrs": {"spans": str(writer.ref(span.spans))}}


_WRITE_VALUE: list[tuple[Any, Callable[[Writer, Any], Record]]] = [
    (int, _write_int),
    (float, _write_float),
    (str, lambda _, v: {"type_key": "runtime.String", "repr_str": str(v)}),
    ((tuple, list), _write_sequence),
    (Map, _write_map),
    (dict, lambda writer, value: _write_map(writer, Map(value))),
    (SequentialSpan, _write_sequential),
    (Span, _write_span),
    (SourceName, lambda _, v: {"type_key": "SourceName", "repr_str": v.name}),
    (AnyDim, lambda _, v: {"type_key": "tir.Any", "attrs": {"dtype": "int32", "span": "0"}}),
    (SymExpr, lambda _, v: {"type_key": "ixion.SymExpr", "repr_str": str(v)}),
]
