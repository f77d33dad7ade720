"""Modules: global functions, data types, attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, cast

from ixion.base.errors import RegistryError, nearest
from ixion.ir.adt import Constructor, TypeData
from ixion.ir.attrs import DictAttrs, as_dict_attrs
from ixion.ir.containers import Map
from ixion.ir.expr import Call, Expr, GlobalVar
from ixion.ir.function import BaseFunc, Function
from ixion.ir.node import Node, field, register_node
from ixion.ir.types import FuncType, GlobalTypeVar, Type, TypeVar


@register_node("IRModule")
class IRModule(Node, mutable=True):
    """A set of global functions and data types.

    Unlike expressions a module can be changed in place; ``clone`` gives one that shares the
    functions. ``functions`` and ``type_definitions`` list them by name variable.
    """

    __slots__ = (
        "_constructors",
        "_functions",
        "_global_type_vars",
        "_global_vars",
        "_type_definitions",
        "source_map",
    )
    _generate_init: ClassVar[bool] = False

    attrs: DictAttrs | None = field(default=None)
    global_infos: Map = field(default=Map())

    def __init__(
        self,
        functions: Mapping[Any, Any] | None = None,
        type_definitions: Mapping[Any, TypeData] | None = None,
        attrs: Any = None,
        global_infos: Mapping[str, Any] | None = None,
    ) -> None:
        self._functions: dict[GlobalVar, BaseFunc] = {}
        self._global_vars: dict[str, GlobalVar] = {}
        self._type_definitions: dict[str, TypeData] = {}
        self._global_type_vars: dict[str, GlobalTypeVar] = {}
        self._constructors: dict[int, Constructor] = {}
        self.source_map: dict[str, str] = {}
        self.attrs = as_dict_attrs(attrs)
        self.global_infos = Map(global_infos or {})
        self._add_all(functions or {}, type_definitions or {})

    def _add_all(self, functions: Mapping[Any, Any], types: Mapping[Any, TypeData]) -> None:
        # All names first, so that the functions may refer to one another.
        for key, function in functions.items():
            name = GlobalVar(key) if isinstance(key, str) else key
            if name.name_hint in self._global_vars:
                raise RegistryError(f"duplicate global function name {name.name_hint!r}")
            self._put_function(name, function)
        for type_key, data in types.items():
            header = GlobalTypeVar(type_key) if isinstance(type_key, str) else type_key
            if header.name_hint in self._type_definitions:
                raise RegistryError(f"duplicate global type definition name {header.name_hint!r}")
            self.add_type(header, data)

    def _put_function(self, name: GlobalVar, function: Any) -> None:
        old = self._global_vars.setdefault(name.name_hint, name)
        if old is not name:
            raise RegistryError(f"the name {name.name_hint!r} is bound to another GlobalVar")
        self._functions[name] = function

    @property
    def functions(self) -> dict[GlobalVar, BaseFunc]:
        """Functions by global variable; a copy."""
        return dict(self._functions)

    @property
    def type_definitions(self) -> dict[GlobalTypeVar, TypeData]:
        """Data types by name variable; a copy."""
        return {self._global_type_vars[k]: v for k, v in self._type_definitions.items()}

    @property
    def global_var_map_(self) -> dict[str, GlobalVar]:
        """Global variables by name; a copy."""
        return dict(self._global_vars)

    @property
    def global_type_var_map_(self) -> dict[str, GlobalTypeVar]:
        """Names of data types; a copy."""
        return dict(self._global_type_vars)

    def functions_items(self) -> list[tuple[GlobalVar, BaseFunc]]:
        """(variable, function) in the order of the names."""
        return sorted(self._functions.items(), key=lambda item: item[0].name_hint)

    def clone(self) -> IRModule:
        """A module with the same functions, types and attributes, to be changed independently."""
        made = IRModule(attrs=self.attrs, global_infos=self.global_infos)
        made._functions.update(self._functions)
        made._global_vars.update(self._global_vars)
        made._type_definitions.update(self._type_definitions)
        made._global_type_vars.update(self._global_type_vars)
        made._constructors.update(self._constructors)
        made.source_map.update(self.source_map)
        return made

    def __copy__(self) -> IRModule:
        return self.clone()

    def __setitem__(self, key: str | GlobalVar | GlobalTypeVar, value: Any) -> None:
        if isinstance(value, Type):
            header = GlobalTypeVar(key) if isinstance(key, str) else cast("GlobalTypeVar", key)
            self.add_type(header, cast("TypeData", value))
            return
        if isinstance(key, str):
            key = self._global_vars.get(key) or GlobalVar(key)
        function = _as_function(value)
        _check_closed(function, cast("GlobalVar", key).name_hint)
        self._put_function(cast("GlobalVar", key), function)

    def add_type(self, header: GlobalTypeVar, data: TypeData) -> None:
        """Define a data type and give its constructors their tags."""
        if not isinstance(data, TypeData):
            raise TypeError(f"a type definition is TypeData, found {type(data).__name__}")
        name = header.name_hint
        old = self._global_type_vars.setdefault(name, header)
        if old is not header:
            raise RegistryError(f"the type name {name!r} is bound to another GlobalTypeVar")
        self._type_definitions[name] = data
        high = hashlib.blake2b(name.encode(), digest_size=1).digest()[0] << 24
        for index, constructor in enumerate(data.constructors):
            constructor._put("_tag", high | index)
            self._constructors[high | index] = constructor

    def __getitem__(self, key: str | GlobalVar | GlobalTypeVar) -> Any:
        if isinstance(key, GlobalTypeVar):
            return self._type_definitions[self._known_type(key.name_hint)]
        name = key if isinstance(key, str) else key.name_hint
        found = self._functions.get(self.get_global_var(name))
        if found is None:
            raise ValueError(f"the module has no definition of {name!r}")
        return found

    def __delitem__(self, key: str | GlobalVar) -> None:
        name = self.get_global_var(key if isinstance(key, str) else key.name_hint)
        del self._functions[name]
        del self._global_vars[name.name_hint]

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            return key in self._global_vars
        if isinstance(key, GlobalTypeVar):
            return key.name_hint in self._type_definitions
        return key in self._functions

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __bool__(self) -> bool:
        return True

    def update(self, other: IRModule | Mapping[Any, Any]) -> None:
        """Add the functions and types of another module, or a mapping, over this one's."""
        module = other if isinstance(other, IRModule) else IRModule(other)
        for header, data in module.type_definitions.items():
            mine = self._global_type_vars.get(header.name_hint, header)
            self.add_type(mine, data)
        renamed: dict[GlobalVar, GlobalVar] = {}
        for name in module._functions:
            mine_var = self._global_vars.get(name.name_hint, name)
            if mine_var is not name:
                renamed[name] = mine_var
        for name, function in module._functions.items():
            self._put_function(renamed.get(name, name), _rename(function, renamed))
        self.source_map.update(module.source_map)

    def update_func(self, name: GlobalVar, function: BaseFunc) -> None:
        """Replace the function of a global variable, without checks."""
        self._put_function(name, function)

    def update_global_info(self, name: str, info: Any) -> None:
        """Set one entry of ``global_infos``."""
        self.global_infos = self.global_infos.updated({name: info})

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a global name; ValueError listing the names there are."""
        found = self._global_vars.get(name)
        if found is None:
            raise ValueError(_unknown("global var", name, self._global_vars))
        return found

    def get_global_vars(self) -> list[GlobalVar]:
        """All global variables, by name."""
        return [self._global_vars[name] for name in sorted(self._global_vars)]

    def _known_type(self, name: str) -> str:
        if name not in self._type_definitions:
            raise ValueError(_unknown("global type var", name, self._global_type_vars))
        return name

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The variable of a data type's name; ValueError listing the names there are."""
        found = self._global_type_vars.get(name)
        if found is None:
            raise ValueError(_unknown("global type var", name, self._global_type_vars))
        return found

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The variables of all data types, by name."""
        return [self._global_type_vars[name] for name in sorted(self._global_type_vars)]

    def get_constructor(self, tag: int) -> Constructor:
        """The constructor a tag was given to; ValueError for an unknown tag."""
        found = self._constructors.get(tag)
        if found is None:
            raise ValueError(f"the module has no constructor with tag {tag}")
        return found

    def get_type(self, name: str) -> tuple[Any, ...]:
        """(name variable, constructors...) of a data type."""
        header = self.get_global_type_var(name)
        return (header, *self._type_definitions[self._known_type(name)].constructors)

    @staticmethod
    def from_expr(
        expr: Expr | IRModule,
        functions: Mapping[GlobalVar, BaseFunc] | None = None,
        type_defs: Mapping[GlobalTypeVar, TypeData] | None = None,
    ) -> IRModule:
        """A module whose entry is ``expr``.

        Free variables of an expression that is no function become parameters, in order of first
        use. The entry is called by the function's ``global_symbol``, or ``main``.
        """
        if isinstance(expr, IRModule):
            return expr
        module = IRModule(functions, type_defs)
        function = expr if isinstance(expr, BaseFunc) else _closed(expr)
        name = function.get_attr("global_symbol") or "main"
        entry = module._global_vars.get(name)
        if entry is not None:
            raise RegistryError(f"the module has a function {name!r} already")
        module._put_function(GlobalVar(name), function)
        return module

    def _import(self, file_to_import: str) -> None:
        """Add the definitions of a program text file."""
        from pathlib import Path

        from ixion.ir.parser import parse

        path = Path(file_to_import)
        self.update(parse(path.read_text(encoding="utf-8"), str(path), init_module=self.clone()))

    def get_attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or the default."""
        return default if self.attrs is None else self.attrs.get(name, default)

    def with_attr(self, name: str, value: Any) -> IRModule:
        """A clone with one attribute set."""
        return self.with_attrs({name: value})

    def with_attrs(self, values: Mapping[str, Any] | DictAttrs) -> IRModule:
        """A clone with attributes added or replaced."""
        made = self.clone()
        old = {} if self.attrs is None else dict(self.attrs.items())
        made.attrs = DictAttrs({**old, **dict(values.items())})
        return made

    def without_attr(self, name: str) -> IRModule:
        """A clone that lacks an attribute."""
        made = self.clone()
        if self.attrs is not None:
            made.attrs = as_dict_attrs(self.attrs.entries.without(name))
        return made

    def replace_global_vars(self, replacements: Mapping[Any, Any]) -> IRModule:
        """A module in which global variables are renamed, at their definitions and uses."""
        mapping: dict[GlobalVar, GlobalVar] = {}
        for old, new in replacements.items():
            before = self.get_global_var(old) if isinstance(old, str) else old
            mapping[before] = GlobalVar(new) if isinstance(new, str) else new
        made = self.clone()
        made._functions.clear()
        made._global_vars.clear()
        for name, function in self._functions.items():
            renamed = mapping.get(name, name)
            if renamed.name_hint in made._global_vars:
                raise RegistryError(f"two functions would be called {renamed.name_hint!r}")
            made._put_function(renamed, _rename(function, mapping))
        return made

    @staticmethod
    def _structure(node: Any) -> tuple[Any, ...]:
        """What equality compares: names as definitions, then what they stand for, by name."""
        names = tuple(node.get_global_vars())
        types = tuple(node.get_global_type_vars())
        functions = tuple(node._functions.get(name) for name in names)
        datas = tuple(node._type_definitions[header.name_hint] for header in types)
        return (node.attrs, node.global_infos, names, types, datas, functions)

    _compared = ("attrs", "global_infos", "global_vars", "type_vars", "types", "functions")
    _binds = (False, False, True, True, False, False)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """Program text with the version line, and the constants' data if ``show_meta_data``."""
        from ixion.ir.printer import astext

        return astext(self, show_meta_data=show_meta_data, annotate=annotate)

    def script(self, **options: Any) -> str:
        """Program text, as ``astext``."""
        return self.astext()

    def show(self, *args: Any, **options: Any) -> None:
        """Print the program text to the terminal."""
        import sys

        sys.stdout.write(self.astext(show_meta_data=False) + "\n")

    def _json_fields(self) -> dict[str, Any]:
        return {
            "functions": Map(self._functions),
            "type_definitions": Map(self.type_definitions),
            "global_var_map_": Map(self._global_vars),
            "global_type_var_map_": Map(self._global_type_vars),
            "source_map": Map(self.source_map),
            "attrs": self.attrs,
            "global_infos": self.global_infos,
        }

    @classmethod
    def _from_json_fields(cls, values: dict[str, Any]) -> IRModule:
        made = cls(attrs=values.get("attrs"), global_infos=values.get("global_infos") or {})
        for header, data in (values.get("type_definitions") or {}).items():
            made.add_type(header, data)
        for name, function in (values.get("functions") or {}).items():
            made._put_function(name, function)
        sources = values.get("source_map")
        if isinstance(sources, Map):
            made.source_map.update(sources)
        return made


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    best = nearest(name, names)
    hint = "" if best is None else f" (did you mean {best!r}?)"
    return f"Cannot find {what} {name!r} in the Module{hint}, candidates are: {names}"


