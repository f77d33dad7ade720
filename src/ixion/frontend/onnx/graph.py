"""Questions about nodes and graphs that an import asks before it converts, and small rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ixion.frontend.onnx.model import Graph, Node, Reference


def label(node: Node) -> str:
    return node.name or next((name for name in node.outputs if name), node.op_type)


def full_name(node: Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def graphs(node: Node) -> list[Graph]:
    """Graphs in the attributes of a node."""
    found: list[Graph] = []
    for value in node.attributes.values():
        items = value if isinstance(value, list) else [value]
        found.extend(item for item in items if isinstance(item, Graph))
    return found


def needed(nodes: list[Node], wanted: Iterable[str]) -> list[Node]:
    """The nodes that the wanted names depend on, in file order."""
    maker = {name: index for index, node in enumerate(nodes) for name in node.outputs if name}
    keep = [False] * len(nodes)
    pending = [name for name in wanted if name in maker]
    while pending:
        index = maker[pending.pop()]
        if keep[index]:
            continue
        keep[index] = True
        pending.extend(name for name in used_names(nodes[index]) if name in maker)
    # A name made twice is an error that must be seen, not a node to drop.
    twice = {name for node in nodes for name in node.outputs if name}
    if len(twice) != sum(1 for node in nodes for name in node.outputs if name):
        return nodes
    return [node for node, kept in zip(nodes, keep, strict=True) if kept]


def used_names(node: Node) -> list[str]:
    """Names a node reads: its inputs, and what the graphs in its attributes take from outside."""
    names = [name for name in node.inputs if name]
    for graph in graphs(node):
        names.extend(_captured(graph))
    return names


def _captured(graph: Graph) -> set[str]:
    made = {value.name for value in graph.inputs} | set(graph.initializers)
    made.update(name for node in graph.nodes for name in node.outputs)
    used = {name for node in graph.nodes for name in used_names(node)}
    used.update(value.name for value in graph.outputs)
    return {name for name in used - made if name}


def with_attributes(node: Node, given: Mapping[str, Any]) -> Node:
    if not any(isinstance(value, Reference) for value in node.attributes.values()):
        return node
    attributes = {}
    for key, value in node.attributes.items():
        if not isinstance(value, Reference):
            attributes[key] = value
        elif value.name in given:
            attributes[key] = given[value.name]
    return Node(
        node.op_type, node.inputs, node.outputs, node.name, node.domain, node.overload, attributes
    )


def without_inputs(node: Node, absent: set[str]) -> Node:
    if not absent.intersection(node.inputs):
        return node
    inputs = tuple("" if name in absent else name for name in node.inputs)
    return Node(
        node.op_type, inputs, node.outputs, node.name, node.domain, node.overload, node.attributes
    )
