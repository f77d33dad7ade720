"""Lowest common ancestors in a tree that grows at its leaves, in logarithmic time.

Each node keeps, beside its parent, one jump to an ancestor further up (skew-binary numbers:
Myers, "An applicative random-access stack", 1983). A weight per node is folded by ``max`` over
the nodes climbed.
"""

from __future__ import annotations

__all__ = ["AncestorTree"]


class AncestorTree:
    """A forest of nodes 1, 2, ...; 0 stands above all roots and has the least weight."""

    def __init__(self, least: int = 0) -> None:
        self.parent = [0]
        self.depth = [0]
        self._jump = [0]
        self._weight = [least]
        # Largest weight from a node up to, not including, the end of its jump.
        self._jump_weight = [least]

    def add(self, parent: int, weight: int = 0) -> int:
        """A new leaf below ``parent`` (0 for a root)."""
        node = len(self.parent)
        over = self._jump[parent]
        self.parent.append(parent)
        self.depth.append(self.depth[parent] + 1)
        self._weight.append(weight)
        if self.depth[parent] - self.depth[over] == self.depth[over] - self.depth[self._jump[over]]:
            self._jump.append(self._jump[over])
            weights = (weight, self._jump_weight[parent], self._jump_weight[over])
            self._jump_weight.append(max(weights))
        else:
            self._jump.append(parent)
            self._jump_weight.append(weight)
        return node

    def common(self, left: int, right: int, weight: int = 0) -> tuple[int, int]:
        """Lowest common ancestor (0 if none), and the largest weight below it on both ways,
        starting from ``weight``.
        """
        depth, jump, parent = self.depth, self._jump, self.parent
        if depth[left] < depth[right]:
            left, right = right, left
        while depth[left] > depth[right]:
            if depth[jump[left]] >= depth[right]:
                weight = max(weight, self._jump_weight[left])
                left = jump[left]
            else:
                weight = max(weight, self._weight[left])
                left = parent[left]
        while left != right:
            if jump[left] != jump[right]:
                weight = max(weight, self._jump_weight[left], self._jump_weight[right])
                left, right = jump[left], jump[right]
            else:
                weight = max(weight, self._weight[left], self._weight[right])
                left, right = parent[left], parent[right]
        return left, weight
