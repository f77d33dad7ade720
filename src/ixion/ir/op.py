"""Operators and their registry.

The registry is NNVM's: ``register_op(name)`` gives the op whether or not it exists yet, so one op
can get attributes from several places; setters return the op, so they chain.  An attribute set
with a higher ``plevel`` wins over a lower one; two values of equal level are an error.

    register_op("my.scale").describe("x * 2").set_num_inputs(1).set_attr("TOpPattern", 0)

The methods Relay's Python interface has under other names (``get_attr``, ``add_type_rel``,
``reset_attr``...) are here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ixion.base.errors import RegistryError, did_you_mean
from ixion.ir.expr import Expr
from ixion.ir.node import field, register_node

VARARGS = 2**32 - 1
DEFAULT_LEVEL = 10
# The level of an attribute set through a group: an op's own setting wins.
GROUP_LEVEL = 1

OP_TABLE: dict[str, Op] = {}
_ALIASES: dict[str, str] = {}
_COLUMNS: dict[str, dict[Op, tuple[Any, int]]] = {}
_GROUPS: dict[str, OpGroup] = {}
# Type relations that ``add_type_rel`` finds by name alone.
_RELATIONS: dict[str, Callable[..., Any]] = {}


class Argument(NamedTuple):
    """One declared argument: its name, a word on its type, and what it is for."""

    name: str
    type_info: str = "Tensor"
    description: str = ""


@register_node("Op", by_identity=True)
class Op(Expr, mutable=True):
    """An operator: an expression that is called.  One object per name; made by ``register_op``."""

    __slots__ = (
        "arguments",
        "attrs_type",
        "attrs_type_key",
        "description",
        "num_inputs",
        "num_outputs",
        "support_level",
    )
    _generate_init = False

    name: str = field()

    arguments: tuple[Argument, ...]
    attrs_type: type[Any] | None
    attrs_type_key: str
    description: str
    num_inputs: int | Callable[[Any], int]
    num_outputs: int | Callable[[Any], int]
    support_level: int

    def __init__(self, name: str = "") -> None:
        raise RegistryError(
            "an Op is not made directly", hint="use register_op(name) or Op.get(name)"
        )

    @staticmethod
    def get(name: str) -> Op:
        """The registered op of that name or alias; RegistryError names the nearest otherwise."""
        found = OP_TABLE.get(name) or OP_TABLE.get(_ALIASES.get(name, ""))
        if found is None:
            hint = did_you_mean(name, OP_TABLE)
            raise RegistryError(f"operator {name!r} is not registered", hint=hint)
        return found

    @staticmethod
    def list_op_names() -> list[str]:
        """Names of all registered ops, sorted, aliases left out."""
        return sorted(OP_TABLE)

    def describe(self, text: str) -> Op:
        self.description = text
        return self

    def add_argument(self, name: str, type_info: str = "Tensor", description: str = "") -> Op:
        self.arguments = (*self.arguments, Argument(name, type_info, description))
        return self

    def add_arguments(self, arguments: list[tuple[str, ...]]) -> Op:
        """Appends several (name, type word, description) at once."""
        for one in arguments:
            self.add_argument(*one)
        return self

    def set_num_inputs(self, count: int | Callable[[Any], int]) -> Op:
        """``count``: a number, ``VARARGS``, or a function of the attributes."""
        self.num_inputs = count
        return self

    def set_num_outputs(self, count: int | Callable[[Any], int]) -> Op:
        """``count``: a number or a function of the attributes."""
        self.num_outputs = count
        return self

    def set_support_level(self, level: int) -> Op:
        self.support_level = level
        return self

    def set_attrs_type(self, kind: type[Any]) -> Op:
        """The Attrs class of calls to this op."""
        self.attrs_type = kind
        self.attrs_type_key = kind.type_key
        return self

    def set_attrs_type_key(self, key: str) -> Op:
        """As ``set_attrs_type`` for a class given by its type key, registered now or later."""
        from ixion.ir.node import NODE_TYPES

        self.attrs_type_key = key
        self.attrs_type = NODE_TYPES.get(key)
        return self

    def set_attr_parser(self, parser: Callable[[dict[str, str]], Any]) -> Op:
        """How attributes given as strings become an attrs object."""
        return self.set_attr("FAttrParser", parser)

    def parse_attrs(self, strings: dict[str, str]) -> Any:
        """Attributes of a foreign file as this op's attrs; None for an op without attributes."""
        parser = self.get_attr("FAttrParser")
        if parser is None and self.attrs_type is not None:
            parser = self.attrs_type.from_strings
        return None if parser is None else parser(strings)

    def set_attr(self, key: str, value: Any, plevel: int = DEFAULT_LEVEL) -> Op:
        """Sets attribute ``key``; raises RegistryError when it has a value of the same level."""
        if plevel <= 0:
            raise RegistryError(f"{self.name}: plevel of {key} must be positive", found=plevel)
        column = _COLUMNS.setdefault(key, {})
        old = column.get(self)
        if old is not None and old[1] == plevel:
            raise RegistryError(
                f"attribute {key} of {self.name} is registered already with plevel {plevel}",
                hint="pass a higher plevel to replace it",
            )
        if old is None or old[1] < plevel:
            column[self] = (value, plevel)
        return self

    def reset_attr(self, key: str) -> None:
        """Removes attribute ``key``, whatever its level."""
        _COLUMNS.get(key, {}).pop(self, None)

    def get_attr(self, key: str, default: Any = None) -> Any:
        entry = _COLUMNS.get(key, {}).get(self)
        return default if entry is None else entry[0]

    def has_attr(self, key: str) -> bool:
        """Whether any op has attribute ``key``: Relay's meaning, which does not look at this op."""
        return bool(_COLUMNS.get(key))

    @property
    def attrs(self) -> dict[str, Any]:
        """All attributes of this op, as a new dict."""
        return {key: column[self][0] for key, column in _COLUMNS.items() if self in column}

    def add_alias(self, name: str) -> Op:
        """A second name for lookups; raises RegistryError when another op has it."""
        if name in OP_TABLE or _ALIASES.get(name, self.name) != self.name:
            raise RegistryError(f"alias {name!r} of {self.name} is the name of another op")
        _ALIASES[name] = self.name
        return self

    def include(self, group: str) -> Op:
        """Takes over every attribute of an op group, set before or later."""
        op_group(group).add(self)
        return self

    def add_type_rel(self, name: str, relation: Callable[..., Any] | None = None) -> Op:
        """Relay's way to set the type relation.

        ``relation(arg_types, attrs)`` returns the result type or None.  Without it, the relation
        registered under ``name`` (Identity, Broadcast, ...) is used.
        """
        if relation is None:
            if name not in _RELATIONS:
                hint = did_you_mean(name, _RELATIONS)
                raise RegistryError(f"no type relation {name!r}", hint=hint)
            return self.set_attr("FInfer", _RELATIONS[name])
        infer = _as_infer(relation)
        return self.set_attr("FInfer", infer)

    def __reduce__(self) -> tuple[Any, ...]:
        return (register_op, (self.name,))


