"""Structural hash of nodes, consistent with ``structural_equal``.

Graph nodes mix in the order in which they are first met, so sharing matters as it does for
equality. A variable that something defines hashes by the number of its definition, a free one by
identity, or by number with ``map_free_vars``. All else depends on content only, not on the process:
hashes of closed programs may be stored.
"""

from __future__ import annotations

import collections
import hashlib
import math
import operator
from typing import Any

from ixion.base.dim import Any as AnyDim
from ixion.base.dim import SymExpr
from ixion.ir.containers import Map
from ixion.ir.expr import Constant, Tuple
from ixion.ir.node import Node

_MASK = (1 << 63) - 1
# Floats are equal within 1e-9; rounding keeps nearly all equal pairs together.
_DECIMALS = 7

_texts: dict[str, int] = {}
_ints: dict[int, int] = {}


def text_hash(text: str) -> int:
    """A hash of a text that is the same in every process."""
    found = _texts.get(text)
    if found is None:
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        found = int.from_bytes(digest, "little") & _MASK
        if len(_texts) > 100_000:
            _texts.clear()
        _texts[text] = found
    return found


def _int_hash(value: int) -> int:
    # Python gives -1 and -2 one hash, and reduces large ones; both matter for axes and bounds.
    found = _ints.get(value)
    if found is None:
        found = text_hash(f"int {value}")
        if len(_ints) < 100_000:
            _ints[value] = found
    return found


def _float_hash(value: float) -> int:
    if math.isnan(value):
        return text_hash("float nan")
    rounded = round(value, _DECIMALS) if math.isfinite(value) else value
    return text_hash(f"float {rounded + 0.0!r}")


def data_hash(array: Any) -> int:
    """A hash of dtype, shape and bytes."""
    import numpy as np

    digest = hashlib.blake2b(f"{array.dtype.name} {array.shape}".encode(), digest_size=8)
    if array.nbytes:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return int.from_bytes(digest.digest(), "little") & _MASK


def _constant_hash(node: Constant) -> int:
    try:
        return node._data_hash
    except AttributeError:
        value = hash((_KIND[Constant], data_hash(node.data))) & _MASK
        node._put("_data_hash", value)
        return value


class _KindHashes(dict[type, int]):
    """Hash of each class, by its type key."""

    def __missing__(self, kind: type) -> int:
        key = getattr(kind, "type_key", None) or kind.__name__
        value = self[kind] = text_hash("kind " + key)
        return value


_KIND = _KindHashes()
_TRUE, _FALSE, _NONE = text_hash("bool True"), text_hash("bool False"), text_hash("None")
_FREE, _NUMBERED = text_hash("free variable"), text_hash("numbered variable")
_SEQUENCE, _MAP = text_hash("sequence"), text_hash("map")


def _leaf_hash(value: Any) -> int | None:
    """The hash of a value without parts; None for one with parts."""
    kind = type(value)
    if value is None:
        return _NONE
    if kind is str:
        return text_hash(value)
    if kind is int:
        return _int_hash(value)
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is float:
        return _float_hash(value)
    if kind is tuple or kind is Map or isinstance(value, Node):
        return None
    return _foreign_hash(value)


def _foreign_hash(value: Any) -> int | None:
    if isinstance(value, (SymExpr, AnyDim)):
        return text_hash(f"dim {value}")
    if isinstance(value, int):
        return _int_hash(int(value))
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        import numpy as np

        return data_hash(np.asarray(value))
    if isinstance(value, (list, tuple)):
        return None
    return text_hash(f"{type(value).__name__} {value!r}")


