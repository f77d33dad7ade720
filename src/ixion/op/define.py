"""One declarative form per operator, turned into attributes of the registry.

``define`` states everything about an op in one place and stores it under these keys:

==============  ===================================================================================
FInfer          ``(InferArgs) -> Inferred | None``
FReference      ``(attrs, arrays, out_type) -> array or tuple``: numpy, float64 inside, rounded once
FTVMCompute     ``(attrs, te tensors, out_type) -> te tensor or tuple``; raises ``NoLoopsError``
                where sizes or attributes leave no loops, and the op then runs by its reference
TWritesOperand  int: the operand whose memory is the result's; nobody may need it as it was
FScheduled      ``(attrs, arg types, out type) -> bool``: whether loops can do a call though the op
                has no compute, because a schedule of its own knows how
TOpPattern      ``OpPattern`` (Relay's numbers)
TCompare        ``Exact | Ulp | Accumulation``
FShapeFunc      ``(InferArgs) -> Type``: the rule for shapes known at run time, where it is not
                ``FInfer``
FMacCount       ``(attrs, arg types, out type) -> dim``
TNames          ``Names``: what other formats call it
FSamples        ``(Draw) -> Sample``: generated calls for the sweep
==============  ===================================================================================

References and computes take tuple arguments opened: ``concatenate`` of three tensors gets three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NoReturn

import numpy as np

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import TypeInferenceError
from ixion.base.guard import Guard
from ixion.ir.attrs import Attrs
from ixion.ir.op import Op, register_op
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op import abroad
from ixion.op.abroad import Names
from ixion.op.compare import Compare, Exact
from ixion.op.sample import Sampler
from ixion.op.value import Value, as_objects, is_concrete, settle

__all__ = [
    "InferArgs", "Inferred", "Names", "OpPattern", "define", "follows_floats", "is_followed",
    "moves",
]  # fmt: skip

# The largest tensor whose symbolic value is tracked: shapes, axes, slice bounds.
VALUE_LIMIT = 1024
# As floats only shapes on their way through a scale are followed.
FLOAT_LIMIT = 8


class OpPattern(IntEnum):
    """How an op may be fused; the numbers are Relay's."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


