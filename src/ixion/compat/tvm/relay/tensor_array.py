"""Tensors of varying rank as a data type, and lists of them: text for one element type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

RANKS = range(7)


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
{unstacked}"""


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
