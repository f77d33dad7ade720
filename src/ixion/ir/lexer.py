"""Tokens of the Relay text form.

One regular expression per token, blanks and comments included, so that a text of a megabyte takes a
fraction of a second. Three forms go beyond Relay, for texts that Relay cannot write at all: quoted
variable names (``%"input.1"``), ``inff16``/``inff64``, and the arrows ``->`` and ``=>`` as single
tokens.
"""

from __future__ import annotations

import re
from typing import NoReturn

from ixion.ir.diagnostics import Diagnostic, DiagnosticContext, SourceText

GRAPH, LOCAL, GLOBAL, IDENT = "graph variable", "local variable", "global variable", "identifier"
INT, FLOAT, STRING, META = "integer", "float", "string", "meta reference"
VERSION, METADATA, EOF = "version", "metadata", "end of file"

# The version of the text form, and the metadata entry that holds a module's attributes.
SEMVER = "0.0.5"
MODULE_ATTRS = "ixion.ModuleAttrs"

KEYWORDS = frozenset(
    "let fn def if else type match match? extern free_var ref ref_read ref_write True False _"
    .split()
)  # fmt: skip

_NAME = r"[A-Za-z_/][A-Za-z0-9_/]*"
_COMMENT = r"/\*[^*/]*(?:(?:\*(?!/)|/(?!\*))[^*/]*)*\*/"
_TOKEN = re.compile(
    rf"""(?:[ \t\n]+|\r\n|//[^\n]*|{_COMMENT})*(?:
      %(?P<graph>\d+)
    | %(?P<local>{_NAME}|"[^"\n]*")
    | @(?P<global>{_NAME}|"[^"\n]*")
    | (?P<meta>meta\[[^\]\s]*\]\[\d+\])
    | (?P<float>-*(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?f\d*|inff\d*)(?![A-Za-z0-9_]))
    | (?P<badnum>-*\d+(?:\.\d+)?[eE][+-]?\d+|-*\d+\.\d+)
    | (?P<int>-*\d+(?:i\d*)?)
    | (?P<open>/\*)
    | (?P<ident>match\?|[A-Za-z_][A-Za-z0-9_/]*)
    | (?P<string>"[^"]*")
    | (?P<attr>\#\[[^\]]*\])
    | (?P<punct><=|>=|==|!=|->|=>|[()\[\]{{}},;:.=+\-*/<>?])
    | (?P<eof>\Z)
    )""",
    re.VERBOSE,
)
_MAX_NUMBER = 1000  # characters; Python refuses to convert texts of more than 4300 digits
_VERSION = re.compile(r'#\[version\s*=\s*"([^"]*)"\]')
_NUMBER = re.compile(r"(-*)(.*?)([if])(\d*)\Z", re.DOTALL)
_KINDS = {
    "graph": GRAPH, "local": LOCAL, "global": GLOBAL, "meta": META, "float": FLOAT, "int": INT,
    "string": STRING, "eof": EOF,
}  # fmt: skip


class Tokens:
    """The tokens of a text in four parallel lists: kind, text, start and end offset.

    The kind of a keyword or a punctuation mark is its own text. Names come without their sigil,
    strings without quotes.
    """

    __slots__ = ("ends", "kinds", "source", "starts", "texts")

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, kind: str, text: str, start: int, end: int) -> None:
        """Append one token."""
        self.kinds.append(kind)
        self.texts.append(text)
        self.starts.append(start)
        self.ends.append(end)


def tokenize(source: SourceText, diagnostics: DiagnosticContext) -> Tokens:
    """All tokens of a text, ending with one EOF; a ``#[metadata]`` token takes the rest of the
    text.

    Raises ``DiagnosticError`` at the first character that starts no token. Linear in the length of
    the text.
    """
    tokens = Tokens(source)
    text, match, add = source.text, _TOKEN.match, tokens.add
    position = 0
    while True:
        found = match(text, position)
        if found is None:
            _reject(source, diagnostics, position)
        group = found.lastgroup or ""
        start, position = found.span(group)
        if group == "punct":
            kind = found[group]
            add(kind, kind, start, position)
        elif group == "ident":
            word = found[group]
            add(word if word in KEYWORDS else IDENT, word, start, position)
        elif group in ("local", "global", "string"):
            add(_KINDS[group], found[group].strip('"'), start - (group != "string"), position)
        elif group == "eof":
            add(EOF, "", start, start)
            return tokens
        elif group == "open":
            position = _skip_nested(source, diagnostics, start)
        elif group == "attr":
            position = _attribute(tokens, diagnostics, found[group], start, position)
        elif group == "badnum":
            _fail(source, diagnostics, start, position, f"invalid number `{found[group]}`",
                  "a floating point literal ends with `f`, as in `1.5f`")  # fmt: skip
        elif position - start > _MAX_NUMBER and group in ("int", "float", "meta"):
            _fail(source, diagnostics, start, position, "this number is too long", None)
        else:
            add(_KINDS[group], found[group], start - (group == "graph"), position)


def _attribute(
    tokens: Tokens, diagnostics: DiagnosticContext, text: str, start: int, end: int
) -> int:
    source = tokens.source
    version = _VERSION.match(text)
    if version:
        tokens.add(VERSION, version[1], start, end)
        return end
    if text == "#[metadata]":
        tokens.add(METADATA, source.text[end:], start, end)
        return len(source.text)
    return _fail(source, diagnostics, start, end, f"unknown attribute `{text}`",
                 'only #[version = "0.0.5"] and #[metadata] are known')  # fmt: skip


def _skip_nested(source: SourceText, diagnostics: DiagnosticContext, start: int) -> int:
    """The offset after a block comment that holds other block comments."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(source.text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return _fail(source, diagnostics, start, start + 2, "this block comment is never closed", None)


def _reject(source: SourceText, diagnostics: DiagnosticContext, position: int) -> NoReturn:
    blank = re.compile(rf"(?:[ \t\n]+|\r\n|//[^\n]*|{_COMMENT})*").match(source.text, position)
    at = blank.end() if blank else position
    rest = source.text[at : at + 1]
    if rest == '"':
        _fail(source, diagnostics, at, at + 1, "this string is never closed", None)
    hint = "write `%name` for a local variable, `@name` for a global one" if rest in "%@" else None
    _fail(source, diagnostics, at, at + 1, f"unexpected character {rest!r}", hint)


def _fail(
    source: SourceText,
    diagnostics: DiagnosticContext,
    start: int,
    end: int,
    message: str,
    hint: str | None,
) -> NoReturn:
    diagnostics.emit_fatal(Diagnostic.error(source.span(start, end), message), hint)


def parse_int(text: str) -> tuple[int, int | None]:
    """Value and width of an integer literal; width None where the text has no ``i`` suffix.

    A bare ``i`` means 32. Every further ``-`` in front flips the sign.
    """
    found = _NUMBER.match(text)
    if found is None:
        digits = text.lstrip("-")
        sign = -1 if (len(text) - len(digits)) % 2 else 1
        return sign * int(digits), None
    sign = -1 if len(found[1]) % 2 else 1
    return sign * int(found[2]), int(found[4] or 32)


def parse_float(text: str) -> tuple[float, int]:
    """Value (in double precision) and width of a float literal; the width defaults to 32."""
    digits = text.lstrip("-")
    sign = -1.0 if (len(text) - len(digits)) % 2 else 1.0
    if digits.startswith("inff"):
        return sign * float("inf"), int(digits[4:] or 32)
    body, _, width = digits.rpartition("f")
    return sign * float(body), int(width or 32)


__all__ = ["KEYWORDS", "Tokens", "parse_float", "parse_int", "tokenize"]
