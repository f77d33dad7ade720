"""Random programs with closures, data types, references, recursion and sizes that data decide.

All numbers are whole and stay small, so that float32 arithmetic is exact and every way to compute
a program gives the same bits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from ixion import op
from ixion.base.dim import Any as AnyDim
from ixion.driver.text import parse
from ixion.ir import (
    Call,
    Clause,
    Expr,
    Function,
    FuncType,
    If,
    IRModule,
    Let,
    Match,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    TypeCall,
    Var,
    const,
)
from ixion.transform import InferType

VEC = TensorType((3,))
OPEN = TensorType((AnyDim(),))
NUMBER = TensorType((), "int32")
FLAG = TensorType((), "bool")
PAIR = TupleType([VEC, NUMBER])
FUNC = FuncType([VEC], VEC)
MAKER = FuncType([NUMBER], FUNC)
CELL = RefType(VEC)

LIBRARY = """
type List[A] { Cons(A, List[A]), Nil, }
type Tree[A] { Leaf(A), Fork(Tree[A], Tree[A]), }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil }
}
def @fold[A, B](%f: fn (A, B) -> A, %s: A, %l: List[B]) -> A {
  match (%l) { Nil => %s, Cons(%h, %t) => @fold(%f, %f(%s, %h), %t) }
}
def @times[A](%f: fn (A) -> A, %n: int32, %x: A) -> A {
  if (less_equal(%n, 0)) { %x } else { @times(%f, subtract(%n, 1), %f(%x)) }
}
def @leaves[A](%t: Tree[A], %rest: List[A]) -> List[A] {
  match (%t) { Leaf(%x) => Cons(%x, %rest), Fork(%a, %b) => @leaves(%a, @leaves(%b, %rest)) }
}
def @even(%n: int32) -> bool {
  if (less_equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) }
}
def @odd(%n: int32) -> bool {
  if (less_equal(%n, 0)) { False } else { @even(subtract(%n, 1)) }
}
"""


class Generator:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.module = parse('#[version = "0.0.5"]\n' + LIBRARY)
        self.list, self.cons, self.nil = self.module.get_type("List")
        self.tree, self.leaf, self.fork = self.module.get_type("Tree")
        self.vecs = TypeCall(self.list, [VEC])
        self.bush = TypeCall(self.tree, [VEC])
        self.count = 0

    def program(self, depth: int) -> IRModule:
        """A module whose main takes a vector, a number and a vector of any length."""
        params = [Var("x", VEC), Var("n", NUMBER), Var("o", OPEN)]
        fields = [self.expr(kind, depth, params) for kind in self.some_kinds()]
        body: Expr = Tuple(fields)
        module = self.module.clone()
        module["main"] = Function(params, body)
        return InferType()(module)

    def some_kinds(self) -> list[Type]:
        kinds = [VEC, NUMBER, OPEN, self.vecs, PAIR, self.bush]
        return [self.random.choice(kinds) for _ in range(self.random.randint(1, 3))]

    def var(self, kind: Type) -> Var:
        self.count += 1
        return Var(f"v{self.count}", kind)

    def pick(self, *choices: Callable[[], Expr]) -> Expr:
        return self.random.choice(choices)()

    def expr(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        """An expression of a type over the variables of ``env``."""
        known = [v for v in env if v.type_annotation == kind]
        if depth <= 0 or (known and self.random.random() < 0.25):
            return self.random.choice(known) if known else self.smallest(kind, env)
        if self.random.random() < 0.3:
            return self.general(kind, depth, env)
        makers: dict[Any, Callable[[int, list[Var]], Expr]] = {
            VEC: self.vector, NUMBER: self.number, OPEN: self.open, FLAG: self.flag,
            FUNC: self.function, MAKER: self.maker, CELL: self.cell, PAIR: self.pair,
            self.vecs: self.vectors, self.bush: self.branching,
        }  # fmt: skip
        return makers[kind](depth - 1, env)

    def smallest(self, kind: Type, env: list[Var]) -> Expr:
        if kind == VEC:
            return const(np.array([self.random.randint(-3, 3) for _ in range(3)], "float32"))
        if kind == NUMBER:
            return const(np.array(self.random.randint(0, 4), "int32"))
        if kind == FLAG:
            return const(np.array(self.random.random() < 0.5))
        if kind == OPEN:
            return next(v for v in env if v.type_annotation == OPEN)
        if kind == PAIR:
            return Tuple([self.smallest(VEC, env), self.smallest(NUMBER, env)])
        if kind == FUNC:
            v = self.var(VEC)
            return Function([v], op.call("negative", v), VEC)
        if kind == MAKER:
            n = self.var(NUMBER)
            return Function([n], self.smallest(FUNC, env), FUNC)
        if kind == CELL:
            return RefCreate(self.smallest(VEC, env))
        if kind == self.vecs:
            return Call(self.nil, [])
        return Call(self.leaf, [self.smallest(VEC, env)])

    def general(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        """Control that gives any type."""
        d = depth - 1
        return self.pick(
            lambda: self.let(kind, d, env),
            lambda: If(self.expr(FLAG, d, env), self.expr(kind, d, env), self.expr(kind, d, env)),
            lambda: self.matched(kind, d, env),
            lambda: self.called(kind, d, env),
            lambda: self.twice(kind, d, env),
            lambda: self.written(kind, d, env),
        )

    def any_kind(self) -> Type:
        kinds = [VEC, NUMBER, OPEN, PAIR, FUNC, MAKER, CELL, FLAG, self.vecs, self.bush]
        return self.random.choice(kinds)

    def let(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        var = self.var(self.any_kind())
        value = self.expr(var.type_annotation, depth, env)
        return Let(var, value, self.expr(kind, depth, [*env, var]))

    def called(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        """A function of two, bound or called where it stands; sometimes a recursive one."""
        params = [self.var(self.any_kind()), self.var(NUMBER)]
        inner = [*env, *params]
        name = self.var(FuncType([p.type_annotation for p in params], kind))
        body = self.expr(kind, depth, inner)
        if self.random.random() < 0.5:
            again = Call(name, [params[0], op.call("subtract", params[1], const(1))])
            stop = op.call("less_equal", params[1], const(0))
            body = If(stop, body, again)
        args = [self.expr(params[0].type_annotation, depth, env), self.expr(NUMBER, depth, env)]
        function = Function(params, body, kind)
        if self.random.random() < 0.3 and name not in _variables(body):
            return Call(function, args)
        return Let(name, function, Call(name, args))

    def twice(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        """``@times`` of a function over this very type."""
        v = self.var(kind)
        function = Function([v], self.expr(kind, depth, [*env, v]), kind)
        times = const(np.array(self.random.randint(0, 2), "int32"))
        start = self.expr(kind, depth, env)
        return Call(self.module.get_global_var("times"), [function, times, start])

    def written(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        cell, done = self.var(CELL), self.var(TupleType([]))
        write = RefWrite(cell, self.expr(VEC, depth, [*env, cell]))
        rest = Let(done, write, self.expr(kind, depth, [*env, cell]))
        return Let(cell, self.expr(CELL, depth, env), rest)

    def matched(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        head, tail = self.var(VEC), self.var(self.vecs)
        if self.random.random() < 0.3:
            return self.matched_tree(kind, depth, env)
        if self.random.random() < 0.3:
            return self.matched_pair(kind, depth, env)
        data = self.expr(self.vecs, depth, env)
        second = PatternConstructor(self.cons, [PatternWildcard(), PatternVar(tail)])
        two = PatternConstructor(self.cons, [PatternVar(head), second])
        one = PatternConstructor(self.cons, [PatternVar(head), PatternWildcard()])
        clauses = [Clause(one, self.expr(kind, depth, [*env, head]))]
        if self.random.random() < 0.5:
            clauses.insert(0, Clause(two, self.expr(kind, depth, [*env, head, tail])))
        empty = PatternConstructor(self.nil, [])
        clauses.append(Clause(empty, self.expr(kind, depth, env)))
        self.random.shuffle(clauses)
        return Match(data, clauses)

    def matched_tree(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        a, b, x = self.var(self.bush), self.var(self.bush), self.var(VEC)
        clauses = [
            Clause(
                PatternConstructor(self.fork, [
                    PatternConstructor(self.leaf, [PatternVar(x)]), PatternVar(b)
                ]), self.expr(kind, depth, [*env, x, b]),
            ),
            Clause(
                PatternConstructor(self.fork, [PatternVar(a), PatternWildcard()]),
                self.expr(kind, depth, [*env, a]),
            ),
            Clause(PatternWildcard(), self.expr(kind, depth, env)),
        ]  # fmt: skip
        return Match(self.expr(self.bush, depth, env), clauses)

    def matched_pair(self, kind: Type, depth: int, env: list[Var]) -> Expr:
        x, n, t = self.var(VEC), self.var(NUMBER), self.var(self.vecs)
        data = Tuple([self.expr(PAIR, depth, env), self.expr(self.vecs, depth, env)])
        cons = PatternConstructor(self.cons, [PatternVar(x), PatternVar(t)])
        first = PatternTuple([PatternTuple([PatternWildcard(), PatternVar(n)]), cons])
        return Match(data, [
            Clause(first, self.expr(kind, depth, [*env, x, n, t])),
            Clause(PatternWildcard(), self.expr(kind, depth, env)),
        ])  # fmt: skip

    # One maker a type.

    def vector(self, depth: int, env: list[Var]) -> Expr:
        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        name = self.random.choice(["add", "subtract", "maximum", "minimum"])
        return self.pick(
            lambda: op.call(name, part(VEC), part(VEC)),
            lambda: op.call(self.random.choice(["nn.relu", "negative"]), part(VEC)),
            lambda: op.call("add", part(VEC), op.call("cast", part(NUMBER), dtype="float32")),
            lambda: TupleGetItem(part(PAIR), 0),
            lambda: Call(part(FUNC), [part(VEC)]),
            lambda: Call(Call(part(MAKER), [part(NUMBER)]), [part(VEC)]),
            lambda: RefRead(part(CELL)),
            lambda: op.call("add", part(VEC), op.call("sum", part(OPEN), axis=None)),
            lambda: self.folded(depth, env),
            lambda: self.split(depth, env),
        )

    def folded(self, depth: int, env: list[Var]) -> Expr:
        total, v = self.var(VEC), self.var(VEC)
        step = Function([total, v], self.expr(VEC, depth, [*env, total, v]), VEC)
        args = [step, self.expr(VEC, depth, env), self.expr(self.vecs, depth, env)]
        return Call(self.module.get_global_var("fold"), args)

    def split(self, depth: int, env: list[Var]) -> Expr:
        """An operator with several results, some of them used."""
        long = op.call("concatenate", Tuple([self.expr(VEC, depth, env) for _ in range(2)]), axis=0)
        parts = self.var(TupleType([VEC, VEC]))
        picked = [TupleGetItem(parts, self.random.randint(0, 1)) for _ in range(2)]
        split = op.call("split", long, indices_or_sections=2, axis=0)
        return Let(parts, split, op.call("maximum", *picked))

    def number(self, depth: int, env: list[Var]) -> Expr:
        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        return self.pick(
            lambda: op.call("maximum", part(NUMBER), part(NUMBER)),
            lambda: op.call("minimum", part(NUMBER), const(3)),
            lambda: TupleGetItem(part(PAIR), 1),
            lambda: op.call("take", op.call("shape_of", part(OPEN), dtype="int32"), const(0)),
            lambda: op.call(
                "cast", op.call("clip", op.call("sum", part(VEC), axis=None), a_min=0, a_max=5),
                dtype="int32",
            ),
        )  # fmt: skip

    def open(self, depth: int, env: list[Var]) -> Expr:
        """Vectors of any length: kept where they are positive, joined, reshaped, masked."""

        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        def positive() -> Expr:
            found = op.call("argwhere", op.call("greater", part(OPEN), const(0.0)))
            flat = op.call("reshape", found, newshape=(-1,))
            return op.call("cast", flat, dtype="float32")

        def short(x: Expr) -> Expr:
            return op.call("strided_slice", x, begin=[0], end=[7], strides=[1])

        def shaped() -> Expr:
            v = self.var(OPEN)
            again = op.call("reshape", v, newshape=(1, -1))
            size = op.call("shape_of", v, dtype="int64")
            # Never empty: a 0 in a new shape copies a dim.
            value = op.call("concatenate", Tuple([part(VEC), part(OPEN)]), axis=0)
            return Let(v, value, op.call("dyn.reshape", again, size, newshape=()))

        return self.pick(
            lambda: short(op.call("concatenate", Tuple([part(OPEN), part(OPEN)]), axis=0)),
            lambda: short(op.call("concatenate", Tuple([part(VEC), part(OPEN)]), axis=0)),
            lambda: op.call(self.random.choice(["nn.relu", "negative"]), part(OPEN)),
            lambda: op.call("add", part(OPEN), op.call("cast", part(NUMBER), dtype="float32")),
            lambda: self.doubled(part(OPEN)),
            positive,
            shaped,
        )

    def doubled(self, value: Expr) -> Expr:
        v = self.var(OPEN)
        return Let(v, value, op.call("maximum", op.call("negative", v), v))

    def flag(self, depth: int, env: list[Var]) -> Expr:
        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        return self.pick(
            lambda: op.call("less", part(NUMBER), part(NUMBER)),
            lambda: op.call("less", op.call("sum", part(VEC), axis=None), const(1.0)),
            lambda: op.call("logical_not", part(FLAG)),
            lambda: Call(
                self.module.get_global_var("even"), [op.call("minimum", part(NUMBER), const(6))]
            ),
        )

    def function(self, depth: int, env: list[Var]) -> Expr:
        v = self.var(VEC)
        return self.pick(
            lambda: Function([v], self.expr(VEC, depth, [*env, v]), VEC),
            lambda: Call(self.expr(MAKER, depth, env), [self.expr(NUMBER, depth, env)]),
        )

    def maker(self, depth: int, env: list[Var]) -> Expr:
        n = self.var(NUMBER)
        return Function([n], self.expr(FUNC, depth, [*env, n]), FUNC)

    def cell(self, depth: int, env: list[Var]) -> Expr:
        return RefCreate(self.expr(VEC, depth, env))

    def pair(self, depth: int, env: list[Var]) -> Expr:
        return Tuple([self.expr(VEC, depth, env), self.expr(NUMBER, depth, env)])

    def vectors(self, depth: int, env: list[Var]) -> Expr:
        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        return self.pick(
            lambda: Call(self.cons, [part(VEC), part(self.vecs)]),
            lambda: Call(self.cons, [part(VEC), Call(self.nil, [])]),
            lambda: Call(self.module.get_global_var("map"), [part(FUNC), part(self.vecs)]),
            lambda: Call(
                self.module.get_global_var("leaves"), [part(self.bush), part(self.vecs)]
            ),
        )

    def branching(self, depth: int, env: list[Var]) -> Expr:
        def part(kind: Type) -> Expr:
            return self.expr(kind, depth, env)

        return self.pick(
            lambda: Call(self.leaf, [part(VEC)]),
            lambda: Call(self.fork, [part(self.bush), part(self.bush)]),
        )


def _variables(expr: Expr) -> set[Expr]:
    from ixion.ir import free_vars

    return set(free_vars(expr))
