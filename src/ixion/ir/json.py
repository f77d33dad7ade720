"""Graph JSON: nodes as a flat list that refer to one another by index, so sharing is kept.

The layout is TVM's: ``root`` is an index into ``nodes``, whose entry 0 is null; ``attrs`` of a node
are texts (a plain value, or the index of another node); ``data`` and ``keys`` hold containers;
``repr_str`` is the name of what is stored by name; arrays are base64 in ``b64ndarrays``.

Loading trusts nothing: whatever is missing, of the wrong kind, out of range or cyclic is a
ModelFormatError.
"""

from __future__ import annotations

import json
from typing import Any

from ixion.base.errors import ModelFormatError
from ixion.ir.json_array import decode_array, encode_array
from ixion.ir.json_read import Reader
from ixion.ir.json_write import Record, Writer

_VERSION = "0.19.0"


def to_graph(node: Any) -> tuple[Record, list[Any]]:
    """The JSON graph of a node as Python data, and the arrays it refers to."""
    writer = Writer()
    root = writer.write(node)
    return {"root": root, "nodes": writer.records}, writer.arrays


def from_graph(graph: Any, arrays: list[Any]) -> Any:
    """The node of a JSON graph; ModelFormatError where it is malformed."""
    if not isinstance(graph, dict) or not isinstance(graph.get("nodes"), list):
        raise ModelFormatError("not a JSON graph: it has no list of nodes")
    root = graph.get("root")
    if type(root) is not int:
        raise ModelFormatError("not a JSON graph: it has no root")
    return Reader(graph["nodes"], arrays).read(root)


def save_json(node: Any) -> str:
    """A node, or a container of nodes, as JSON text."""
    graph, arrays = to_graph(node)
    # One record a line: as readable as indentation, at a tenth of its cost.
    encode = json.JSONEncoder(ensure_ascii=False).encode
    nodes = ",\n".join([encode(record) for record in graph["nodes"]])
    data = ",\n".join([encode(encode_array(array)) for array in arrays])
    return (
        f'{{"root": {graph["root"]},\n"nodes": [\n{nodes}],\n"b64ndarrays": [\n{data}],\n'
        f'"attrs": {{"tvm_version": "{_VERSION}"}}}}\n'
    )


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
