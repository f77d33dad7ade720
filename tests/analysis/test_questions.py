from __future__ import annotations

import numpy as np
import pytest

from ixion import op
from ixion.analysis import (
    Feature,
    PurityAnalysis,
    check_constant,
    check_well_formed,
    cost_of,
    detect_feature,
    get_total_mac_number,
    last_uses,
    list_op_freqs,
    recursive_vars,
    unmatched_cases,
    use_counts,
    well_formed,
)
from ixion.analysis.ancestors import AncestorTree
from ixion.analysis.constants import is_non_negative, scalar_value, value_range
from ixion.analysis.dominators import ForwardGraph, PostDominators
from ixion.base.errors import PassError
from ixion.ir import (
    Clause,
    Constructor,
    Function,
    GlobalTypeVar,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefWrite,
    Tuple,
    TypeData,
    Var,
    const,
    var,
)
from ixion.op.define import OpPattern
from ixion.transform import InferType


def test_common_ancestors_by_brute_force():
    rng = np.random.default_rng(0)
    tree, parents, weights = AncestorTree(), [0], [0]
    for node in range(1, 300):
        parent = int(rng.integers(max(0, node - 6), node)) if node > 3 else 0
        weight = int(rng.integers(0, 9))
        assert tree.add(parent, weight) == node
        parents.append(parent)
        weights.append(weight)

    def way(node: int) -> list[int]:
        found = []
        while node:
            found.append(node)
            node = parents[node]
        return [*found, 0]

    for _ in range(500):
        a, b = (int(v) for v in rng.integers(1, 300, 2))
        meet = next(node for node in way(a) if node in way(b))
        below = [n for w in (way(a), way(b)) for n in w[: w.index(meet)]]
        assert tree.common(a, b) == (meet, max([weights[n] for n in below], default=0))


def test_post_dominators():
    graph = ForwardGraph()
    # a feeds b and c, which meet in d; e is used by d and by the result f.
    uses = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("e", "d"), ("e", "f"), ("d", "f")]
    for source, target in uses:
        pattern = OpPattern.INJECTIVE if target == "c" else OpPattern.ELEMWISE
        graph.node(source).outputs.append((graph.node(target), pattern))
    graph.node("f").extern_ref = True
    for name in ("a", "e", "b", "c", "d", "f"):
        graph.place(name)
    tree = PostDominators(graph)
    order = [node.ref for node in graph.nodes]
    found = {name: tree.parent[graph.node(name).index] for name in order}
    assert {n: order[p] if p >= 0 else None for n, p in found.items()} == {
        "a": "d",
        "b": "d",
        "c": "d",
        "d": "f",
        "e": "f",
        "f": None,
    }
    assert tree.pattern[graph.node("a").index] == OpPattern.INJECTIVE
    assert tree.pattern[graph.node("b").index] == OpPattern.ELEMWISE


def test_well_formed_programs():
    x, a = var("x", "float32"), Var("a")
    assert well_formed(Function([x], Let(a, x + x, a)))
    assert well_formed(x + x)
    check_well_formed(IRModule.from_expr(x + x))


def test_a_variable_bound_twice():
    x, a = var("x", "float32"), Var("a")
    twice = Let(a, x, Let(a, x, a))
    assert not well_formed(twice)
    with pytest.raises(PassError, match="%a is bound more than once"):
        check_well_formed(Function([x], twice))
    assert not well_formed(Tuple([Function([x], x), Function([x], x)]))


def test_a_variable_out_of_scope():
    x, a = var("x", "float32"), Var("a")
    assert not well_formed(Tuple([Let(a, x, a), a]))
    use = a + a
    # The shared use lies outside of the let as well.
    assert not well_formed(Tuple([Let(a, x, use), use]))
    assert well_formed(Let(a, x, Tuple([use, use])))


def test_a_free_variable_in_a_module():
    x, y = var("x", "float32"), var("y", "float32")
    mod = IRModule()
    mod.update_func(IRModule.from_expr(x).get_global_var("main"), Function([x], y))
    with pytest.raises(PassError, match="%y is free"):
        check_well_formed(mod)


def test_recursive_variables():
    x, f, g, n = var("x", "int32"), Var("f"), Var("g"), var("n", "int32")
    recursive = Let(f, Function([n], f(n)), Let(g, Function([x], f(x)), g))
    assert recursive_vars(recursive) == {f}


