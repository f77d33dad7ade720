"""``tvm.relay.prelude``: the standard functions and types of Relay programs, in a module."""

from __future__ import annotations

from typing import Any

from ixion.compat.tvm.relay import tensor_array
from ixion.compat.tvm.relay.static_tensor_array import StaticTensorArrayOps, static_name
from ixion.compat.tvm.relay.std_library import import_from_std
from ixion.ir import Constructor, GlobalTypeVar, GlobalVar, IRModule
from ixion.ir.parser import parse

_FUNCTIONS = (
    "id compose flip hd tl nth length update map foldl foldr foldr1 sum concat filter zip rev "
    "map_accumr map_accuml unfoldr unfoldl tmap size iterate"
).split()
_DTYPES = (
    "float32", "float16", "float64", "int32", "uint8", "int8", "int16", "uint16", "int64",
)  # fmt: skip


class Prelude:
    """Adds the standard library to a module; each function is an attribute by its name."""

    id: GlobalVar

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = IRModule() if mod is None else mod
        self.load_prelude()

    def __getattr__(self, name: str) -> Any:
        if name in _FUNCTIONS:
            return self.mod.get_global_var(name)
        raise AttributeError(name)

    def get_name(self, canonical: str, dtype: str) -> str:
        """The name of a tensor array function or type for one element type."""
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """The variable of a tensor array function."""
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The name variable of a tensor array type."""
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """A constructor of a tensor array type; ValueError where there is none."""
        wanted = self.get_name(canonical, dtype)
        for constructor in self.mod.get_type(ty_name)[1:]:
            if constructor.name_hint == wanted:
                return constructor  # type: ignore[no-any-return]
        raise ValueError(f"the type {ty_name} has no constructor {wanted}")

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of the dynamic tensor type of one element type."""
        return self.get_ctor(self.get_type("tensor_t", dtype).name_hint, canonical, dtype)

    def get_name_static(
        self, canonical: str, dtype: str, shape: Any, batch_dim: int | None = None
    ) -> str:
        """The name of a tensor array function or type for one shape."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Any, batch_dim: int | None = None
    ) -> GlobalVar:
        """The variable of a tensor array function for one shape."""
        return self.mod.get_global_var(static_name(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Any) -> GlobalTypeVar:
        """The name variable of a tensor array type for one shape."""
        return self.mod.get_global_type_var(static_name(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Any) -> Constructor:
        """A constructor of a tensor array type for one shape; ValueError where there is none."""
        header = static_name(ty_name, dtype, shape)
        wanted = static_name(name, dtype, shape)
        for constructor in self.mod.get_type(header)[1:]:
            if constructor.name_hint == wanted:
                return constructor  # type: ignore[no-any-return]
        raise ValueError(f"the type {header} has no constructor {wanted}")

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Any) -> Constructor:
        """A constructor of the tensor type for one shape."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

    def load_prelude(self) -> None:
        """Define everything that the module lacks."""
        if "id" not in self.mod:
            import_from_std(self.mod, "prelude.rly")
        text = "".join(
            tensor_array.definitions(dtype)
            for dtype in _DTYPES
            if f"tensor_array_{dtype}" not in self.mod
        )
        if text:
            self.mod.update(parse(f'#[version = "0.0.5"]\n{text}', "tensor_array", self.mod))


class TensorArrayOps:
    """The tensor array functions of one element type; ``Prelude`` has defined them."""

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.list, self.cons, self.nil = prelude.mod.get_type("List")

    def get_name(self, canonical: str) -> str:
        """The full name of a function or type."""
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> GlobalVar:
        """The variable of a function."""
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> GlobalTypeVar:
        """The name variable of a type."""
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> Constructor:
        """A constructor of the tensor type."""
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    def register(self) -> None:
        """Nothing is left to do."""


__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps"]
