"""From the records of graph JSON to nodes, trusting nothing; see ``json.py`` for the layout."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import parse as parse_dim
from ixion.base.errors import ModelFormatError, did_you_mean
from ixion.base.span import SequentialSpan, SourceName, Span
from ixion.ir.containers import Map
from ixion.ir.json_write import SPAN_FIELDS, Record
from ixion.ir.node import NODE_TYPES, Field
from ixion.ir.virtual_device import VirtualDevice


def _check_record(index: int, record: Any) -> None:
    """Raise unless a record has the right parts of the right kinds."""
    if not isinstance(record, dict) or not isinstance(record.get("type_key"), str):
        raise ModelFormatError(f"node {index} of the JSON graph is no record with a type_key")
    attrs = record.get("attrs")
    if attrs and not (isinstance(attrs, dict) and all(type(v) is str for v in attrs.values())):
        raise ModelFormatError(f"attrs of node {index} of the JSON graph are not texts")
    data = record.get("data")
    if data and not (isinstance(data, list) and all(type(item) is int for item in data)):
        raise ModelFormatError(f"data of node {index} of the JSON graph are not indices")


class Reader:
    """Builds values from records, parts first, on an explicit stack."""

    def __init__(self, records: list[Any], arrays: list[Any]) -> None:
        for index, record in enumerate(records):
            _check_record(index, record)
        self.records: list[Record] = records
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

    def record(self, index: int) -> Record:
        """The record at an index, which is checked."""
        if not 0 <= index < len(self.records):
            raise ModelFormatError(f"no node {index} in the JSON graph")
        return self.records[index]

    def attrs(self, index: int) -> dict[str, str]:
        """The attrs of a record, texts by name."""
        return self.record(index).get("attrs") or {}

    def data(self, index: int) -> list[int]:
        """The element indices of a container's record."""
        return self.record(index).get("data") or []

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


def _read_map(reader: Reader, index: int) -> Map:
    keys, data = reader.record(index).get("keys"), reader.data(index)
    values = [reader.values[i] for i in data]
    if keys is None or (not keys and data):
        if len(values) % 2:
            raise ModelFormatError(f"node {index} of the JSON graph is a Map with half an entry")
        return Map(zip(values[::2], values[1::2], strict=True))
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ModelFormatError(f"keys of node {index} of the JSON graph are not texts")
    return Map(zip(keys, values, strict=True))


def _read_int(reader: Reader, index: int) -> int | bool:
    attrs = reader.attrs(index)
    value = int(attrs["value"])
    return bool(value) if attrs.get("dtype") == "bool" else value


def _read_span(reader: Reader, index: int) -> Span:
    attrs = reader.attrs(index)
    source = reader.values[reader.ref(index, attrs.get("source_name", "0"))]
    line, column, end_line, end_column = (int(attrs.get(name, "0")) for name in SPAN_FIELDS)
    return Span(source, line, end_line, column, end_column)


def _read_sequential(reader: Reader, index: int) -> SequentialSpan:
    return SequentialSpan(reader.values[reader.ref(index, reader.attrs(index)["spans"])])


def _read_string(reader: Reader, index: int) -> str:
    # TVM leaves the text out where it is empty, and has it in base64 where it is not all ASCII.
    record = reader.record(index)
    if "repr_b64" in record:
        return base64.b64decode(record["repr_b64"], validate=True).decode("utf-8")
    return reader.text(index) if "repr_str" in record else ""


def _read_device(reader: Reader, index: int) -> VirtualDevice | None:
    attrs = reader.attrs(index)
    scope, target = (reader.values[reader.ref(index, attrs.get(n, "0"))] for n in _DEVICE_REFS)
    numbers = (int(attrs.get(name, "-1")) for name in ("device_type_int", "virtual_device_id"))
    device = VirtualDevice(*numbers, target, scope)
    return None if device.is_unconstrained else device


_DEVICE_REFS = ("memory_scope", "target")
_READ_VALUE: dict[str, Callable[[Reader, int], Any]] = {
    "Array": lambda reader, index: tuple([reader.values[i] for i in reader.data(index)]),
    "Map": _read_map,
    "IntImm": _read_int,
    "runtime.BoxInt": lambda reader, index: int(reader.attrs(index)["value"]),
    "runtime.BoxBool": lambda reader, index: bool(int(reader.attrs(index)["value"])),
    "FloatImm": lambda reader, index: float(reader.attrs(index)["value"]),
    "runtime.BoxFloat": lambda reader, index: float(reader.attrs(index)["value"]),
    "runtime.String": _read_string,
    "VirtualDevice": _read_device,
    "runtime.NDArray": lambda reader, i: reader.array(i, reader.attrs(i).get("data", "")),
    "Span": _read_span,
    "SequentialSpan": _read_sequential,
    "SourceName": lambda reader, index: SourceName(reader.text(index)),
    "tir.Any": lambda reader, index: AnyDim(),
    "ixion.SymExpr": lambda reader, index: parse_dim(reader.text(index)),
}
_REFERENCES = {
    "Span": ("source_name",),
    "SequentialSpan": ("spans",),
    "VirtualDevice": _DEVICE_REFS,
}
# Slots of TVM's nodes that have no counterpart here.
_IGNORED = frozenset({"span", "virtual_device_", "_checked_type_", "struct_info_", "tag"})
