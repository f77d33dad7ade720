"""Modules."""

from __future__ import annotations

import pytest

from ixion import ir
from ixion.base.errors import RegistryError
from ixion.ir import Call, Function, GlobalVar, IRModule, Tuple, const, var


def identity(name: str = "x") -> Function:
    x = var(name, "int32")
    return Function([x], x)


def test_names_and_variables() -> None:
    f = identity()
    module = IRModule({"main": f})
    main = module.get_global_var("main")
    assert module["main"] is f
    assert module[main] is f
    assert "main" in module
    assert main in module
    assert GlobalVar("main") not in module
    assert list(module) == [main]
    assert module.functions == {main: f}
    with pytest.raises(ValueError, match=r"(?s)mian.*did you mean 'main'.*candidates"):
        module["mian"]
    with pytest.raises(ValueError, match="Cannot find global type var"):
        module.get_global_type_var("List")


def test_setting() -> None:
    module = IRModule()
    module["f"] = identity()
    module["f"] = identity("y")
    assert module["f"].params[0].name_hint == "y"
    with pytest.raises(RegistryError, match="bound to another"):
        module[GlobalVar("f")] = identity()
    module["c"] = const(1)
    assert module["c"].params == ()
    with pytest.raises(ValueError, match="free variables: %x"):
        module["g"] = Function([], var("x"))
    a = ir.TypeVar("a")
    with pytest.raises(ValueError, match="free type variables: a"):
        module["g"] = Function([x := var("x", a)], x)
    with pytest.raises(TypeError):
        module["g"] = 3
    signature = ir.FuncType([ir.scalar_type("int32")], ir.scalar_type("int32"))
    module["h"] = GlobalVar("f", signature)
    assert isinstance(module["h"].body, Call)
    del module["c"]
    assert "c" not in module
    assert [v.name_hint for v in module.get_global_vars()] == ["f", "h"]


def test_duplicate_names() -> None:
    with pytest.raises(RegistryError, match="duplicate global function"):
        IRModule({GlobalVar("f"): identity(), GlobalVar("f"): identity()})


def test_from_expr() -> None:
    x, y = var("x", "int32"), var("y", "int32")
    module = IRModule.from_expr(Tuple([y, x, y]))
    assert module["main"].params == (y, x)
    named = IRModule.from_expr(identity().with_attr("global_symbol", "entry"))
    assert "entry" in named
    a = ir.TypeVar("a")
    assert IRModule.from_expr(var("z", a))["main"].type_params == (a,)
    assert IRModule.from_expr(module) is module
    with pytest.raises(TypeError):
        IRModule.from_expr(3)


def test_types_and_constructors() -> None:
    header, a = ir.GlobalTypeVar("List"), ir.TypeVar("a")
    nil, cons = ir.Constructor("Nil", [], header), ir.Constructor("Cons", [a, header(a)], header)
    module = IRModule()
    module[header] = ir.TypeData(header, [a], [nil, cons])
    assert module.get_type("List") == (header, nil, cons)
    assert module[header].header is header
    assert header in module
    assert cons.tag == nil.tag + 1 > 0
    assert module.get_constructor(cons.tag) is cons
    with pytest.raises(ValueError, match="no constructor"):
        module.get_constructor(12)
    with pytest.raises(RegistryError, match="another GlobalTypeVar"):
        module.add_type(ir.GlobalTypeVar("List"), module[header])
    assert module.get_global_type_vars() == [header]


def test_clone_and_attributes() -> None:
    module = IRModule({"main": identity()}, attrs={"a": 1})
    copy = module.clone()
    copy["f"] = identity()
    assert "f" not in module
    more = module.with_attr("b", 2)
    assert (more.get_attr("a"), more.get_attr("b"), module.get_attr("b")) == (1, 2, None)
    assert more.without_attr("a").attrs.keys() == ["b"]
    assert module.with_attrs({"a": 5}).attrs["a"] == 5
    module.update_global_info("vdevice", ["cpu"])
    assert module.global_infos["vdevice"] == ("cpu",)
    with pytest.raises(AttributeError):
        module.unknown = 3


def test_update_joins_functions_by_name() -> None:
    first = IRModule({"main": identity(), "f": identity()})
    f = GlobalVar("f")
    x = var("x", "int32")
    second = IRModule({f: identity("z"), GlobalVar("g"): Function([x], Call(f, [x]))})
    first.update(second)
    assert first["f"].params[0].name_hint == "z"
    # The call goes to the function this module knows under the name.
    assert first["g"].body.op is first.get_global_var("f")
    first.update({"h": identity()})
    assert "h" in first


def test_replace_global_vars() -> None:
    f, x = GlobalVar("f"), var("x", "int32")
    module = IRModule({f: identity(), "main": Function([x], Call(f, [x]))})
    renamed = module.replace_global_vars({"f": "callee"})
    assert sorted(v.name_hint for v in renamed) == ["callee", "main"]
    assert renamed["main"].body.op is renamed.get_global_var("callee")
    assert "f" in module
    with pytest.raises(RegistryError, match="two functions"):
        module.replace_global_vars({"f": "main"})


def test_functions_items_are_sorted() -> None:
    module = IRModule({"b": identity(), "a": identity()})
    assert [v.name_hint for v, _ in module.functions_items()] == ["a", "b"]
