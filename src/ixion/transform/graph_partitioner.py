"""Groups of dataflow nodes that become one kernel: Relay's three-phase dominator fusion.

Every node starts as its own group. A node may join its immediate post-dominator, together with all
nodes on the paths to it, when the patterns allow: into an anchor (convolution, dense) only in phase
0 and only elementwise and broadcast; injective nodes and tuples in phase 1, so that anchors finish
first; fields of tuples that were fused into an injective consumer in phase 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ixion.analysis.dominators import ForwardGraph, ForwardNode, PostDominators
from ixion.base.errors import PassError
from ixion.op.define import OpPattern

__all__ = ["Group", "partition"]

_PHASES = 3
Allows = Callable[[OpPattern, bool], bool]


class Group:
    """A set of nodes, found by union-find.

    ``root_ref`` is the expression whose value leaves the group, ``anchor_ref`` the one complex
    operator inside; ``num_nodes`` is counted for the limit.
    """

    __slots__ = ("anchor_ref", "num_nodes", "parent", "pattern", "root_ref")

    def __init__(self, node: ForwardNode) -> None:
        self.parent: Group | None = None
        self.pattern = node.pattern
        self.root_ref = node.ref
        is_anchor = node.pattern == OpPattern.OUT_ELEMWISE_FUSABLE
        self.anchor_ref = node.ref if is_anchor else None
        self.num_nodes = 1

    def find_root(self) -> Group:
        root = self
        while root.parent is not None:
            root = root.parent
        group = self
        while group.parent is not None and group.parent is not root:
            group.parent, group = root, group.parent
        return root

    def join(self, target: Group) -> None:
        """Merge this group into ``target``; at most one of the two may have an anchor."""
        child, parent = self.find_root(), target.find_root()
        if child is parent:
            return
        parent.num_nodes += child.num_nodes
        child.parent = parent
        if child.anchor_ref is not None:
            if parent.anchor_ref is not None:
                raise PassError("FuseOps: two complex operators in one group")
            parent.anchor_ref = child.anchor_ref
            parent.pattern = _combined(child.pattern, parent.pattern)


def _combined(left: OpPattern, right: OpPattern) -> OpPattern:
    if left > OpPattern.BROADCAST and right > OpPattern.BROADCAST:
        raise PassError("FuseOps: cannot merge two complex groups together")
    return max(left, right)


def partition(graph: ForwardGraph, opt_level: int, max_depth: int) -> list[Group]:
    """The group of each node of ``graph``, by index; singletons at ``opt_level`` 0.

    ``max_depth`` bounds the nodes of a group.
    """
    groups = [Group(node) for node in graph.nodes]
    if opt_level > 0:
        fuser = _Fuser(graph, groups, max_depth)
        for phase in range(_PHASES):
            fuser.run(phase)
    return groups


def _anchor_path(pattern: OpPattern, is_sink: bool) -> bool:
    return pattern <= OpPattern.BROADCAST


def _light_path(pattern: OpPattern, is_sink: bool) -> bool:
    if not is_sink:
        return pattern <= OpPattern.INJECTIVE
    return pattern <= OpPattern.OUT_ELEMWISE_FUSABLE


def _injective_path(pattern: OpPattern, is_sink: bool) -> bool:
    return pattern <= OpPattern.INJECTIVE


class _Fuser:
    def __init__(self, graph: ForwardGraph, groups: list[Group], max_depth: int) -> None:
        self.nodes = graph.nodes
        self.groups = groups
        self.tree = PostDominators(graph)
        self.max_depth = max_depth

    def run(self, phase: int) -> None:
        for node in self.nodes:
            if self.groups[node.index].pattern == OpPattern.OPAQUE:
                continue
            parent = self.tree.parent[node.index]
            if parent < 0:
                continue
            allows = self._rule(node, parent, phase)
            if allows is None:
                continue
            inner = self._inner_nodes(node, self.nodes[parent])
            if self._too_big(inner, parent):
                continue
            if self._path_allows(inner, node, parent, allows):
                for each in inner:
                    self.groups[each.index].join(self.groups[parent])

    def _rule(self, node: ForwardNode, parent: int, phase: int) -> Allows | None:
        """What the paths to the post-dominator must satisfy; None where nothing is tried."""
        own, target = self.groups[node.index], self.groups[parent]
        if phase == _PHASES - 1:
            return self._tuple_rule(own, target)
        if own.find_root() is target.find_root() or target.pattern == OpPattern.TUPLE:
            return None
        path = self.tree.pattern[node.index]
        if own.pattern == OpPattern.OUT_ELEMWISE_FUSABLE:
            elementwise = path == OpPattern.ELEMWISE
            return _anchor_path if phase == 0 and elementwise else None
        if own.pattern <= OpPattern.BROADCAST:
            return _light_path if path <= OpPattern.COMM_REDUCE else None
        if own.pattern in (OpPattern.INJECTIVE, OpPattern.TUPLE):
            return _injective_path if phase == 1 else None
        return None

    @staticmethod
    def _tuple_rule(own: Group, target: Group) -> Allows | None:
        root = target.find_root()
        if own.pattern > OpPattern.INJECTIVE or root.pattern == OpPattern.TUPLE:
            return None
        fused_tuple = target.pattern == OpPattern.TUPLE and root.pattern <= OpPattern.INJECTIVE
        return _injective_path if fused_tuple else None

    def _inner_nodes(self, start: ForwardNode, sink: ForwardNode) -> list[ForwardNode]:
        """``start`` and every node on its paths to ``sink``, ``sink`` left out."""
        seen = {start.index, sink.index}
        found = [start]
        for node in found:
            for consumer, _ in node.outputs:
                if consumer.index not in seen:
                    seen.add(consumer.index)
                    found.append(consumer)
        return found

    def _too_big(self, inner: Iterable[ForwardNode], parent: int) -> bool:
        nodes = sum(self.groups[node.index].num_nodes for node in inner)
        return nodes + self.groups[parent].find_root().num_nodes > self.max_depth

    def _path_allows(
        self, inner: list[ForwardNode], node: ForwardNode, parent: int, allows: Allows
    ) -> bool:
        for each in inner:
            if each is not node and not allows(self.groups[each.index].find_root().pattern, False):
                return False
        return allows(self.groups[parent].find_root().pattern, True)
