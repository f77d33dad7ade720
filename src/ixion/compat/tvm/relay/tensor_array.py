"""Tensors of varying rank as a data type, and lists of them: text for one element type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

RANKS = range(7)
# The rows of %t from %lower up to %upper.
ROWS = (
    "dyn.strided_slice(%t, reshape(%lower, newshape=[1]), reshape(%upper, newshape=[1]), "
    'ones(shape=[1], dtype="int32"))'
)


def _type(rank: int, dtype: str) -> str:
    return dtype if rank == 0 else f"Tensor[({', '.join('?' * rank)}), {dtype}]"


def _cases(lines: Iterable[str]) -> str:
    return ",\n    ".join(lines)


def definitions(dtype: str) -> str:
    """Relay text of the type ``tensor_<dtype>_t`` and the functions over it and lists of it."""
    name = f"tensor_{dtype}_t"
    constructors = _cases(f"tensor{n}_{dtype}({_type(n, dtype)})" for n in RANKS)
    ranked = [f"tensor{n}_{dtype}" for n in RANKS]
    grown = _cases(
        f"{ctor}(%t) => {larger}(expand_dims(%t, axis=0))" for ctor, larger in pairwise(ranked)
    )
    joined = _cases(
        f"({ctor}(%a), {ctor}(%b)) => {ctor}(concatenate((%a, %b)))" for ctor in ranked[1:]
    )
    taken = _cases(f"{ctor}(%t) => {ctor}({ROWS})" for ctor in ranked[1:])
    unstacked = "".join(_unstack(n, dtype) for n in RANKS[1:])
    return f"""
type {name} {{
    tensor_nil_{dtype},
    {constructors}
}}

// One more dimension in front.
def @tensor_expand_dims_{dtype}(%x: {name}[]) -> {name}[] {{
  match? (%x) {{
    {grown}
  }}
}}

// Two tensors of one rank, one after the other along the first dimension.
def @tensor_concatenate_{dtype}(%x: {name}[], %y: {name}[]) -> {name}[] {{
  match? ((%x, %y)) {{
    {joined}
  }}
}}

// Entries from %lower up to %upper along the first dimension.
def @tensor_take_{dtype}(%x: {name}[], %lower: int32, %upper: int32) -> {name}[] {{
  match? (%x) {{
    {taken}
  }}
}}

// A list of so many empty entries.
def @tensor_array_{dtype}(%count: int32) -> List[{name}[]] {{
  if (%count == 0) {{ Nil }} else {{ Cons(tensor_nil_{dtype}, @tensor_array_{dtype}(%count - 1)) }}
}}

def @tensor_array_read_{dtype}(%array: List[{name}[]], %index: int32) -> {name}[] {{
  @nth(%array, %index)
}}

def @tensor_array_write_{dtype}(
  %array: List[{name}[]], %index: int32, %v: {name}[]
) -> List[{name}[]] {{
  @update(%array, %index, %v)
}}

// The entries joined along their first dimension.
def @tensor_array_concat_{dtype}(%array: List[{name}[]]) -> {name}[] {{
  match (%array) {{
    Nil => tensor_nil_{dtype},
    Cons(%only, Nil) => %only,
    Cons(%first, %others) =>
      @tensor_concatenate_{dtype}(%first, @tensor_array_concat_{dtype}(%others)),
  }}
}}

// The entries joined along a new first dimension.
def @tensor_array_stack_{dtype}(%array: List[{name}[]]) -> {name}[] {{
  @tensor_array_concat_{dtype}(@map(@tensor_expand_dims_{dtype}, %array))
}}
{unstacked}{_moved(name, dtype)}"""


def _moved(name: str, dtype: str) -> str:
    """Functions that pick entries of a list by index, or write several."""
    scatter, split, gather = (f"@tensor_array_{w}_{dtype}" for w in ("scatter", "split", "gather"))
    array, indices = f"List[{name}[]]", "Tensor[(?), int32]"
    count = 'take(shape_of({}, dtype="int32"), 0, axis=0)'
    return f"""
// The list with each of %values written at its index.
def {scatter}(%array: {array}, %indices: {indices}, %values: {array}) -> {array} {{
  {scatter}_from(%array, 0, {count.format("%indices")}, %indices, %values)
}}

def {scatter}_from(
  %array: {array}, %i: int32, %end: int32, %indices: {indices}, %values: {array}
) -> {array} {{
  if (%i == %end) {{
    %array
  }} else {{
    {scatter}_from(
      @update(%array, take(%indices, %i), @nth(%values, %i)), %i + 1, %end, %indices, %values
    )
  }}
}}

// The list with successive parts of %value, of the given lengths, in its first entries.
def {split}(%array: {array}, %value: {name}[], %lengths: {indices}) -> {array} {{
  {split}_from(%array, %value, 0, 0, {count.format("%lengths")}, %lengths)
}}

def {split}_from(
  %array: {array}, %value: {name}[], %at: int32, %i: int32, %end: int32, %lengths: {indices}
) -> {array} {{
  if (%i == %end) {{
    %array
  }} else {{
    let %next = %at + take(%lengths, %i);
    {split}_from(
      @update(%array, %i, @tensor_take_{dtype}(%value, %at, %next)),
      %value, %next, %i + 1, %end, %lengths
    )
  }}
}}

// The entries at the indices, joined along a new first dimension.
def {gather}(%array: {array}, %indices: {indices}) -> {name}[] {{
  @tensor_array_stack_{dtype}(
    {gather}_from(%array, 0, {count.format("%indices")}, %indices)
  )
}}

def {gather}_from(
  %array: {array}, %i: int32, %end: int32, %indices: {indices}
) -> {array} {{
  if (%i == %end) {{
    Nil
  }} else {{
    Cons(@nth(%array, take(%indices, %i)), {gather}_from(%array, %i + 1, %end, %indices))
  }}
}}
"""


def _unstack(rank: int, dtype: str) -> str:
    """Functions that take a tensor of one rank apart along its first dimension."""
    name = f"tensor_{dtype}_t"
    head = f"@tensor_array_unstack_tensor{rank}_{dtype}"
    return f"""
def {head}(%tensor: {_type(rank, dtype)}) -> List[{name}[]] {{
  {head}_from(0, take(shape_of(%tensor, dtype="int32"), 0, axis=0), %tensor)
}}

def {head}_from(%i: int32, %end: int32, %tensor: {_type(rank, dtype)}) -> List[{name}[]] {{
  if (%i == %end) {{
    Nil
  }} else {{
    Cons(tensor{rank - 1}_{dtype}(take(%tensor, %i, axis=0)), {head}_from(%i + 1, %end, %tensor))
  }}
}}
"""


__all__ = ["definitions"]
