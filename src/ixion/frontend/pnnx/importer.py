"""A PNNX network into IR: lines in order, each through its converter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ixion import op as ops
from ixion.base import dtype as dtypes
from ixion.base.dim import Dim, SymVar
from ixion.base.errors import IxionError, ModelFormatError, RegistryError, UnsupportedOpError
from ixion.base.span import Span
from ixion.frontend.binding import assumed_sizes, bind_sizes, with_fixed_sizes
from ixion.frontend.emitter import Emitter
from ixion.frontend.order import in_order
from ixion.frontend.pnnx.archive import Archive
from ixion.frontend.pnnx.convert import Site, converter
from ixion.frontend.pnnx.families import load_families
from ixion.frontend.pnnx.param import Network, Operator, read_param
from ixion.frontend.pnnx.promote import Item, as_term, cast, promoted
from ixion.frontend.refusal import BAD_NUMBERS, gathered
from ixion.frontend.term import Term
from ixion.ir import Function, IRModule, Op, TensorType, Var

Shapes = Mapping[str, Sequence[int]]

_INPUT, _OUTPUT, _ATTRIBUTE = "pnnx.Input", "pnnx.Output", "pnnx.Attribute"
#: Operators whose bodies the file does not hold.
_CONTROL = ("prim::If", "prim::Loop")


def load_pnnx(path: str | Path, shapes: Shapes | None = None) -> IRModule:
    """The module of a `.param` file and the `.bin` beside it: one function `main`.

    Sizes written `?` are symbols named after input and axis; `shapes` gives them numbers. Raises
    ModelFormatError for a broken file, UnsupportedOpError naming everything that has no import,
    and InputError for shapes that do not fit.
    """
    path = Path(path)
    network = read_param(path)
    load_families()
    if not any(operator.weights for operator in network.operators):
        return _imported(network, path.name, None, shapes)
    with Archive(path.with_suffix(".bin")) as archive:
        return _imported(network, path.name, archive, shapes)


def _imported(
    network: Network, name: str, archive: Archive | None, shapes: Shapes | None
) -> IRModule:
    return with_fixed_sizes(lambda sizes: _Importer(network, name, archive).module(shapes, sizes))


def pnnx_inputs(path: str | Path) -> dict[str, TensorType]:
    """Types of a `.param` file's inputs by name, in order, with symbols for open sizes."""
    return _stated_inputs(read_param(path), Path(path).name)


