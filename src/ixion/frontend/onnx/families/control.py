"""If: a branch known now is taken now, otherwise both become branches of an IR If."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.errors import ModelFormatError
from ixion.frontend.build.movement import reshape
from ixion.frontend.onnx.convert import Site, converts
from ixion.frontend.onnx.model import Graph
from ixion.frontend.term import Term
from ixion.ir import If


def _branch(site: Site, name: str) -> Graph:
    graph = site.attr(name)
    if not isinstance(graph, Graph):
        raise ModelFormatError(f"the attribute {name!r} is no graph")
    return graph


@converts("If")
def if_(site: Site) -> Sequence[Term]:
    condition = site.input(0)
    branches = [_branch(site, name) for name in ("then_branch", "else_branch")]
    if condition.known and condition.array is not None:
        return site.inline(branches[0 if condition.array.reshape(-1)[0] else 1])
    sides = [site.inline(branch) for branch in branches]
    if len(sides[0]) != len(sides[1]) or not sides[0]:
        raise ModelFormatError("the branches of an If have different outputs")
    if [term.type for term in sides[0]] != [term.type for term in sides[1]]:
        site.unsupported("with branches of different types")
    flag = reshape(site.emit, condition, ())
    bodies = [terms[0] if len(terms) == 1 else site.emit.pack(terms) for terms in sides]
    made = If(flag.expr, bodies[0].expr, bodies[1].expr, span=site.emit.span)
    made._set_checked_type(bodies[0].type)
    whole = Term(made, bodies[0].type)
    return [whole] if len(sides[0]) == 1 else site.emit.items(whole)