class _Hasher:
    """One walk that numbers nodes when they are opened and combines their parts when they close."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        self.numbered: dict[int, int] = {}
        # Keeps the objects that ids stand for.
        self.alive: list[Any] = []
        self.count = 0
        # (node, 0 or 1: free variables keep their identity or are numbered, 2: to be closed)
        self.stack: list[tuple[Any, int]] = []

    def run(self, root: Any, map_free: bool) -> int:
        """The hash of ``root``."""
        stack, known = self.stack, self.known
        self._push(root, 1 if map_free else 0)
        while stack:
            node, flag = stack.pop()
            if flag == 2:
                known[id(node)] = self._close(node)
            elif id(node) not in known:
                self.alive.append(node)
                self._open(node, flag)
        return self._part(root)

    def _push(self, value: Any, flag: int) -> None:
        """Put the nodes inside a value on the stack, the first on top."""
        if isinstance(value, Node):
            if id(value) not in self.known:
                self.stack.append((value, flag))
        elif isinstance(value, (tuple, list)):
            for item in reversed(value):
                self._push(item, flag)
        elif isinstance(value, Map):
            for _, key in reversed(self._sorted_keys(value)):
                self._push(value[key], flag)

    def _open(self, node: Any, flag: int) -> None:
        kind = type(node)
        if kind is Constant:
            self.known[id(node)] = _constant_hash(node)
            return
        if kind._by_identity:
            name = getattr(node, "name", None)
            key = text_hash(name) if isinstance(name, str) else id(node)
            self.known[id(node)] = hash((_KIND[kind], key)) & _MASK
            return
        if kind._free_var:
            self._number_variable(node, flag)
        stack, known = self.stack, self.known
        stack.append((node, 2))
        binds = kind._binds
        parts = kind._structure(node)
        for i in range(len(parts) - 1, -1, -1):
            part = parts[i]
            if part is None or type(part) is int or type(part) is str:
                continue
            inner = 1 if binds[i] else flag
            if isinstance(part, Node):
                if id(part) not in known:
                    stack.append((part, inner))
            else:
                self._push(part, inner)

    def _number_variable(self, node: Any, flag: int) -> None:
        if flag:
            self.count += 1
            self.numbered[id(node)] = hash((_NUMBERED, self.count))
        else:
            self.numbered[id(node)] = hash((_FREE, id(node)))

    def _close(self, node: Any) -> int:
        kind, known = type(node), self.known
        parts = [_KIND[kind]]
        for value in kind._structure(node):
            if type(value) is tuple:
                # Most elements are nodes, already known.
                parts.append(len(value))
                parts.extend(
                    [known[id(v)] if isinstance(v, Node) else self._part(v) for v in value]
                )
            else:
                parts.append(known[id(value)] if isinstance(value, Node) else self._part(value))
        if kind._graph and not (kind is Tuple and not node.fields):
            if kind._free_var:
                parts.append(self.numbered[id(node)])
            else:
                self.count += 1
                parts.append(self.count)
        return hash(tuple(parts)) & _MASK

    def _part(self, value: Any) -> int:
        """The hash of a value whose nodes are known."""
        leaf = _leaf_hash(value)
        if leaf is not None:
            return leaf
        if isinstance(value, Node):
            return self.known[id(value)]
        if isinstance(value, Map):
            items = self._sorted_keys(value)
            return hash((_MAP, *[x for n, key in items for x in (n, self._part(value[key]))]))
        return hash((_SEQUENCE, *[self._part(item) for item in value]))

    def _sorted_keys(self, value: Map) -> list[tuple[int, Any]]:
        """(hash, key) in the order of the hashes.

        Keys that no order can tell apart are left out, as equality could pair them either way.
        """
        keyed = [(self._key_hash(key), key) for key in value]
        counts = collections.Counter(number for number, _ in keyed)
        return sorted((one for one in keyed if counts[one[0]] == 1), key=operator.itemgetter(0))

    def _key_hash(self, key: Any) -> int:
        if not isinstance(key, Node):
            return self._part(key)
        found = self.known.get(id(key))
        return hash((_FREE, id(key))) & _MASK if found is None else found


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A non-negative 63-bit hash, equal for structurally equal nodes."""
    return _Hasher().run(node, map_free_vars)


__all__ = ["data_hash", "structural_hash", "text_hash"]
