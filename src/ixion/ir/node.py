"""The node protocol: what every kind of program node has in common.

A node kind is a Python class that declares its fields once:

    @register_node("my.Scale", graph=True)
    class Scale(Expr):
        body: Expr = field()
        factor: float = field(default=1.0)
        span: Span | None = field(default=None, compare=False)

and gets its constructor, immutability, reflection, structural equality and hash, JSON and
copy-with-changes from that declaration. ``==`` is identity and ``hash`` follows it (types are the
exception, see ``ir/types.py``); structural comparison is a function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from ixion.base.errors import RegistryError, did_you_mean
from ixion.ir.node_field import (
    MISSING,
    Field,
    annotate,
    as_tuple,
    compile_init,
    field,
    getter,
    merge_fields,
    own_fields,
)

_T = TypeVar("_T", bound="type[Node]")
_set_raw = object.__setattr__


class NodeMeta(type):
    """Turns field declarations into slots and a constructor."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], mutable: bool = False
    ) -> NodeMeta:
        own = own_fields(namespace)
        slots = tuple(namespace.get("__slots__", ()))
        namespace["__slots__"] = tuple(spec.name for spec in own) + slots
        if mutable:
            namespace["__setattr__"] = _set_raw
            namespace["__delattr__"] = object.__delattr__
        cls: Any = super().__new__(mcs, name, bases, namespace)
        annotate(cls, own)
        mcs._complete(cls, namespace, merge_fields(bases, own))
        return cls  # type: ignore[no-any-return]

    @staticmethod
    def _complete(made: Any, namespace: dict[str, Any], fields: tuple[Field, ...]) -> None:
        made._fields = fields
        made._field_map = {spec.name: spec for spec in fields}
        order = namespace.get("_compare_order") or made._field_map
        compared = [made._field_map[name] for name in order if made._field_map[name].compare]
        if "_compared" not in namespace:
            made._compared = tuple(spec.name for spec in compared)
            made._binds = tuple(spec.binds for spec in compared)
        if "_structure" not in namespace:
            made._structure = staticmethod(getter(made._compared))
        made._children = staticmethod(getter(tuple(spec.name for spec in fields)))
        if "__init__" not in namespace and made._generate_init:
            made.__init__ = compile_init(made, fields)

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], mutable: bool = False
    ) -> None:
        super().__init__(name, bases, namespace)