@dataclass(frozen=True, slots=True)
class InferArgs:
    """What a type relation sees.

    ``types``: one per argument, None while unknown.  ``values``: per argument None, or the value
    of a small integer or bool tensor as an array of ints or of dims (dtype object); a tuple of
    these for a tuple argument.  ``guards`` takes what the relation cannot prove.
    """

    op: str
    types: tuple[Type | None, ...]
    attrs: Any = None
    values: tuple[Value, ...] = ()
    guards: list[Guard] | None = None

    def tensor(self, index: int = 0) -> TensorType:
        """Type of argument ``index``; raises TypeInferenceError when it is not a tensor."""
        if index >= len(self.types):
            self.fail("too few arguments", found=f"{len(self.types)}")
        kind = self.types[index]
        if not isinstance(kind, TensorType):
            self.fail(f"argument {index} must be a tensor", found=str(kind))
        return kind

    def fields(self, index: int = 0) -> tuple[TensorType, ...]:
        """Types of the tensors of tuple argument ``index``; raises TypeInferenceError."""
        kind = self.types[index]
        if not isinstance(kind, TupleType) or not kind.fields:
            self.fail(f"argument {index} must be a tuple of tensors", found=str(kind))
        for one in kind.fields:
            if not isinstance(one, TensorType):
                self.fail(f"argument {index} must hold tensors only", found=str(kind))
        return tuple(one for one in kind.fields if isinstance(one, TensorType))

    def value(self, index: int) -> np.ndarray[Any, Any] | None:
        """Known value of integer tensor argument ``index`` as an object array, or None."""
        kind = self.types[index] if index < len(self.types) else None
        floats = isinstance(kind, TensorType) and kind.dtype.startswith("float")
        return None if floats else self.followed(index)

    def followed(self, index: int) -> np.ndarray[Any, Any] | None:
        """As ``value``, also of a tiny float tensor, whose elements may be ``Ratio``s."""
        value = self.values[index] if index < len(self.values) else None
        return None if value is None else as_objects(value)

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Value of argument ``index`` as plain ints, flattened; None unless all are known."""
        value = self.value(index)
        if value is None or not is_concrete(value):
            return None
        return tuple(int(v) for v in value.ravel())

    def agree(
        self, a: Dim, b: Dim, rule: str, *, expected: object = None, found: object = None
    ) -> None:
        """Two sizes are equal: raises TypeInferenceError if they never are, and guards what is
        not known.
        """
        equal = dims.same(a, b)
        if equal is False:
            wanted, had = (a, b) if found is None else (expected, found)
            self.fail(rule, expected=wanted, found=had)
        if equal is None:
            self.guard("equal", a, b, rule)

    def agree_all(
        self, a: Sequence[Dim], b: Sequence[Dim], rule: str, *, expected: object, found: object
    ) -> None:
        """Two shapes are equal, as ``agree`` has it; ranks too."""
        if len(a) != len(b):
            self.fail(rule, expected=expected, found=found)
        for one, other in zip(a, b, strict=True):
            self.agree(one, other, rule, expected=expected, found=found)

    def at_most(self, a: Dim, b: Dim, rule: str) -> None:
        """``a <= b``: raises TypeInferenceError if it never is, and guards what is not known."""
        room = dims.lower_bound(dims.add(b, dims.multiply(-1, a)))
        if room is None or room < 0:
            lack = dims.lower_bound(dims.add(a, dims.multiply(-1, b)))
            if lack is not None and lack > 0:
                self.fail(rule, expected=f"at most {b}", found=a)
            self.guard("at most", a, b, rule)

    def guard(self, kind: str, a: Dim, b: Dim, rule: str) -> None:
        """Notes what must be looked at when the sizes are known; see ``Guard``.

        An unknown size (``Any``) depends on data, so no size of an input decides it.
        """
        unknown = isinstance(a, dims.Any) or isinstance(b, dims.Any)
        if self.guards is not None and not unknown:
            if kind == "equal":
                a, b = dims.reduced(a, b)
            self.guards.append(Guard(kind, a, b, rule, self.op))

    def fail(
        self, rule: str, *, expected: object = None, found: object = None, hint: str | None = None
    ) -> NoReturn:
        """Raises TypeInferenceError naming the op and the rule."""
        raise TypeInferenceError(
            f"{self.op}: {rule}",
            expected=None if expected is None else str(expected),
            found=None if found is None else str(found),
            hint=hint,
        )


@dataclass(frozen=True, slots=True)
class Inferred:
    """A result type; the result's symbolic value when known; types for untyped arguments."""

    type: Type
    value: Value = None
    arg_types: tuple[Type | None, ...] | None = None


Infer = Callable[[InferArgs], "Type | Inferred | None"]
Completes = Callable[[InferArgs], "tuple[Type | None, ...]"]
Symbolic = Callable[[InferArgs, Type, "Reference | None"], Value]
Reference = Callable[[Any, "tuple[np.ndarray[Any, Any], ...]", Any], Any]
Compute = Callable[[Any, "tuple[Any, ...]", Any], Any]
Macs = Callable[[Any, "tuple[Type, ...]", Any], Dim]
Input = str | tuple[str, str]


def define(
    name: str,
    *,
    inputs: Sequence[Input],
    pattern: OpPattern | None,
    level: int,
    infer: Infer,
    doc: str,
    attrs: type[Attrs] | None = None,
    reference: Reference | None = None,
    compute: Compute | None = None,
    compare: Compare | None = None,
    names: Names | None = None,
    macs: Macs | None = None,
    completes: Completes | None = None,
    symbolic: Symbolic | None = None,
    samples: Sampler | None = None,
    num_inputs: int | None = None,
    num_outputs: int | Callable[[Any], int] = 1,
    **extra: Any,
) -> Op:
    """Registers an op and returns it.

    ``inputs``: argument names, or (name, type word) pairs.  ``completes`` gives the types that
    attributes and known arguments imply for arguments without one (a weight's shape).
    ``symbolic`` computes the value of a small integer result, see ``moves``.  ``extra`` entries
    become further op attributes.  Raises RegistryError when ``name`` is defined twice.
    """
    op = register_op(name).describe(doc).set_support_level(level)
    for one in inputs:
        op.add_argument(*((one, "Tensor") if isinstance(one, str) else one), "")
    op.set_num_inputs(len(inputs) if num_inputs is None else num_inputs)
    op.set_num_outputs(num_outputs)
    if attrs is not None:
        op.set_attrs_type(attrs)
    op.set_attr("FInfer", _infer_with_values(name, infer, completes, symbolic, reference))
    op.set_attr("TCompare", compare or Exact())
    optional = {
        "TOpPattern": pattern,
        "FReference": None if reference is None else _quiet(reference),
        "FTVMCompute": compute,
        "FMacCount": macs,
        "FSamples": samples,
        "TNames": names,
        **extra,
    }
    for key, value in optional.items():
        if value is not None:
            op.set_attr(key, value)
    if names is not None:
        abroad.add(name, names)
    return op


