"""A writer of LLVM functions that are control flow over records.

Loads, stores and branches at byte offsets. Mutable locals are stack slots; the sroa pass turns them
into registers. Arguments, locals and block labels are namespaces of their own.
"""

from __future__ import annotations

_ALIGN = {"i8": 1, "i32": 4, "i64": 8, "ptr": 8}


class FunctionText:
    """One `define`, written line by line. Types are LLVM's (`i32`, `i64`, `ptr`), values text."""

    def __init__(self, head: str, locals_: dict[str, str] | None = None) -> None:
        self._lines = [f"define {head} nounwind {{", "entry:"]
        self._count = 0
        self._locals = locals_ or {}
        for name, kind in self._locals.items():
            self.do(f"%{name}.slot = alloca {kind}")

    def text(self) -> str:
        """The whole function."""
        return "\n".join([*self._lines, "}", ""])

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def op(self, instruction: str) -> str:
        """Append an instruction and return the operand that holds its result."""
        self._count += 1
        self.do(f"%v{self._count} = {instruction}")
        return f"%v{self._count}"

    def label(self, name: str) -> None:
        """Begin a block."""
        self._lines.append(f"{name}.block:")

    def jump(self, label: str) -> None:
        self.do(f"br label %{label}.block")

    def branch(self, condition: str, yes: str, no: str) -> None:
        self.do(f"br i1 {condition}, label %{yes}.block, label %{no}.block")

    def switch(self, value: str, cases: dict[int, str], default: str) -> None:
        arms = " ".join(f"i64 {case}, label %{label}.block" for case, label in cases.items())
        self.do(f"switch i64 {value}, label %{default}.block [ {arms} ]")

    def compare(self, relation: str, left: str, right: str | int, kind: str = "i64") -> str:
        return self.op(f"icmp {relation} {kind} {left}, {right}")

    def at(self, base: str, offset: int | str) -> str:
        """Address `offset` bytes after `base`."""
        return base if offset == 0 else self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, kind: str, base: str, offset: int | str = 0, order: str = "") -> str:
        """Load; with a memory order, atomically."""
        atomic, tail = ("atomic ", f" {order}") if order else ("", "")
        return self.op(
            f"load {atomic}{kind}, ptr {self.at(base, offset)}{tail}, align {_ALIGN[kind]}"
        )

    def store(
        self, kind: str, value: str | int, base: str, offset: int | str = 0, order: str = ""
    ) -> None:
        """Store; with a memory order, atomically."""
        atomic, tail = ("atomic ", f" {order}") if order else ("", "")
        where = self.at(base, offset)
        self.do(f"store {atomic}{kind} {value}, ptr {where}{tail}, align {_ALIGN[kind]}")

    def get(self, name: str) -> str:
        """Value of a local."""
        return self.load(self._locals[name], f"%{name}.slot")

    def set(self, name: str, value: str | int) -> None:
        """Assign a local."""
        self.store(self._locals[name], value, f"%{name}.slot")
