from __future__ import annotations

from dataclasses import dataclass

import pytest

from ixion.base.errors import PassError, RegistryError
from ixion.ir import Function, GlobalVar, IRModule, assert_structural_equal, var
from ixion.transform import (
    ApplyPassToFunction,
    FoldConstant,
    FunctionPass,
    InferType,
    ModulePass,
    PassConfigError,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    function_pass,
    get_pass,
    list_passes,
    make_pass,
    module_pass,
    pass_options,
    register_config_option,
    register_pass,
)


@pytest.fixture
def mod() -> IRModule:
    x = var("x", shape=(2,))
    return IRModule.from_expr(Function([x], x + x))


def recording(name: str, events: list[str], opt_level: int = 0, required=None):
    def body(mod: IRModule, ctx: PassContext) -> IRModule:
        events.append(name)
        return mod

    return module_pass(body, opt_level=opt_level, name=name, required=required)


def test_module_pass_from_a_function(mod):
    @module_pass(opt_level=2)
    def keep(mod, ctx):
        return mod

    assert isinstance(keep, ModulePass)
    assert (keep.info.name, keep.info.opt_level, keep.info.required) == ("keep", 2, ())
    assert keep(mod) is mod
    assert "keep" in str(keep)


def test_module_pass_from_a_class(mod):
    other = IRModule.from_expr(var("y", shape=(3,)))

    @module_pass(opt_level=1)
    class Swap:
        """Swaps."""

        def __init__(self, to, swap):
            self.to = to
            self.swap = swap

        def transform_module(self, mod, ctx):
            return self.to if self.swap else mod

    swap = Swap(other, swap=True)
    assert swap.info.name == "Swap"
    assert swap.to is other
    assert swap(mod) is other
    assert Swap(other, swap=False)(mod) is mod
    with pytest.raises(AttributeError):
        _ = swap.nothing


def test_function_pass_from_function_and_class(mod):
    x = var("x", shape=(2,))
    other = Function([x], x)

    @function_pass(opt_level=1, name="first")
    def by_function(func, mod, ctx):
        return other

    @function_pass(opt_level=1)
    class ByClass:
        def transform_function(self, func, mod, ctx):
            return other

    expected = InferType()(IRModule.from_expr(other))
    for transform in (by_function, ByClass()):
        assert isinstance(transform, FunctionPass)
        assert_structural_equal(transform(mod), expected)


def test_function_pass_result_is_typed_and_special_functions_are_skipped():
    events = []

    @function_pass(opt_level=0)
    def visit(func, mod, ctx):
        events.append(func)
        return func

    x, y = var("x", shape=(2,)), var("y", shape=(2,))
    plain = Function([x], x + x)
    mod = IRModule({"main": plain, "other": Function([y], y).with_attr("Compiler", "someone")})
    result = visit(mod)
    assert events == [plain]
    assert result["main"].checked_type_or_none is not None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({}, ValueError), ({"opt_level": 1, "required": "x"}, TypeError)],
)
def test_bad_decorator_arguments(arguments, error):
    with pytest.raises(error):
        module_pass(lambda mod, ctx: mod, **arguments)


def test_a_pass_must_give_back_a_module(mod):
    broken = module_pass(lambda mod, ctx: None, opt_level=0, name="broken")
    with pytest.raises(PassError, match="broken"):
        broken(mod)


@pytest.mark.parametrize(
    ("context", "ran"),
    [
        ({"opt_level": 0}, ["a"]),
        ({"opt_level": 2}, ["a", "b"]),
        ({"opt_level": 3}, ["a", "b", "c"]),
        ({"opt_level": 0, "required_pass": ["c"]}, ["a", "c"]),
        ({"opt_level": 3, "disabled_pass": ["b"]}, ["a", "c"]),
        ({"opt_level": 3, "disabled_pass": ["b"], "required_pass": ["b"]}, ["a", "c"]),
    ],
)
def test_sequential_gates_by_level_and_names(mod, context, ran):
    events = []
    passes = [recording(name, events, level) for name, level in zip("abc", (0, 2, 3), strict=True)]
    with PassContext(**context):
        Sequential(passes)(mod)
    assert events == ran


def test_a_pass_called_directly_always_runs(mod):
    events = []
    with PassContext(opt_level=0):
        recording("late", events, 3)(mod)
    assert events == ["late"]


