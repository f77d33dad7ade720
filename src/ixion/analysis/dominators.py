"""Post-dominators of a dataflow graph, with what the paths to them do.

A node's immediate post-dominator is the first node that all paths from it to the results pass
through. On a DAG one sweep in reverse topological order finds it: it is the lowest common ancestor,
in the tree found so far, of the node's consumers. This is the analysis behind Relay's fusion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """For each node index: ``parent`` (index of the immediate post-dominator, -1 for none),
    ``depth`` in the tree, and ``pattern``, the strongest pattern on the paths to the parent.
    """

    def __init__(self, graph: ForwardGraph) -> None:
        count = len(graph)
        self.parent = [-1] * count
        self.depth = [1] * count
        self.pattern = [OpPattern.OPAQUE] * count
        for node in reversed(graph.nodes):
            if not node.extern_ref:
                self._place(node.index, node.outputs)

    def _place(self, index: int, outputs: Sequence[tuple[ForwardNode, OpPattern]]) -> None:
        pattern = max((edge for _, edge in outputs), default=OpPattern.ELEMWISE)
        # Deepest first, so that a value used all along a chain climbs the chain once.
        consumers = sorted((node.index for node, _ in outputs), key=self.depth.__getitem__)
        parent = consumers.pop() if consumers else -1
        while consumers and parent >= 0:
            parent, pattern = self._common(parent, consumers.pop(), pattern)
        self.parent[index] = parent
        self.pattern[index] = pattern
        self.depth[index] = self.depth[parent] + 1 if parent >= 0 else 1

    def _common(self, left: int, right: int, pattern: OpPattern) -> tuple[int, OpPattern]:
        """Lowest common ancestor, and the strongest pattern met climbing to it."""
        depth, parent, patterns = self.depth, self.parent, self.pattern
        while left != right:
            if left < 0 or right < 0:
                return -1, pattern
            if depth[left] >= depth[right]:
                climbing_right = depth[left] == depth[right]
                pattern = max(pattern, patterns[left])
                if climbing_right:
                    pattern = max(pattern, patterns[right])
                    right = parent[right]
                left = parent[left]
            else:
                pattern = max(pattern, patterns[right])
                right = parent[right]
        return left, pattern
