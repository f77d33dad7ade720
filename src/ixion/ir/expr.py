"""Expressions: what a program is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ixion.base.dtype import normalize, to_numpy
from ixion.base.span import Span
from ixion.ir.attrs import Attrs
from ixion.ir.node import Node, field, register_node
from ixion.ir.types import TensorType, Type

if TYPE_CHECKING:
    import numpy.typing as npt

    from ixion.ir.op import Op


class Expr(Node):
    """Base of all expressions.

    ``checked_type`` is written once, by type inference; ``virtual_device`` is None until a device
    planner sets it. Neither takes part in equality.
    """

    __slots__ = ("_checked_type", "_virtual_device")
    _checked_type: Type
    _virtual_device: Any
    _stored_slots: ClassVar[dict[str, tuple[str, str]]] = {
        "virtual_device_": ("_virtual_device", "ref"),
        "_checked_type_": ("_checked_type", "ref"),
    }

    if TYPE_CHECKING:

        @property
        def span(self) -> Span | None:
            """Where the expression came from."""

    @property
    def checked_type(self) -> Type:
        """The type inference found; ValueError before inference."""
        try:
            return self._checked_type
        except AttributeError:
            raise ValueError(
                f"the type checker has not populated the checked_type of this {type(self).__name__}"
            ) from None

    @property
    def checked_type_or_none(self) -> Type | None:
        """The type inference found, or None."""
        return getattr(self, "_checked_type", None)

    def _set_checked_type(self, found: Type) -> None:
        """Write the type. Another type than one already written is a ValueError."""
        old = getattr(self, "_checked_type", None)
        if old is None:
            self._put("_checked_type", found)
        elif old is not found and old != found:
            raise ValueError(f"checked_type is {old} already and cannot become {found}")

    @property
    def virtual_device(self) -> Any:
        """The device planned for the result, or None."""
        return getattr(self, "_virtual_device", None)

    def _copied(self, values: dict[str, Any]) -> Self:
        made = self._from_fields(values)
        device = getattr(self, "_virtual_device", None)
        if device is not None:
            made._put("_virtual_device", device)
        return made

    def with_virtual_device(self, device: Any) -> Self:
        """A copy on another device; the node itself where it is there already."""
        if device is self.virtual_device:
            return self
        made = self._from_fields(dict(self.field_items()))
        made._put("_virtual_device", device)
        return made

    def __call__(self, *args: Any) -> Call:
        return Call(self, args)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """Program text with the version line, and the constants' data if ``show_meta_data``."""
        from ixion.ir.printer import astext

        return astext(self, show_meta_data=show_meta_data, annotate=annotate)


RelayExpr = Expr


def as_expr(value: Any) -> Any:
    """``value``, or the tuple expression inside a ``TupleWrapper``."""
    return value.tuple_value if type(value) is TupleWrapper else value


def _as_exprs(values: Any) -> tuple[Any, ...]:
    if type(values) is not tuple:
        if isinstance(values, (Node, str)) or values is None:
            raise TypeError(f"expected a sequence of expressions, found {type(values).__name__}")
        values = tuple(values)
    for value in values:
        if type(value) is TupleWrapper:
            return tuple([as_expr(item) for item in values])
    return values  # type: ignore[no-any-return]


def _operator(name: str) -> Op:
    from ixion.ir.op import OP_TABLE, Op

    if name not in OP_TABLE:
        # The operators register themselves when their room is loaded; ir does not depend on it.
        import importlib

        importlib.import_module("ixion.op")
    return Op.get(name)


class ExprWithOp(Expr):
    """Expressions that Python's arithmetic applies to, with another expression only."""

    __slots__ = ()

    def astype(self, dtype: Any) -> Call:
        """A cast of the elements."""
        op = _operator("cast")
        from ixion.ir.node import make_node

        attrs = make_node("relay.attrs.CastAttrs", dtype=normalize(dtype))
        return Call(op, (self,), attrs)

    def _binary(self, name: str, other: object) -> Call:
        if isinstance(other, (int, float, complex, np.number)):
            raise TypeError(f'convert "{other}" with `const` first')
        if not isinstance(other, Expr):
            raise TypeError(f"type {type(other).__name__} not supported in {name}")
        return Call(_operator(name), (self, other))

    def _swapped(self, name: str, other: object) -> Call:
        if isinstance(other, ExprWithOp):
            return other._binary(name, self)
        return self._binary(name, other)

    def __neg__(self) -> Call:
        return Call(_operator("negative"), (self,))

    def __lt__(self, other: object) -> Call:
        return self._binary("less", other)

    def __gt__(self, other: object) -> Call:
        return self._binary("greater", other)

    def __ge__(self, other: object) -> Call:
        return self._binary("greater_equal", other)

    def __le__(self, other: object) -> Call:
        return self._binary("less_equal", other)

    def __add__(self, other: object) -> Call:
        return self._binary("add", other)

    def __radd__(self, other: object) -> Call:
        return self._swapped("add", other)

    def __sub__(self, other: object) -> Call:
        return self._binary("subtract", other)

    def __rsub__(self, other: object) -> Call:
        return self._swapped("subtract", other)

    def __mul__(self, other: object) -> Call:
        return self._binary("multiply", other)

    def __rmul__(self, other: object) -> Call:
        return self._swapped("multiply", other)

    def __truediv__(self, other: object) -> Call:
        return self._binary("divide", other)

    def __rtruediv__(self, other: object) -> Call:
        return self._swapped("divide", other)


