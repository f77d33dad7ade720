"""Grammar of expressions.

Every function that may nest is a generator run by ``trampoline.run``. A leaf that stands alone
between commas or brackets, which is what printed programs consist of, takes a short way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.base.errors import nearest
from ixion.ir.adt import Constructor
from ixion.ir.attrs import Attrs
from ixion.ir.expr import (
    Call,
    Expr,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from ixion.ir.function import Function
from ixion.ir.lexer import FLOAT, GLOBAL, GRAPH, IDENT, INT, LOCAL, META, parse_int
from ixion.ir.op import OP_TABLE
from ixion.ir.parser_attrs import (
    attrs_ahead,
    attrs_step,
    build_attrs,
    call_attrs,
    dotted_name,
    op_attrs_key,
)
from ixion.ir.parser_cursor import Cursor
from ixion.ir.parser_literal import bool_constant, float_constant, int_constant
from ixion.ir.parser_type import type_params, type_step
from ixion.ir.trampoline import Step

# Operator sign: (operator, precedence); all of them associate to the left.
_BINARY = {
    "*": ("multiply", 12), "/": ("divide", 12), "+": ("add", 10), "-": ("subtract", 10),
    "<": ("less", 8), "<=": ("less_equal", 8), ">": ("greater", 8), ">=": ("greater_equal", 8),
    "==": ("equal", 7), "!=": ("not_equal", 7),
}  # fmt: skip
_AFTER_LEAF = frozenset({",", ")", ";", "}"})


def operator_named(cursor: Cursor, name: str, at: int) -> Expr:
    """The registered operator, or an error naming the nearest one."""
    op = OP_TABLE.get(name)
    if op is None:
        best = nearest(name, OP_TABLE)
        hint = f"did you mean `{best}`?" if best else "write `%name` for a variable"
        cursor.fail(f"there is no operator `{name}`", hint, at)
    return op


# --- leaves -------------------------------------------------------------------------------------


def _int(cursor: Cursor, text: str) -> Expr:
    return int_constant(cursor)


def _float(cursor: Cursor, text: str) -> Expr:
    return float_constant(cursor)


def _bool(cursor: Cursor, text: str) -> Expr:
    return bool_constant(cursor, text == "True")


def _local(cursor: Cursor, text: str) -> Expr:
    return cursor.local(text, cursor.position - 1)


def _global(cursor: Cursor, text: str) -> Expr:
    return cursor.global_var(text)


def _graph(cursor: Cursor, text: str) -> Expr:
    return cursor.graph_value(text, cursor.position - 1)


_LEAVES: dict[str, Callable[[Cursor, str], Expr]] = {
    INT: _int, FLOAT: _float, "True": _bool, "False": _bool, LOCAL: _local, GLOBAL: _global,
    GRAPH: _graph,
}  # fmt: skip


def _lone_leaf(cursor: Cursor) -> Expr | None:
    """The leaf that is next if nothing is applied to it, else None."""
    at = cursor.position
    parse = _LEAVES.get(cursor.kinds[at])
    if parse is None or cursor.kinds[at + 1] not in _AFTER_LEAF:
        return None
    cursor.position = at + 1
    return parse(cursor, cursor.texts[at])


# --- sequences, bindings ------------------------------------------------------------------------


def expr_step(cursor: Cursor) -> Step[Expr]:
    """Bindings and statements separated by ``;``, ending in the expression they are for.

    A statement whose value is not used becomes a binding of an anonymous variable.
    """
    mark = cursor.locals.mark()
    bindings: list[tuple[Var, Expr, int]] = []
    while True:
        start = cursor.position
        kind = cursor.kinds[start]
        if kind == "let":
            variable, value = yield _let(cursor)
            bindings.append((variable, value, start))
            continue
        if kind == GRAPH and cursor.ahead(1) == "=":
            yield _graph_binding(cursor)
            continue
        if kind == "free_var":
            yield _free_var(cursor)
            continue
        value = yield (_block(cursor) if kind == "{" else binary_step(cursor))
        if not cursor.accept(";"):
            break
        bindings.append((Var(""), value, start))
    cursor.locals.leave(mark)
    return _bind(cursor, bindings, value)


def _bind(cursor: Cursor, bindings: list[tuple[Var, Expr, int]], body: Expr) -> Expr:
    for variable, value, start in reversed(bindings):
        body = Let(variable, value, body, span=cursor.span(start))
    return body


def _let(cursor: Cursor) -> Step[tuple[Var, Expr]]:
    cursor.expect("let")
    at = cursor.position
    name = cursor.expect(LOCAL)
    annotation = (yield type_step(cursor)) if cursor.accept(":") else None
    variable = Var(name, annotation, span=cursor.span_at(at))
    # Bound before its value is read: a function may call itself.
    cursor.locals.bind(name, variable)
    cursor.expect("=")
    value = yield binary_step(cursor)
    cursor.expect(";")
    return variable, value


def _graph_binding(cursor: Cursor) -> Step[None]:
    number = cursor.expect(GRAPH)
    cursor.expect("=")
    value = yield binary_step(cursor)
    cursor.expect(";")
    cursor.graph.bind(number, value)


def _free_var(cursor: Cursor) -> Step[None]:
    cursor.expect("free_var")
    at = cursor.position
    name = cursor.expect(LOCAL)
    annotation = (yield type_step(cursor)) if cursor.accept(":") else None
    cursor.expect(";")
    cursor.free_vars[name] = Var(name, annotation, span=cursor.span_at(at))


def _block(cursor: Cursor) -> Step[Expr]:
    """``{ expr }``, a scope of its own."""
    cursor.expect("{")
    names, graph = cursor.locals.mark(), cursor.graph.mark()
    body = yield expr_step(cursor)
    cursor.locals.leave(names)
    cursor.graph.leave(graph)
    cursor.expect("}")
    return body  # type: ignore[no-any-return]


# --- operators and calls ------------------------------------------------------------------------


def binary_step(cursor: Cursor) -> Step[Expr]:
    """Calls joined by the binary operators, by precedence."""
    start = cursor.position
    left = _lone_leaf(cursor)
    if left is None:
        left = yield call_step(cursor)
    if cursor.kinds[cursor.position] not in _BINARY:
        return left
    operands: list[tuple[Expr, int]] = [(left, start)]
    pending: list[tuple[str, int]] = []
    while (sign := _BINARY.get(cursor.kind)) is not None:
        while pending and sign[1] <= pending[-1][1]:
            _reduce(cursor, operands, pending)
        pending.append(sign)
        cursor.position += 1
        start = cursor.position
        right = _lone_leaf(cursor)
        operands.append(((yield call_step(cursor)) if right is None else right, start))
    while pending:
        _reduce(cursor, operands, pending)
    return operands[0][0]


def _reduce(
    cursor: Cursor, operands: list[tuple[Expr, int]], pending: list[tuple[str, int]]
) -> None:
    right, _ = operands.pop()
    left, start = operands.pop()
    op = operator_named(cursor, pending.pop()[0], start)
    operands.append((Call(op, (left, right), span=cursor.span(start)), start))


def call_step(cursor: Cursor) -> Step[Expr]:
    """An atom applied to any number of argument lists."""
    start = cursor.position
    callee = yield atom_step(cursor)
    while cursor.kinds[cursor.position] == "(":
        args, attrs = yield _arguments(cursor, callee)
        callee = Call(callee, args, attrs, span=cursor.span(start))
    if isinstance(callee, Constructor) and not callee.inputs:
        return Call(callee, (), span=cursor.span(start))
    return callee  # type: ignore[no-any-return]


def _arguments(cursor: Cursor, callee: Expr) -> Step[tuple[tuple[Expr, ...], Attrs | None]]:
    cursor.position += 1
    args: list[Expr] = []
    attrs: Attrs | None = None
    while not cursor.accept(")"):
        at = cursor.position
        kind = cursor.kinds[at]
        if kind == IDENT and attrs_ahead(cursor):
            attrs = call_attrs(cursor, callee, (yield attrs_step(cursor, ")")), at)
        elif kind == META and cursor.ahead(1) == ")" and isinstance(_peek_meta(cursor), Attrs):
            attrs = cursor.meta_node()
        else:
            leaf = _lone_leaf(cursor)
            args.append((yield expr_step(cursor)) if leaf is None else leaf)
        if cursor.kind != ")":
            cursor.expect(",")
    key = op_attrs_key(callee)
    if attrs is None and key:
        attrs = build_attrs(cursor, key, {}, cursor.position - 1)
    return tuple(args), attrs


def _peek_meta(cursor: Cursor) -> Any:
    node = cursor.meta_node()
    cursor.position -= 1
    return node


# --- atoms --------------------------------------------------------------------------------------


def atom_step(cursor: Cursor) -> Step[Expr]:
    """What can be called or operated on, with an optional ``.index`` after it."""
    start = cursor.position
    value = yield _atom(cursor)
    if cursor.kind == "." and cursor.ahead(1) == INT:
        cursor.position += 1
        index, _ = parse_int(cursor.expect(INT))
        return TupleGetItem(value, index, span=cursor.span(start))
    return value  # type: ignore[no-any-return]


def _atom(cursor: Cursor) -> Step[Expr]:
    at = cursor.position
    kind = cursor.kinds[at]
    leaf = _LEAVES.get(kind)
    if leaf is not None:
        cursor.position = at + 1
        return leaf(cursor, cursor.texts[at])
    if kind == IDENT:
        constructor = cursor.constructors.get(cursor.texts[at])
        if constructor is not None:
            cursor.position = at + 1
            return constructor
        return operator_named(cursor, dotted_name(cursor), at)
    compound = _COMPOUND.get(kind)
    if compound is not None:
        return (yield compound(cursor))  # type: ignore[no-any-return]
    if kind == META:
        node = cursor.meta_node()
        if not isinstance(node, Expr):
            cursor.fail("this metadata entry is not an expression", at=at)
        return node
    cursor.fail(f"expected an expression, found {cursor.found()}")


def _parenthesised(cursor: Cursor) -> Step[Expr]:
    """``()``, ``(expr)`` or a tuple; a tuple of one is ``(expr,)``."""
    start = cursor.position
    cursor.expect("(")
    fields: list[Expr] = []
    while not cursor.accept(")"):
        leaf = _lone_leaf(cursor)
        fields.append((yield expr_step(cursor)) if leaf is None else leaf)
        if cursor.kind == ")" and len(fields) == 1:
            cursor.position += 1
            return fields[0]
        if cursor.kind != ")":
            cursor.expect(",")
    return Tuple(tuple(fields), span=cursor.span(start))


def _if(cursor: Cursor) -> Step[Expr]:
    start = cursor.position
    cursor.expect("if")
    cursor.expect("(")
    condition = yield expr_step(cursor)
    cursor.expect(")")
    true_branch = yield _block(cursor)
    cursor.expect("else")
    false_branch = yield _block(cursor)
    return If(condition, true_branch, false_branch, span=cursor.span(start))


def _ref(cursor: Cursor) -> Step[Expr]:
    start = cursor.position
    word = cursor.expect(cursor.kind)
    cursor.expect("(")
    first = yield expr_step(cursor)
    if word == "ref_write":
        cursor.expect(",")
        value = yield expr_step(cursor)
        cursor.expect(")")
        return RefWrite(first, value, span=cursor.span(start))
    cursor.expect(")")
    kind = RefCreate if word == "ref" else RefRead
    return kind(first, span=cursor.span(start))


def _match(cursor: Cursor) -> Step[Expr]:
    from ixion.ir.parser_match import match_step

    return match_step(cursor)


def _anonymous(cursor: Cursor) -> Step[Expr]:
    start = cursor.position
    cursor.expect("fn")
    return function_step(cursor, start)


_COMPOUND: dict[str, Callable[[Cursor], Step[Expr]]] = {
    "(": _parenthesised, "fn": _anonymous, "if": _if, "match": _match, "match?": _match,
    "ref": _ref, "ref_read": _ref, "ref_write": _ref,
}  # fmt: skip


# --- functions ----------------------------------------------------------------------------------


def function_step(cursor: Cursor, start: int) -> Step[Function]:
    """``[A](%x: T, ..., key=value) -> T { body }``; ``start`` is the token its span begins at."""
    names, types = cursor.locals.mark(), cursor.type_vars.mark()
    generics = type_params(cursor)
    params, attrs = yield _parameters(cursor)
    result = (yield type_step(cursor)) if cursor.accept("->") else None
    body = yield _block(cursor)
    cursor.locals.leave(names)
    cursor.type_vars.leave(types)
    device = attrs.pop("virtual_device", None)
    function = Function(params, body, result, generics, attrs or None, span=cursor.span(start))
    return function if device is None else function.with_virtual_device(device)


def _parameters(cursor: Cursor) -> Step[tuple[tuple[Var, ...], dict[str, Any]]]:
    cursor.expect("(")
    params: list[Var] = []
    attrs: dict[str, Any] = {}
    while not cursor.accept(")"):
        if attrs_ahead(cursor):
            attrs = yield attrs_step(cursor, ")")
        else:
            params.append((yield _parameter(cursor)))
        if cursor.kind != ")":
            cursor.expect(",")
    return tuple(params), attrs


def _parameter(cursor: Cursor) -> Step[Var]:
    at = cursor.position
    name = cursor.expect(LOCAL)
    device = None
    if cursor.accept("{"):
        device = (yield attrs_step(cursor, "}")).get("virtual_device")
        cursor.expect("}")
    annotation = (yield type_step(cursor)) if cursor.accept(":") else None
    variable = Var(name, annotation, span=cursor.span_at(at))
    if device is not None:
        variable = variable.with_virtual_device(device)
    cursor.locals.bind(name, variable)
    return variable


__all__ = [
    "atom_step",
    "binary_step",
    "call_step",
    "expr_step",
    "function_step",
    "operator_named",
]
