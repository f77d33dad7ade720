"""Loads and stores: whole vectors, first lanes only, and elements a stride apart.

No byte outside the chosen elements and what lies between them is touched, and no alignment beyond
that of one element is claimed.
"""

from __future__ import annotations

from ixion.base import dtype as dtypes
from ixion.codegen.emit_arith import literal
from ixion.codegen.emit_convert import Conversions
from ixion.codegen.emit_index import Indices, Linear
from ixion.codegen.emit_types import memory_type, vector
from ixion.te.stmt import Buffer


class Memory:
    """Emits accesses to global and scratch buffers."""

    def __init__(self, indices: Indices, conversions: Conversions) -> None:
        self.indices, self.conversions = indices, conversions
        self.writer = indices.writer
        self.pure = self.writer.pure

    def load(
        self, buffer: Buffer, index: Linear, lanes: int, stride: int, count: str | None
    ) -> str:
        """A register value; a load repeated without a store in between is made once."""
        if count == str(lanes):
            count = None
        key = (buffer, index, lanes, stride, count)
        known = self.writer.loads.get(key)
        if known is None:
            raw = self._raw(buffer, index, lanes, stride, count)
            known = self.conversions.from_memory(raw, buffer.dtype, lanes)
            self.writer.loads[key] = known
        return known

    def _raw(
        self, buffer: Buffer, index: Linear, lanes: int, stride: int, count: str | None
    ) -> str:
        if lanes == 1:
            return self._first(buffer, index, count)
        if stride == 1:
            address = self.indices.address(buffer, index)
            return self._vector(buffer.dtype, address, lanes, count)
        if count is not None:
            return self._gather(buffer, index, lanes, stride, count)
        if stride == 0:
            one = self._vector(buffer.dtype, self.indices.address(buffer, index), 1, None)
            return self._splat(one, memory_type(buffer.dtype), lanes)
        if 1 < stride <= 4:
            return self._deinterleave(buffer, index, lanes, stride)
        return self._one_by_one(buffer, index, lanes, stride)

    def _first(self, buffer: Buffer, index: Linear, count: str | None) -> str:
        """A single element; under a count it is a vector of one so that it can be masked."""
        address = self.indices.address(buffer, index)
        if count is None:
            return self._vector(buffer.dtype, address, 1, None)
        pair = self._vector(buffer.dtype, address, 2, count)
        return self.pure(
            f"extractelement {vector(memory_type(buffer.dtype), 2)} {pair}, i64 0", pair
        )

    def _vector(self, dtype: str, address: str, lanes: int, count: str | None) -> str:
        kind, align = vector(memory_type(dtype), lanes), dtypes.itemsize(dtype)
        if count is None:
            return self.writer.here(f"load {kind}, ptr {address}, align {align}")
        name = f"llvm.masked.load.{_suffix(dtype, lanes)}.p0"
        mask = vector("i1", lanes)
        self.writer.declare(kind, name, "ptr", "i32", mask, kind)
        chosen = self.mask(count, lanes)
        return self.writer.here(
            f"call {kind} @{name}(ptr {address}, i32 {align}, {mask} {chosen},"
            f" {kind} zeroinitializer)"
        )

    def mask(self, count: str, lanes: int) -> str:
        """True in the first ``count`` lanes."""
        fixed = literal(count)
        if fixed is not None:
            return (
                "<"
                + ", ".join(f"i1 {'true' if i < fixed else 'false'}" for i in range(lanes))
                + ">"
            )
        kind = vector("i32", lanes)
        short = self.pure(f"trunc i64 {count} to i32", count)
        first = self.pure(f"insertelement {kind} poison, i32 {short}, i64 0", short)
        limit = self.pure(
            f"shufflevector {kind} {first}, {kind} poison, {kind} zeroinitializer", first
        )
        steps = ", ".join(f"i32 {i}" for i in range(lanes))
        return self.pure(f"icmp slt {kind} <{steps}>, {limit}", limit)

    def _splat(self, one: str, kind: str, lanes: int) -> str:
        many = vector(kind, lanes)
        first = self.pure(f"insertelement {many} poison, {kind} {one}, i64 0", one)
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.pure(f"shufflevector {many} {first}, {many} poison, {zeros}", first)

    def _deinterleave(self, buffer: Buffer, index: Linear, lanes: int, stride: int) -> str:
        """Whole vectors that cover the span exactly, and shuffles that pick from them.

        The last vector ends with the last element, so it overlaps the one before.
        """
        last = (lanes - 1) * (stride - 1)
        starts = [min(i * lanes, last) for i in range(stride)]
        parts = [
            self._vector(buffer.dtype, self.indices.address(buffer, shifted(index, s)), lanes, None)
            for s in starts
        ]
        result = parts[0]
        for number in range(1, stride):
            picks = [_pick(lane, stride, lanes, number, starts[number]) for lane in range(lanes)]
            result = self._shuffle(result, parts[number], memory_type(buffer.dtype), picks)
        return result

    def _shuffle(self, a: str, b: str, kind: str, picks: list[int]) -> str:
        wide = vector(kind, len(picks))
        chosen = ", ".join("i32 poison" if p < 0 else f"i32 {p}" for p in picks)
        code = f"shufflevector {wide} {a}, {wide} {b}, <{len(picks)} x i32> <{chosen}>"
        return self.pure(code, a, b)

    def _one_by_one(self, buffer: Buffer, index: Linear, lanes: int, stride: int) -> str:
        kind = memory_type(buffer.dtype)
        wide, result = vector(kind, lanes), "poison"
        for lane in range(lanes):
            address = self.indices.address(buffer, shifted(index, lane * stride))
            one = self._vector(buffer.dtype, address, 1, None)
            code = f"insertelement {wide} {result}, {kind} {one}, i64 {lane}"
            result = self.pure(code, result, one)
        return result

    def _gather(self, buffer: Buffer, index: Linear, lanes: int, stride: int, count: str) -> str:
        kind, align = memory_type(buffer.dtype), dtypes.itemsize(buffer.dtype)
        wide, pointers, mask = vector(kind, lanes), vector("ptr", lanes), vector("i1", lanes)
        name = f"llvm.masked.gather.{_suffix(buffer.dtype, lanes)}.v{lanes}p0"
        self.writer.declare(wide, name, pointers, "i32", mask, wide)
        base = self.indices.address(buffer, index)
        steps = ", ".join(f"i64 {i * stride}" for i in range(lanes))
        places = self.pure(f"getelementptr {kind}, ptr {base}, <{lanes} x i64> <{steps}>", base)
        chosen = self.mask(count, lanes)
        return self.writer.here(
            f"call {wide} @{name}({pointers} {places}, i32 {align}, {mask} {chosen},"
            f" {wide} zeroinitializer)"
        )

    def store(
        self, buffer: Buffer, index: Linear, value: str, lanes: int, count: str | None
    ) -> None:
        """Writes a register value; every remembered load is forgotten (buffers may be the same)."""
        raw = self.conversions.to_memory(value, buffer.dtype, lanes)
        self.store_raw(buffer, index, raw, lanes, count)

    def store_raw(
        self, buffer: Buffer, index: Linear, raw: str, lanes: int, count: str | None
    ) -> None:
        address = self.indices.address(buffer, index)
        align = dtypes.itemsize(buffer.dtype)
        if count is not None and lanes == 1:
            raw, lanes = self._splat(raw, memory_type(buffer.dtype), 2), 2
        kind = vector(memory_type(buffer.dtype), lanes)
        if count is None or count == str(lanes):
            self.writer.effect(f"store {kind} {raw}, ptr {address}, align {align}")
        else:
            name, mask = f"llvm.masked.store.{_suffix(buffer.dtype, lanes)}.p0", vector("i1", lanes)
            self.writer.declare("void", name, kind, "ptr", "i32", mask)
            chosen = self.mask(count, lanes)
            self.writer.effect(
                f"call void @{name}({kind} {raw}, ptr {address}, i32 {align}, {mask} {chosen})"
            )
        self.writer.loads.clear()


def shifted(index: Linear, by: int) -> Linear:
    return index[0] + by, index[1]


def _pick(lane: int, stride: int, lanes: int, number: int, start: int) -> int:
    """Where lane's element is when vector ``number`` (from ``start``) joins the vectors before it.

    The first two vectors meet as loaded; later ones meet lanes already in place. -1: not yet seen.
    """
    offset = lane * stride
    if offset >= (number + 1) * lanes:
        return -1
    if offset >= number * lanes:
        return lanes + offset - start
    return offset if number == 1 else lane


def _suffix(dtype: str, lanes: int) -> str:
    kind = memory_type(dtype)
    short = {"float": "f32", "double": "f64"}.get(kind, kind)
    return f"v{lanes}{short}"
