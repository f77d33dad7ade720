"""Einstein summation over any number of operands."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from ixion import te
from ixion.base.dim import Dim
from ixion.ir.attrs import Attrs, attr, register_attrs
from ixion.ir.expr import Call, Expr
from ixion.ir.types import TensorType, Type
from ixion.op.accumulate import accumulator, raised, widened
from ixion.op.broadcast import join_dims, read_broadcast, same_dtype
from ixion.op.call import as_tuple_expr, call
from ixion.op.compare import Accumulation
from ixion.op.define import InferArgs, OpPattern, define
from ixion.op.extent import Extent, extents
from ixion.op.rounding import Array, narrow
from ixion.op.sample import Draw, Sample, array, choice


@register_attrs("relay.attrs.EinsumAttrs")
class EinsumAttrs(Attrs):
    equation: str = attr(doc="subscripts, as numpy.einsum takes them")


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result, with ``...`` spelled out in fresh letters.

    Without an arrow the result has the letters that occur once, in alphabetical order, after the
    ellipsis.  Raises ValueError when the equation does not fit the ranks.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} has {len(terms)} operands, got {len(ranks)}")
    fresh = [c for c in string.ascii_letters if c not in text]
    widest = max(
        (
            rank - len(t.replace("...", ""))
            for t, rank in zip(terms, ranks, strict=True)
            if "..." in t
        ),
        default=0,
    )
    dots = "".join(fresh[: max(widest, 0)])
    full = []
    for term, rank in zip(terms, ranks, strict=True):
        own = rank - len(term.replace("...", ""))
        full.append(term.replace("...", dots[len(dots) - own :] if own > 0 else ""))
        if len(full[-1]) != rank or not all(c.isalpha() for c in full[-1]):
            raise ValueError(f"{term!r} does not fit an operand of rank {rank}")
    if arrow:
        return full, right.replace("...", dots)
    joined = "".join(full)
    once = sorted(c for c in set(joined) if joined.count(c) == 1 and c not in dots)
    return full, (dots if "..." in left else "") + "".join(once)


def _sizes(args: InferArgs, terms: Sequence[str], types: Sequence[TensorType]) -> dict[str, Dim]:
    sizes: dict[str, Dim] = {}
    for term, kind in zip(terms, types, strict=True):
        for letter, d in zip(term, kind.shape, strict=True):
            joined = join_dims(sizes.get(letter, d), d)
            if joined is None:
                args.fail(f"sizes of {letter!r} differ", expected=sizes[letter], found=d)
            sizes[letter] = joined
    return sizes


def _infer(args: InferArgs) -> Type:
    types = args.fields()
    try:
        terms, result = parse_equation(args.attrs.equation, [len(t.shape) for t in types])
    except ValueError as error:
        args.fail(str(error))
    sizes = _sizes(args, terms, types)
    if any(c not in sizes for c in result) or len(set(result)) != len(result):
        args.fail("letters of the result occur in the operands, once each", found=result)
    return TensorType([sizes[c] for c in result], same_dtype(args, *types))


def _reference(attrs: EinsumAttrs, inputs: tuple[Array, ...], out_type: Any) -> Array:
    wide = [widened(x) for x in inputs]
    return narrow(np.einsum(attrs.equation.replace(" ", ""), *wide, optimize=True), out_type.dtype)


def _compute(attrs: EinsumAttrs, ins: tuple[te.Tensor, ...], out_type: Any) -> te.Tensor:
    terms, result = parse_equation(attrs.equation, [x.ndim for x in ins])
    sizes: dict[str, Extent] = {}
    for term, x in zip(terms, ins, strict=True):
        for letter, size in zip(term, x.shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    dtype = accumulator(out_type.dtype)
    summed = [c for c in dict.fromkeys("".join(terms)) if c not in result]

    def body(*i: te.Expr) -> te.Expr:
        axes = {c: te.reduce_axis(sizes[c], "rk") for c in summed}
        place = dict(zip(result, i, strict=True)) | {c: a.var for c, a in axes.items()}
        total: te.Expr | None = None
        for term, x in zip(terms, ins, strict=True):
            at = [place[c] for c in term]
            value = raised(read_broadcast(x, at, [sizes[c] for c in term]), dtype)
            total = value if total is None else total * value
        assert total is not None
        folded = te.sum(total, list(axes.values())) if axes else total
        return te.cast(folded, out_type.dtype)

    return te.compute(extents(out_type), body, "einsum")


_EQUATIONS = (
    "ij,jk->ik", "ij,jk", "bij,bjk->bik", "ii->i", "ii", "ij->ji", "i,j->ij", "ij->",
    "...ij,...jk->...ik",
    "bhqd,bhkd->bhqk", "ij,j->i", "ij,ik,kl->jl", "ijk->ik", "...i->...",
)  # fmt: skip


def _samples(draw: Draw) -> Sample:
    equation = choice(draw, _EQUATIONS)
    sizes = {c: draw.integer(1, 4) for c in string.ascii_letters if c in equation}
    dtype = choice(draw, ("float32", "float64", "int32"))
    lead = tuple(draw.integer(1, 3) for _ in range(draw.integer(0, 2)))
    parts = []
    for term in equation.split("->")[0].split(","):
        own = tuple(sizes[c] for c in term.replace("...", ""))
        parts.append(array(draw, (*lead, *own) if "..." in term else own, dtype))
    return Sample((tuple(parts),), {"equation": equation})


define(
    "einsum",
    attrs=EinsumAttrs,
    inputs=(("data", "Tuple of Tensors"),),
    pattern=OpPattern.INJECTIVE,
    level=11,
    infer=_infer,
    reference=_reference,
    compute=_compute,
    compare=Accumulation(16),
    samples=_samples,
    doc="Sums of products of elements, as numpy.einsum defines them.",
)


def einsum(data: Expr | Sequence[Expr], equation: str) -> Call:
    return call("einsum", as_tuple_expr(data), equation=equation)
