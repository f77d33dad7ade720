"""An ONNX graph into IR: nodes in order, each through its converter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ixion import op
from ixion.base.errors import IxionError, ModelFormatError, RegistryError, UnsupportedOpError
from ixion.base.span import Span
from ixion.frontend.binding import assumed_sizes, bind_sizes, symbol, with_fixed_sizes
from ixion.frontend.emitter import Emitter
from ixion.frontend.onnx.convert import Site, converter, dtype_of
from ixion.frontend.onnx.families import load_families
from ixion.frontend.onnx.graph import (
    full_name,
    graphs,
    label,
    needed,
    used_names,
    with_attributes,
    without_inputs,
)
from ixion.frontend.onnx.model import (
    Graph,
    Model,
    ModelFunction,
    Node,
    SparseTensor,
    read_model,
)
from ixion.frontend.onnx.tensor import Tensor
from ixion.frontend.order import in_order
from ixion.frontend.refusal import BAD_NUMBERS, gathered
from ixion.frontend.term import Term
from ixion.ir import Function, IRModule, Op, TensorType, Var

Shapes = Mapping[str, Sequence[int]]

#: The oldest operator set whose nodes mean what the converters take them to mean.
_OLDEST_OPSET = 7
_DEEPEST_CALL = 50


def load_onnx(path: str | Path, shapes: Shapes | None = None) -> IRModule:
    """The module of an ONNX file: one function `main`, weights as constants.

    `shapes` gives numbers to symbolic input sizes. Raises ModelFormatError for a broken file,
    UnsupportedOpError naming everything that has no import, and InputError for shapes that do not
    fit.
    """
    model = read_model(path)
    return import_model(model, Path(path).name, shapes)


def import_model(model: Model, name: str, shapes: Shapes | None = None) -> IRModule:
    """The module of a model that was read; `name` is what spans call the file."""
    load_families()
    return with_fixed_sizes(lambda fixed: _Importer(model, name).module(shapes, fixed))


def onnx_inputs(path: str | Path) -> dict[str, TensorType]:
    """Types of an ONNX file's inputs by name, in order, with symbols for open sizes."""
    return _stated_inputs(read_model(path).graph, Path(path).name)


class _Importer:
    def __init__(self, model: Model, name: str) -> None:
        self.model = model
        self.name = name
        self.emit = Emitter()
        self.refused: list[tuple[str, int, list[str]]] = []

    def module(self, shapes: Shapes | None, fixed: Mapping[str, int]) -> IRModule:
        graph = self.model.graph
        if self.model.opset() < _OLDEST_OPSET:
            raise ModelFormatError(
                "the model uses an old operator set",
                where=self.name,
                expected=f"ai.onnx version {_OLDEST_OPSET} or later",
                found=str(self.model.opset()),
                hint="convert it with onnx.version_converter",
            )
        self._refuse_unknown(graph)
        scope, params = self._inputs(graph, shapes, fixed)
        outputs = self._graph(graph, scope, self.model.opsets, 0)
        if self.refused:
            raise UnsupportedOpError(gathered(self.refused), where=self.name)
        if not outputs:
            raise ModelFormatError("the graph has no outputs", where=self.name)
        body = outputs[0] if len(outputs) == 1 else self.emit.pack(outputs)
        names = {
            "input_names": tuple(param.name_hint for param in params),
            "output_names": tuple(value.name for value in graph.outputs),
            **assumed_sizes(self.emit),
        }
        return IRModule({"main": Function(params, body.expr, body.type)}, attrs=names)

    def _refuse_unknown(self, graph: Graph) -> None:
        """Operators without an import, all at once: also those that only others would reach."""
        rows = []
        pending = [graph]
        while pending:
            inner = pending.pop()
            for node in inner.nodes:
                pending.extend(graphs(node))
                if not self._has_import(node):
                    rows.append((full_name(node), 1, [self._place(node)]))
        if rows:
            raise UnsupportedOpError(gathered(rows), where=self.name)

    def _has_import(self, node: Node) -> bool:
        if (node.domain, node.op_type, node.overload) in self.model.functions:
            return True
        opset = self.model.opset(node.domain)
        return bool(converter(node.op_type, node.domain, opset) or _same_name(node))

    def _inputs(
        self, graph: Graph, shapes: Shapes | None, fixed: Mapping[str, int]
    ) -> tuple[dict[str, Term], list[Var]]:
        stated = _stated_inputs(graph, self.name)
        bound = bind_sizes({name: kind.shape for name, kind in stated.items()}, shapes, fixed)
        scope: dict[str, Term] = {}
        params = []
        for name, open_kind in stated.items():
            kind = TensorType(bound[name], open_kind.dtype)
            param = Var(name, kind, span=Span(f"{self.name}:{name}"))
            param._set_checked_type(kind)
            params.append(param)
            scope[name] = Term(param, kind)
        return scope, params

    def _graph(
        self,
        graph: Graph,
        outer: Mapping[str, Term],
        opsets: dict[str, int],
        depth: int,
        given: Sequence[Term] = (),
    ) -> list[Term]:
        """Outputs of a graph whose nodes may also use the names of `outer`.

        `given` are the graph's inputs, where it is one that a node runs.
        """
        scope = dict(outer)
        scope.update({value.name: term for value, term in zip(graph.inputs, given, strict=False)})
        for name, weight in graph.initializers.items():
            scope[name] = _weight(weight)
        wanted = [value.name for value in graph.outputs]
        self._nodes(graph.nodes, scope, wanted, opsets, depth)
        return [self._output(scope, name) for name in wanted if self._present(scope, name)]

    def _present(self, scope: Mapping[str, Term], name: str) -> bool:
        return name in scope or not self.refused

    def _output(self, scope: Mapping[str, Term], name: str) -> Term:
        if name not in scope:
            raise ModelFormatError(
                f"nothing makes the output {name!r}",
                where=self.name,
                hint="the graph is incomplete: the file was cut or edited; export it again",
            )
        return scope[name]

    def _nodes(
        self,
        nodes: list[Node],
        scope: dict[str, Term],
        wanted: Iterable[str],
        opsets: dict[str, int],
        depth: int,
    ) -> None:
        nodes = needed(nodes, wanted)
        uses = [used_names(node) for node in nodes]
        makes = [[name for name in node.outputs if name] for node in nodes]
        order = in_order(uses, makes, scope, lambda index: self._place(nodes[index]))
        for index in order:
            node = nodes[index]
            inputs = [scope.get(name) if name else None for name in node.inputs]
            # What an unsupported node would have made is absent; so is all that depends on it.
            if any(name not in scope for name in uses[index]):
                continue
            made = self._node(node, inputs, scope, opsets, depth)
            pairs = zip(node.outputs, made, strict=False)
            scope.update({name: term for name, term in pairs if name})

    def _place(self, node: Node) -> str:
        return f"{self.name}: {node.op_type} {label(node)}"

    def _node(
        self,
        node: Node,
        inputs: list[Term | None],
        scope: dict[str, Term],
        opsets: dict[str, int],
        depth: int,
    ) -> Sequence[Term]:
        self.emit.span = Span(f"{self.name}:{label(node)}")
        place = self._place(node)
        try:
            function = self.model.functions.get((node.domain, node.op_type, node.overload))
            if function is not None:
                return self._function(function, node, inputs, depth)
            opset = opsets.get(node.domain, 1)
            site = Site(
                node, inputs, self.emit, opset, place,
                lambda graph, given=(): self._graph(graph, scope, opsets, depth + 1, given),
            )  # fmt: skip
            convert = converter(node.op_type, node.domain, opset)
            made = convert(site) if convert else _one_to_one(site)
            return [made] if isinstance(made, Term) else made
        except UnsupportedOpError as error:
            self.refused.extend((name, count, list(at)) for name, count, at in error.ops)
            return []
        except RegistryError as error:
            self.refused.append((f"{node.op_type} ({error.message})", 1, [place]))
            return []
        except IxionError as error:
            error.where = place
            raise
        except BAD_NUMBERS as error:
            raise ModelFormatError(f"the node cannot be imported: {error}", where=place) from error

    def _function(
        self, function: ModelFunction, node: Node, inputs: list[Term | None], depth: int
    ) -> Sequence[Term]:
        if depth > _DEEPEST_CALL:
            raise ModelFormatError("functions call one another without end")
        given = {**function.defaults, **node.attributes}
        body = [with_attributes(inner, given) for inner in function.nodes]
        pairs = zip(function.inputs, inputs, strict=False)
        scope = {name: term for name, term in pairs if term is not None}
        # An input left out is an empty name in the body.
        absent = {name for name in function.inputs if name not in scope}
        body = [without_inputs(inner, absent) for inner in body]
        opsets = {**self.model.opsets, **function.opsets}
        self._nodes(body, scope, function.outputs, opsets, depth + 1)
        return [scope[name] for name in function.outputs if name in scope]


