from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.base.errors import PassError
from ixion.ir import Call, Function, IRModule, Op, Tuple, Var, const, rewrite, var
from ixion.transform import (
    DeadCodeElimination,
    FoldConstant,
    InferType,
    PassContext,
    Sequential,
    SimplifyExpr,
    ToANormalForm,
    VerifyInstrument,
    function_pass,
    module_pass,
    verified,
)
from ixion.transform.verify import difference, random_inputs


@pytest.fixture
def mod() -> IRModule:
    x = var("x", shape=(3, 4))
    body = op.call("exp", (x + const(1.0)) * const(2.0)) + x
    return IRModule.from_expr(Function([x], body))


@function_pass(opt_level=0, name="Spoil")
def spoil(func, mod, ctx):
    def change(old, new):
        if isinstance(new, Call) and new.op is Op.get("exp"):
            return op.call("log", op.call("abs", new.args[0]))
        return new

    return rewrite(func, change)


def test_honest_passes_are_clean(mod):
    instrument = VerifyInstrument()
    passes = [InferType(), FoldConstant(), SimplifyExpr(), ToANormalForm(), DeadCodeElimination()]
    with PassContext(opt_level=3, instruments=[instrument]):
        Sequential(passes)(mod)
    assert [name for name, _ in instrument.checked] == ["SimplifyExpr", "ToANormalForm"]
    assert all(error <= 1 for _, error in instrument.checked)


def test_the_first_wrong_pass_is_named(mod):
    passes = Sequential([SimplifyExpr(), spoil, FoldConstant()])
    with PassContext(opt_level=3), pytest.raises(PassError, match="pass Spoil changed"):
        verified(passes, mod)


def test_a_pass_that_breaks_the_program_is_named(mod):
    @module_pass(opt_level=0, name="Break")
    def break_it(mod, ctx):
        result = mod.clone()
        free = Var("free", mod["main"].params[0].type_annotation)
        result.update_func(mod.get_global_var("main"), Function(mod["main"].params, free))
        return result

    with pytest.raises(PassError, match="after pass Break"):
        verified(break_it, mod)


def test_given_inputs_are_used(mod):
    with pytest.raises(PassError, match="Spoil"):
        verified(spoil, mod, [np.full((3, 4), 0.5, "float32")])
    # exp(0) and log(|1|) + 1 differ, but where both ends agree nothing is noticed.
    data = np.full((3, 4), -1.0, "float32")
    with pytest.raises(PassError, match="Spoil"):
        verified(spoil, mod, [data])


def test_random_inputs_follow_the_types():
    x, flag, index = var("x", shape=(2,)), var("b", dtype="bool", shape=(5,)), var("i", "int64")
    func = InferType()(IRModule.from_expr(Function([x, flag, index], Tuple([x, flag, index]))))
    values = random_inputs(func["main"])
    assert [(v.shape, str(v.dtype)) for v in values] == [
        ((2,), "float32"),
        ((5,), "bool"),
        ((), "int64"),
    ]
    for first, second in zip(values, random_inputs(func["main"]), strict=True):
        assert np.array_equal(first, second)


def test_difference():
    a = np.array([1.0, 2.0], "float32")
    assert difference(a, a) == 0
    assert difference(a + np.float32(1e-6), a) < 1
    assert difference(a + np.float32(0.1), a) > 1
    assert difference(a.astype("float64"), a) == float("inf")
    assert difference(a[:1], a) == float("inf")
    assert difference((a, a), (a,)) == float("inf")
    assert difference(np.array([np.nan, 2.0], "float32"), a) == float("inf")
    assert difference(np.array([1, 2]), np.array([1, 3])) == float("inf")
