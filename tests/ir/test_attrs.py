"""Typed attributes: conversion, validation, defaults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ixion import ir
from ixion.base.dim import Any as AnyDim
from ixion.base.dim import Dim, SymVar
from ixion.base.errors import AttributesError, UnknownAttributeError
from ixion.ir import REQUIRED, Attrs, DictAttrs, attr, register_attrs


@register_attrs("test.attrs.Conv")
class ConvAttrs(Attrs):
    """Attributes of every shape of annotation."""

    strides: tuple[int, ...] = attr((1, 1), "stride per spatial dim")
    channels: int | None = attr(None, "number of outputs")
    layout: str = attr("NCHW", "data layout", choices=("NCHW", "NHWC"))
    epsilon: float = attr(1e-5, "added to the variance")
    ceil_mode: bool = attr(False, "round up")
    pads: tuple[tuple[int, int], ...] = attr((), "pairs")
    shape: tuple[Dim, ...] | None = attr(None, "may be symbolic")
    out_dtype: str | None = attr(None, "dtype of the result")
    value: int | float | None = attr(None, "one of several")
    anything: Any = attr(None, "free")


@register_attrs("test.attrs.Need")
class NeedAttrs(Attrs):
    """One attribute without default."""

    axis: int = attr(REQUIRED, "axis")
    keep: bool = attr(True)


def test_defaults_and_reading() -> None:
    made = ConvAttrs()
    assert made.strides == (1, 1)
    assert made["layout"] == "NCHW"
    assert made.keys()[:2] == ["strides", "channels"]
    assert dict(made.items())["epsilon"] == 1e-5
    assert "strides" in made
    assert made.get("strides") == (1, 1)
    assert made.get("nothing", 3) == 3
    assert made.get_int_tuple("strides") == (1, 1)
    assert made.get_str("layout") == "NCHW"
    info = {field.name: field for field in ConvAttrs.list_field_info()}
    assert info["channels"].description == "number of outputs"
    assert "default=None" in info["channels"].type_info


def test_conversion() -> None:
    n = SymVar("n")
    made = ConvAttrs(
        strides=[np.int64(2), 3.0],
        channels=np.int32(4),
        epsilon=1,
        ceil_mode=np.bool_(True),
        pads=[[0, 1], (2, 3)],
        shape=[1, n, AnyDim()],
        out_dtype=np.float16,
        value=2,
        anything={"a": [1, 2]},
    )
    assert made.strides == (2, 3)
    assert type(made.strides[0]) is int
    assert type(made.channels) is int
    assert type(made.epsilon) is float
    assert made.ceil_mode is True
    assert made.pads == ((0, 1), (2, 3))
    assert made.shape == (1, n, AnyDim())
    assert made.out_dtype == "float16"
    assert type(made.value) is int
    assert type(ConvAttrs(value=2.0).value) is float
    assert made.anything["a"] == (1, 2)
    assert ConvAttrs(strides=2).strides == (2,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"strides": "11"},
        {"strides": (1, "a")},
        {"channels": 2.5},
        {"layout": "NCWH"},
        {"epsilon": "small"},
        {"ceil_mode": 2},
        {"pads": ((1, 2, 3),)},
        {"channels": object()},
    ],
)
def test_values_that_do_not_fit(wrong: dict[str, object]) -> None:
    with pytest.raises(AttributesError, match=f"test.attrs.Conv attribute '{next(iter(wrong))}'"):
        ConvAttrs(**wrong)


def test_unknown_and_missing_names() -> None:
    with pytest.raises(UnknownAttributeError, match="did you mean 'strides'"):
        ConvAttrs(stride=(1, 1))
    with pytest.raises(AttributeError):
        ConvAttrs().copy(stride=1)
    with pytest.raises(AttributeError):
        ConvAttrs()["stride"]
    with pytest.raises(AttributesError, match="needs a value for 'axis'"):
        NeedAttrs()
    assert NeedAttrs(3).axis == 3
    with pytest.raises(AttributeError):
        NeedAttrs(1, True, 3)


def test_copy_and_non_default_items() -> None:
    made = ConvAttrs(channels=4)
    assert made.copy(channels=4, strides=[1, 1]) is made
    assert made.copy(channels=5).channels == 5
    assert list(made.non_default_items()) == [("channels", 4)]
    assert list(NeedAttrs(axis=0).non_default_items()) == [("axis", 0)]


def test_from_strings() -> None:
    made = ConvAttrs.from_strings(
        {
            "strides": "(2,2)",
            "channels": "None",
            "layout": "NHWC",
            "epsilon": "1e-3",
            "ceil_mode": "True",
            "pads": "[[0, 1], [1, 0]]",
        }
    )
    assert made.strides == (2, 2)
    assert made.channels is None
    assert made.layout == "NHWC"
    assert made.epsilon == 1e-3
    assert made.ceil_mode is True
    assert made.pads == ((0, 1), (1, 0))
    assert ConvAttrs.from_strings({"ceil_mode": "0"}).ceil_mode is False
    with pytest.raises(AttributeError):
        ConvAttrs.from_strings({"stride": "1"})
    with pytest.raises(AttributesError):
        ConvAttrs.from_strings({"strides": "wide"})


def test_equality_hash_and_json() -> None:
    a, b = ConvAttrs(epsilon=0.1), ConvAttrs(epsilon=0.1 + 1e-12)
    assert ir.structural_equal(a, b)
    assert ir.structural_hash(a) == ir.structural_hash(b)
    assert not ir.structural_equal(a, ConvAttrs(epsilon=0.2))
    assert ir.structural_equal(ConvAttrs(epsilon=np.nan), ConvAttrs(epsilon=np.nan))
    for made in (a, ConvAttrs(channels=3, shape=(1, SymVar("n")), anything={"k": 1.5, "s": "t"})):
        again = ir.load_json(ir.save_json(made))
        assert type(again) is ConvAttrs
        ir.assert_structural_equal(again, made)


def test_dict_attrs() -> None:
    made = DictAttrs({"Primitive": 1, "names": ["a", "b"]})
    assert made["Primitive"] == 1
    assert made.Primitive == 1
    assert made.names == ("a", "b")
    assert made.get("none") is None
    assert list(made) == ["Primitive", "names"]
    assert len(made) == 2
    assert "names" in made
    assert made.copy(Primitive=1) is made
    assert made.copy(Primitive=2)["Primitive"] == 2
    with pytest.raises(AttributeError):
        made.missing  # noqa: B018
    with pytest.raises(KeyError):
        made["missing"]
    with pytest.raises(AttributeError):
        made.Primitive = 3
    ir.assert_structural_equal(made, DictAttrs({"names": ("a", "b"), "Primitive": 1}))
    ir.assert_structural_equal(ir.load_json(ir.save_json(made)), made)


def test_maps() -> None:
    made = ir.Map({"alpha": 1})
    with pytest.raises(ir.MissingKeyError, match="did you mean 'alpha'"):
        made["alpah"]
    with pytest.raises(AttributeError):
        made.entries = {}
    assert made.updated({"b": 2}) == {"alpha": 1, "b": 2}
    assert made.without("alpha") == {}
    assert made.get("x", 5) == 5
