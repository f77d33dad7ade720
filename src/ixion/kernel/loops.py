"""Loop spaces: merging dims that every access walks alike, and cutting work into tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ixion.kernel.sizes import as_extent, product, same_extent, top
from ixion.te.expr import Expr, Load, Var, walk, wrap
from ixion.te.simplify import Linear, Ranges, factors_of, is_product, linear
from ixion.te.stmt import Let, Stmt
from ixion.te.symbolic import coefficient
from ixion.te.tensor import Extent


@dataclass(eq=False)
class LoopSpace:
    """Loop variables with extents, outermost first."""

    vars: list[Var]
    extents: list[Extent]

    def ranges(self) -> dict[Var, tuple[int, Extent]]:
        return {v: (0, top(n)) for v, n in zip(self.vars, self.extents, strict=True)}


def loads_of(expr: Expr) -> list[Load]:
    """Distinct loads of an expression DAG, in first-use order."""
    seen: dict[int, Load] = {}
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Load):
            seen.setdefault(id(node), node)
        stack.extend(reversed(node.children()))
    return list(seen.values())


def _other_uses(expr: Expr, variables: set[Var]) -> set[Var]:
    """Variables that occur as values, outside of any load's address."""
    used: set[Var] = set()
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited or isinstance(node, Load):
            continue
        visited.add(id(node))
        if isinstance(node, Var) and node in variables:
            used.add(node)
        stack.extend(node.children())
    return used


def merge(
    space: LoopSpace,
    value: Expr,
    out_strides: Sequence[Extent],
    frozen: set[Var] | None = None,
    ranges: Ranges | None = None,
) -> tuple[LoopSpace, Expr, list[Extent]]:
    """Joins neighbouring loops that every load and the store walk as one.

    Returns the smaller space, the value with its loads re-addressed and the store's strides.
    ``ranges`` are those of all variables, where the space's are not the only ones.
    """
    ranges = space.ranges() if ranges is None else ranges
    loads = loads_of(value)
    forms = {id(load): linear(load.index, ranges) for load in loads}
    strides: list[list[Extent]] = [list(out_strides)]
    fixed = _other_uses(value, set(space.vars)) | (frozen or set())
    for form in forms.values():
        strides.append([_coefficient(form, v) for v in space.vars])
        fixed |= _inside_atoms(form, space.vars)
    groups = _groups(space, strides, fixed)
    return _joined(space, value, strides[0], groups, forms)


def _coefficient(form: Linear, var: Var) -> Extent:
    if not any(is_product(e) for e, _ in form.terms.values()):
        return form.terms[var][1] if var in form.terms else 0
    slope, _ = coefficient(form, var)
    return 0 if slope is None else as_extent(slope.expr())


def _inside_atoms(form: Linear, variables: Sequence[Var]) -> set[Var]:
    names = set(variables)
    return {
        node
        for product, _ in form.terms.values()
        for atom in factors_of(product)
        if not isinstance(atom, Var)
        for node in walk(atom)
        if isinstance(node, Var) and node in names
    }


def _groups(space: LoopSpace, strides: list[list[Extent]], fixed: set[Var]) -> list[list[int]]:
    """Positions of the dims that form each new loop."""
    groups: list[list[int]] = []
    for d, (v, n) in enumerate(zip(space.vars, space.extents, strict=True)):
        if isinstance(n, int) and n == 1 and v not in fixed:
            continue
        last = groups[-1][-1] if groups else None
        joins = (
            last is not None
            and v not in fixed
            and space.vars[last] not in fixed
            and all(_follows(s[last], s[d], n) for s in strides)
        )
        if joins:
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _follows(outer: Extent, inner: Extent, extent: Extent) -> bool:
    """Whether a step of the outer loop is ``extent`` steps of the inner one."""
    if isinstance(outer, int) and isinstance(inner, int) and isinstance(extent, int):
        return outer == inner * extent
    return same_extent(outer, inner * extent)


def _joined(
    space: LoopSpace,
    value: Expr,
    out: list[Extent],
    groups: list[list[int]],
    forms: dict[int, Linear],
) -> tuple[LoopSpace, Expr, list[Extent]]:
    new = LoopSpace([], [])
    for group in groups:
        new.vars.append(space.vars[group[-1]])
        new.extents.append(product(space.extents[d] for d in group))
    kept = set(new.vars)
    dropped = {v for v in space.vars if v not in kept}

    def readdress(load: Load) -> Load:
        form = forms[id(load)]
        terms = {
            k: t for k, t in form.terms.items()
            if k not in dropped
            and not (is_product(t[0]) and any(f in dropped for f in factors_of(t[0])))
        }  # fmt: skip
        return Load(load.buffer, Linear(form.const, terms).expr(), load.lanes, load.stride)

    return new, _map_loads(value, readdress, {}), [out[g[-1]] for g in groups]


def _map_loads(expr: Expr, fn: object, memo: dict[int, Expr]) -> Expr:
    if id(expr) in memo:
        return memo[id(expr)]
    if isinstance(expr, Load):
        new: Expr = fn(expr)  # type: ignore[operator]
    else:
        children = expr.children()
        mapped = [_map_loads(c, fn, memo) for c in children]
        same = all(a is b for a, b in zip(children, mapped, strict=True))
        new = expr if same else expr.rebuild(mapped)
    memo[id(expr)] = new
    return new


def decode(task: Var, parts: Sequence[tuple[Var, Extent]], body: Stmt) -> Stmt:
    """Names each part of a task number (outermost first, row-major) around ``body``."""
    rest: Expr = task
    lets: list[tuple[Var, Expr]] = []
    for i, (var, extent) in enumerate(reversed(parts)):
        last = i == len(parts) - 1
        lets.append((var, rest if last else rest % extent))
        rest = rest // extent
    for var, value in lets:
        body = Let(var, value, body)
    return body


def affine(variables: Sequence[Var], strides: Sequence[Extent]) -> Expr:
    """``sum(variable * stride)``."""
    total: Expr = wrap(0)
    for v, s in zip(variables, strides, strict=True):
        total = total + v * s
    return total


def empty_ranges() -> Ranges:
    return {}
