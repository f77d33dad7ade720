"""Text of expressions: what is inlined, what becomes ``%n``, where a scope's lines go.

An expression is written where it is used if it is a leaf, or if it ends a scope and has one user.
Any other gets a graph variable, bound in the innermost open scope just before its first use. So no
line holds more than one operation, and only scopes nest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ixion.ir.adt import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from ixion.ir.expr import (
    Call,
    Constant,
    Expr,
    GlobalVar,
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
from ixion.ir.node import plain_repr
from ixion.ir.op import Op
from ixion.ir.printer_rope import Rope, enclosed, join_lines, render
from ixion.ir.printer_type import TypePrinter, type_param
from ixion.ir.printer_uses import count_uses
from ixion.ir.printer_value import ValuePrinter, scalar_text
from ixion.ir.trampoline import Step, run

_INLINE = (GlobalVar, Constant, Op, Var, Constructor)
_COMMENTED = (Constant, Call, Var, Function, Tuple, TupleGetItem)
_PLAIN_NAME = re.compile(r"[A-Za-z_/][A-Za-z0-9_/]*")


def quoted_name(name: str) -> str:
    """A variable name, in quotes where it is not an identifier."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return f'"{name}"'


class ExprPrinter:
    """Prints expressions that share one numbering and one set of names."""

    def __init__(
        self,
        values: ValuePrinter,
        types: TypePrinter,
        annotate: Callable[[Expr], str] | None,
        constants: Callable[[Constant], str] | None = None,
    ) -> None:
        self.values = values
        self.types = types
        self.annotate = annotate
        self.constants = constants
        self.scopes: list[list[Rope]] = []
        self._uses: dict[int, int] = {}
        self._memo: dict[int, Rope] = {}
        self._declared: dict[int, str] = {}
        self._bound: set[int] = set()
        self._commented: set[int] = set()
        self._names: dict[str, int] = {}
        self._temporaries = 0

    def root(self, expr: Expr) -> str:
        """The text of a whole expression."""
        self._uses = count_uses(expr)
        return render(run(self._scope(expr)))

    def definition(self, prefix: str, function: Function) -> str:
        """The text of a module's function, ``prefix`` being ``def @name``."""
        self._uses = count_uses(function)
        self.scopes.append([])
        text = run(self._function_text(prefix, function))
        self.scopes.pop()
        return render(text)

    def match_pattern(self, pattern: Pattern) -> str:
        """The text of a match pattern by itself."""
        return run(self._pattern(pattern))

    # --- scopes, names, comments ----------------------------------------------------------------

    def _scope(self, node: Expr) -> Step[Rope]:
        self.scopes.append([])
        last = yield self._print(node, True)
        lines = self.scopes.pop()
        lines.append(last)
        return join_lines(lines)

    def _body(self, node: Expr) -> Step[Rope]:
        return enclosed("{", (yield self._scope(node)), "}")

    def _unique(self, prefix: str) -> str:
        names = self._names
        count = names.get(prefix)
        name = prefix
        if count is not None:
            while name in names:
                count += 1
                name = f"{prefix}{count}"
            names[prefix] = count
        names[name] = 0
        return name

    def _declare(self, variable: Var) -> str:
        """Name a variable where it is bound; later uses print the name alone."""
        if id(variable) in self._memo:
            return f"{self._memo[id(variable)]}-malformed-ir"
        hint = re.sub(r'["\n]', "_", variable.name_hint)
        if not (hint[:1].isalpha() and hint[:1].isascii()):
            hint = "v" + hint
        name = self._memo[id(variable)] = "%" + quoted_name(self._unique(hint))
        text = name
        device = variable.virtual_device
        if device is not None:
            text += f" {{virtual_device={self.values.value(device)}}}"
        if variable.type_annotation is not None:
            text += f": {self.types.text(variable.type_annotation)}"
        return text + self._comment(variable)

    def _comment(self, expr: Expr) -> str:
        """The type and span of an expression, the first time it is shown."""
        if id(expr) in self._commented:
            return ""
        self._commented.add(id(expr))
        if self.annotate is not None:
            return self.annotate(expr)
        if not isinstance(expr, _COMMENTED):
            return ""
        kind = expr.checked_type_or_none
        span = expr.span
        if kind is None and span is None:
            return ""
        shown = "" if kind is None else f" ty={self.types.text(kind)}"
        if span is not None:
            source = "" if span.source_name is None else span.source_name.name
            shown += f" span={_in_comment(source)}:{span.line}:{span.column}"
        return f" /*{shown} */"

    # --- the walk -------------------------------------------------------------------------------

    def _print(self, expr: Expr, inline: bool = False) -> Step[Rope]:
        if id(expr) not in self._memo:
            yield self._visit(expr)
        return self._place(expr, inline)

    def _place(self, expr: Expr, inline: bool = False) -> Rope:
        """The text that stands for a visited expression at a place of use."""
        key = id(expr)
        text = self._memo[key]
        if isinstance(expr, Var):
            declaration = self._declared.pop(key, None)
            if declaration is not None:
                self.scopes[-1].append(f"free_var {declaration};")
            return text
        here = isinstance(expr, _INLINE) or (inline and self._uses.get(key, 0) <= 1)
        if not here:
            if key in self._bound:
                return text
            if isinstance(expr, Let):
                text = enclosed("(", text, ")")
        comment = self._comment(expr)
        if comment:
            text = text + comment if isinstance(text, str) else [text, comment]
        if here:
            self._memo[key] = text
            return text
        self._bound.add(key)
        name = self._memo[key] = f"%{self._temporaries}"
        self._temporaries += 1
        line: Rope = f"{name} = {text};" if isinstance(text, str) else [f"{name} = ", text, ";"]
        self.scopes[-1].append(line)
        return name

    def _visit(self, root: Expr) -> Step[None]:
        """Give ``root`` and the calls and tuples it consists of their texts, inputs first."""
        memo = self._memo
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in memo:
                continue
            kind = type(node)
            if not expanded and kind in _DATAFLOW:
                stack.append((node, True))
                stack.extend((child, False) for child in _DATAFLOW[kind](node))
                continue
            text: Rope
            if kind in _SIMPLE:
                text = _SIMPLE[kind](self, node)
            elif kind in _SCOPED:
                text = yield _SCOPED[kind](self, node)
            else:
                text = plain_repr(node)
            # A variable has entered its name itself.
            memo.setdefault(id(node), text)

    # --- leaves and dataflow --------------------------------------------------------------------

    def _free_var(self, node: Var) -> str:
        self._declared[id(node)] = self._declare(node)
        return str(self._memo[id(node)])

    def _constant(self, node: Constant) -> str:
        literal = scalar_text(node)
        if literal is not None:
            return literal
        if self.constants is not None:
            return self.constants(node)
        return self.values.meta.reference(node.type_key, node)

    def _global(self, node: GlobalVar) -> str:
        return "@" + quoted_name(node.name_hint)

    def _op(self, node: Op) -> str:
        return node.name

    def _constructor(self, node: Constructor) -> str:
        return node.name_hint

    def _name(self, expr: Expr) -> str:
        """What stands for an operand, which is never more than a name or a literal."""
        return str(self._place(expr))

    def _tuple(self, node: Tuple) -> str:
        inner = ", ".join([self._name(item) for item in node.fields])
        return f"({inner}{',' if len(node.fields) == 1 else ''})"

    def _item(self, node: TupleGetItem) -> str:
        return f"{self._name(node.tuple_value)}.{node.index}"

    def _call(self, node: Call) -> str:
        # Arguments first: what they need is bound above what the callee needs.
        args = [self._name(arg) for arg in node.args]
        args += self.values.call_attrs(node.attrs, node.op)
        op = node.op
        if isinstance(op, Constructor):
            return f"{op.name_hint}({', '.join(args)})" if op.inputs else op.name_hint
        return f"{self._name(op)}({', '.join(args)})"

    # --- scoped forms ---------------------------------------------------------------------------

    def _ref_create(self, node: RefCreate) -> Step[Rope]:
        return f"ref({yield self._print(node.value)})"

    def _ref_read(self, node: RefRead) -> Step[Rope]:
        return f"ref_read({yield self._print(node.ref)})"

    def _ref_write(self, node: RefWrite) -> Step[Rope]:
        ref = yield self._print(node.ref)
        return f"ref_write({ref}, {yield self._print(node.value)})"

    def _if(self, node: If) -> Step[Rope]:
        condition = yield self._print(node.cond)
        first = yield self._body(node.true_branch)
        second = yield self._body(node.false_branch)
        return [f"if ({condition}) ", first, " else ", second]

    def _let(self, node: Expr) -> Step[Rope]:
        lines: list[Rope] = []
        opened = False
        while isinstance(node, Let):
            head = f"let {self._declare(node.var)} = "
            value = yield self._print(node.value, True)
            if isinstance(node.value, Let) and not isinstance(value, str):
                value = enclosed("(", value, ")")
            if not opened:
                # What the first value needs goes before the chain, the rest between its lines.
                self.scopes.append(lines)
                opened = True
            lines.append(f"{head}{value};" if isinstance(value, str) else [head, value, ";"])
            node = node.body
        lines.append((yield self._scope(node)))
        self.scopes.pop()
        return join_lines(lines)

    def _function(self, node: Function) -> Step[Rope]:
        return self._function_text("fn ", node)

    def _function_text(self, prefix: str, node: Function) -> Step[Rope]:
        generics = ", ".join(map(type_param, node.type_params))
        params = [self._declare(param) for param in node.params]
        params += [self.values.pair(key, value) for key, value in _function_attrs(node)]
        head = f"{prefix}{f'[{generics}]' if generics else ''}({', '.join(params)}) "
        if node.ret_type is not None:
            head += f"-> {self.types.text(node.ret_type)} "
        return [head, (yield self._body(node.body))]

    def _match(self, node: Match) -> Step[Rope]:
        data = yield self._print(node.data)
        lines: list[Rope] = []
        for clause in node.clauses:
            head = run(self._pattern(clause.lhs))
            lines.append([f"{head} => ", (yield self._body(clause.rhs)), ","])
        left = f"match{'' if node.complete else '?'} ({data}) {{"
        return enclosed(left, join_lines(lines), "}") if lines else [left, "}"]

    def _pattern(self, node: Pattern) -> Step[str]:
        if isinstance(node, PatternVar):
            return self._declare(node.var)
        if isinstance(node, PatternWildcard):
            return "_"
        assert isinstance(node, (PatternConstructor, PatternTuple))
        texts = []
        for inner in node.patterns:
            text = yield self._pattern(inner)
            texts.append(text)
        listed = f"({', '.join(texts)})"
        if isinstance(node, PatternTuple):
            return listed
        return node.constructor.name_hint + (listed if texts else "")


