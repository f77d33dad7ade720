"""``tvm.ir.attrs``."""

from __future__ import annotations

from typing import Any

from ixion.ir import Attrs, DictAttrs, attr, make_node, register_attrs


@register_attrs("attrs.TestAttrs")
class TestAttrs(Attrs):
    """The attributes TVM's own tests are written with."""

    __test__ = False  # not a test case, whatever the name says

    axis: int = attr(10, "an axis")
    name: str = attr("", "a name")
    padding: tuple[int, ...] = attr((0, 0), "extents around the data")
    func: Any = attr(None, "a global function")


__all__ = ["Attrs", "DictAttrs", "TestAttrs", "make_node"]
