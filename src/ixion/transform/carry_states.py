"""CarryStates: results that become inputs of the next run, kept where they are.

A state whose next value is the old one with new elements after it (a key-value cache: a
concatenation that starts with the input) becomes a buffer with room for more.  The input
``past: (B, H, P, D)`` turns into ``(B, H, P + n + room, D)``; the new elements are written after
the ``P`` old ones, both old and new value are slices of the buffer, and the output goes.  Any other
state stays as it is: its session has two buffers and exchanges them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.base import dim as dims
from ixion.base.dim import Dim, SymVar
from ixion.base.errors import ConfigError, InputError, did_you_mean
from ixion.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, rewrite
from ixion.op import state
from ixion.op.call import call
from ixion.op.typed import attrs_of, known_dims, op_name, tensor_type
from ixion.runtime.session import Carried
from ixion.transform.infer_type import InferType

# What takes a node's place, given the node over rewritten operands.
Replacement = Callable[[Expr], Expr]


def carry_states(
    module: IRModule, names: Mapping[str, str]
) -> tuple[IRModule, list[Carried], list[str]]:
    """The module with states in place, what a session needs to know, and the remaining outputs.

    ``names`` gives for each input that is a state the output with its next value.  Raises
    ConfigError for a name that is not there, InputError where the two cannot follow each other.
    """
    function = module["main"]
    fields = list(function.body.fields) if isinstance(function.body, Tuple) else [function.body]
    known = module.get_attr("input_names") or [p.name_hint for p in function.params]
    inputs = [str(n) for n in known]
    labels = module.get_attr("output_names") or [f"out{i}" for i in range(len(fields))]
    outputs = [str(n) for n in labels]
    carried: list[Carried] = []
    params, gone = list(function.params), set()
    replaced: dict[int, Replacement] = {}
    for name, result in names.items():
        index, number = _place(name, inputs, "input"), _place(result, outputs, "output")
        grown = _grown(name, index, params[index], fields[number])
        if grown is None:
            _check_alike(name, params[index], result, fields[number])
            carried.append(Carried(name, index, number))
            continue
        one, param, new = grown
        carried.append(one)
        params[index] = param
        replaced.update(new)
        gone.add(number)
    if not replaced:
        return module, carried, outputs
    body = _rewritten([f for i, f in enumerate(fields) if i not in gone], replaced)
    kept = [n for i, n in enumerate(outputs) if i not in gone]
    shifted = {old: new for new, old in enumerate(i for i in range(len(fields)) if i not in gone)}
    carried = [c if c.output < 0 else _renumbered(c, shifted[c.output]) for c in carried]
    return _with_main(module, function, params, body, inputs, kept), carried, kept


def _place(name: str, names: list[str], what: str) -> int:
    if name not in names:
        raise ConfigError(
            f"the model has no {what} {name!r}", expected=", ".join(names),
            hint=did_you_mean(name, names),
        )  # fmt: skip
    return names.index(name)


def _check_alike(name: str, param: Var, result: str, value: Expr) -> None:
    before, after = tensor_type(param), tensor_type(value)
    if before.dtype != after.dtype or tuple(before.shape) != tuple(after.shape):
        raise InputError(
            f"output {result!r} cannot follow state {name!r}", expected=before, found=after,
            hint="a state keeps its shape, or grows by a concatenation that starts with it",
        )  # fmt: skip


def _grown(
    name: str, index: int, param: Var, value: Expr
) -> tuple[Carried, Var, dict[int, Replacement]] | None:
    """The state as a growing buffer, where its next value is a concatenation after it."""
    if not isinstance(value, Call) or op_name(value) != "concatenate":
        return None
    parts = value.args[0]
    if not isinstance(parts, Tuple) or len(parts.fields) != 2 or parts.fields[0] is not param:
        return None
    shape, new = list(known_dims(param)), parts.fields[1]
    axis = int(attrs_of(value).axis) % len(shape)
    length = shape[axis]
    if not isinstance(length, SymVar):
        return None
    added = known_dims(new)[axis]
    room = f"{length.name}.room"
    total = dims.add(length, added)
    shape[axis] = dims.add(total, SymVar(room))
    buffer = Var(param.name_hint, TensorType(tuple(shape), tensor_type(param).dtype))
    old = _front(buffer, axis, length)

    def grown(node: Expr) -> Expr:
        assert isinstance(node, Call)
        assert isinstance(node.args[0], Tuple)
        written = state.append(buffer, node.args[0].fields[1], axis, length)
        return _front(written, axis, total)

    one = Carried(
        name, index, -1, axis, length.name, added if isinstance(added, int) else str(added)
    )
    return one, buffer, {id(param): lambda node: old, id(value): grown}


def _front(buffer: Expr, axis: int, length: Dim) -> Call:
    return call("strided_slice", buffer, begin=[0], end=[length], strides=[1], axes=[axis])


def _rewritten(fields: list[Expr], replaced: Mapping[int, Replacement]) -> Expr:
    """The results with states' old and new values read from their buffers."""
    body = fields[0] if len(fields) == 1 else Tuple(tuple(fields))

    def visit(old: Expr, new: Expr) -> Expr:
        found = replaced.get(id(old))
        return new if found is None else found(new)

    return rewrite(body, visit)


def _renumbered(one: Carried, output: int) -> Carried:
    return Carried(one.name, one.index, output)


def _with_main(
    module: IRModule, function: Function, params: list[Var], body: Expr, inputs: list[str],
    outputs: list[str],
) -> IRModule:  # fmt: skip
    result = module.clone()
    var = module.get_global_var("main")
    result.update_func(var, function.copy(params=tuple(params), body=body, ret_type=None))
    result = result.with_attr("input_names", inputs).with_attr("output_names", outputs)
    return InferType()(result)
