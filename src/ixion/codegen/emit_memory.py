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
from ixion.codegen.intrinsics import has_masked_access
from ixion.te.stmt import Buffer

# Loads after which a loaded value is no longer kept for its next use.
_SOON = 32


class Memory:
    """Emits accesses to global and scratch buffers."""

    def __init__(self, indices: Indices, conversions: Conversions) -> None:
        self.indices, self.conversions = indices, conversions
        self.writer = indices.writer
        self.target = conversions.arithmetic.target
        self.pure = self.writer.pure
        self.clock = 0  # loads so far
        self.epoch = 0  # fences so far

    def load(
        self, buffer: Buffer, index: Linear, lanes: int, stride: int, count: str | None
    ) -> str:
        """A register value; a load repeated soon, without a store in between, is made once.

        Repeated late it is made again: the value would fill a register all that time. A fence keeps
        LLVM from joining the two after all; it makes no code.
        """
        if count == str(lanes):
            count = None
        key = (buffer, index, lanes, stride, count)
        self.clock += 1
        known = self.writer.loads.get(key)
        if known is not None:
            value, used, epoch = known
            if self.clock - used <= _SOON:
                self.writer.loads[key] = (value, self.clock, epoch)
                return value
            if epoch == self.epoch:
                self.writer.effect('fence syncscope("singlethread") seq_cst')
                self.epoch += 1
        raw = self._raw(buffer, index, lanes, stride, count)
        value = self.conversions.from_memory(raw, buffer.dtype, lanes)
        self.writer.loads[key] = (value, self.clock, self.epoch)
        return value

    def _raw(
        self, buffer: Buffer, index: Linear, lanes: int, stride: int, count: str | None
    ) -> str:
        if lanes == 1:
            return self._first(buffer, index, count)
        if stride == 1:
            if count is not None:
                return self._first_lanes(buffer, index, lanes, count)
            return self._vector(buffer.dtype, self.indices.address(buffer, index), lanes)
        if count is not None:
            return self._gather(buffer, index, lanes, stride, count)
        if stride == 0:
            one = self._vector(buffer.dtype, self.indices.address(buffer, index), 1)
            return self._splat(one, memory_type(buffer.dtype), lanes)
        if stride == -1:
            start = self.indices.address(buffer, shifted(index, 1 - lanes))
            forward = self._vector(buffer.dtype, start, lanes)
            return self._shuffle(
                forward, "poison", memory_type(buffer.dtype), [*reversed(range(lanes))]
            )
        if 1 < stride <= 4:
            return self._deinterleave(buffer, index, lanes, stride)
        return self._one_by_one(buffer, index, lanes, stride)

    def _first(self, buffer: Buffer, index: Linear, count: str | None) -> str:
        """A single element; under a count it is a vector of two so that it can be masked."""
        if count is None:
            return self._vector(buffer.dtype, self.indices.address(buffer, index), 1)
        pair = self._first_lanes(buffer, index, 2, count)
        kind = vector(memory_type(buffer.dtype), 2)
        return self.pure(f"extractelement {kind} {pair}, i64 0", pair)

    def _vector(self, dtype: str, address: str, lanes: int) -> str:
        kind, align = vector(memory_type(dtype), lanes), dtypes.itemsize(dtype)
        return self.writer.here(f"load {kind}, ptr {address}, align {align}")

    def _first_lanes(self, buffer: Buffer, index: Linear, lanes: int, count: str) -> str:
        """The first ``count`` lanes of a vector, the others 0."""
        pieces = self._pieces(count, buffer.dtype)
        if pieces is not None:
            return self._from_pieces(buffer, index, lanes, pieces)
        kind, mask = vector(memory_type(buffer.dtype), lanes), vector("i1", lanes)
        name = f"llvm.masked.load.{_suffix(buffer.dtype, lanes)}.p0"
        self.writer.declare(kind, name, "ptr", "i32", mask, kind)
        address, align = self.indices.address(buffer, index), dtypes.itemsize(buffer.dtype)
        return self.writer.here(
            f"call {kind} @{name}(ptr {address}, i32 {align}, {mask} {self.mask(count, lanes)},"
            f" {kind} zeroinitializer)"
        )

    def _pieces(self, count: str, dtype: str) -> list[tuple[int, int]] | None:
        """(first lane, size) of whole accesses that make up a known count, None for masking.

        LLVM 22 turns a masked store of one truncated element into a store that is too wide, so a
        power of two is never masked.
        """
        fixed = literal(count)
        if fixed is None:
            return None
        if fixed & (fixed - 1) and has_masked_access(self.target, 8 * dtypes.itemsize(dtype)):
            return None
        sizes = [1 << i for i in reversed(range(fixed.bit_length())) if fixed >> i & 1]
        return [(sum(sizes[:i]), size) for i, size in enumerate(sizes)]

    def _from_pieces(
        self, buffer: Buffer, index: Linear, lanes: int, pieces: list[tuple[int, int]]
    ) -> str:
        kind = memory_type(buffer.dtype)
        whole, result = vector(kind, lanes), "zeroinitializer"
        for start, size in pieces:
            address = self.indices.address(buffer, shifted(index, start))
            piece = self._vector(buffer.dtype, address, size)
            if size == 1:
                code = f"insertelement {whole} {result}, {kind} {piece}, i64 {start}"
                result = self.pure(code, result, piece)
                continue
            picks = ", ".join(f"i32 {i if i < size else -1}" for i in range(lanes))
            picks = picks.replace("i32 -1", "i32 poison")
            part = vector(kind, size)
            code = f"shufflevector {part} {piece}, {part} poison, <{lanes} x i32> <{picks}>"
            wide = self.pure(code, piece)
            chosen = [lanes + i - start if start <= i < start + size else i for i in range(lanes)]
            result = self._shuffle(result, wide, kind, chosen)
        return result

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
            self._vector(buffer.dtype, self.indices.address(buffer, shifted(index, s)), lanes)
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
            one = self._vector(buffer.dtype, address, 1)
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

    def prefetch(self, buffer: Buffer, index: Linear) -> None:
        """Asks for a line in the second-level cache; one not mapped is ignored by the CPU."""
        self.writer.declare("void", "llvm.prefetch.p0", "ptr", "i32", "i32", "i32")
        address = self.indices.address(buffer, index)
        self.writer.effect(f"call void @llvm.prefetch.p0(ptr {address}, i32 0, i32 2, i32 1)")

    def store(
        self, buffer: Buffer, index: Linear, value: str, lanes: int, count: str | None
    ) -> None:
        """Writes a register value; every remembered load is forgotten (buffers may be the same)."""
        raw = self.conversions.to_memory(value, buffer.dtype, lanes)
        self.store_raw(buffer, index, raw, lanes, count)

    def store_raw(
        self, buffer: Buffer, index: Linear, raw: str, lanes: int, count: str | None
    ) -> None:
        if count is not None and lanes == 1:
            raw, lanes = self._splat(raw, memory_type(buffer.dtype), 2), 2
        pieces = None if count is None else self._pieces(count, buffer.dtype)
        if count is None or count == str(lanes):
            self._store_piece(buffer, index, raw, lanes)
        elif pieces is not None:
            for start, size in pieces:
                part = self._slice(raw, memory_type(buffer.dtype), lanes, start, size)
                self._store_piece(buffer, shifted(index, start), part, size)
        else:
            self._store_masked(buffer, index, raw, lanes, count)
        self.writer.loads.clear()

    def _store_piece(self, buffer: Buffer, index: Linear, raw: str, lanes: int) -> None:
        kind, align = vector(memory_type(buffer.dtype), lanes), dtypes.itemsize(buffer.dtype)
        address = self.indices.address(buffer, index)
        self.writer.effect(f"store {kind} {raw}, ptr {address}, align {align}")

    def _store_masked(
        self, buffer: Buffer, index: Linear, raw: str, lanes: int, count: str
    ) -> None:
        kind, mask = vector(memory_type(buffer.dtype), lanes), vector("i1", lanes)
        name = f"llvm.masked.store.{_suffix(buffer.dtype, lanes)}.p0"
        self.writer.declare("void", name, kind, "ptr", "i32", mask)
        address, align = self.indices.address(buffer, index), dtypes.itemsize(buffer.dtype)
        chosen = self.mask(count, lanes)
        self.writer.effect(
            f"call void @{name}({kind} {raw}, ptr {address}, i32 {align}, {mask} {chosen})"
        )

    def _slice(self, raw: str, kind: str, lanes: int, start: int, size: int) -> str:
        whole = vector(kind, lanes)
        if size == 1:
            return self.pure(f"extractelement {whole} {raw}, i64 {start}", raw)
        picks = ", ".join(f"i32 {i}" for i in range(start, start + size))
        code = f"shufflevector {whole} {raw}, {whole} poison, <{size} x i32> <{picks}>"
        return self.pure(code, raw)


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