def _stated_inputs(graph: Graph, name: str) -> dict[str, TensorType]:
    """Types of the inputs as the file states them; weights listed among them are left out."""
    found: dict[str, TensorType] = {}
    alone = {dim for value in graph.inputs for dim in value.shape or () if isinstance(dim, str)}
    for value in graph.inputs:
        if value.name in graph.initializers:
            continue
        if value.kind != "tensor" or value.shape is None:
            raise ModelFormatError(
                f"the input {value.name!r} is not a tensor of known rank",
                where=name,
                hint="set the input's shape and export again",
            )
        sizes = tuple(
            dim if isinstance(dim, int) and dim >= 0
            else symbol(str(dim or "?"), alone, f"{value.name}_{axis}")
            for axis, dim in enumerate(value.shape)
        )
        found[value.name] = TensorType(sizes, dtype_of(value.elem_type))
    return found


def _one_to_one(site: Site) -> Term:
    """The operator that states this ONNX name for itself, attributes carried over by name."""
    node = site.node
    name = _same_name(node)
    if name is None:
        raise UnsupportedOpError([(full_name(node), 1, [site.place])])
    operator = Op.get(name)
    attributes = {key: _plain(site.attr(key)) for key in node.attributes}
    attrs = None if operator.attrs_type is None else operator.attrs_type(**attributes)
    return site.emit.apply(operator, attrs, site.present())


def _same_name(node: Node) -> str | None:
    return op.by_onnx_name(full_name(node)) or op.by_onnx_name(node.op_type)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value


def _weight(weight: Tensor | SparseTensor) -> Term:
    if isinstance(weight, SparseTensor):
        return Term.lazy(lambda: dense_array(weight), weight.dims, weight.values.dtype)
    return Term.lazy(weight.numpy, weight.shape, weight.dtype)


def dense_array(sparse: SparseTensor) -> np.ndarray[Any, Any]:
    """A sparse tensor filled in; ModelFormatError if it is far larger than what the file holds."""
    values, indices = sparse.values.numpy(), sparse.indices.numpy()
    size = int(np.prod(sparse.dims, dtype=np.float64))
    if size > 1 << 31:
        raise ModelFormatError("a sparse tensor that would be too large", found=str(sparse.dims))
    out = np.zeros(sparse.dims, values.dtype)
    where = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), sparse.dims)
    out.reshape(-1)[where] = values
    return out
