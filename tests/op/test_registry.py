"""The NNVM-style registry: chained setters, levels, groups, aliases."""

from __future__ import annotations

import copy

import pytest

from ixion import op
from ixion.base.errors import RegistryError
from ixion.ir import OP_TABLE, Op, get_attr_map, register_op, var
from ixion.ir.op import VARARGS, op_group, register_op_attr


@pytest.fixture
def fresh():
    before = set(OP_TABLE)
    yield
    for name in set(OP_TABLE) - before:
        for key in list(OP_TABLE[name].attrs):
            OP_TABLE[name].reset_attr(key)
        del OP_TABLE[name]


def test_setters_chain_and_registering_again_gives_the_same_op(fresh: None) -> None:
    made = (
        register_op("test.scale")
        .describe("x * 2")
        .add_argument("data", "Tensor", "what is scaled")
        .add_arguments([("factor", "Tensor", "by what")])
        .set_num_inputs(2)
        .set_num_outputs(lambda attrs: 1)
        .set_attr("TTest", 1)
    )
    assert register_op("test.scale") is made
    assert [a.name for a in made.arguments] == ["data", "factor"]
    assert made.attrs == {"TTest": 1}
    assert register_op("test.many").set_num_inputs(VARARGS).num_inputs == VARARGS


def test_higher_level_wins_and_equal_level_is_an_error(fresh: None) -> None:
    made = register_op("test.level").set_attr("TTest", "low", plevel=5)
    assert made.set_attr("TTest", "high", plevel=15).get_attr("TTest") == "high"
    assert made.set_attr("TTest", "ignored", plevel=3).get_attr("TTest") == "high"
    with pytest.raises(RegistryError, match="already with plevel 15"):
        made.set_attr("TTest", "again", plevel=15)
    with pytest.raises(RegistryError, match="positive"):
        made.set_attr("TTest", 0, plevel=0)


def test_attr_map_is_live_and_names_what_is_missing(fresh: None) -> None:
    column = get_attr_map("TOnlyHere")
    made = register_op("test.column")
    assert made not in column
    made.set_attr("TOnlyHere", 3)
    assert column[made] == 3
    assert column.count(made) == 1
    assert list(column) == [made]
    with pytest.raises(RegistryError, match="no attribute TOnlyHere"):
        column[Op.get("add")]


def test_groups_reach_members_before_and_after(fresh: None) -> None:
    group = op_group("TestGroup").set_attr("TBefore", 1)
    made = register_op("test.member").set_attr("TBefore", 2).include("TestGroup")
    group.set_attr("TAfter", 3)
    assert made.get_attr("TBefore") == 2
    assert made.get_attr("TAfter") == 3


def test_alias_and_unknown_names(fresh: None) -> None:
    made = register_op("test.named").add_alias("test.other_name")
    assert Op.get("test.other_name") is made
    with pytest.raises(RegistryError, match="another op"):
        made.add_alias("add")
    with pytest.raises(RegistryError, match=r"nn\.conv2d"):
        Op.get("nn.conv2")
    assert "test.other_name" not in Op.list_op_names()


def test_has_attr_asks_whether_any_op_has_it() -> None:
    assert Op.get("nn.conv2d").has_attr("TReshapeOp")
    assert Op.get("nn.conv2d").get_attr("TReshapeOp") is None
    assert not Op.get("nn.conv2d").has_attr("TNobody")


def test_decorator_registers_by_name(fresh: None) -> None:
    @register_op_attr("test.decorated", "FTest")
    def rule() -> int:
        return 4

    assert Op.get("test.decorated").get_attr("FTest") is rule


def test_relay_type_relation(fresh: None) -> None:
    from ixion.op.define import InferArgs

    made = register_op("test.relation").add_type_rel("Mine", lambda types, attrs: types[0])
    kind = var("x", shape=(2,)).type_annotation
    infer = made.get_attr("FInfer")
    assert infer(InferArgs("test.relation", (kind,))) is kind
    assert infer(InferArgs("test.relation", (None,))) is None


def test_an_op_copies_to_itself_and_is_not_made_directly() -> None:
    conv = Op.get("nn.conv2d")
    assert copy.copy(conv) is conv
    with pytest.raises(RegistryError):
        Op("mine")


def test_calls_validate_attributes() -> None:
    x = var("x", shape=(1, 3, 8, 8))
    made = op.call("nn.softmax", x, axis=1)
    assert made.attrs.axis == 1
    with pytest.raises(AttributeError, match="axis"):
        op.call("nn.softmax", x, axi=1)
    with pytest.raises(RegistryError, match="takes no attributes"):
        op.call("add", x, x, axis=1)


def test_names_abroad() -> None:
    assert op.by_onnx_name("Relu") == "nn.relu"
    assert op.by_aten_name("add") == "add"
    assert op.by_pnnx_name("nn.ReLU") == "nn.relu"
    assert op.by_onnx_name("NoSuchOp") is None


def test_attributes_from_strings() -> None:
    attrs = Op.get("nn.conv2d").parse_attrs({"strides": "(2, 2)", "groups": "4"})
    assert attrs.strides == (2, 2)
    assert attrs.groups == 4
    assert Op.get("add").parse_attrs({}) is None
