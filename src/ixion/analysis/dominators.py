"""Post-dominators of a dataflow graph, with what the paths to them do.

A node's immediate post-dominator is the first node that all paths from it to the results pass
through. On a DAG one sweep in reverse topological order finds it: it is the lowest common ancestor,
in the tree found so far, of the node's consumers. This is the analysis behind Relay's fusion.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ixion.analysis.ancestors import AncestorTree
from ixion.op.define import OpPattern

__all__ = ["ForwardGraph", "ForwardNode", "PostDominators"]


@dataclass(eq=False, slots=True)
class ForwardNode:
    """One value: its expression, how it is computed, and who consumes it.

    ``outputs`` pairs each consumer with how it looks at the value (an ``OpPattern``).
    ``extern_ref`` marks a value something outside the dataflow needs, such as a result.
    """

    ref: object = None
    index: int = -1
    pattern: OpPattern = OpPattern.OPAQUE
    extern_ref: bool = False
    outputs: list[tuple[ForwardNode, OpPattern]] = field(default_factory=list)


class ForwardGraph:
    """Nodes in post order: a value comes after all it is computed from."""

    def __init__(self) -> None:
        self.nodes: list[ForwardNode] = []
        self._by_ref: dict[int, ForwardNode] = {}

    def node(self, ref: object) -> ForwardNode:
        """The node of an expression, made at its first mention."""
        found = self._by_ref.get(id(ref))
        if found is None:
            found = self._by_ref[id(ref)] = ForwardNode(ref)
        return found

    def place(self, ref: object) -> ForwardNode:
        """Give the node of an expression the next index."""
        node = self.node(ref)
        node.index = len(self.nodes)
        self.nodes.append(node)
        return node

    def __len__(self) -> int:
        return len(self.nodes)


class PostDominators:
    """For each node index: ``parent`` (index of the immediate post-dominator, -1 for none) and
    ``pattern``, the strongest pattern on the paths to the parent.
    """

    def __init__(self, graph: ForwardGraph) -> None:
        count = len(graph)
        self.parent = [-1] * count
        self.pattern = [OpPattern.OPAQUE] * count
        self._tree = AncestorTree()
        # Consumers are placed before what they consume: tree positions of the former are known.
        self._position = [0] * count
        self._index = [-1]
        for node in reversed(graph.nodes):
            self._place(node)

    def _place(self, node: ForwardNode) -> None:
        index = node.index
        above, pattern = 0, int(OpPattern.OPAQUE)
        if not node.extern_ref:
            above, pattern = self._meet(node)
        self.parent[index] = self._index[above]
        self.pattern[index] = OpPattern(pattern)
        self._position[index] = self._tree.add(above, pattern)
        self._index.append(index)

    def _meet(self, node: ForwardNode) -> tuple[int, int]:
        """Where all consumers' ways to the results meet, and the strongest pattern until there."""
        pattern = int(max((edge for _, edge in node.outputs), default=OpPattern.ELEMWISE))
        places = [self._position[consumer.index] for consumer, _ in node.outputs]
        meet = places[0] if places else 0
        for place in places[1:]:
            if not meet:
                break
            meet, pattern = self._tree.common(meet, place, pattern)
        return meet, pattern
