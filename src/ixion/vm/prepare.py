"""What is done to a module before it is cut into segments and acts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ixion.base.errors import TypeInferenceError
from ixion.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from ixion.ir.visitor import post_order
from ixion.op.typed import op_attr
from ixion.transform.context import PassContext
from ixion.transform.infer_type import InferType
from ixion.transform.outline_control import OutlineControl
from ixion.transform.pass_infra import Sequential
from ixion.transform.registry import get_pass
from ixion.transform.remove_unused_functions import RemoveUnusedFunctions
from ixion.transform.settle_sizes import SettleSizes
from ixion.transform.to_graph_normal_form import ToGraphNormalForm
from ixion.vm.naming import Names, constant_value, has_unknown, infer_named

__all__ = ["becomes_steps", "is_plain", "normalised", "simplified"]

# Global names: arguments of control operators.
_DATAFLOW = (Var, Constant, Tuple, TupleGetItem, Op, GlobalVar)
# Before the choice between a plain program and a machine program, by opt level.
_BEFORE = (("FoldConstant", 1), ("DeadCodeElimination", 1))
# Nodes up to which a function goes inline however often it is called.
_SMALL = 100


def is_plain(module: IRModule) -> bool:
    """Whether ``main`` is dataflow of tensors whose sizes follow from those of its inputs."""
    return _is_plain(module["main"])


def _is_plain(function: object) -> bool:
    if not isinstance(function, Function) or not all(
        isinstance(p.checked_type, TensorType) for p in function.params
    ):
        return False
    order = post_order(function.body)
    return all(map(_is_dataflow, order)) and _has_known_sizes(function, order)


def _is_dataflow(node: Expr) -> bool:
    if isinstance(node, Call):
        return isinstance(node.op, Op)
    return isinstance(node, _DATAFLOW)


def _has_known_sizes(main: Function, order: Iterable[Expr]) -> bool:
    """Whether no operator makes a size from data: names for open sizes reach everywhere."""
    calls = [node for node in order if isinstance(node, Call)]
    if not any(has_unknown(c.checked_type) for c in calls):
        return True
    names = Names()
    kinds: dict[Expr, Type] = {p: names.named(p.checked_type) for p in main.params}
    values: dict[Expr, object] = {}
    for node in order:
        if isinstance(node, Call):
            args = list(node.args)
            found = infer_named(node, [kinds[a] for a in args], [values.get(a) for a in args])
            if found is None:
                return False
            kinds[node], values[node] = found.kind, found.value
        elif isinstance(node, Tuple):
            kinds[node] = TupleType([kinds[f] for f in node.fields])
            parts = tuple(values.get(f) for f in node.fields)
            values[node] = None if any(p is None for p in parts) else parts
        elif isinstance(node, TupleGetItem):
            kind, value = kinds[node.tuple_value], values.get(node.tuple_value)
            assert isinstance(kind, TupleType)
            kinds[node] = kind.fields[node.index]
            values[node] = value[node.index] if isinstance(value, tuple) else None
        elif isinstance(node, Constant):
            kinds[node], values[node] = node.checked_type, constant_value(node.data)
        elif isinstance(node, GlobalVar):
            kinds[node] = node.checked_type
    return True


def becomes_steps(module: IRModule, entry: str = "main") -> bool:
    """Whether all control flow of a function of a typed module becomes steps of plain dataflow."""
    if not all(isinstance(p.checked_type, TensorType) for p in module[entry].params):
        return False
    passes = [SettleSizes(), OutlineControl(entry), RemoveUnusedFunctions((entry,)), InferType()]
    with PassContext(opt_level=3):
        outlined = Sequential(passes)(module)
    return all(map(_is_plain, outlined.functions.values()))


def simplified(module: IRModule, opt_level: int) -> IRModule:
    """The typed module with only what ``main`` reaches, plain functions put in place of their
    calls, constants folded and dead bindings gone.
    """
    with PassContext(opt_level=3):
        module = _sequence("RemoveUnusedFunctions", "InferType")(module)
        module = _without_plain_functions(module)
        for name, level in _BEFORE:
            if level <= opt_level:
                module = _typed_or_before(module, name)
        if all(isinstance(node, Let) or _is_dataflow(node) for node in _nodes(module)):
            module = _sequence("ToGraphNormalForm", "InferType")(module)
    return module


def _typed_or_before(module: IRModule, name: str) -> IRModule:
    """The module after a pass; as before where types that became more exact no longer agree.

    Two branches may give tensors of different sizes as long as one of them is not known.
    """
    try:
        return _sequence(name, "InferType")(module)
    except TypeInferenceError:
        return module


def normalised(module: IRModule) -> IRModule:
    """The typed module in A-normal form."""
    with PassContext(opt_level=3):
        return _sequence("ToANormalForm", "InferType")(module)


def _sequence(*names: str) -> Callable[[IRModule], IRModule]:
    return Sequential([get_pass(name)() for name in names])


def _nodes(module: IRModule) -> list[Expr]:
    return post_order(module["main"].body)


def _without_plain_functions(module: IRModule) -> IRModule:
    """Global functions that are dataflow, calls of others like them included, go inline."""
    chosen = _plain_functions(module)
    if not chosen:
        return module
    result = module.clone()
    graph = ToGraphNormalForm()
    for name in chosen:
        var = result.get_global_var(name)
        # Without lets: a variable must not be bound in two places.
        function = graph.transform_function(result[name], result, PassContext.current())
        result.update_func(var, function.with_attr("Inline", 1))
    return _sequence("InferType", "InlineGlobals", "InferType")(result)


def _plain_functions(module: IRModule) -> list[str]:
    """Names of the functions to put inline, callees first: small ones and those called once."""
    functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
    nodes = {name: post_order(f.body) for name, f in functions.items()}
    uses = Counter(
        n.op.name_hint for body in nodes.values() for n in body
        if isinstance(n, Call) and isinstance(n.op, GlobalVar)
    )  # fmt: skip
    waiting = {
        name: calls
        for name, f in functions.items()
        if name != "main" and not f.type_params and (len(nodes[name]) <= _SMALL or uses[name] == 1)
        and (calls := _calls(nodes[name])) is not None
    }  # fmt: skip
    plain: dict[str, None] = {}
    found = [name for name, calls in waiting.items() if not calls]
    callers: dict[str, list[str]] = {}
    for name, calls in waiting.items():
        for callee in calls:
            callers.setdefault(callee, []).append(name)
    while found:
        name = found.pop()
        plain[name] = None
        for caller in callers.get(name, ()):
            waiting[caller].discard(name)
            if not waiting[caller]:
                found.append(caller)
    return list(plain)


def _calls(nodes: Sequence[Expr]) -> set[str] | None:
    """Global functions that a dataflow body calls; None for one that is no dataflow."""
    found: set[str] = set()
    callees: set[Expr] = set()
    for node in nodes:
        if isinstance(node, Call):
            if isinstance(node.op, GlobalVar):
                found.add(node.op.name_hint)
                callees.add(node.op)
            elif not isinstance(node.op, Op) or op_attr(node, "TOpIsStateful"):
                return None
        elif not isinstance(node, (*_DATAFLOW, Let, GlobalVar)):
            return None
    # A function that is handed on as a value is no call.
    loose = [n for n in nodes if isinstance(n, GlobalVar) and n not in callees]
    return None if loose else found
