"""Results whose size is known only when they have been computed: bounds and true extents.

An op whose result sizes depend on data (``argwhere``, ``unique``, ``vision.select_boxes``) has a
type with ``Any`` in it, and states how large its results can get:

``FResultBound``  ``(InferArgs) -> shapes``, one per result tensor.  No result has a larger extent
along any axis, whatever the data.  Values of arguments that are known (a constant ``k``) may make a
bound tighter.

Its compiled form is a kernel with one result more than the op has.  Result ``i`` is a buffer of
bound ``i``: from its start the result lies densely, row by row *of its true shape*; the rest of the
buffer is unspecified.  The last result, ``extents``, is an int64 vector of the true shapes of all
results, one after another.  So whoever runs the kernel allocates by bounds, reads ``extents`` and
hands on the front of each buffer in its true shape; ``ixion.runtime.bounded.cut`` does that.

``bounded_type`` is the type of such a kernel: it has no ``Any`` where the arguments have none, so a
call of that type is lowered like any other.
"""

from __future__ import annotations

from typing import Any

from ixion.base.dim import Dim
from ixion.base.errors import RegistryError
from ixion.ir.expr import Call
from ixion.ir.op import Op
from ixion.ir.types import TensorType, TupleType, Type
from ixion.op.define import InferArgs
from ixion.op.typed import op_attr

Shapes = tuple[tuple[Dim, ...], ...]


def is_bounded(call: Call) -> bool:
    """Whether the sizes of a call's results depend on data and have a bound."""
    return op_attr(call, "FResultBound") is not None


def result_types(kind: Type) -> tuple[TensorType, ...]:
    """The tensors of a result type; TypeError for a type that holds anything else."""
    fields = kind.fields if isinstance(kind, TupleType) else (kind,)
    found = tuple(f for f in fields if isinstance(f, TensorType))
    if len(found) != len(fields):
        raise TypeError(f"results are tensors, found {kind}")
    return found


def bounded_type(op: Op, args: InferArgs, result: Type) -> TupleType:
    """Type of the compiled form: results as large as they can get, then ``extents``.

    ``result`` is the op's own result type.  Raises RegistryError for an op without a bound.
    """
    bound: Any = op.get_attr("FResultBound")
    if bound is None:
        raise RegistryError(f"{op.name} does not say how large its results can get")
    types = result_types(result)
    shapes: Shapes = bound(args)
    buffers = [TensorType(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
    return TupleType((*buffers, extents_type(types)))


def extents_type(results: tuple[TensorType, ...]) -> TensorType:
    """Type of the vector with the true shapes of results of these types."""
    return TensorType((sum(len(t.shape) for t in results),), "int64")