def _as_data(data: Any) -> np.ndarray[Any, np.dtype[Any]]:
    if hasattr(data, "numpy") and not isinstance(data, np.ndarray):
        data = data.numpy()
    array = np.asarray(data)
    if array.dtype.kind in "OUSMmV" and not array.dtype.name.startswith(
        ("bfloat", "float", "int", "uint")
    ):
        raise ValueError(f"a constant cannot hold {array.dtype} data")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


@register_node("relay.Constant")
class Constant(ExprWithOp):
    """A tensor known at compile time. ``data`` is a read-only view of the given array, no copy."""

    __slots__ = ("_data_hash",)
    _data_hash: int

    data: np.ndarray[Any, np.dtype[Any]] = field(convert=_as_data, stored="tensor")
    span: Span | None = field(default=None, compare=False)


@register_node("relay.Tuple", graph=True)
class Tuple(ExprWithOp):
    """A tuple. Two empty ones are equal wherever they stand."""

    fields: tuple[Expr, ...] = field(convert=_as_exprs)
    span: Span | None = field(default=None, compare=False)

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.fields)

    def astype(self, dtype: Any) -> Call:
        """Not defined for tuples."""
        raise TypeError("astype cannot be used on a tuple")


@register_node("relay.Id", free_var=True)
class Id(Node):
    """The identity of a local variable; its name is only a hint."""

    name_hint: str = field(compare=False)


def _as_type(annotation: Any) -> Type | None:
    return TensorType((), annotation) if isinstance(annotation, str) else annotation


@register_node("relay.Var", graph=True)
class Var(ExprWithOp):
    """A local variable: an identity (``vid``), which passes keep, and a type annotation."""

    vid: Id = field()
    type_annotation: Type | None = field(default=None)
    span: Span | None = field(default=None, compare=False)
    _compared = ("type_annotation", "vid", "virtual_device")
    _binds = (False, False, False)

    def __init__(
        self, name_hint: str | Id, type_annotation: Type | None = None, span: Span | None = None
    ) -> None:
        vid = name_hint if isinstance(name_hint, Id) else Id(str(name_hint))
        _set_vid(self, vid)
        _set_annotation(self, _as_type(type_annotation))
        _set_span(self, span)

    @staticmethod
    def _structure(node: Any) -> tuple[Any, ...]:
        # Of all expressions only variables compare where they are.
        return (node.type_annotation, node.vid, getattr(node, "_virtual_device", None))

    @property
    def name_hint(self) -> str:
        """The name the variable had in the source."""
        return self.vid.name_hint

    @classmethod
    def _make(cls, **fields: Any) -> Var:
        name = fields.pop("name_hint", None)
        return cls(fields.pop("vid", name), **fields)


_set_vid = Var.vid.__set__  # type: ignore[attr-defined]
_set_annotation = Var.type_annotation.__set__  # type: ignore[union-attr]
_set_span = Var.span.__set__  # type: ignore[union-attr]


@register_node("GlobalVar", free_var=True)
class GlobalVar(Expr):
    """The name of a module's function. Distinct objects are equal only where modules map them."""

    name_hint: str = field()
    span: Span | None = field(default=None, compare=False)

    def __init__(
        self, name_hint: str, type_annot: Type | None = None, span: Span | None = None
    ) -> None:
        self._put("name_hint", str(name_hint))
        self._put("span", span)
        if type_annot is not None:
            self._put("_checked_type", type_annot)