def moves(*concrete: int) -> Symbolic:
    """Symbolic value of an op that only moves elements: its reference over arrays of dims.

    Arguments at the positions ``concrete`` (indices, conditions) must be known numbers.
    """

    def symbolic(args: InferArgs, out: Type, reference: Reference | None) -> Value:
        arrays: list[np.ndarray[Any, Any]] = []
        for i, value in enumerate(args.values):
            parts = value if isinstance(value, tuple) else (value,)
            for part in parts:
                objects = as_objects(part)
                if i in concrete and not is_concrete(objects):
                    return None
                arrays.append(objects.astype(np.int64) if i in concrete else objects)
        return reference(args.attrs, tuple(arrays), out) if reference else None

    return follows_floats(symbolic)


def _infer_with_values(
    name: str,
    infer: Infer,
    completes: Completes | None,
    symbolic: Symbolic | None,
    reference: Reference | None,
) -> Callable[[InferArgs], Inferred | None]:
    floats = getattr(symbolic, "floats", False)

    def run(args: InferArgs) -> Inferred | None:
        assigned = None
        if any(t is None for t in args.types):
            if completes is None:
                return None
            assigned = completes(args)
            if any(t is None for t in assigned):
                return None
            args = replace(args, types=assigned)
        found = infer(args)
        if found is None:
            return None
        out = found if isinstance(found, Inferred) else Inferred(found)
        if out.value is None and symbolic is not None and _tracked(args, out.type, floats):
            out = replace(out, value=settle(symbolic(args, out.type, reference)))
        return out if assigned is None else replace(out, arg_types=assigned)

    run.__name__ = run.__qualname__ = f"infer_{name}"
    return run


def follows_floats(rule: Symbolic) -> Symbolic:
    """Marks a value rule that also understands floats, whose elements may be ``Ratio``s."""
    rule.floats = True  # type: ignore[attr-defined]
    return rule


def is_followed(kind: Type | None, floats: bool = True) -> bool:
    """Whether values of such a type are tracked: small tensors of integers, tiny ones of floats."""
    if not isinstance(kind, TensorType):
        return False
    size = dims.prod(kind.shape)
    whole = kind.dtype.startswith(("int", "uint", "bool"))
    limit = VALUE_LIMIT if whole else FLOAT_LIMIT if floats and kind.dtype[:5] == "float" else -1
    return isinstance(size, int) and size <= limit


def _tracked(args: InferArgs, out: Type, floats: bool) -> bool:
    """Whether every argument's value is known and the results are small enough to follow."""
    if len(args.values) != len(args.types) or not args.values:
        return False
    for value in args.values:
        parts = value if isinstance(value, tuple) else (value,)
        if any(part is None for part in parts):
            return False
    kinds = out.fields if isinstance(out, TupleType) else (out,)
    return all(is_followed(kind, floats) for kind in (*kinds, *_leaves(args.types)))


def _leaves(types: Sequence[Type | None]) -> Iterator[Type | None]:
    for kind in types:
        yield from kind.fields if isinstance(kind, TupleType) else (kind,)


def _quiet(reference: Reference) -> Reference:
    """References divide by zero and overflow on purpose; numpy's warnings say nothing here."""

    def run(attrs: Any, inputs: tuple[np.ndarray[Any, Any], ...], out_type: Any) -> Any:
        with np.errstate(all="ignore"):
            return reference(attrs, inputs, out_type)

    run.__name__ = run.__qualname__ = getattr(reference, "__name__", "reference")
    return run
