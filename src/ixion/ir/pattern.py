"""The dataflow pattern language: patterns over expressions, with Relay's names and meaning.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = is_op("nn.relu")(conv.optional(lambda x: is_op("nn.bias_add")(x, wildcard())))
    pattern.match(expr); pattern.partition(expr); rewrite(callback, expr)

A pattern object that occurs twice must match the same expression both times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ixion.base.dtype import normalize
from ixion.ir.attrs import DictAttrs
from ixion.ir.expr import Expr
from ixion.ir.node import Node, field, register_node
from ixion.ir.op import Op
from ixion.ir.types import TensorType, Type

if TYPE_CHECKING:
    from ixion.ir.pattern_rewrite import DFPatternCallback, partition, rewrite

_PREFIX = "relay.dataflow_pattern."


class DFPattern(Node):
    """Base of all patterns; calling one makes a pattern of a call."""

    __slots__ = ()

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """A call of what this matches; ``p(None)`` accepts any arguments."""
        return CallPattern(self, None if args == (None,) else args)

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This, with the given attributes of the op, call or function."""
        return AttrPattern(self, DictAttrs(attrs))

    def has_type(self, ttype: Type) -> TypePattern:
        """This, with exactly that type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This, as a tensor of that dtype."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Iterable[Any]) -> ShapePattern:
        """This, as a tensor of that shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> AltPattern:
        """This, or what ``option_constructor`` makes of it."""
        return self | option_constructor(self)

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This as the only final user of ``parent``, all calls between matching ``path``."""
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def match(self, expr: Expr) -> bool:
        """True where the whole expression matches."""
        return match(self, expr)

    def partition(
        self,
        expr: Expr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[Expr], Any] = lambda expr: True,
    ) -> Expr:
        """``expr`` with every match lifted into a function; see ``partition``."""
        from ixion.ir.pattern_rewrite import partition

        return partition(self, expr, attrs, check)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The pattern as text, with the version line."""
        from ixion.ir.printer import astext

        return astext(self, show_meta_data, annotate)

    def __repr__(self) -> str:
        from ixion.ir.pattern_text import pattern_text

        return pattern_text(self)


def _patterns(values: Iterable[DFPattern] | None) -> tuple[DFPattern, ...] | None:
    return None if values is None else tuple(values)


@register_node(_PREFIX + "ExprPattern")
class ExprPattern(DFPattern):
    """An expression that is structurally equal to ``expr``; for an operator, that operator."""

    expr: Expr = field()


@register_node(_PREFIX + "VarPattern")
class VarPattern(DFPattern):
    """A variable, of that name unless the name is empty."""

    name: str = field(default="", alias="name_hint")

    @property
    def name_hint(self) -> str:
        """The name, empty for any."""
        return self.name


@register_node(_PREFIX + "ConstantPattern")
class ConstantPattern(DFPattern):
    """A constant."""


@register_node(_PREFIX + "CallPattern")
class CallPattern(DFPattern):
    """A call; ``args`` None accepts any arguments.

    ``add`` and ``multiply`` match either way round, and products and quotients of three associate.
    """

    op: DFPattern = field()
    args: tuple[DFPattern, ...] | None = field(convert=_patterns)


@register_node(_PREFIX + "FunctionPattern")
class FunctionPattern(DFPattern):
    """A function; ``params`` None accepts any parameters."""

    params: tuple[DFPattern, ...] | None = field(convert=_patterns)
    body: DFPattern = field()


@register_node(_PREFIX + "IfPattern")
class IfPattern(DFPattern):
    """A conditional."""

    cond: DFPattern = field()
    true_branch: DFPattern = field()
    false_branch: DFPattern = field()


@register_node(_PREFIX + "LetPattern")
class LetPattern(DFPattern):
    """A binding."""

    var: DFPattern = field()
    value: DFPattern = field()
    body: DFPattern = field()


@register_node(_PREFIX + "TuplePattern")
class TuplePattern(DFPattern):
    """A tuple; ``fields`` None accepts any."""

    fields: tuple[DFPattern, ...] | None = field(convert=_patterns)

    def __getitem__(self, index: int) -> DFPattern:
        if self.fields is None:
            raise IndexError("this tuple pattern accepts any fields")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields or ())

    def __bool__(self) -> bool:
        return True

    def astype(self, dtype: Any) -> DFPattern:
        """Not defined for tuples."""
        raise TypeError("astype cannot be used on a tuple pattern")


