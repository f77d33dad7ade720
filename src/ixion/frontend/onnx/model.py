"""What an ONNX file holds, as plain records: model, graph, node, attribute, value, function.

Weights stay in the file until `Tensor.numpy` is called; everything else is read at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ixion.base.errors import ModelFormatError
from ixion.frontend.onnx import schema
from ixion.frontend.onnx.schema import decode, numbers
from ixion.frontend.onnx.tensor import Tensor, read_tensor
from ixion.frontend.onnx.wire import BytesSource, FileSource, Piece, Source

#: protobuf's own limit of nested messages; each nested graph takes two.
_DEEPEST = 50

#: AttributeProto.AttributeType and the field that holds its value.
_ATTRIBUTE_FIELD = {
    1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings",
    9: "tensors", 10: "graphs", 11: "sparse_tensor",
}  # fmt: skip
_DEFAULTS: dict[str, Any] = {"f": 0.0, "i": 0, "s": b""}


@dataclass(slots=True)
class SparseTensor:
    """Non-zero `values` of a tensor of shape `dims` at `indices` (flat, or one row a value)."""

    values: Tensor
    indices: Tensor
    dims: tuple[int, ...]


@dataclass(slots=True)
class Reference:
    """An attribute of a function body that stands for the calling node's attribute `name`."""

    name: str


#: Python value of an attribute: float, int, bytes, Tensor, Graph, or a list of one of them.
Attribute = Any


@dataclass(slots=True)
class Value:
    """Name and type of a graph input or output.

    `elem_type` is TensorProto.DataType (0 if not given) and `shape` a tuple of sizes, names and
    None (unknown), or None if not even the rank is given. `kind` is "tensor" or the name of
    another kind of type ("sequence", "map", "optional", "sparse").
    """

    name: str
    elem_type: int = 0
    shape: tuple[int | str | None, ...] | None = None
    kind: str = "tensor"


@dataclass(slots=True)
class Node:
    """One operator: an empty name in `inputs` or `outputs` is an operand left out."""

    op_type: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    name: str = ""
    domain: str = ""
    overload: str = ""
    attributes: dict[str, Attribute] = field(default_factory=dict)


@dataclass(slots=True)
class Graph:
    """Nodes with named inputs, outputs and weights; `values` types some of the names between."""

    name: str = ""
    nodes: list[Node] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    initializers: dict[str, Tensor | SparseTensor] = field(default_factory=dict)


@dataclass(slots=True)
class ModelFunction:
    """A function the model defines: a body of nodes with names for attributes of the caller."""

    name: str
    domain: str
    overload: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: dict[str, Attribute]
    nodes: list[Node]
    opsets: dict[str, int]


@dataclass(slots=True)
class Model:
    """A whole file; `functions` is keyed by (domain, name, overload)."""

    source: Source
    graph: Graph
    ir_version: int = 0
    producer: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str, str], ModelFunction] = field(default_factory=dict)

    def opset(self, domain: str = "") -> int:
        """Version of an operator set; 1 if the file does not import it."""
        return self.opsets.get(domain, 1)


def read_model(path: str | Path) -> Model:
    """The model in a file; ModelFormatError if it is missing, truncated or no ONNX file."""
    path = Path(path)
    return _model(FileSource(path), path.parent)


def parse_model(data: bytes, name: str = "<bytes>") -> Model:
    """The model in `data`. It may not refer to other files."""
    return _model(BytesSource(data, name), None)


def _model(source: Source, folder: Path | None) -> Model:
    whole = Piece(source, 0, source.size)
    fields = decode(whole, schema.MODEL)
    if "graph" not in fields:
        raise ModelFormatError(
            "the file holds no graph",
            where=source.name,
            hint="is it an ONNX model? A model in several files is loaded by its .onnx file",
        )
    reader = _Reader(folder)
    model = Model(source, reader.graph(fields["graph"], 0))
    model.ir_version = fields.get("ir_version", 0)
    producer = (fields.get("producer_name", ""), fields.get("producer_version", ""))
    model.producer = " ".join(producer).strip()
    model.opsets = _opsets(fields)
    for piece in fields.get("functions", []):
        function = reader.function(piece)
        model.functions[function.domain, function.name, function.overload] = function
    return model


def _opsets(fields: dict[str, Any]) -> dict[str, int]:
    entries = [decode(piece, schema.OPSET) for piece in fields.get("opsets", [])]
    return {_domain(entry.get("domain", "")): entry.get("version", 1) for entry in entries}


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name