class Node(metaclass=NodeMeta):
    """Base of every node: immutable, compared by identity, weakly referencable.

    Class attributes a kind may override:

    - ``_graph``: shared occurrences matter, so equality maps such nodes one to one and hash mixes
      in where each was first met;
    - ``_free_var``: equal to another only if mapped to it at a definition point, or identical;
    - ``_by_identity``: structural equality is identity (operators);
    - ``_compare_order``: field names in the order in which equality walks them, so that definitions
      are met before uses;
    - ``_structure``: static function from a node to the values that equality compares, where they
      are not simply fields; ``_compared`` and ``_binds`` then name them and say which define.
    """

    __slots__ = ("__weakref__",)

    type_key: ClassVar[str] = "Node"
    type_index: ClassVar[int] = 0
    _fields: ClassVar[tuple[Field, ...]] = ()
    _field_map: ClassVar[dict[str, Field]] = {}
    _compared: ClassVar[tuple[str, ...]] = ()
    _binds: ClassVar[tuple[bool, ...]] = ()
    _graph: ClassVar[bool] = False
    _free_var: ClassVar[bool] = False
    _by_identity: ClassVar[bool] = False
    _generate_init: ClassVar[bool] = True
    # Slots beside the fields that JSON keeps: name there -> (slot, "ref" or "int").
    _stored_slots: ClassVar[dict[str, tuple[str, str]]] = {}

    if TYPE_CHECKING:
        # The metaclass makes these from the fields. The constructor takes what its converters
        # accept, which annotations of the stored values cannot say.
        def __init__(self, *args: Any, **fields: Any) -> None: ...
        @staticmethod
        def _structure(node: Any) -> tuple[Any, ...]: ...
        @staticmethod
        def _children(node: Any) -> tuple[Any, ...]: ...

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use copy({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def _put(self, name: str, value: object) -> None:
        """Write a slot from inside a constructor."""
        _set_raw(self, name, value)

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Self:
        """A node whose fields are ``values`` as stored; fields left out take their defaults."""
        node = cls.__new__(cls)
        for spec in cls._fields:
            value = values.get(spec.name, spec.default)
            if value is MISSING:
                raise TypeError(f"{cls.type_key} needs a field {spec.name!r}")
            _set_raw(node, spec.name, value)
        return node

    def same_as(self, other: object) -> bool:
        """Identity."""
        return self is other

    def as_(self, kind: type[_N]) -> _N | None:
        """This node if it is of ``kind``, else None."""
        return self if isinstance(self, kind) else None

    def visit_attrs(self, visit: Callable[[str, Any], None]) -> None:
        """Call ``visit(name, value)`` for each field in declaration order."""
        for spec in self._fields:
            visit(spec.name, getattr(self, spec.name))

    def field_items(self) -> Iterator[tuple[str, Any]]:
        """The fields as (name, value), in declaration order."""
        return ((spec.name, getattr(self, spec.name)) for spec in self._fields)

    def copy(self, **changes: Any) -> Self:
        """This node with some fields replaced; the node itself where no value changes.

        Sequences count as unchanged where they hold the same objects. Raises AttributeError for an
        unknown field.
        """
        kept = {}
        changed = False
        for name, value in changes.items():
            spec = self._field_map.get(name)
            if spec is None:
                return getattr(self, name)  # type: ignore[no-any-return]  # raises
            kept[name] = new = spec.converted(value)
            changed = changed or not _unchanged(getattr(self, name), new)
        if not changed:
            return self
        for spec in self._fields:
            if spec.name not in kept:
                kept[spec.name] = getattr(self, spec.name)
        return self._copied(kept)

    def _copied(self, values: dict[str, Any]) -> Self:
        """A new node of this kind from stored values; kinds with other slots carry them over."""
        return self._from_fields(values)

    def with_fields(self, **changes: Any) -> Self:
        """Another name for ``copy``."""
        return self.copy(**changes)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._field_map})

    def __repr__(self) -> str:
        from ixion.ir.printer import pretty_print

        return pretty_print(self)

    def legacy_repr(self) -> str:
        """One line: kind and fields, nested nodes by kind only."""
        return plain_repr(self)

    def __reduce__(self) -> tuple[Any, ...]:
        from ixion.ir.json import from_graph, to_graph

        return (from_graph, to_graph(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from ixion.ir.json import from_graph, to_graph

        graph, arrays = to_graph(self)
        return from_graph(graph, [array.copy() for array in arrays])  # type: ignore[no-any-return]

    def __copy__(self) -> Self:
        return self


_N = TypeVar("_N", bound=Node)


def _unchanged(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if type(old) is tuple:
        return len(old) == len(new) and all(map(_unchanged, old, new))
    return type(old) in (int, str, bool, float) and bool(old == new)


def plain_repr(node: Node) -> str:
    """``Kind(field=value, ...)`` with nested nodes shown by kind only, so it never recurses."""
    shown = []
    for name, value in node.field_items():
        if name != "span":
            shown.append(f"{name}={_shallow(value)}")
    return f"{type(node).__name__}({', '.join(shown)})"


def _shallow(value: Any) -> str:
    if isinstance(value, Node):
        hint = getattr(value, "name_hint", None)
        return f"<{value.type_key}{'' if hint is None else ' ' + str(hint)}>"
    if isinstance(value, tuple):
        inner = ", ".join(_shallow(item) for item in value[:8])
        return f"[{inner}{', ...' if len(value) > 8 else ''}]"
    return repr(value)


NODE_TYPES: dict[str, type[Node]] = {}
_indices = itertools.count(1)


def register_node(
    type_key: str, *, graph: bool = False, free_var: bool = False, by_identity: bool = False
) -> Callable[[_T], _T]:
    """Class decorator: enter a node kind in the table under ``type_key``.

    ``graph``, ``free_var`` and ``by_identity`` say how structural equality treats it (see
    ``Node``). Raises RegistryError where another class has the key; the same class defined anew
    replaces it.
    """

    def enter(cls: _T) -> _T:
        old = NODE_TYPES.get(type_key)
        if old is not None and _origin(old) != _origin(cls):
            raise RegistryError(f"node kind {type_key!r} is registered already", found=_origin(old))
        cls.type_key = type_key
        cls.type_index = next(_indices)
        cls._graph = graph or free_var
        cls._free_var = free_var
        cls._by_identity = by_identity
        NODE_TYPES[type_key] = cls
        return cls

    return enter


def _origin(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def node_type(type_key: str) -> type[Node]:
    """The class registered under ``type_key``; RegistryError naming the nearest key otherwise."""
    found = NODE_TYPES.get(type_key)
    if found is None:
        raise RegistryError(
            f"no node kind {type_key!r} is registered", hint=did_you_mean(type_key, NODE_TYPES)
        )
    return found


def make_node(type_key: str, **fields: Any) -> Node:
    """Build a node of a registered kind from its fields by name, as its constructor would."""
    cls = node_type(type_key)
    maker = getattr(cls, "_make", None)
    if maker is not None:
        return maker(**fields)  # type: ignore[no-any-return]
    values = {}
    for name, value in fields.items():
        spec = cls._field_map.get(name)
        if spec is None:
            known = ", ".join(cls._field_map) or "none"
            raise AttributeError(f"{type_key} has no field {name!r}; its fields are: {known}")
        values[name] = spec.converted(value)
    return cls._from_fields(values)


__all__ = [
    "NODE_TYPES",
    "Field",
    "Node",
    "NodeMeta",
    "as_tuple",
    "field",
    "make_node",
    "node_type",
    "plain_repr",
    "register_node",
]