@register_node("relay.Call", graph=True)
class Call(ExprWithOp):
    """Application of an operator, function, constructor or global function to arguments."""

    op: Expr = field()
    args: tuple[Expr, ...] = field(convert=_as_exprs)
    attrs: Attrs | None = field(default=None)
    type_args: tuple[Type, ...] = field(default=())
    span: Span | None = field(default=None, compare=False)

    @staticmethod
    def _structure(node: Any) -> tuple[Any, ...]:
        # An operator's type arguments follow from its inputs, so they say nothing.
        if node.op._by_identity:
            return (node.op, node.args, node.attrs)
        return (node.op, node.args, node.attrs, node.type_args)


@register_node("relay.Let", graph=True)
class Let(ExprWithOp):
    """Binding of a variable in a body."""

    var: Var = field(alias="variable", binds=True)
    value: Expr = field(convert=as_expr)
    body: Expr = field(convert=as_expr)
    span: Span | None = field(default=None, compare=False)


@register_node("relay.If", graph=True)
class If(ExprWithOp):
    """A choice by a scalar bool."""

    cond: Expr = field()
    true_branch: Expr = field(convert=as_expr)
    false_branch: Expr = field(convert=as_expr)
    span: Span | None = field(default=None, compare=False)


@register_node("relay.TupleGetItem")
class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    tuple_value: Expr = field(convert=as_expr)
    index: int = field()
    span: Span | None = field(default=None, compare=False)


@register_node("relay.RefCreate", graph=True)
class RefCreate(ExprWithOp):
    """A new mutable reference."""

    value: Expr = field(convert=as_expr)
    span: Span | None = field(default=None, compare=False)


@register_node("relay.RefRead", graph=True)
class RefRead(ExprWithOp):
    """The value a reference holds now."""

    ref: Expr = field()
    span: Span | None = field(default=None, compare=False)


@register_node("relay.RefWrite", graph=True)
class RefWrite(ExprWithOp):
    """Assignment to a reference; its value is the empty tuple."""

    ref: Expr = field()
    value: Expr = field(convert=as_expr)
    span: Span | None = field(default=None, compare=False)


class TempExpr(ExprWithOp):
    """Base of expressions that live within one pass, which turns them back by ``realize``.

    They have no structural comparison.
    """

    __slots__ = ()
    _by_identity: ClassVar[bool] = True

    def realize(self) -> Expr:
        """The ordinary expression it stands for."""
        raise TypeError(f"{type(self).__name__} does not define realize")


class TupleWrapper:
    """A tuple expression of known size, as operators with several results return it."""

    __slots__ = ("size", "tuple_value")

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """The tuple expression."""
        return self.tuple_value

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError("Tuple index out of range")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"

    def astype(self, dtype: Any) -> Call:
        """Not defined for tuples."""
        raise TypeError("astype cannot be used on a tuple")


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Iterable[Any] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """A variable of a type, or a tensor of ``shape`` and ``dtype``; a str is a scalar's dtype.

    Raises ValueError where both a type and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise ValueError("Can only specify either type_annotation or shape.")
    annotation = _as_type(type_annotation)
    if shape is not None:
        annotation = TensorType(shape, dtype)
    return Var(name_hint, annotation, span)


_NARROWED = {"int64": "int32", "float64": "float32"}


def const(value: npt.ArrayLike, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A constant. Python numbers and lists become int32, float32 or bool unless ``dtype`` is given.

    A numpy array or scalar keeps its dtype (``np.float64``, a Python float, is none). Raises
    ValueError for data that is not an array.
    """
    if dtype is not None:
        data = np.asarray(value, dtype=to_numpy(normalize(dtype)))
    else:
        data = np.asarray(value)
        if isinstance(value, (bool, int, float, list, tuple)) and data.dtype.name in _NARROWED:
            data = data.astype(_NARROWED[data.dtype.name])
    if data.dtype.kind in "OUS":
        raise ValueError(f"value of type {type(value).__name__} is not an array")
    return Constant(data, span)


def bind(expr: Expr, binds: Mapping[Var, Expr]) -> Expr:
    """``expr`` with free variables replaced; a function also loses the parameters bound."""
    from ixion.ir.variables import bind_vars

    return bind_vars(expr, binds)


__all__ = [
    "Call",
    "Constant",
    "Expr",
    "ExprWithOp",
    "GlobalVar",
    "Id",
    "If",
    "Let",
    "RefCreate",
    "RefRead",
    "RefWrite",
    "RelayExpr",
    "TempExpr",
    "Tuple",
    "TupleGetItem",
    "TupleWrapper",
    "Var",
    "as_expr",
    "bind",
    "const",
    "var",
]