def _index(value: int | None) -> int:
    return -1 if value is None else int(value)


@register_node(_PREFIX + "TupleGetItemPattern")
class TupleGetItemPattern(DFPattern):
    """A field of a tuple; ``index`` None (kept as -1) accepts any."""

    tuple: DFPattern = field(alias="tuple_value")
    index: int = field(default=-1, convert=_index)


@register_node(_PREFIX + "AltPattern")
class AltPattern(DFPattern):
    """Either of two patterns; the left one is tried first."""

    left: DFPattern = field()
    right: DFPattern = field()


@register_node(_PREFIX + "WildcardPattern")
class WildcardPattern(DFPattern):
    """Anything, until it is redirected."""

    __slots__ = ("_target",)
    _target: DFPattern

    @property
    def pattern(self) -> DFPattern | None:
        """What it was redirected to, or None."""
        return getattr(self, "_target", None)

    def redirect_to(self, pattern: DFPattern) -> None:
        """From now on match what ``pattern`` does, which may contain this: a pattern of any
        depth.
        """
        self._put("_target", pattern)


@register_node(_PREFIX + "TypePattern")
class TypePattern(DFPattern):
    """A pattern whose match has exactly that type."""

    pattern: DFPattern = field()
    type: Type = field(alias="ttype")


@register_node(_PREFIX + "DataTypePattern")
class DataTypePattern(DFPattern):
    """A pattern whose match is a tensor of that dtype."""

    pattern: DFPattern = field()
    dtype: str = field(convert=normalize)


def _shape(value: Iterable[Any]) -> tuple[Any, ...]:
    return TensorType(tuple(value)).shape


@register_node(_PREFIX + "ShapePattern")
class ShapePattern(DFPattern):
    """A pattern whose match is a tensor of that shape."""

    pattern: DFPattern = field()
    shape: tuple[Any, ...] = field(convert=_shape)


@register_node(_PREFIX + "AttrPattern")
class AttrPattern(DFPattern):
    """A pattern whose match has the given attributes: an op's, a call's or a function's."""

    pattern: DFPattern = field()
    attrs: DictAttrs = field()


@register_node(_PREFIX + "DominatorPattern")
class DominatorPattern(DFPattern):
    """``child`` as the last user of everything that ``parent`` feeds, through calls matching
    ``path``.
    """

    parent: DFPattern = field()
    path: DFPattern = field()
    child: DFPattern = field()


# --- Relay's names for making patterns ----------------------------------------------------------


def is_var(name: str = "") -> VarPattern:
    """A variable, of that name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Any constant."""
    return ConstantPattern()


def is_expr(expr: Expr) -> ExprPattern:
    """An expression structurally equal to ``expr``."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """A registered operator; RegistryError naming the nearest one where there is none."""
    return ExprPattern(Op.get(op_name))


def is_tuple(fields: Iterable[DFPattern] | None) -> TuplePattern:
    """A tuple with these fields, or any where None."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Field ``index``, or any, of a tuple."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """A conditional."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """A binding."""
    return LetPattern(var, value, body)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """``pattern`` (default anything) with exactly that type."""
    return (pattern or wildcard()).has_type(ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """``pattern`` (default anything) as a tensor of that dtype."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Iterable[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """``pattern`` (default anything) as a tensor of that shape."""
    return (pattern or wildcard()).has_shape(shape)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """``pattern`` (default anything) with these attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """``child`` dominating ``parent`` through calls that match ``path``."""
    return DominatorPattern(parent, path, child)


def match(pattern: DFPattern, expr: Expr) -> bool:
    """True where the whole of ``expr`` matches."""
    from ixion.ir.pattern_match import Matcher

    return Matcher(expr).match(pattern, expr)


_REWRITING = frozenset({"DFPatternCallback", "partition", "rewrite"})


def __getattr__(name: str) -> Any:
    # The rewriting half imports this module; it is reached from here on first use.
    if name in _REWRITING:
        from ixion.ir import pattern_rewrite

        return getattr(pattern_rewrite, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]