def test_liveness_and_uses():
    x = var("x", shape=(2,))
    a = op.call("exp", x)
    b = a + x
    root = b * a
    found = last_uses(root)
    place = {expr: i for i, expr in enumerate(found.order)}
    assert found.last_use[a] == place[root]
    assert found.last_use[x] == place[b]
    assert found.dying_at()[place[root]] == [a, b]
    assert use_counts(root)[a] == 2


def test_cost():
    x, w = var("x", shape=(1, 3, 8, 8)), const(np.zeros((4, 3, 3, 3), "float32"))
    conv = op.call("nn.conv2d", x, w, channels=4, kernel_size=(3, 3))
    mod = InferType()(IRModule.from_expr(Function([x], op.call("nn.relu", conv))))
    cost = cost_of(mod)
    assert cost.macs == get_total_mac_number(mod["main"]) == 4 * 36 * 27
    assert cost.flops == 2 * cost.macs + 4 * 36
    assert cost.weights == w.data.nbytes
    assert cost.written == 2 * 4 * 36 * 4
    assert list_op_freqs(mod) == {"nn.conv2d": 1, "nn.relu": 1}


def test_features():
    x, a = var("x", "float32"), Var("a")
    found = detect_feature(Function([x], Let(a, x + x, a)))
    assert found == {Feature.fVar, Feature.fFunction, Feature.fLet, Feature.fCall, Feature.fOp}
    shared = x + x
    assert Feature.fGraph in detect_feature(shared * shared)
    assert detect_feature(IRModule.from_expr(const(1.0))) == {Feature.fConstant, Feature.fFunction}


def test_purity():
    x, pure, cell, written = var("x", "float32"), Var("pure"), Var("cell"), Var("written")
    f, called, y = Var("f"), Var("called"), var("y", "float32")
    write = Function([y], RefWrite(cell, y))
    body = Let(f, write, Let(written, f(x), Let(called, Tuple([written]), pure)))
    body = Let(pure, x + x, Let(cell, RefCreate(x), body))
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    found, chain = {}, mod["main"].body
    analysis = PurityAnalysis(mod)
    while isinstance(chain, Let):
        found[chain.var.name_hint] = analysis.is_pure(chain.var)
        chain = chain.body
    assert found == {"pure": True, "cell": True, "f": True, "written": False, "called": True}


def test_constants():
    assert check_constant(Tuple([const(1.0), Tuple([const(2)])]))
    assert not check_constant(Tuple([const(1.0), var("x", "float32")]))
    data = const(np.array([0.0, 1.0], "float32"))
    assert is_non_negative(op.call("expand_dims", data, axis=1, num_newaxis=2))
    assert not is_non_negative(const(-1.0))
    assert scalar_value(const(3)) == 3
    assert scalar_value(data) is None
    assert value_range("int8") == (-128, 127)
    assert value_range("uint16") == (0, 65535)
    assert value_range("bool") == (0, 1)
    assert value_range("float32")[1] == pytest.approx(3.4028235e38)
    assert value_range("bfloat16")[0] == pytest.approx(-3.39e38, rel=1e-2)


def list_module() -> tuple[IRModule, Constructor, Constructor]:
    mod, name = IRModule(), GlobalTypeVar("list")
    cons, nil = Constructor("Cons", [name()], name), Constructor("Nil", [], name)
    mod[name] = TypeData(name, [], [cons, nil])
    return mod, cons, nil


def test_unmatched_cases():
    mod, cons, nil = list_module()
    data, any_ = Var("x"), PatternWildcard()

    def missing(*patterns) -> list[str]:
        match = Match(data, [Clause(pattern, const(1)) for pattern in patterns])
        return [str(case) for case in unmatched_cases(match, mod)]

    assert missing(any_) == []
    assert missing(PatternVar(Var("v"))) == []
    assert missing(PatternConstructor(cons, [any_]), PatternConstructor(nil, [])) == []
    assert len(missing(PatternConstructor(nil, []))) == 1
    deep = PatternConstructor(cons, [PatternConstructor(nil, [])])
    assert len(missing(deep, PatternConstructor(nil, []))) == 1
    assert len(missing(deep)) == 2
    pair = PatternTuple([PatternConstructor(nil, []), any_])
    assert len(missing(pair)) == 1
    assert missing(pair, PatternTuple([any_, any_])) == []


def test_if_is_part_of_dataflow_questions():
    x, c = var("x", "float32"), var("c", "bool")
    assert use_counts(If(c, x, x))[x] == 2