def _rename(function: Any, mapping: Mapping[GlobalVar, GlobalVar]) -> Any:
    if not mapping or not isinstance(function, Function):
        return function
    from ixion.ir.visitor import rewrite

    return rewrite(
        function, lambda old, new: mapping.get(new, new) if type(new) is GlobalVar else new
    )


def _as_function(value: Any) -> Any:
    """What a module stores for an expression: functions as they are, others wrapped."""
    if isinstance(value, BaseFunc):
        return value
    if isinstance(value, GlobalVar):
        return _eta_expanded(value)
    if isinstance(value, Expr):
        return Function((), value)
    raise TypeError(f"a module holds functions, found {type(value).__name__}")


def _eta_expanded(name: GlobalVar) -> Function:
    from ixion.ir.expr import Var

    signature = name.checked_type
    if not isinstance(signature, FuncType):
        raise TypeError(f"@{name.name_hint} is not a function")
    params = tuple(Var(f"eta_expand_param_{i}", t) for i, t in enumerate(signature.arg_types))
    body = Call(name, params, None, signature.type_params)
    return Function(params, body, signature.ret_type, signature.type_params)


def _closed(expr: Expr) -> Function:
    from ixion.ir.variables import free_type_vars, free_vars

    if not isinstance(expr, Expr):
        raise TypeError(f"a module is made from an expression, found {type(expr).__name__}")
    return Function(free_vars(expr), expr, None, _plain_type_vars(free_type_vars(expr)))


def _plain_type_vars(found: Iterable[Any]) -> list[TypeVar]:
    return [one for one in found if isinstance(one, TypeVar)]


def _check_closed(function: Any, name: str) -> None:
    if not isinstance(function, Function):
        return
    from ixion.ir.variables import free_type_vars, free_vars

    loose = free_vars(function)
    if loose:
        names = ", ".join("%" + var.name_hint for var in loose[:5])
        raise ValueError(f"the function @{name} contains free variables: {names}")
    types = _plain_type_vars(free_type_vars(function))
    if types:
        names = ", ".join(one.name_hint for one in types[:5])
        raise ValueError(f"the function @{name} contains free type variables: {names}")


__all__ = ["IRModule"]
