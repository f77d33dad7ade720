"""Graph JSON: nodes as a flat list that refer to one another by index, so sharing is kept.

The layout is TVM's: ``root`` is an index into ``nodes``, whose entry 0 is null; ``attrs`` of a node
are texts (a plain value, or the index of another node); ``data`` and ``keys`` hold containers;
``repr_str`` is the name of what is stored by name; arrays are base64 in ``b64ndarrays``.

Loading trusts nothing: whatever is missing, of the wrong kind, out of range or cyclic is a
ModelFormatError.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymExpr
from ixion.base.dim import parse as parse_dim
from ixion.base.errors import ModelFormatError, did_you_mean
from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.ir.containers import Map
from ixion.ir.json_array import decode_array, encode_array
from ixion.ir.node import NODE_TYPES, Field, Node

_Record: TypeAlias = "dict[str, Any]"
_VERSION = "0.19.0"
_INT32 = range(-(2**31), 2**31)


class _Writer:
    """Gives every value an index when it is first met, and a record later; never recurses."""

    def __init__(self) -> None:
        self.records: list[_Record] = [{"type_key": ""}]
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

    def _record(self, value: Any) -> _Record:
        if isinstance(value, Node):
            return self._node_record(value)
        for kind, write in _WRITE_VALUE:
            if isinstance(value, kind):
                return write(self, value)
        if hasattr(value, "tobytes") and hasattr(value, "dtype"):
            attrs = {"data": str(self.array_ref(value))}
            return {"type_key": "runtime.NDArray", "attrs": attrs}
        raise TypeError(f"a {type(value).__name__} cannot be saved as JSON: {value!r}")

    def _node_record(self, node: Node) -> _Record:
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


def _write_map(writer: _Writer, value: Map) -> _Record:
    if all(isinstance(key, str) for key in value):
        data = [writer.ref(item) for item in value.values()]
        return {"type_key": "Map", "keys": list(value), "data": data}
    pairs = [writer.ref(part) for item in value.items() for part in item]
    return {"type_key": "Map", "data": pairs}


def _write_span(writer: _Writer, span: Span) -> _Record:
    attrs = {name: str(getattr(span, name)) for name in _SPAN_FIELDS}
    return {
        "type_key": "Span",
        "attrs": {"source_name": str(writer.ref(span.source_name)), **attrs},
    }


def _write_int(writer: _Writer, value: int) -> _Record:
    dtype = "bool" if isinstance(value, bool) else "int32" if value in _INT32 else "int64"
    return {"type_key": "IntImm", "attrs": {"dtype": dtype, "span": "0", "value": str(int(value))}}


def _write_float(writer: _Writer, value: float) -> _Record:
    attrs = {"dtype": "float64", "span": "0", "value": repr(float(value))}
    return {"type_key": "FloatImm", "attrs": attrs}


def _write_sequence(writer: _Writer, value: Any) -> _Record:
    return {"type_key": "Array", "data": [writer.ref(item) for item in value]}


def _write_sequential(writer: _Writer, span: SequentialSpan) -> _Record:
    return {"type_key": "SequentialSpan", "attrs": {"spans": str(writer.ref(span.spans))}}


_SPAN_FIELDS = ("line", "column", "end_line", "end_column")
_WRITE_VALUE: list[tuple[Any, Callable[[_Writer, Any], _Record]]] = [
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


class _Reader:
    """Builds values from records, parts first, on an explicit stack."""

    def __init__(self, records: list[Any], arrays: list[Any]) -> None:
        self.records = records
        self.arrays = arrays
        self.values: dict[int, Any] = {0: None}

    def read(self, root: int) -> Any:
        """The value of the record ``root``."""
        stack = [root]
        opened: set[int] = set()
        values = self.values
        while stack:
            index = stack.pop()
            if index in values:
                continue
            if index in opened:
                values[index] = self._built(index)
                continue
            opened.add(index)
            stack.append(index)
            for part in reversed(self._parts(index)):
                if part in opened and part not in values:
                    raise ModelFormatError("the JSON graph is cyclic", where=f"node {index}")
                if part not in values:
                    stack.append(part)
        return values[root]

    def record(self, index: int) -> _Record:
        """The record at an index, which is checked."""
        if not 0 <= index < len(self.records):
            raise ModelFormatError(f"no node {index} in the JSON graph")
        record = self.records[index]
        if not isinstance(record, dict) or not isinstance(record.get("type_key"), str):
            raise ModelFormatError(f"node {index} of the JSON graph is no record with a type_key")
        return record

    def attrs(self, index: int) -> dict[str, str]:
        """The attrs of a record, texts by name."""
        attrs = self.record(index).get("attrs", {})
        if not isinstance(attrs, dict) or not all(isinstance(v, str) for v in attrs.values()):
            raise ModelFormatError(f"attrs of node {index} of the JSON graph are not texts")
        return attrs

    def data(self, index: int) -> list[int]:
        """The element indices of a container's record."""
        data = self.record(index).get("data") or []
        if not isinstance(data, list) or not all(type(item) is int for item in data):
            raise ModelFormatError(f"data of node {index} of the JSON graph are not indices")
        return data

    def text(self, index: int) -> str:
        """The name of what is stored by name."""
        text = self.record(index).get("repr_str")
        if not isinstance(text, str):
            raise ModelFormatError(f"node {index} of the JSON graph has no repr_str")
        return text

    def ref(self, index: int, text: str) -> int:
        """An index given as text."""
        if not (text.isascii() and text.isdigit()) or len(text) > 12:
            raise ModelFormatError(f"node {index} of the JSON graph refers to {text!r}")
        return int(text)

    def array(self, index: int, text: str) -> Any:
        """An array by its index given as text."""
        at = self.ref(index, text)
        if at >= len(self.arrays):
            raise ModelFormatError(f"node {index} of the JSON graph refers to a missing array {at}")
        return self.arrays[at]

    def _parts(self, index: int) -> list[int]:
        record = self.record(index)
        key = record["type_key"]
        if key in ("Array", "Map"):
            return self.data(index)
        if key in _READ_VALUE:
            names = _REFERENCES.get(key, ())
            return [self.ref(index, self.attrs(index).get(name, "0")) for name in names]
        kind = NODE_TYPES.get(key)
        if kind is None:
            raise ModelFormatError(
                f"the JSON graph has a node of unknown kind {key!r}",
                where=f"node {index}",
                hint=did_you_mean(key, NODE_TYPES) or "import the package that registers it",
            )
        if "repr_str" in record:
            return []
        attrs = self.attrs(index)
        return [self.ref(index, attrs[n]) for n in attrs if _is_reference(kind, n, attrs[n])]

    def _built(self, index: int) -> Any:
        key = self.record(index)["type_key"]
        try:
            if key in _READ_VALUE:
                return _READ_VALUE[key](self, index)
            kind = NODE_TYPES[key]
            if "repr_str" in self.record(index):
                return self._by_name(kind, index)
            return self._node(kind, index)
        except ModelFormatError:
            raise
        except Exception as error:
            message = f"node {index} of the JSON graph is not a valid {key}: {error}"
            raise ModelFormatError(message) from error

    def _by_name(self, kind: Any, index: int) -> Any:
        maker = getattr(kind, "_from_json_repr", None) or getattr(kind, "get", None)
        if maker is None:
            raise ModelFormatError(
                f"a {kind.type_key} is not stored by name", where=f"node {index}"
            )
        return maker(self.text(index))

    def _node(self, kind: Any, index: int) -> Any:
        attrs = self.attrs(index)
        whole = getattr(kind, "_from_json_fields", None)
        if whole is not None:
            return whole({n: self.values[self.ref(index, t)] for n, t in attrs.items()})
        values, slots = {}, {}
        for name, text in attrs.items():
            spec = kind._field_map.get(name)
            if spec is not None:
                values[name] = self._field(spec, index, text)
            elif name in kind._stored_slots:
                slot, form = kind._stored_slots[name]
                slots[slot] = int(text) if form == "int" else self.values[self.ref(index, text)]
            elif name not in _IGNORED:
                raise ModelFormatError(
                    f"a {kind.type_key} has no field {name!r}",
                    hint=did_you_mean(name, kind._field_map),
                )
        node = kind._from_fields(values)
        for slot, value in slots.items():
            if value is not None:
                node._put(slot, value)
        return node

    def _field(self, spec: Field, index: int, text: str) -> Any:
        match spec.stored:
            case "int":
                value: Any = int(text)
            case "bool":
                value = {"0": False, "1": True}[text]
            case "float":
                value = float(text)
            case "str":
                value = text
            case "tensor":
                value = self.array(index, text)
            case _:
                text_in_place = _is_text(spec, text)
                value = (text or None) if text_in_place else self.values[self.ref(index, text)]
        return spec.converted(value)


