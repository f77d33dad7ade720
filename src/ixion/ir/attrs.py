"""Typed attributes of operators, declared like dataclasses.

    @register_attrs("relay.attrs.SoftmaxAttrs")
    class SoftmaxAttrs(Attrs):
        axis: int = attr(-1, "axis to normalise over")

The annotation gives conversion and validation; the order of declaration is the order of printing.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from ixion.base.errors import AttributesError, UnknownAttributeError, did_you_mean
from ixion.ir.attr_convert import Converter, converter_for, from_text
from ixion.ir.containers import Map, as_value
from ixion.ir.node import Field, Node, field, register_node
from ixion.ir.node_field import MISSING

REQUIRED: Any = MISSING
_set_raw = object.__setattr__
_A = TypeVar("_A", bound="type[Attrs]")


class FieldInfo(NamedTuple):
    """What ``list_field_info`` tells of one attribute."""

    name: str
    type_info: str
    description: str


class _AttrField(Field):
    __slots__ = ("choices",)
    choices: tuple[Any, ...] | None


def attr(
    default: Any = REQUIRED,
    doc: str = "",
    *,
    choices: Sequence[Any] | None = None,
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """Declare an attribute: its default, its meaning, and the values it is limited to, if any."""
    made = _AttrField(default=default, doc=doc, convert=convert)
    made.choices = None if choices is None else tuple(choices)
    return made


def register_attrs(type_key: str) -> Callable[[_A], _A]:
    """Class decorator: enter an attrs kind in the table of node kinds."""
    return register_node(type_key)


class Attrs(Node):
    """Base of attribute records. Fields are attributes; values are checked and converted.

    Raises UnknownAttributeError (an AttributeError) for a name it has not, AttributesError (a
    TypeError and ValueError) for a value that does not fit.
    """

    __slots__ = ()
    _generate_init: ClassVar[bool] = False
    _converters: ClassVar[dict[str, Converter]]

    def __init__(self, *args: Any, **values: Any) -> None:
        fields = self._fields
        if args:
            values = {**dict(zip(self._field_map, args, strict=False)), **values}
        for spec in fields:
            name = spec.name
            if name in values:
                _set_raw(self, name, self._converted(spec, values.pop(name)))
            elif spec.default is MISSING:
                raise AttributesError(f"{self.type_key} needs a value for {name!r}")
            else:
                _set_raw(self, name, spec.default)
        if values or len(args) > len(fields):
            raise self._unknown(next(iter(values), "too many positional values"))

    @classmethod
    def _unknown(cls, name: str) -> UnknownAttributeError:
        return UnknownAttributeError(
            f"{cls.type_key} has no attribute {name!r}",
            expected="one of " + ", ".join(cls._field_map) if cls._field_map else "no attributes",
            hint=did_you_mean(name, cls._field_map),
        )

    @classmethod
    def _make(cls, **values: Any) -> Self:
        return cls(**values)

    @classmethod
    def _converter(cls, name: str) -> Converter:
        # Resolving annotations costs 50 us, so it waits until a value has to be converted.
        table = cls.__dict__.get("_converters")
        if table is None:
            hints = typing.get_type_hints(cls)
            table = {spec.name: converter_for(hints[spec.name]) for spec in cls._fields}
            type.__setattr__(cls, "_converters", table)
        return table[name]  # type: ignore[no-any-return]

    @classmethod
    def _converted(cls, spec: Field, value: Any) -> Any:
        try:
            if spec.convert is not None:
                value = spec.convert(value)
            value = cls._converter(spec.name)(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise AttributesError(
                f"bad value for {cls.type_key} attribute {spec.name!r}: {error}",
                expected=spec.annotation,
                found=repr(value),
            ) from error
        choices = getattr(spec, "choices", None)
        if choices is not None and value not in choices:
            raise AttributesError(
                f"bad value for {cls.type_key} attribute {spec.name!r}",
                expected="one of " + ", ".join(map(repr, choices)),
                found=repr(value),
                hint=did_you_mean(str(value), map(str, choices)),
            )
        return value

    @classmethod
    def from_strings(cls, texts: Mapping[str, str]) -> Self:
        """Attributes from texts, as NNVM and PNNX have them: ``(1, 2)``, ``True``, ``None``."""
        values = {}
        for name, text in texts.items():
            if name not in cls._field_map:
                raise cls._unknown(name)
            hint = cls._field_map[name].annotation
            values[name] = from_text(text, str(hint)) if isinstance(text, str) else text
        return cls(**values)

    def copy(self, **changes: Any) -> Self:
        """These attributes with some replaced; the same object where nothing changes."""
        kept = {}
        for name, value in changes.items():
            spec = self._field_map.get(name)
            if spec is None:
                raise self._unknown(name)
            kept[name] = self._converted(spec, value)
        if all(_same_value(getattr(self, name), value) for name, value in kept.items()):
            return self
        return self._from_fields({**dict(self.items()), **kept})

    def keys(self) -> list[str]:
        """Attribute names in declaration order."""
        return list(self._field_map)

    def items(self) -> Iterator[tuple[str, Any]]:
        """(name, value) in declaration order."""
        return self.field_items()

    def __getitem__(self, name: str) -> Any:
        if name not in self._field_map:
            raise self._unknown(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self._field_map

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default where the kind has none of that name."""
        return getattr(self, name) if name in self._field_map else default

    def non_default_items(self) -> Iterator[tuple[str, Any]]:
        """(name, value) of what differs from its default, in declaration order."""
        for spec in self._fields:
            value = getattr(self, spec.name)
            if spec.default is MISSING or not _same_value(value, spec.default):
                yield spec.name, value

    @classmethod
    def list_field_info(cls) -> list[FieldInfo]:
        """Name, type and meaning of every attribute."""
        return [FieldInfo(spec.name, _type_info(spec), spec.doc) for spec in cls._fields]

    def get_int(self, name: str) -> int:
        """An attribute as int."""
        return int(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """An attribute as a tuple of ints."""
        return tuple(int(item) for item in self[name])

    def get_str(self, name: str) -> str:
        """An attribute as text."""
        return str(self[name])


def _type_info(spec: Field) -> str:
    return str(spec.annotation) if spec.required else f"{spec.annotation}, default={spec.default!r}"


def _same_value(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, Node) or isinstance(b, Node) or hasattr(a, "__array__"):
        return False
    return type(a) is type(b) and bool(a == b)


@register_node("DictAttrs")
class DictAttrs(Attrs):
    """Attributes with free keys, as functions and modules carry them."""

    __slots__ = ()
    entries: Map = field(default=Map())

    def __init__(self, entries: Mapping[str, Any] | None = None, **more: Any) -> None:
        given = entries.entries if isinstance(entries, DictAttrs) else (entries or {})
        self._put("entries", given if type(given) is Map and not more else Map({**given, **more}))

    def __getattr__(self, name: str) -> Any:
        # Reached only where ordinary lookup finds nothing.
        if not name.startswith("__") and name != "entries" and name in self.entries:
            return self.entries[name]
        raise AttributeError(f"no attribute {name!r}", name=name, obj=self)

    def __getitem__(self, name: str) -> Any:
        return self.entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __bool__(self) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self.entries.get(name, default)

    def keys(self) -> list[str]:
        """The keys, in insertion order."""
        return list(self.entries)

    def items(self) -> Iterator[tuple[str, Any]]:
        """(key, value), in insertion order."""
        return iter(self.entries.items())

    def values(self) -> list[Any]:
        """The values, in insertion order."""
        return list(self.entries.values())

    def non_default_items(self) -> Iterator[tuple[str, Any]]:
        """All entries."""
        return self.items()

    def _json_fields(self) -> dict[str, Any]:
        return {"__dict__": self.entries}

    @classmethod
    def _from_json_fields(cls, values: dict[str, Any]) -> Self:
        return cls(values.get("__dict__"))

    def copy(self, **changes: Any) -> Self:
        """These attributes with some keys added or replaced."""
        if set(changes) == {"entries"}:
            return type(self)(changes["entries"])
        same = (k in self and _same_value(self[k], as_value(v)) for k, v in changes.items())
        return self if all(same) else type(self)({**self.entries, **changes})


def as_dict_attrs(value: Any) -> DictAttrs | None:
    """None, a DictAttrs as it is, or one made from a mapping; an empty mapping counts as None."""
    if value is None or isinstance(value, DictAttrs):
        return value
    if isinstance(value, Mapping):
        return DictAttrs(value) if value else None
    raise TypeError(f"attrs must be a mapping, found {type(value).__name__}")


__all__ = [
    "REQUIRED",
    "Attrs",
    "DictAttrs",
    "FieldInfo",
    "as_dict_attrs",
    "attr",
    "register_attrs",
]