def _function_attrs(node: Function) -> list[tuple[str, Any]]:
    pairs = [] if node.attrs is None else list(node.attrs.items())
    if node.virtual_device is not None:
        pairs.append(("virtual_device", node.virtual_device))
    return pairs


def _in_comment(name: str) -> str:
    """A source name that may stand in a block comment without ending or nesting it."""
    return name.replace("*/", "*_/").replace("/*", "/_*") if "*" in name else name


def _call_children(node: Any) -> list[Expr]:
    return [*reversed(node.args), node.op]


# Children in the order they are put on a stack: the last one is visited first.
_DATAFLOW: dict[type, Callable[[Any], list[Expr]]] = {
    Call: _call_children,
    Tuple: lambda node: list(reversed(node.fields)),
    TupleGetItem: lambda node: [node.tuple_value],
}
_SIMPLE: dict[type, Callable[[ExprPrinter, Any], str]] = {
    Var: ExprPrinter._free_var,
    Constant: ExprPrinter._constant,
    GlobalVar: ExprPrinter._global,
    Op: ExprPrinter._op,
    Constructor: ExprPrinter._constructor,
    Tuple: ExprPrinter._tuple,
    TupleGetItem: ExprPrinter._item,
    Call: ExprPrinter._call,
}
_SCOPED: dict[type, Callable[[ExprPrinter, Any], Step[Rope]]] = {
    RefCreate: ExprPrinter._ref_create,
    RefRead: ExprPrinter._ref_read,
    RefWrite: ExprPrinter._ref_write,
    If: ExprPrinter._if,
    Let: ExprPrinter._let,
    Function: ExprPrinter._function,
    Match: ExprPrinter._match,
}


__all__ = ["ExprPrinter", "quoted_name"]
