"""Index arithmetic: scalar int64 values as a constant plus multiples of names.

Unrolled loops make indices that differ by constants only. Keeping ``constant + sum(factor * name)``
apart until an address is needed lets all of them share one pointer and differ in the displacement
of the load, and folds everything that unrolling makes known.
"""

from __future__ import annotations

from ixion.codegen.emit_types import memory_type
from ixion.codegen.emit_writer import Writer
from ixion.te.stmt import Buffer

Terms = tuple[tuple[str, int], ...]  # (name, factor), no name twice, sorted
Linear = tuple[int, Terms]

_LIMIT = 1 << 63


def as_linear(value: Linear | str) -> Linear:
    return value if isinstance(value, tuple) else (0, ((value, 1),))


def add(a: Linear, b: Linear) -> Linear:
    if not b[1]:
        return wrapped(a[0] + b[0]), a[1]
    if not a[1]:
        return wrapped(a[0] + b[0]), b[1]
    terms = dict(a[1])
    for name, factor in b[1]:
        total = terms.get(name, 0) + factor
        if total:
            terms[name] = total
        else:
            del terms[name]
    return wrapped(a[0] + b[0]), tuple(sorted(terms.items()))


def scale(a: Linear, k: int) -> Linear:
    if k == 1:
        return a
    if k == 0:
        return 0, ()
    return wrapped(a[0] * k), tuple((name, factor * k) for name, factor in a[1])


def subtract(a: Linear, b: Linear) -> Linear:
    return add(a, scale(b, -1))


def wrapped(value: int) -> int:
    return (value + _LIMIT) % (2 * _LIMIT) - _LIMIT if not -_LIMIT <= value < _LIMIT else value


class Indices:
    """Turns linear forms into names and addresses; one per function."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.pointers: dict[Buffer, str] = {}

    def name(self, value: Linear | str) -> str:
        """The operand that holds ``value``: a name, or the digits of a constant."""
        if isinstance(value, str):
            return value
        constant, terms = value
        if not terms:
            return str(constant)
        total = ""
        for name, factor in self._outermost_first(terms):
            part = self._scaled(name, factor)
            total = self.writer.index(f"add i64 {total}, {part}", total, part) if total else part
        if constant:
            return self.writer.index(f"add i64 {total}, {constant}", total)
        return total

    def _scaled(self, name: str, factor: int) -> str:
        return name if factor == 1 else self.writer.index(f"mul i64 {name}, {factor}", name)

    def _outermost_first(self, terms: Terms) -> Terms:
        """Sums grow from what changes least, so that partial sums are loop-invariant."""
        if len(terms) == 1:
            return terms
        depth = self.writer.depth
        return tuple(sorted(terms, key=lambda t: depth.get(t[0], 0)))

    def address(self, buffer: Buffer, index: Linear) -> str:
        """Pointer to element ``index``, never claimed to be inside an object."""
        constant, terms = index
        kind = memory_type(buffer.dtype)
        pointer = self.pointers[buffer]
        for name, factor in self._outermost_first(terms):
            part = self._scaled(name, factor)
            pointer = self.writer.index(
                f"getelementptr {kind}, ptr {pointer}, i64 {part}", pointer, part
            )
        if constant:
            return self.writer.here(f"getelementptr {kind}, ptr {pointer}, i64 {constant}")
        return pointer

    # --- operations ---------------------------------------------------------------------------

    def operation(self, op: str, a: Linear, b: Linear) -> Linear | None:
        """``op`` where it stays linear or folds; None when it takes an instruction."""
        if op == "add":
            return add(a, b)
        if op == "sub":
            return subtract(a, b)
        if op == "mul":
            if not b[1]:
                return scale(a, b[0])
            return None if a[1] else scale(b, a[0])
        if op in ("floordiv", "floormod"):
            return self._divided(op, a, b)
        if op in ("min", "max"):
            return _extreme(op, a, b)
        return None if a[1] or b[1] else _folded(op, a[0], b[0])

    def _divided(self, op: str, a: Linear, b: Linear) -> Linear | None:
        """Multiples of the divisor leave a floor division exactly."""
        divisor = b[0]
        if b[1]:
            return None
        if divisor == 0:
            return 0, ()
        if divisor < 0:
            return None if a[1] else _folded(op, a[0], divisor)
        if not a[1]:
            return (a[0] // divisor if op == "floordiv" else a[0] % divisor), ()
        whole = tuple((n, f // divisor) for n, f in a[1] if f % divisor == 0)
        if len(whole) == len(a[1]):
            return (a[0] // divisor, whole) if op == "floordiv" else (a[0] % divisor, ())
        return None

    def compare(self, op: str, a: Linear, b: Linear) -> bool | None:
        """The outcome when both sides differ by a constant."""
        constant, terms = subtract(a, b)
        if terms:
            return None
        return {
            "eq": constant == 0, "ne": constant != 0, "lt": constant < 0,
            "le": constant <= 0, "gt": constant > 0, "ge": constant >= 0,
        }[op]  # fmt: skip


def _extreme(op: str, a: Linear, b: Linear) -> Linear | None:
    constant, terms = subtract(a, b)
    if terms:
        return None
    return a if (constant >= 0) == (op == "max") else b


def _folded(op: str, a: int, b: int) -> Linear | None:
    """Operations on two constants; shifts and other rare cases out of range are left to LLVM."""
    if op in ("and", "or", "xor"):
        return {"and": a & b, "or": a | b, "xor": a ^ b}[op], ()
    if op in ("shl", "shr") and 0 <= b < 64:
        return wrapped(a << b) if op == "shl" else a >> b, ()
    if op in ("truncdiv", "truncmod"):
        if b == 0:
            return 0, ()
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return wrapped(quotient if op == "truncdiv" else a - b * quotient), ()
    if op == "floordiv":
        return wrapped(a // b), ()
    if op == "floormod":
        return a % b, ()
    return None