class _Reader:
    """Builds records out of messages; `folder` is where external data may lie (None: nowhere)."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def graph(self, piece: Piece, depth: int) -> Graph:
        if depth > _DEEPEST:
            raise piece.broken("graphs are nested too deep")
        fields = decode(piece, schema.GRAPH)
        graph = Graph(fields.get("name", ""))
        graph.nodes = [self.node(item, depth) for item in fields.get("nodes", [])]
        graph.inputs = [_value(item) for item in fields.get("inputs", [])]
        graph.outputs = [_value(item) for item in fields.get("outputs", [])]
        graph.values = {v.name: v for v in map(_value, fields.get("values", []))}
        for item in fields.get("initializers", []):
            tensor = read_tensor(item, self.folder)
            graph.initializers[tensor.name] = tensor
        for item in fields.get("sparse", []):
            sparse = self.sparse(item)
            graph.initializers[sparse.values.name] = sparse
        return graph

    def node(self, piece: Piece, depth: int) -> Node:
        fields = decode(piece, schema.NODE)
        if not fields.get("op_type"):
            raise piece.broken("a node has no operator type")
        attributes = [self.attribute(a, depth) for a in fields.get("attributes", [])]
        return Node(
            fields["op_type"],
            tuple(fields.get("inputs", ())),
            tuple(fields.get("outputs", ())),
            fields.get("name", ""),
            _domain(fields.get("domain", "")),
            fields.get("overload", ""),
            dict(attributes),
        )

    def attribute(self, piece: Piece, depth: int) -> tuple[str, Attribute]:
        fields = decode(piece, schema.ATTRIBUTE)
        name = fields.get("name", "")
        if fields.get("reference"):
            return name, Reference(fields["reference"])
        # Files of the first IR version give no type: the one field that is there is the value.
        held = _ATTRIBUTE_FIELD.get(fields.get("type", 0)) or next(
            (key for key in _ATTRIBUTE_FIELD.values() if key in fields), ""
        )
        return name, self._attribute_value(piece, held, fields.get(held), depth)

    def _attribute_value(self, piece: Piece, held: str, value: Any, depth: int) -> Attribute:
        if held in ("floats", "ints"):
            return numbers(value or [], "f8" if held == "floats" else "i8").tolist()
        if held in ("strings", "tensors", "graphs"):
            convert = self._item_reader(held, depth)
            return [convert(item) for item in value or []]
        if value is None:
            if held in _DEFAULTS:
                return _DEFAULTS[held]
            raise piece.broken("an attribute has no value")
        return self._item_reader(held, depth)(value)

    def _item_reader(self, held: str, depth: int) -> Callable[[Any], Any]:
        if held in ("t", "tensors"):
            return lambda item: read_tensor(item, self.folder)
        if held in ("g", "graphs"):
            return lambda item: self.graph(item, depth + 1)
        if held == "sparse_tensor":
            return self.sparse
        return lambda item: item

    def sparse(self, piece: Piece) -> SparseTensor:
        fields = decode(piece, schema.SPARSE_TENSOR)
        if "values" not in fields or "indices" not in fields:
            raise piece.broken("a sparse tensor without values or indices")
        dims = tuple(numbers(fields.get("dims", []), "i8").tolist())
        if any(dim < 0 for dim in dims):
            raise piece.broken("a sparse tensor with a negative size")
        values = read_tensor(fields["values"], self.folder)
        return SparseTensor(values, read_tensor(fields["indices"], self.folder), dims)

    def function(self, piece: Piece) -> ModelFunction:
        fields = decode(piece, schema.FUNCTION)
        return ModelFunction(
            fields.get("name", ""),
            _domain(fields.get("domain", "")),
            fields.get("overload", ""),
            tuple(fields.get("inputs", ())),
            tuple(fields.get("outputs", ())),
            tuple(fields.get("attributes", ())),
            dict(self.attribute(item, 0) for item in fields.get("defaults", [])),
            [self.node(item, 0) for item in fields.get("nodes", [])],
            _opsets(fields),
        )


def _value(piece: Piece) -> Value:
    fields = decode(piece, schema.VALUE_INFO)
    value = Value(fields.get("name", ""))
    if "type" not in fields:
        return value
    kinds = decode(fields["type"], schema.TYPE)
    if "tensor" not in kinds:
        value.kind = next(iter(kinds), "tensor")
        return value
    tensor = decode(kinds["tensor"], schema.TENSOR_TYPE)
    value.elem_type = tensor.get("elem_type", 0)
    if "shape" in tensor:
        dims = decode(tensor["shape"], schema.SHAPE).get("dims", [])
        value.shape = tuple(_dimension(dim) for dim in dims)
    return value


def _dimension(piece: Piece) -> int | str | None:
    fields = decode(piece, schema.DIMENSION)
    value = fields.get("value")
    if value is not None and value >= 0:
        return int(value)
    return fields.get("param") or None
