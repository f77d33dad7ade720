"""What every part of the grammar shares: the place in the tokens, the scopes, the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ixion.base.errors import nearest
from ixion.base.span import Span
from ixion.ir.adt import Constructor
from ixion.ir.diagnostics import Diagnostic, DiagnosticContext
from ixion.ir.expr import Expr, GlobalVar, Var
from ixion.ir.lexer import EOF, META, Tokens
from ixion.ir.module import IRModule
from ixion.ir.types import GlobalTypeVar, Type, TypeVar

_SHOWN = {EOF: "the end of the text"}
_UNSET: Any = object()


class Scopes:
    """Names with nested scopes: bind and look up in constant time, leave a scope by undoing.

    With ``leak`` a name bound in an inner scope stays visible after it unless it shadowed an outer
    one: Relay's printer gives graph variables one numbering, and may use one after the block that
    defines it.
    """

    __slots__ = ("_leak", "_undo", "names")

    def __init__(self, leak: bool = False) -> None:
        self.names: dict[str, Any] = {}
        self._undo: list[tuple[str, Any]] = []
        self._leak = leak

    def bind(self, name: str, value: Any) -> None:
        """Let ``name`` mean ``value`` until the current scope is left."""
        self._undo.append((name, self.names.get(name, _UNSET)))
        self.names[name] = value

    def mark(self) -> int:
        """Enter a scope; the result is what ``leave`` wants."""
        return len(self._undo)

    def leave(self, mark: int) -> None:
        """Leave the scope entered at ``mark``."""
        undo = self._undo
        while len(undo) > mark:
            name, old = undo.pop()
            if old is not _UNSET:
                self.names[name] = old
            elif not self._leak:
                del self.names[name]


class Cursor:
    """A place in a token list, with the names in scope there."""

    def __init__(
        self,
        tokens: Tokens,
        diagnostics: DiagnosticContext,
        module: IRModule,
        meta: Mapping[str, Sequence[Any]],
    ) -> None:
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.diagnostics = diagnostics
        self.meta = meta
        self.position = 0
        self.locals = Scopes()
        self.graph = Scopes(leak=True)
        self.type_vars = Scopes()
        self.free_vars: dict[str, Var] = {}
        self.globals: dict[str, GlobalVar] = {}
        self.types: dict[str, GlobalTypeVar] = {}
        self.constructors: dict[str, Constructor] = {}
        self.tensor_types: dict[tuple[Any, ...], Type] = {}
        self._adopt(module)

    def _adopt(self, module: IRModule) -> None:
        for variable in module.functions:
            self.globals[variable.name_hint] = variable
        for header, definition in module.type_definitions.items():
            self.types[header.name_hint] = header
            for constructor in definition.constructors:
                self.constructors[constructor.name_hint] = constructor

    # --- tokens ---------------------------------------------------------------------------------

    @property
    def kind(self) -> str:
        """Kind of the next token."""
        return self.kinds[self.position]

    def ahead(self, distance: int) -> str:
        """Kind of the token ``distance`` after the next."""
        at = min(self.position + distance, len(self.kinds) - 1)
        return self.kinds[at]

    def accept(self, kind: str) -> bool:
        """Take the next token if it is of ``kind``."""
        if self.kinds[self.position] == kind:
            self.position += 1
            return True
        return False

    def expect(self, kind: str) -> str:
        """Take a token of ``kind`` and give its text, or fail."""
        if self.kinds[self.position] != kind:
            self.fail(f"expected {_quoted(kind)}, found {self.found()}")
        self.position += 1
        return self.texts[self.position - 1]

    def found(self) -> str:
        """The next token as a message shows it."""
        kind, text = self.kind, self.texts[self.position]
        if kind == text:
            return f"`{text}`"
        return _SHOWN.get(kind) or f"{kind} `{text}`"

    # --- spans and errors -----------------------------------------------------------------------

    def span(self, start: int) -> Span:
        """The span from token number ``start`` to the last token taken."""
        tokens = self.tokens
        last = max(self.position - 1, start)
        return tokens.source.span(tokens.starts[start], tokens.ends[last])

    def span_at(self, index: int) -> Span:
        """The span of token number ``index``."""
        return self.tokens.source.span(self.tokens.starts[index], self.tokens.ends[index])

    def fail(self, message: str, hint: str | None = None, at: int | None = None) -> NoReturn:
        """Report an error at token ``at`` (default the next one) and stop."""
        span = self.span_at(self.position if at is None else at)
        self.diagnostics.emit_fatal(Diagnostic.error(span, message), hint)

    def complain(self, message: str, hint: str | None = None, at: int | None = None) -> None:
        """Report an error at token ``at`` and go on; ``render`` raises at the end."""
        span = self.span_at(self.position if at is None else at)
        self.diagnostics.emit(Diagnostic.error(span, message))
        if hint is not None:
            self.diagnostics.emit(Diagnostic.help(None, hint))

    # --- names ----------------------------------------------------------------------------------

    def local(self, name: str, at: int) -> Expr:
        """The variable ``%name`` means here; an unknown one is reported and stands for itself."""
        variable = self.locals.names.get(name)
        if variable is None:
            variable = self.free_vars.get(name)
        if variable is None:
            best = nearest(name, [*self.locals.names, *self.free_vars])
            hint = f"declare it with `free_var %{name};`" if best is None else f"is it `%{best}`?"
            self.complain(f"the local variable `%{name}` is not defined here", hint, at)
            variable = self.free_vars[name] = Var(name)
        return variable

    def graph_value(self, number: str, at: int) -> Expr:
        """The expression bound to ``%number``."""
        value = self.graph.names.get(number)
        if value is None:
            self.fail(f"the graph variable `%{number}` is not defined before its use", at=at)
        return value  # type: ignore[no-any-return]

    def global_var(self, name: str) -> GlobalVar:
        """The global ``@name``, the same object everywhere; it may be defined later."""
        found = self.globals.get(name)
        if found is None:
            found = self.globals[name] = GlobalVar(name)
        return found

    def type_name(self, name: str) -> TypeVar | GlobalTypeVar:
        """The type variable in scope or the global type ``name``; it may be defined later."""
        found = self.type_vars.names.get(name) or self.types.get(name)
        if found is None:
            found = self.types[name] = GlobalTypeVar(name)
        return found

    def meta_node(self) -> Any:
        """Take a ``meta[Key][i]`` token and give the node it names."""
        at = self.position
        key, _, index = self.expect(META)[5:-1].partition("][")
        nodes = self.meta.get(key)
        if nodes is None:
            self.fail(f"no entry in the metadata for `{key}`", _META_HINT, at)
        if int(index) >= len(nodes):
            self.fail(f"index {index} is out of range: `{key}` has {len(nodes)} entries", at=at)
        return nodes[int(index)]


_META_HINT = "print with show_meta_data=True, or pass the nodes as init_meta_table"


def _quoted(kind: str) -> str:
    if kind == EOF:
        return _SHOWN[kind]
    return f"`{kind}`" if not kind[0].isalpha() or kind[-1] in "_]" else f"a {kind}"


__all__ = ["Cursor", "Scopes"]
