"""Converters of ONNX operators: how each is registered, and what it sees of its node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from ixion.base.errors import ModelFormatError, UnsupportedOpError
from ixion.frontend.emitter import Emitter
from ixion.frontend.onnx.model import Graph, Node
from ixion.frontend.onnx.tensor import DTYPES, Tensor
from ixion.frontend.term import Term

Converter = Callable[["Site"], "Term | Sequence[Term]"]


class Inline(Protocol):
    """Makes a graph's nodes here, with terms for its inputs; gives its outputs."""

    def __call__(self, graph: Graph, given: Sequence[Term] = ()) -> list[Term]: ...


_CONVERTERS: dict[tuple[str, str], list[tuple[int, Converter]]] = {}
_MISSING: Any = object()


def converts(*op_types: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Register a converter of operators from one opset version on, up to the next one's."""

    def register(function: Converter) -> Converter:
        for op_type in op_types:
            versions = _CONVERTERS.setdefault((domain, op_type), [])
            versions.append((since, function))
            versions.sort(key=lambda entry: entry[0])
        return function

    return register


def converter(op_type: str, domain: str, opset: int) -> Converter | None:
    """The converter for an operator of a model with this opset, None if there is none."""
    found = None
    for since, function in _CONVERTERS.get((domain, op_type), []):
        if since <= opset:
            found = function
    return found


class Site:
    """One node while it is converted: its inputs as terms, its attributes, and the emitter."""

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Term | None],
        emit: Emitter,
        opset: int,
        place: str,
        inline: Inline,
    ) -> None:
        self.node = node
        self.inputs = inputs
        self.emit = emit
        self.opset = opset
        self.place = place
        self.inline = inline

    def call(self, name: str, *args: Any, **attrs: Any) -> Term:
        """A call of a Relay operator."""
        return self.emit.call(name, *args, **attrs)

    def input(self, index: int) -> Term:
        """Input `index`; ModelFormatError if the node has none."""
        term = self.optional(index)
        if term is None:
            raise ModelFormatError(f"input {index} of {self.node.op_type} is missing")
        return term

    def optional(self, index: int) -> Term | None:
        """Input `index`, None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def present(self) -> list[Term]:
        """All inputs, those left out skipped."""
        return [term for term in self.inputs if term is not None]

    def attr(self, name: str, default: Any = _MISSING) -> Any:
        """An attribute's value, strings as text; ModelFormatError if a required one is missing."""
        value = self.node.attributes.get(name, default)
        if value is _MISSING:
            raise ModelFormatError(f"{self.node.op_type} without its attribute {name!r}")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value

    def number(self, name: str, default: float) -> float:
        """A float attribute with float32's shortest digits: 0.1 stays 0.1, not 0.10000000149."""
        return float(str(np.float32(self.attr(name, default))))

    def has(self, name: str) -> bool:
        """Whether the node states an attribute."""
        return name in self.node.attributes

    def tensor(self, name: str) -> Tensor:
        """A tensor attribute."""
        value = self.attr(name)
        if not isinstance(value, Tensor):
            raise ModelFormatError(f"the attribute {name!r} is no tensor")
        return value

    def outputs(self) -> int:
        """Outputs up to the last one that is named."""
        names = self.node.outputs
        return max((index + 1 for index, name in enumerate(names) if name), default=0)

    def wants(self, index: int) -> bool:
        """Whether output `index` is used."""
        return index < len(self.node.outputs) and bool(self.node.outputs[index])

    def dims(self, index: int, what: str) -> list[Any]:
        """Input `index` as a list of dims; UnsupportedOpError if it is known only at run time."""
        found = self.input(index).dims()
        if found is None:
            self.unsupported(f"with {what} computed at run time")
        return found

    def ints(self, index: int, what: str) -> list[int]:
        """Input `index` as a list of numbers; UnsupportedOpError if they are not known."""
        found = self.input(index).ints()
        if found is None:
            self.unsupported(f"with {what} computed at run time")
        return found

    def axes(self, index: int, default: list[int] | None = None) -> list[int] | None:
        """Axes: an attribute before opset 13 (18 for some operators), then input `index`."""
        if self.has("axes"):
            return [int(axis) for axis in self.attr("axes")]
        if self.optional(index) is not None:
            return self.ints(index, "axes")
        return default

    def unsupported(self, what: str) -> NoReturn:
        """Raise UnsupportedOpError for this node."""
        name = f"{self.node.op_type} {what}"
        raise UnsupportedOpError([(name, 1, [self.place])])


def dtype_of(code: int) -> str:
    """Relay's name of a TensorProto.DataType; ModelFormatError for one that is no number."""
    if code not in DTYPES:
        raise ModelFormatError(f"tensors of ONNX data type {code} are not supported")
    return DTYPES[code]
