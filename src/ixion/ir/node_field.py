"""Declaration of node fields, and the constructors made from them."""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

MISSING: Any = object()
# Annotations of values that JSON stores in place.
_PRIMITIVE = frozenset({"int", "str", "bool", "float"})


class Field:
    """Declaration of one field; made by ``field`` (or ``attr``) and completed by the metaclass."""

    __slots__ = (
        "alias",
        "annotation",
        "binds",
        "compare",
        "convert",
        "default",
        "doc",
        "name",
        "sequence",
        "stored",
    )

    def __init__(
        self,
        default: Any = MISSING,
        alias: str | None = None,
        convert: Callable[[Any], Any] | None = None,
        compare: bool = True,
        binds: bool = False,
        doc: str = "",
        stored: str | None = None,
    ) -> None:
        self.name = ""
        self.annotation: Any = ""
        self.default = default
        self.alias = alias
        self.convert = convert
        self.compare = compare
        self.binds = binds
        self.doc = doc
        self.sequence = False
        self.stored = stored

    @property
    def required(self) -> bool:
        """Has no default."""
        return self.default is MISSING

    def converted(self, value: Any) -> Any:
        """``value`` as the constructor would store it."""
        if self.convert is not None:
            return self.convert(value)
        return as_tuple(value) if self.sequence else value

    def __repr__(self) -> str:
        return f"Field({self.name}: {self.annotation})"


def field(
    *,
    default: Any = MISSING,
    alias: str | None = None,
    convert: Callable[[Any], Any] | None = None,
    compare: bool = True,
    binds: bool = False,
    doc: str = "",
    stored: str | None = None,
) -> Any:
    """Declare a node field.

    ``alias`` is the constructor's name for it, ``convert`` is applied by the constructor,
    ``compare=False`` hides it from structural equality and hash, and ``binds`` marks a definition
    point: variables met inside are defined there and may be mapped to one another. A field
    annotated ``tuple[...]`` accepts any iterable, and None means empty. ``stored`` is how JSON has
    it: ``int``, ``str``, ``bool``, ``float`` or ``tensor`` in place (the first four follow from the
    annotation), otherwise as a reference.
    """
    return Field(default, alias, convert, compare, binds, doc, stored)


def as_tuple(value: Any) -> tuple[Any, ...]:
    """``value`` as a tuple; None gives the empty one, a node or a string is a TypeError."""
    if type(value) is tuple:
        return value
    if value is None:
        return ()
    if isinstance(value, str) or hasattr(value, "type_key") or not isinstance(value, Iterable):
        raise TypeError(f"expected a sequence of nodes, found {type(value).__name__}")
    return tuple(value)


def own_fields(namespace: dict[str, Any]) -> list[Field]:
    found = []
    for name, value in list(namespace.items()):
        if isinstance(value, Field):
            value.name = name
            found.append(value)
            del namespace[name]
    return found


def _as_int(value: Any) -> int:
    return value if type(value) is int else int(operator.index(value))


# So that equal numbers have one form: 2 given for a float field is 2.0.
_NUMBERS: dict[Any, Callable[[Any], Any]] = {"int": _as_int, "float": float}


def _annotations(cls: type) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        # Evaluating them could fail for names that are defined later.
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.STRING)
    return inspect.get_annotations(cls)


def annotate(cls: type, fields: Iterable[Field]) -> None:
    hints = _annotations(cls)
    for spec in fields:
        hint = hints.get(spec.name, "")
        spec.annotation = hint.__name__ if hint in (int, str, bool, float) else hint
        spec.sequence = str(hint).startswith("tuple[") and "None" not in str(hint)
        if spec.stored is None and spec.annotation in _PRIMITIVE:
            spec.stored = spec.annotation
        if spec.convert is None:
            spec.convert = _NUMBERS.get(spec.annotation)


def merge_fields(bases: tuple[type, ...], own: list[Field]) -> tuple[Field, ...]:
    merged: dict[str, Field] = {}
    for base in reversed(bases):
        merged.update((spec.name, spec) for spec in getattr(base, "_fields", ()))
    merged.update((spec.name, spec) for spec in own)
    return tuple(merged.values())


def getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """A fast function from a node to the tuple of the named fields."""
    if not names:
        return lambda node: ()
    get: Any = operator.attrgetter(*names)
    return get if len(names) > 1 else (lambda node: (get(node),))


def _init_source(fields: tuple[Field, ...]) -> str:
    """Source of a constructor that writes each slot directly, about 50 ns a field."""
    params, lines = [], []
    for i, spec in enumerate(fields):
        name = spec.alias or spec.name
        params.append(name if spec.required else f"{name}=_d{i}")
        value = name
        if spec.convert is not None:
            value = f"_c{i}({name})"
        elif spec.sequence:
            value = f"{name} if type({name}) is tuple else _tuple({name})"
        lines.append(f"    _s{i}(self, {value})")
    return f"def __init__(self, {', '.join(params)}):\n" + "\n".join(lines or ["    pass"])


def compile_init(cls: type, fields: tuple[Field, ...]) -> Callable[..., None]:
    scope: dict[str, Any] = {"_tuple": as_tuple}
    for i, spec in enumerate(fields):
        scope[f"_s{i}"] = getattr(cls, spec.name).__set__
        scope[f"_d{i}"] = spec.default
        scope[f"_c{i}"] = spec.convert
    exec(_init_source(fields), scope)  # noqa: S102 - the text is built from field names alone
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init