def _is_text(spec: Field, text: str) -> bool:
    """TVM's attributes have dtypes in place where ours are optional texts."""
    return "str" in str(spec.annotation) and not text.isdigit()


def _is_reference(kind: Any, name: str, text: str) -> bool:
    spec = kind._field_map.get(name)
    if spec is not None:
        return spec.stored is None and not _is_text(spec, text)
    if name in kind._stored_slots:
        return bool(kind._stored_slots[name][1] == "ref")
    return hasattr(kind, "_from_json_fields")


def _read_map(reader: _Reader, index: int) -> Map:
    keys, data = reader.record(index).get("keys"), reader.data(index)
    values = [reader.values[i] for i in data]
    if keys is None or (not keys and data):
        if len(values) % 2:
            raise ModelFormatError(f"node {index} of the JSON graph is a Map with half an entry")
        return Map(zip(values[::2], values[1::2], strict=True))
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ModelFormatError(f"keys of node {index} of the JSON graph are not texts")
    return Map(zip(keys, values, strict=True))


def _read_int(reader: _Reader, index: int) -> int | bool:
    attrs = reader.attrs(index)
    value = int(attrs["value"])
    return bool(value) if attrs.get("dtype") == "bool" else value


def _read_span(reader: _Reader, index: int) -> Span:
    attrs = reader.attrs(index)
    source = reader.values[reader.ref(index, attrs.get("source_name", "0"))]
    line, column, end_line, end_column = (int(attrs.get(name, "0")) for name in _SPAN_FIELDS)
    return Span(source, line, end_line, column, end_column)