class _Importer:
    def __init__(self, network: Network, name: str, archive: Archive | None) -> None:
        self.network = network
        self.name = name
        self.archive = archive
        self.emit = Emitter()
        self.refused: list[tuple[str, int, list[str]]] = []
        self.items: dict[str, Item] = {}
        self.occurrence = _occurrences(network.operators)

    def module(self, shapes: Shapes | None, sizes: Mapping[str, int]) -> IRModule:
        operators = self.network.operators
        self._refuse_control()
        self._refuse_unknown()
        order = in_order(
            [operator.inputs for operator in operators],
            [operator.outputs for operator in operators],
            (),
            lambda index: self._place(operators[index]),
        )
        params = self._inputs(shapes, sizes)
        fixed = {
            name for operator in operators if operator.kind == _ATTRIBUTE
            for name in operator.outputs
        }  # fmt: skip
        outputs: list[tuple[str, Term]] = []
        for index in order:
            operator = operators[index]
            ready = all(name in self.items for name in operator.inputs)
            if operator.kind == _OUTPUT and ready:
                outputs.extend(self._outputs(operator))
            elif operator.kind != _INPUT and ready:
                self._line(operator, fixed)
        if self.refused:
            raise UnsupportedOpError(gathered(self.refused), where=self.name)
        return self._finished(params, outputs)

    def _finished(self, params: list[Var], outputs: list[tuple[str, Term]]) -> IRModule:
        if not outputs:
            raise ModelFormatError("the network has no outputs", where=self.name)
        terms = [term for _, term in outputs]
        body = terms[0] if len(terms) == 1 else self.emit.pack(terms)
        names = {
            "input_names": tuple(param.name_hint for param in params),
            "output_names": tuple(name for name, _ in outputs),
            **assumed_sizes(self.emit),
        }
        return IRModule({"main": Function(params, body.expr, body.type)}, attrs=names)

    def _refuse_control(self) -> None:
        found = [operator for operator in self.network.operators if operator.kind in _CONTROL]
        if found:
            rows = [(operator.kind, 1, [self._place(operator)]) for operator in found]
            raise UnsupportedOpError(
                gathered(rows),
                where=self.name,
                hint="the file does not hold the bodies of if and for: convert with "
                "torch.jit.trace instead of torch.jit.script",
            )

    def _refuse_unknown(self) -> None:
        """Operators without an import, all at once: also those that only others would reach."""
        special = (_INPUT, _OUTPUT)
        rows = [
            (operator.kind, 1, [self._place(operator)])
            for operator in self.network.operators
            if operator.kind not in special
            and converter(operator.kind) is None
            and ops.by_pnnx_name(operator.kind) is None
        ]
        if rows:
            raise UnsupportedOpError(gathered(rows), where=self.name)

    def _place(self, operator: Operator) -> str:
        return f"{self.name}:{operator.line} {operator.kind} {operator.name}"

    def _inputs(self, shapes: Shapes | None, sizes: Mapping[str, int]) -> list[Var]:
        stated = _stated_inputs(self.network, self.name)
        bound = bind_sizes({name: kind.shape for name, kind in stated.items()}, shapes, sizes)
        lines = [operator for operator in self.network.operators if operator.kind == _INPUT]
        return [self._param(line, bound[line.name], stated[line.name].dtype) for line in lines]

    def _param(self, operator: Operator, shape: tuple[Dim, ...], dtype: str) -> Var:
        dtypes.to_numpy(dtype)
        kind = TensorType(shape, dtype)
        param = Var(operator.name, kind, span=self._span(operator))
        param._set_checked_type(kind)
        self.items[operator.outputs[0]] = Term(param, kind)
        return param

    def _span(self, operator: Operator) -> Span:
        return Span(f"{self.name}:{operator.name}", operator.line, operator.line)

    def _line(self, operator: Operator, fixed: set[str]) -> None:
        self.emit.span = self._span(operator)
        place = self._place(operator)
        items = {name: self.items[name] for name in operator.inputs}
        try:
            site = Site(operator, items, fixed, self.emit, place, self._weight)
            convert = converter(operator.kind)
            made: Item = convert(site) if convert else _one_to_one(site)
            results: list[Item] = [made] if len(operator.outputs) == 1 else list(made)
            for name, item in zip(operator.outputs, results, strict=True):
                self.items[name] = self._declared(operator, name, item)
        except UnsupportedOpError as error:
            self.refused.extend((name, count, list(at)) for name, count, at in error.ops)
        except RegistryError as error:
            self.refused.append((f"{operator.kind} ({error.message})", 1, [place]))
        except IxionError as error:
            error.where = place
            raise
        except BAD_NUMBERS as error:
            raise ModelFormatError(f"the line cannot be imported: {error}", where=place) from error

    def _declared(self, operator: Operator, name: str, item: Item) -> Item:
        """A result in the dtype the line states: a dtype argument shows nowhere else."""
        shape = operator.shapes.get(name)
        if not isinstance(item, Term) or shape is None or not shape.dtype:
            return item
        if item.dtype == shape.dtype:
            return item
        if dtypes.is_float(item.dtype) != dtypes.is_float(shape.dtype) and operator.weights:
            return item
        return cast(self.emit, item, shape.dtype)

    def _weight(self, operator: Operator, key: str) -> np.ndarray[Any, Any]:
        assert self.archive is not None
        return self.archive.weight(operator, key, self.occurrence[operator.line])

    def _outputs(self, operator: Operator) -> list[tuple[str, Term]]:
        """The tensors of an output: tuples, lists and dicts opened up, numbers as scalars."""
        flat: list[tuple[str, Item]] = []
        pending: list[tuple[str, Item]] = [
            (operator.name, self.items[name]) for name in reversed(operator.inputs)
        ]
        while pending:
            name, item = pending.pop()
            if isinstance(item, dict):
                pending.extend((str(key), value) for key, value in reversed(item.items()))
            elif isinstance(item, (list, tuple)):
                pending.extend((name, value) for value in reversed(item))
            elif item is not None:
                flat.append((name, item))
        self.emit.span = self._span(operator)
        plain = [name for name, _ in flat]
        return [
            (name if plain.count(name) == 1 else f"{name}.{index}", self._tensor(operator, item))
            for index, (name, item) in enumerate(flat)
        ]

    def _tensor(self, operator: Operator, item: Item) -> Term:
        try:
            return as_term(self.emit, item)
        except IxionError as error:
            error.where = self._place(operator)
            raise


def _stated_inputs(network: Network, name: str) -> dict[str, TensorType]:
    """Types of the inputs as the file states them; a scalar input has no shape there."""
    found: dict[str, TensorType] = {}
    for operator in network.operators:
        if operator.kind != _INPUT:
            continue
        if len(operator.outputs) != 1 or operator.name in found:
            raise ModelFormatError("a broken input", where=f"{name}:{operator.line}")
        shape = operator.shapes.get(operator.outputs[0])
        sizes = tuple(
            SymVar(f"input{len(found)}_{axis}") if dim is None else dim
            for axis, dim in enumerate(shape.dims if shape else ())
        )
        found[operator.name] = TensorType(sizes, (shape.dtype if shape else "") or "float32")
    return found


def _one_to_one(site: Site) -> Term:
    """The operator that states this PNNX name for itself; parameters carry over by name."""
    name = ops.by_pnnx_name(site.op.kind)
    if name is None:
        raise UnsupportedOpError([(site.op.kind, 1, [site.place])])
    operator = Op.get(name)
    items = [site.items[operand] for operand in site.op.inputs]
    terms = promoted(site.emit, items)
    attrs = None
    if operator.attrs_type is not None:
        values = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in site.op.params.items()
        }
        attrs = operator.attrs_type(**values)
    return site.emit.apply(operator, attrs, terms)


def _occurrences(operators: Sequence[Operator]) -> dict[int, int]:
    """How many operators with weights and the same name come before each line."""
    seen: dict[str, int] = {}
    before: dict[int, int] = {}
    for operator in operators:
        if operator.weights:
            before[operator.line] = seen.get(operator.name, 0)
            seen[operator.name] = before[operator.line] + 1
    return before
