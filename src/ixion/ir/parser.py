"""Relay's text form, version 0.0.5, into expressions and modules.

The grammar is a recursive descent written as generators (``trampoline``), so that no nesting of a
program nests in Python, and takes time linear in the length of the text. Parsing knows nothing of
types beyond what is written: a caller that wants inference passes it as ``infer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from ixion.base.errors import nearest
from ixion.ir.adt import Constructor, TypeData
from ixion.ir.diagnostics import Diagnostic, DiagnosticContext, SourceText
from ixion.ir.expr import Expr
from ixion.ir.function import BaseFunc
from ixion.ir.lexer import (
    EOF,
    GLOBAL,
    IDENT,
    METADATA,
    MODULE_ATTRS,
    SEMVER,
    VERSION,
    Tokens,
    tokenize,
)
from ixion.ir.module import IRModule
from ixion.ir.parser_cursor import Cursor
from ixion.ir.parser_expr import expr_step, function_step
from ixion.ir.parser_type import type_list, type_params
from ixion.ir.trampoline import run

MetaNodes = Mapping[str, Sequence[Any]]


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaNodes | None = None,
    *,
    infer: Callable[[IRModule], IRModule] | None = None,
) -> IRModule:
    """The module that a text defines, on top of the definitions of ``init_module``.

    ``init_meta_table`` gives the nodes that ``meta[Key][i]`` names, after those of the text's own
    metadata section. Raises ``DiagnosticError`` with the line, a caret and a hint for every mistake
    in the text.
    """
    text = SourceText(source_name, source)
    cursor = _start(text, init_module, init_meta_table)
    _version(cursor, required=True)
    module = _definitions(cursor, _copy_of(init_module))
    module = _with_module_attrs(module, cursor.meta)
    module.source_map[text.name.name] = text.text
    return module if infer is None else infer(module)


def fromtext(
    source: str,
    source_name: str = "from_string",
    *,
    infer: Callable[[IRModule], IRModule] | None = None,
) -> IRModule:
    """``parse`` of a text that stands alone."""
    return parse(source, source_name, infer=infer)


def parse_expr(source: str, init_meta_table: MetaNodes | None = None) -> Expr:
    """The single expression that a text holds; a version line is optional, types are as written.

    Raises ``DiagnosticError``.
    """
    cursor = _start(SourceText("from_string", source), None, init_meta_table)
    _version(cursor, required=False)
    result = run(expr_step(cursor))
    _end(cursor)
    cursor.diagnostics.render()
    return result


def _start(text: SourceText, module: IRModule | None, extra: MetaNodes | None) -> Cursor:
    diagnostics = DiagnosticContext(sources={text.name.name: text})
    tokens = tokenize(text, diagnostics)
    meta = _meta_nodes(tokens, diagnostics, extra)
    return Cursor(tokens, diagnostics, module or IRModule(), meta)


def _meta_nodes(
    tokens: Tokens, diagnostics: DiagnosticContext, extra: MetaNodes | None
) -> dict[str, list[Any]]:
    """The metadata section, which is last in the text, followed by the caller's nodes."""
    table: dict[str, list[Any]] = {}
    if len(tokens.kinds) > 1 and tokens.kinds[-2] == METADATA:
        from ixion.ir.json import load_json

        try:
            section = cast("Mapping[str, Sequence[Any]]", load_json(tokens.texts[-2]))
            table = {str(key): list(nodes) for key, nodes in section.items()}
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, say where it is
            span = tokens.source.span(tokens.starts[-2], tokens.starts[-2] + len("#[metadata]"))
            diagnostics.emit_fatal(Diagnostic.error(span, f"the metadata is malformed: {error}"))
    for key, nodes in (extra or {}).items():
        table.setdefault(key, []).extend(nodes)
    return table