def test_nested_sequentials_are_gated_by_their_own_level(mod):
    events = []
    inner = Sequential([recording("a", events)], opt_level=2, name="inner")
    with PassContext(opt_level=1):
        Sequential([inner])(mod)
    assert events == []


def test_required_passes_come_from_the_registry(mod):
    events = []
    register_pass("test.Before")(lambda: recording("test.Before", events))
    Sequential([recording("after", events, required=["test.Before"])])(mod)
    assert events == ["test.Before", "after"]
    with pytest.raises(RegistryError, match=r"Cannot use test\.Nothing to create the pass"):
        Sequential([recording("after", events, required=["test.Nothing"])])(mod)


def test_contexts_do_not_inherit():
    with PassContext(opt_level=3, disabled_pass=["x"]):
        with PassContext() as inner:
            assert PassContext.current() is inner
            assert (inner.opt_level, inner.disabled_pass) == (2, [])
        assert PassContext.current().opt_level == 3
    assert PassContext.current().opt_level == 2


def test_config_is_validated():
    config = PassContext(config={"relay.FuseOps.max_depth": 8}).config
    assert config == {"relay.FuseOps.max_depth": 8}
    with pytest.raises(PassConfigError, match="Invalid config option") as error:
        PassContext(config={"relay.FuseOps.max_dept": 8})
    assert "relay.FuseOps.max_depth" in str(error.value.hint)
    with pytest.raises(AttributeError):
        PassContext(config={"relay.FuseOps.max_depth": "deep"})
    assert PassContext.list_configs()["relay.FuseOps.link_params"]["type"] == "IntImm"


def test_users_options():
    register_config_option("test.option", str)
    assert PassContext(config={"test.option": "on"}).get_config("test.option") == "on"


def test_immutable_module_check(mod):
    @module_pass(opt_level=0)
    def spoil(mod, ctx):
        x = var("z", shape=(2,))
        mod["spoilt"] = Function([x], x)
        return mod

    with (
        PassContext(config={"testing.immutable_module": True}),
        pytest.raises(PassError, match="changed its input"),
    ):
        spoil(mod)


def test_print_ir_writes_to_standard_error(mod, capsys):
    PrintIR("here")(mod)
    written = capsys.readouterr().err
    assert "PrintIR(here)" in written
    assert "add" in written


def test_apply_pass_to_functions_by_name():
    x = var("x", shape=(2,))
    names = [GlobalVar(name) for name in ("main", "helper")]
    mod = InferType()(IRModule({name: Function([x], x) for name in names[:1]}))
    seen = []

    @module_pass(opt_level=0)
    def see(mod, ctx):
        seen.extend(var.name_hint for var in mod.functions)
        return mod

    y = var("y", shape=(2,))
    mod[names[1]] = Function([y], y)
    assert ApplyPassToFunction(see, "help.*")(mod) is mod
    assert seen == ["helper"]
    with pytest.raises(PassError):
        ApplyPassToFunction(see, "nobody", error_if_no_function_matches_regex=True)(mod)


def test_registry_makes_passes_from_text():
    assert "FoldConstant" in list_passes()
    assert make_pass("FoldConstant", {"fold_qnn": "true"}) == FoldConstant(fold_qnn=True)
    assert [field.name for field in pass_options("DeadCodeElimination")] == [
        "inline_once",
        "ignore_impurity",
    ]
    with pytest.raises(RegistryError, match="did you mean FoldConstant"):
        get_pass("FoldConstnat")
    with pytest.raises(RegistryError, match="no option"):
        make_pass("FoldConstant", {"fold": "1"})
    with pytest.raises(RegistryError, match="true or false"):
        make_pass("FoldConstant", {"fold_qnn": "perhaps"})


def test_every_registered_pass_has_its_name():
    for name in list_passes():
        if not name.startswith("test."):
            assert get_pass(name)().info.name == name


def test_a_pass_is_a_frozen_dataclass():
    @register_pass("test.Mine")
    @dataclass(frozen=True)
    class Mine(ModulePass):
        times: int = 1
        info = PassInfo(0, "test.Mine")

        def transform_module(self, mod, ctx):
            return mod

    assert make_pass("test.Mine", {"times": "3"}) == Mine(3)
    with pytest.raises(AttributeError):
        Mine().times = 2
