"""pnnx.* and prim::*: weights, expressions, tuples, lists, constants."""

from __future__ import annotations

from typing import Any

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.arithmetic import evaluate
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.expression import parse
from ixion.frontend.pnnx.promote import Item
from ixion.frontend.term import Term


@converts("pnnx.Attribute")
def attribute(site: Site) -> Term:
    if len(site.op.weights) != 1:
        raise ModelFormatError("a pnnx.Attribute holds one weight")
    return site.weight(next(iter(site.op.weights)))


@converts("pnnx.Expression")
def expression(site: Site) -> Item:
    tree = parse(str(site.arg("expr")), site.place)
    operands = [site.items[name] for name in site.op.inputs]
    return evaluate(site.emit, tree, operands)


@converts("prim::Constant")
def constant(site: Site) -> Item:
    return site.arg("value", None)


@converts("prim::TupleConstruct", "prim::ListConstruct")
def construct(site: Site) -> list[Item]:
    return [site.items[name] for name in site.op.inputs]


@converts("prim::TupleUnpack", "prim::ListUnpack")
def unpack(site: Site) -> Any:
    whole = site.items[site.op.inputs[0]]
    if not isinstance(whole, (list, tuple)) or len(whole) != len(site.op.outputs):
        raise ModelFormatError("an unpack of another number of items")
    return whole[0] if len(whole) == 1 else whole


@converts("prim::DictConstruct")
def dictionary(site: Site) -> dict[str, Item]:
    values = [site.items[name] for name in site.op.inputs]
    return {str(key): value for key, value in zip(values[::2], values[1::2], strict=True)}


@converts("pnnx.SliceIndexes")
def slice_indexes(site: Site) -> list[Item]:
    """A list that mixes numbers with operands written `@0`."""
    operands = [site.items[name] for name in site.op.inputs]
    found = site.arg("indexes")
    entries = found if isinstance(found, list) else [found]
    return [
        operands[int(entry[1:])] if isinstance(entry, str) and entry.startswith("@") else entry
        for entry in entries
    ]


@converts(
    "Tensor.clone", "torch.clone", "Tensor.contiguous", "Tensor.detach", "aten::clone",
    "aten::detach", "aten::contiguous", "nn.Identity", "nn.Dropout", "nn.Dropout2d",
    "nn.Dropout3d", "nn.AlphaDropout", "F.dropout", "F.dropout2d", "F.dropout3d", "F.alpha_dropout",
    "F.feature_alpha_dropout", "F.dropoutnd", "torch.positive",
)  # fmt: skip
def same(site: Site) -> Term:
    return site.x