def _as_infer(relation: Callable[..., Any]) -> Callable[[Any], Any]:
    def infer(args: Any) -> Any:
        if any(t is None for t in args.types):
            return None
        return relation(args.types, args.attrs)

    return infer


def register_relation(name: str, infer: Callable[..., Any]) -> None:
    """Makes a type relation known to ``Op.add_type_rel`` by its Relay name."""
    _RELATIONS[name] = infer


def register_op(name: str) -> Op:
    """The op called ``name``, made now when it does not exist."""
    op = OP_TABLE.get(name) or OP_TABLE.get(_ALIASES.get(name, ""))
    if op is None:
        op = Op._from_fields({"name": name, "span": None})
        op.description = ""
        op.arguments = ()
        op.num_inputs = op.num_outputs = 1
        op.support_level = 10
        op.attrs_type, op.attrs_type_key = None, ""
        OP_TABLE[name] = op
    return op


def list_op_names() -> list[str]:
    """Names of all registered ops, sorted, aliases left out."""
    return Op.list_op_names()


class OpMap(Mapping["Op", Any]):
    """One attribute over all ops that have it; a missing op raises RegistryError on ``[]``."""

    def __init__(self, key: str) -> None:
        self._key = key

    def _column(self) -> dict[Op, tuple[Any, int]]:
        return _COLUMNS.get(self._key, {})

    def __getitem__(self, op: Op) -> Any:
        entry = self._column().get(op)
        if entry is None:
            raise RegistryError(f"operator {op.name} has no attribute {self._key}")
        return entry[0]

    def get(self, op: Any, default: Any = None) -> Any:
        entry = self._column().get(op)
        return default if entry is None else entry[0]

    def count(self, op: Op) -> int:
        """1 if the op has the attribute, else 0 (NNVM's spelling of ``in``)."""
        return int(op in self._column())

    def __contains__(self, op: object) -> bool:
        return op in self._column()

    def __iter__(self) -> Iterator[Op]:
        return iter(list(self._column()))

    def __len__(self) -> int:
        return len(self._column())


def get_attr_map(key: str) -> OpMap:
    """A live view of attribute ``key`` over all ops; empty when nobody has it."""
    return OpMap(key)


class OpGroup:
    """Attributes shared by the ops that include the group, whichever came first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._settings: list[tuple[str, Any, int]] = []
        self._members: list[Op] = []

    def set_attr(self, key: str, value: Any, plevel: int = GROUP_LEVEL) -> OpGroup:
        self._settings.append((key, value, plevel))
        for op in self._members:
            op.set_attr(key, value, plevel)
        return self

    def add(self, op: Op) -> None:
        """Applies the group's attributes to ``op``, and those set from now on."""
        if op in self._members:
            return
        self._members.append(op)
        for key, value, plevel in self._settings:
            op.set_attr(key, value, plevel)


def op_group(name: str) -> OpGroup:
    """The group called ``name``, made now when it does not exist."""
    return _GROUPS.setdefault(name, OpGroup(name))


def register_op_attr(
    op_name: str, attr_key: str, value: Any = None, level: int = DEFAULT_LEVEL
) -> Any:
    """Sets one attribute of an op by name; without ``value`` a decorator for a function."""
    if value is None:

        def decorate(function: Any) -> Any:
            register_op(op_name).set_attr(attr_key, function, level)
            return function

        return decorate
    register_op(op_name).set_attr(attr_key, value, level)
    return value


__all__ = [
    "OP_TABLE",
    "VARARGS",
    "Argument",
    "Op",
    "OpGroup",
    "OpMap",
    "get_attr_map",
    "list_op_names",
    "op_group",
    "register_op",
    "register_op_attr",
    "register_relation",
]