def _version(cursor: Cursor, required: bool) -> None:
    hint = f'the first line reads #[version = "{SEMVER}"]'
    at = cursor.position
    if cursor.accept(VERSION):
        found = cursor.texts[at]
        if found != SEMVER:
            cursor.complain(f"text version {found} is not supported", hint, at)
    elif required:
        cursor.complain(f"expected the version of the text, found {cursor.found()}", hint)


# --- definitions --------------------------------------------------------------------------------


def _copy_of(module: IRModule | None) -> IRModule:
    return IRModule() if module is None else module.clone()


def _definitions(cursor: Cursor, module: IRModule) -> IRModule:
    types: list[TypeData] = []
    functions: dict[str, tuple[BaseFunc, int]] = {}
    while cursor.kind not in (METADATA, EOF):
        if cursor.kind == "def":
            _definition(cursor, functions)
        elif cursor.kind in ("type", "extern"):
            types.append(_type_definition(cursor))
        else:
            cursor.fail(f"expected `def`, `type` or `extern`, found {cursor.found()}")
    _end(cursor)
    _check_globals(cursor, module, functions)
    cursor.diagnostics.render()
    for definition in types:
        module[definition.header] = definition
    for name, (function, at) in functions.items():
        try:
            module[cursor.global_var(name)] = function
        except ValueError as error:
            cursor.fail(str(error), at=at)
    return module


def _definition(cursor: Cursor, functions: dict[str, tuple[BaseFunc, int]]) -> None:
    start = cursor.position
    cursor.expect("def")
    at = cursor.position
    name = cursor.expect(GLOBAL)
    cursor.global_var(name)
    if name in functions:
        first = cursor.span_at(functions[name][1])
        cursor.complain(f"`@{name}` is defined twice", f"the first is at {first}", at)
    if cursor.accept("="):
        functions[name] = (cursor.meta_node(), at)
    else:
        functions[name] = (run(function_step(cursor, start)), at)


def _type_definition(cursor: Cursor) -> TypeData:
    external = cursor.accept("extern")
    cursor.expect("type")
    at = cursor.position
    header = cursor.type_name(cursor.expect(IDENT))
    mark = cursor.type_vars.mark()
    variables = type_params(cursor)
    constructors: list[Constructor] = []
    if cursor.accept("{"):
        while not cursor.accept("}"):
            constructors.append(_constructor(cursor, header))
            if cursor.kind != "}":
                cursor.expect(",")
    cursor.type_vars.leave(mark)
    if external and constructors:
        cursor.complain("an external type has no constructors", at=at)
    return TypeData(header, variables, tuple(constructors))


def _constructor(cursor: Cursor, header: Any) -> Constructor:
    at = cursor.position
    name = cursor.expect(IDENT)
    inputs = run(type_list(cursor, "(", ")")) if cursor.kind == "(" else ()
    if name in cursor.constructors:
        owner = cursor.constructors[name].belong_to.name_hint
        cursor.fail(f"there is a constructor `{name}` already", f"type `{owner}` has it", at)
    constructor = Constructor(name, inputs, header)
    cursor.constructors[name] = constructor
    return constructor


def _check_globals(cursor: Cursor, module: IRModule, defined: Iterable[str]) -> None:
    """Report each global that is used but never defined, at its first use."""
    known = {variable.name_hint for variable in module.functions} | set(defined)
    for at, kind in enumerate(cursor.kinds):
        if kind == GLOBAL and cursor.texts[at] not in known:
            name = cursor.texts[at]
            known.add(name)
            best = nearest(name, known - {name})
            hint = None if best is None else f"did you mean `@{best}`?"
            cursor.complain(f"`@{name}` is not defined in this module", hint, at)


def _end(cursor: Cursor) -> None:
    cursor.accept(METADATA)
    cursor.expect(EOF)


def _with_module_attrs(module: IRModule, meta: MetaNodes) -> IRModule:
    attrs = meta.get(MODULE_ATTRS)
    return module.with_attrs(dict(attrs[0].items())) if attrs else module


__all__ = ["fromtext", "parse", "parse_expr"]
