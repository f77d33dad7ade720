"""Tensors of one shape as a data type, and lists of them: text for an element type and a shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ixion.base.dim import Any as AnyDim
from ixion.compat.tvm.relay.tensor_array import ROWS
from ixion.ir import Constructor, GlobalTypeVar, GlobalVar
from ixion.ir.parser import parse

if TYPE_CHECKING:
    from ixion.compat.tvm.relay.prelude import Prelude

Shape = tuple[Any, ...]


def _shape_name(shape: Sequence[Any]) -> str:
    return "_".join("any" if isinstance(dim, AnyDim) else str(dim) for dim in shape)


def static_name(
    canonical: str,
    dtype: str,
    shape: Sequence[Any],
    batch_dim: int | None = None,
    extra_shapes: Mapping[str, Sequence[Any]] | None = None,
) -> str:
    """What a function, type or constructor is called for an element type and a shape."""
    extra = "".join(f"_{name}_{_shape_name(dims)}" for name, dims in (extra_shapes or {}).items())
    shown = _shape_name(shape) + extra or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{shown}_t"
    if batch_dim == 1 and canonical not in ("tensor_constructor", "tensor_nil"):
        return f"{canonical}_{dtype}_batch1_{shown}"
    return f"{canonical}_{dtype}_{shown}"


def _tensor(shape: Sequence[Any], dtype: str) -> str:
    if not shape:
        return dtype
    return (
        f"Tensor[({', '.join('?' if isinstance(d, AnyDim) else str(d) for d in shape)}), {dtype}]"
    )


class StaticTensorArrayOps:
    """Defines the functions over lists of tensors of one shape; a dim may be ``Any``.

    ``batch_dim`` 1 means that lists have one entry, so that stacking them makes a first dim of 1.
    """

    def __init__(
        self, prelude: Prelude, dtype: str, shape: Sequence[Any], batch_dim: int | None = None
    ) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape: Shape = tuple(shape)
        self.batch_dim = batch_dim
        self.list, self.cons, self.nil = prelude.mod.get_type("List")
        self._texts: dict[str, str] = {}

    def get_name(
        self, canonical: str, extra_shapes: Mapping[str, Sequence[Any]] | None = None
    ) -> str:
        """The full name of a function, type or constructor."""
        return static_name(canonical, self.dtype, self.shape, self.batch_dim, extra_shapes)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """The variable of a function."""
        return self.prelude.mod.get_global_var(self.get_name(canonical))

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """The name variable of a type."""
        return self.prelude.mod.get_global_type_var(self.get_name(canonical))

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of the tensor type."""
        return self.prelude.get_ctor_static("tensor_t", canonical, self.dtype, self.shape)

    def register(self) -> None:
        """Define everything that the module lacks."""
        self._entries()
        if self.shape:
            self._rows()
        self._whole()
        self._scatter(None)
        self._flush()

    def define_tensor_array_scatter(
        self, indices_shape: Sequence[Any] | None = None, force_update: bool = False
    ) -> None:
        """Define the scatter function; for a fixed number of indices its name has their shape."""
        self._scatter(indices_shape)
        self._flush()

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Any] | None = None,
        lengths_shape: Sequence[Any] | None = None,
        force_update: bool = False,
    ) -> None:
        """Define the split function, for a value or lengths of fixed shape if they are given.

        One that exists stays, unless ``force_update``.
        """
        name = self.get_name("tensor_array_split")
        if force_update and name in self.prelude.mod:
            del self.prelude.mod[name]
            del self.prelude.mod[f"{name}_from"]
        self._split(tuple(value_shape or self.shape), lengths_shape)
        self._flush()

    # Texts of definitions; what the module has already is left out.

    def _add(self, name: str, text: str) -> None:
        if name not in self.prelude.mod:
            self._texts.setdefault(name, text)

    def _flush(self) -> None:
        text = "".join(self._texts.values())
        self._texts.clear()
        if text:
            module = self.prelude.mod
            module.update(parse(f'#[version = "0.0.5"]\n{text}', "tensor_array", module))

    def _kind(self, shape: Shape) -> str:
        """The type of tensors of a shape, which is defined if it is not yet."""
        name = static_name("tensor_t", self.dtype, shape)
        known = self.prelude.mod.global_type_var_map_
        if name not in known:
            empty = static_name("tensor_nil", self.dtype, shape)
            full = self._constructor(shape)
            text = f"type {name} {{ {empty}, {full}({_tensor(shape, self.dtype)}) }}\n"
            self._texts.setdefault(name, text)
        return f"{name}[]"

    def _constructor(self, shape: Shape) -> str:
        return static_name("tensor_constructor", self.dtype, shape)

    def _entries(self) -> None:
        """Making an array, reading and writing entries, and the tensor of an entry."""
        kind, make = self._kind(self.shape), self.get_name("tensor_array")
        empty, full = self.get_name("tensor_nil"), self._constructor(self.shape)
        self._add(
            make,
            f"""
def @{make}(%count: int32) -> List[{kind}] {{
  if (%count == 0) {{ Nil }} else {{ Cons({empty}, @{make}(%count - 1)) }}
}}
""",
        )
        read, write = self.get_name("tensor_array_read"), self.get_name("tensor_array_write")
        self._add(
            read,
            f"""
def @{read}(%array: List[{kind}], %index: int32) -> {kind} {{ @nth(%array, %index) }}
""",
        )
        self._add(
            write,
            f"""
def @{write}(%array: List[{kind}], %index: int32, %v: {kind}) -> List[{kind}] {{
  @update(%array, %index, %v)
}}
""",
        )
        data = self.get_name("tensor_get_data")
        self._add(
            data,
            f"""
def @{data}(%x: {kind}) -> {_tensor(self.shape, self.dtype)} {{
  match? (%x) {{ {full}(%t) => %t }}
}}
""",
        )

    def _rows(self) -> None:
        """What goes along the first dimension: take, concatenate, unstack, split."""
        shape = self.shape
        kind, open_shape = self._kind(shape), (AnyDim(), *shape[1:])
        grown, full, larger = (
            self._kind(open_shape), self._constructor(shape), self._constructor(open_shape),
        )  # fmt: skip
        take = self.get_name("tensor_take")
        self._add(
            take,
            f"""
def @{take}(%x: {kind}, %lower: int32, %upper: int32) -> {grown} {{
  match? (%x) {{ {full}(%t) => {larger}({ROWS}) }}
}}
""",
        )
        self._concatenate(shape)
        concat, empty = (
            self.get_name("tensor_array_concat"),
            static_name("tensor_nil", self.dtype, open_shape),
        )
        self._add(
            concat,
            f"""
def @{concat}(%array: List[{grown}]) -> {grown} {{
  match (%array) {{
    Nil => {empty},
    Cons(%only, Nil) => %only,
    Cons(%first, %others) => @{self._concatenate(open_shape)}(%first, @{concat}(%others)),
  }}
}}
""",
        )
        self._unstack()
        self._split(shape, None)

    def _concatenate(self, shape: Shape) -> str:
        name = static_name("tensor_concatenate", self.dtype, shape, self.batch_dim)
        kind, full = self._kind(shape), self._constructor(shape)
        open_shape = (AnyDim(), *shape[1:])
        grown, larger = self._kind(open_shape), self._constructor(open_shape)
        self._add(
            name,
            f"""
def @{name}(%x: {kind}, %y: {kind}) -> {grown} {{
  match? ((%x, %y)) {{ ({full}(%a), {full}(%b)) => {larger}(concatenate((%a, %b))) }}
}}
""",
        )
        return name

    def _unstack(self) -> None:
        name, tensor = self.get_name("tensor_array_unstack"), _tensor(self.shape, self.dtype)
        kind, part = self._kind(self.shape[1:]), self._constructor(self.shape[1:])
        self._add(
            name,
            f"""
def @{name}(%tensor: {tensor}) -> List[{kind}] {{
  @{name}_from(0, take(shape_of(%tensor, dtype="int32"), 0, axis=0), %tensor)
}}

def @{name}_from(%i: int32, %end: int32, %tensor: {tensor}) -> List[{kind}] {{
  if (%i == %end) {{
    Nil
  }} else {{
    Cons({part}(take(%tensor, %i, axis=0)), @{name}_from(%i + 1, %end, %tensor))
  }}
}}
""",
        )

    def _split(self, value_shape: Shape, lengths_shape: Sequence[Any] | None) -> None:
        if value_shape != self.shape:
            StaticTensorArrayOps(self.prelude, self.dtype, value_shape, self.batch_dim).register()
        grown, value = self._kind((AnyDim(), *self.shape[1:])), self._kind(value_shape)
        take = static_name("tensor_take", self.dtype, value_shape, self.batch_dim)
        lengths = _tensor(lengths_shape or (AnyDim(),), "int32")
        name = self.get_name("tensor_array_split")
        self._add(
            name,
            f"""
def @{name}(%array: List[{grown}], %value: {value}, %lengths: {lengths}) -> List[{grown}] {{
  @{name}_from(%array, %value, 0, 0, take(shape_of(%lengths, dtype="int32"), 0, axis=0), %lengths)
}}

def @{name}_from(
  %array: List[{grown}], %value: {value}, %at: int32, %i: int32, %end: int32, %lengths: {lengths}
) -> List[{grown}] {{
  if (%i == %end) {{
    %array
  }} else {{
    let %next = %at + take(%lengths, %i);
    @{name}_from(
      @update(%array, %i, @{take}(%value, %at, %next)), %value, %next, %i + 1, %end, %lengths
    )
  }}
}}
""",
        )

    def _scatter(self, indices_shape: Sequence[Any] | None) -> None:
        extra = None if indices_shape is None else {"indices": indices_shape}
        name, kind = self.get_name("tensor_array_scatter", extra), self._kind(self.shape)
        places = _tensor(indices_shape or (AnyDim(),), "int32")
        self._add(
            name,
            f"""
def @{name}(%array: List[{kind}], %indices: {places}, %values: List[{kind}]) -> List[{kind}] {{
  @{name}_from(%array, 0, take(shape_of(%indices, dtype="int32"), 0, axis=0), %indices, %values)
}}

def @{name}_from(
  %array: List[{kind}], %i: int32, %end: int32, %indices: {places}, %values: List[{kind}]
) -> List[{kind}] {{
  if (%i == %end) {{
    %array
  }} else {{
    @{name}_from(
      @update(%array, take(%indices, %i), @nth(%values, %i)), %i + 1, %end, %indices, %values
    )
  }}
}}
""",
        )

    def _whole(self) -> None:
        """Entries with a new first dimension, stacked along it, and some of them stacked."""
        single = self.batch_dim == 1
        pushed: Shape = (1 if single else AnyDim(), *self.shape)
        kind, out = self._kind(self.shape), self._kind(pushed)
        expand, stack, gather = map(
            self.get_name, ("tensor_expand_dims", "tensor_array_stack", "tensor_array_gather")
        )
        self._add(
            expand,
            f"""
def @{expand}(%x: {kind}) -> {out} {{
  match? (%x) {{
    {self._constructor(self.shape)}(%t) => {self._constructor(pushed)}(expand_dims(%t, axis=0))
  }}
}}
""",
        )
        all_of = "@hd(%grown)"
        if not single:
            all_of = f"@foldl(@{self._concatenate(pushed)}, @hd(%grown), @tl(%grown))"
        self._add(
            stack,
            f"""
def @{stack}(%array: List[{kind}]) -> {out} {{
  let %grown = @map(@{expand}, %array);
  {all_of}
}}
""",
        )
        self._add(
            gather,
            f"""
def @{gather}(%array: List[{kind}], %indices: Tensor[(?), int32]) -> {out} {{
  @{stack}(
    @{gather}_from(%array, 0, take(shape_of(%indices, dtype="int32"), 0, axis=0), %indices)
  )
}}

def @{gather}_from(
  %array: List[{kind}], %i: int32, %end: int32, %indices: Tensor[(?), int32]
) -> List[{kind}] {{
  if (%i == %end) {{
    Nil
  }} else {{
    Cons(@nth(%array, take(%indices, %i)), @{gather}_from(%array, %i + 1, %end, %indices))
  }}
}}
""",
        )


__all__ = ["StaticTensorArrayOps", "static_name"]
