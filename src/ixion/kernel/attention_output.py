"""Where attention's results go: through the transposes and reshapes after its second product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ixion import te
from ixion.kernel.access import Access
from ixion.kernel.row_index import unflatten
from ixion.kernel.sizes import as_extent, is_static, product, same_extent, sizes_in, top
from ixion.te.evaluate import evaluate
from ixion.te.expr import Const, Expr, Read, Var, substitute, wrap
from ixion.te.simplify import const_value, simplify
from ixion.te.tensor import Extent, Tensor

# Sizes that a form is looked for with, in turn; neighbours have no common divisor.
TRIED = ((3, 5, 7, 11), (5, 7, 3, 2))


class NotAttentionError(Exception):
    """The expressions around the products are not what the kernel can do."""


class Strides(NamedTuple):
    """Element (b, m, d) of the product is element
    ``(b // period) * outer + (b % period) * inner + m * row + d * column`` of the result.
    """

    outer: Extent
    inner: Extent
    period: int
    row: Extent
    column: Extent


def output_strides(final: Tensor, product: Tensor) -> Strides:
    """The form that says where the product's elements are in ``final``.

    NotAttentionError where there is none.
    """
    if is_static(*_shape(final), *_shape(product)):
        return _known_strides(final, product)
    return _open_strides(final, product)


def _known_strides(final: Tensor, product: Tensor) -> Strides:
    """Found by pushing positions through the expressions."""
    shape = [int(n) for n in product.shape]  # type: ignore[arg-type]
    positions = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    probe = te.placeholder(shape, "int32", "probe")
    moved = evaluate([_retyped(final, product, probe)], {probe: positions})[0].reshape(-1)
    where = np.empty(moved.size, np.int64)
    where[moved] = np.arange(moved.size)
    table = where.reshape(shape)
    row = int(table[0, 1, 0] - table[0, 0, 0]) if shape[1] > 1 else 0
    column = int(table[0, 0, 1] - table[0, 0, 0]) if shape[2] > 1 else 1
    heads = table[:, 0, 0]
    for period in range(1, shape[0] + 1):
        if shape[0] % period:
            continue
        inner = int(heads[1] - heads[0]) if period > 1 else 0
        outer = int(heads[period]) if period < shape[0] else 0
        b, m, d = np.ogrid[: shape[0], : shape[1], : shape[2]]
        guess = (b // period) * outer + (b % period) * inner + m * row + d * column
        if np.array_equal(guess, table):
            return Strides(outer, inner, period, row, column)
    raise NotAttentionError("results go to irregular places")


def _retyped(final: Tensor, product: Tensor, probe: Tensor) -> Tensor:
    """``final`` over ``probe`` in place of ``product``; only data movement lies between."""
    made: dict[Tensor, Tensor] = {product: probe}

    def rebuilt(tensor: Tensor) -> Tensor:
        if tensor not in made:
            assert tensor.body is not None
            body = _reread(tensor.body, rebuilt)
            made[tensor] = Tensor(tensor.shape, "int32", tensor.name, tensor.axes, body)
        return made[tensor]

    return rebuilt(final)


def _reread(expr: Expr, rebuilt: Any) -> Expr:
    if isinstance(expr, Read):
        indices = tuple(_reread(i, rebuilt) for i in expr.indices)
        return Read(rebuilt(expr.tensor), indices)
    children = expr.children()
    return expr.rebuild([_reread(c, rebuilt) for c in children]) if children else expr


# With sizes known at run time only.


def _open_strides(final: Tensor, product: Tensor) -> Strides:
    """The form found for some numbers, in terms of sizes, and proved for all."""
    sizes = sizes_in(wrap(n) for n in (*final.shape, *product.shape))
    tried: list[tuple[Mapping[Var, Expr], Strides]] = []
    for numbers in TRIED:
        bound = {v: wrap(numbers[i % len(numbers)]) for i, v in enumerate(sizes)}
        known = _bound(final, product, bound)
        tried.append((bound, _known_strides(*known)))
    periods = {form.period for _, form in tried}
    if len(periods) != 1:
        raise NotAttentionError("results go to places that depend on how many heads there are")
    terms = list(_candidates(final, product))
    outer, inner, row, column = (
        _fitting(terms, [(bound, getattr(form, name)) for bound, form in tried])
        for name in ("outer", "inner", "row", "column")
    )
    form = Strides(outer, inner, periods.pop(), row, column)
    if not _proved(form, final, product):
        raise NotAttentionError("results go to places that are not proved")
    return form


def _bound(
    final: Tensor, product: Tensor, sizes: Mapping[Var, Expr]
) -> tuple[Tensor, Tensor]:
    """Both with numbers for sizes."""
    probe = te.placeholder(_numbers(product.shape, sizes), product.dtype, "probe")
    made: dict[Tensor, Tensor] = {product: probe}

    def rebuilt(tensor: Tensor) -> Tensor:
        if tensor not in made:
            if tensor.body is None:
                raise NotAttentionError("results are mixed with other values")
            body = substitute(_reread(tensor.body, rebuilt), dict(sizes))
            shape = _numbers(tensor.shape, sizes)
            made[tensor] = Tensor(shape, tensor.dtype, tensor.name, tensor.axes, body)
        return made[tensor]

    return rebuilt(final), probe


def _numbers(shape: Sequence[Extent], sizes: Mapping[Var, Expr]) -> list[int]:
    return [_number(n, sizes) for n in shape]


def _number(extent: Extent, sizes: Mapping[Var, Expr]) -> int:
    value = as_extent(substitute(wrap(extent), dict(sizes)))
    assert isinstance(value, int)
    return value


def _candidates(final: Tensor, product_: Tensor) -> Iterator[Extent]:
    """What a stride of plain tensors can be."""
    _, rows, width = product_.shape
    yield 0
    for d in range(final.ndim, -1, -1):
        inside = product(final.shape[d:])
        for factor in (1, width, rows):
            yield as_extent(inside * factor)


def _fitting(terms: Sequence[Extent], known: Sequence[tuple[Mapping[Var, Expr], int]]) -> Extent:
    """The first of ``terms`` that has these values."""
    for term in terms:
        if all(_number(term, sizes) == value for sizes, value in known):
            return term
    raise NotAttentionError("results are not a known distance apart")


def _proved(form: Strides, final: Tensor, product_: Tensor) -> bool:
    """Whether what lies where element (b, m, d) is said to go is that element, for all sizes."""
    heads, rows, width = _shape(product_)
    high, low, m, d = (Var(n) for n in ("high", "low", "m", "d"))
    times = as_extent(heads // form.period)
    if not same_extent(times * form.period, heads):
        return False
    ranges = {
        high: (0, top(times)), low: (0, form.period - 1), m: (0, top(rows)), d: (0, top(width))
    }  # fmt: skip
    place = high * form.outer + low * form.inner + m * form.row + d * form.column
    seen: list[tuple[Expr, ...]] = []

    def note(index: tuple[Expr, ...]) -> Expr:
        seen.append(index)
        return Const(0, product_.dtype)

    Access(given={product_: note}).element(final, unflatten(place, _shape(final)), ranges)
    wanted = (high * form.period + low, m, d)
    apart = [simplify(x - y, ranges) for index in seen for x, y in zip(index, wanted, strict=True)]
    return len(seen) == 1 and all(const_value(difference) == 0 for difference in apart)


def _shape(tensor: Tensor) -> list[Extent]:
    return [as_extent(n) for n in tensor.shape]
