"""Parameter values of a `.pnnx.param` line.

The text carries no type, so the type is read off its spelling. Beyond pnnx's own reader this takes
complex numbers, and numbers as every writer so far spelled them (`1.000000e-05`, `1e-5`, `2.0`).
"""

from __future__ import annotations

import re

#: None, bool, int, float, complex, str, or a list of those.
Value = None | bool | int | float | complex | str | list["Value"]

#: pnnx's C `int` maximum stands for "no limit" (a slice's end, an unselected axis).
NO_LIMIT = 2147483647

_WORDS: dict[str, Value] = {"None": None, "()": None, "[]": None, "True": True, "False": False}
_INT = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_COMPLEX = re.compile(rf"({_FLOAT.pattern})\+?({_FLOAT.pattern})j")
#: More digits than a 64-bit number or a float has are no number; `int` of them takes long.
_MOST_DIGITS = 40


def parse_value(text: str) -> Value:
    """The value that `text` spells; what is no number, word or list is a string.

    Lists are not nested (they never are, outside `expr`, which is kept as text); an empty one is
    None, as pnnx reads it.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] in ("(", "[") and text[-1:] in (")", "]"):
        return [parse_value(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return _number(text)


def _number(text: str) -> Value:
    if len(text) > _MOST_DIGITS or not text:
        return text
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    # A negative imaginary part is written `1e+00+-2e+00j`.
    match = _COMPLEX.fullmatch(text)
    return complex(float(match[1]), float(match[4])) if match else text