def _read_sequential(reader: _Reader, index: int) -> SequentialSpan:
    return SequentialSpan(reader.values[reader.ref(index, reader.attrs(index)["spans"])])


_READ_VALUE: dict[str, Callable[[_Reader, int], Any]] = {
    "Array": lambda reader, index: tuple([reader.values[i] for i in reader.data(index)]),
    "Map": _read_map,
    "IntImm": _read_int,
    "runtime.BoxInt": lambda reader, index: int(reader.attrs(index)["value"]),
    "runtime.BoxBool": lambda reader, index: bool(int(reader.attrs(index)["value"])),
    "FloatImm": lambda reader, index: float(reader.attrs(index)["value"]),
    "runtime.BoxFloat": lambda reader, index: float(reader.attrs(index)["value"]),
    "runtime.String": lambda reader, index: reader.text(index),
    "runtime.NDArray": lambda reader, i: reader.array(i, reader.attrs(i).get("data", "")),
    "Span": _read_span,
    "SequentialSpan": _read_sequential,
    "SourceName": lambda reader, index: SourceName(reader.text(index)),
    "tir.Any": lambda reader, index: AnyDim(),
    "ixion.SymExpr": lambda reader, index: parse_dim(reader.text(index)),
}
_REFERENCES = {"Span": ("source_name",), "SequentialSpan": ("spans",)}
# Slots of TVM's nodes that have no counterpart here.
_IGNORED = frozenset({"span", "virtual_device_", "_checked_type_", "struct_info_", "tag"})


def to_graph(node: Any) -> tuple[_Record, list[Any]]:
    """The JSON graph of a node as Python data, and the arrays it refers to."""
    writer = _Writer()
    root = writer.write(node)
    return {"root": root, "nodes": writer.records}, writer.arrays


def from_graph(graph: Any, arrays: list[Any]) -> Any:
    """The node of a JSON graph; ModelFormatError where it is malformed."""
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        raise ModelFormatError("not a JSON graph: it has no list of nodes")
    root = graph.get("root")
    if type(root) is not int:
        raise ModelFormatError("not a JSON graph: it has no root")
    return _Reader(graph["nodes"], arrays).read(root)


def save_json(node: Any) -> str:
    """A node, or a container of nodes, as JSON text."""
    graph, arrays = to_graph(node)
    graph["b64ndarrays"] = [encode_array(array) for array in arrays]
    graph["attrs"] = {"tvm_version": _VERSION}
    return json.dumps(graph, indent=1, ensure_ascii=False)


def load_json(text: str) -> Any:
    """The node that ``save_json`` saved; ModelFormatError for malformed or cyclic input."""
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"not JSON: {error}") from error
    encoded = graph.get("b64ndarrays", []) if isinstance(graph, dict) else []
    if not isinstance(encoded, list):
        raise ModelFormatError("b64ndarrays of the JSON graph is no list")
    return from_graph(graph, [decode_array(item) for item in encoded])


__all__ = ["from_graph", "load_json", "save_json", "to_graph"]
